"""What people made of three summaries a question: the evaluation's file, and tables 5.5 and A.10 from it.

The paper's coverage is the file's `selection`. A table's value is the mean over 100 questions of the mean of three
ratings, its deviation the population's, of those 100 means. All nine means and eight deviations come out as printed;
the ninth (BART+DPR, overall) is 16.448 and printed as 16.5, as if rounded to 16.45 first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ensue.benchmarks.nlu.files import Found, Row, jsonl_rows
from ensue.errors import EnsueError

FILE = "all-responses.jsonl"
HUMAN = "human"
SYSTEMS = ("bart", "bart-dpr", HUMAN)
PROPERTIES = ("correctness", "coverage", "overall")
REVIEWS = 3
# Our names of properties, after the paper's tables, and the file's.
_FIELDS = {"correctness": "correctness", "coverage": "selection", "overall": "overall"}
# Raters were told 1 to 100; some gave 0.
_LOWEST, _HIGHEST = 0.0, 100.0


class Judgment(NamedTuple):
    """One property by one reviewer: a rating from 0 to 100, and the rank among the three that it implies."""

    rating: float
    rank: int


class Mark(NamedTuple):
    """A stretch of a summary that a reviewer marked as wrong, with what was said of it."""

    selection: str
    comments: tuple[str, ...]


class Review(NamedTuple):
    """One reviewer's view of one summary."""

    worker: str
    judgments: dict[str, Judgment]
    marks: tuple[Mark, ...]


class Rated(NamedTuple):
    """One summary with its reviews; questions are counted from 1, as in the stories' files."""

    story: str
    question: int
    system: str
    text: str
    reviews: tuple[Review, ...]

    @property
    def example(self) -> str:
        return f"{self.story}/{self.question}"

    def rating(self, name: str) -> float:
        """The mean rating of a property."""
        return float(np.mean([review.judgments[name].rating for review in self.reviews]))


class RatingRow(NamedTuple):
    """One cell of table A.10 with both its numbers, on the scale of the ratings."""

    system: str
    property: str
    mean: float
    deviation: float
    n: int


def find_human_eval(data: Path) -> Path:
    """The evaluation's file: as named, or within SQuALITY's folder."""
    if data.is_file():
        return data
    for place in (data / FILE, data / "human-eval" / FILE, data / "data" / "human-eval" / FILE):
        if place.is_file():
            return place
    raise EnsueError(f"{data} has no human-eval/{FILE}; name SQuALITY's folder with --data.")


def read_human_eval(path: Path) -> list[Rated]:
    """Every summary of the evaluation with its reviews, by story, question and system."""
    found: list[Rated] = []
    seen: set[str] = set()
    for row in jsonl_rows(Found(path)):
        story = row.text("passage-id")
        if story in seen:
            row.refuse(f"story {story} was there before; take one of the two away")
        seen.add(story)
        questions = row.inner("questions")
        for key in questions.fields:
            if not (key.isascii() and key.isdigit()):
                questions.refuse(f"the question {key!r} is not a number")
            systems = questions.inner(key)
            found += [_rated(systems.inner(system), story, int(key) + 1, system) for system in systems.fields]
    return found


def rating_table(rated: Sequence[Rated]) -> list[RatingRow]:
    """Tables 5.5 and A.10: systems in order of appearance, each with its properties."""
    rows = []
    for system in dict.fromkeys(one.system for one in rated):
        for name in PROPERTIES:
            values = [one.rating(name) for one in rated if one.system == system]
            rows.append(RatingRow(system, name, float(np.mean(values)), float(np.std(values)), len(values)))
    return rows


def preferred(rated: Sequence[Rated], first: str, second: str, name: str = "overall") -> float:
    """The share of questions on which the first system's mean rating is above the second's, a tie being half.

    BART+DPR is above BART on 71 % by correctness, 70 % by coverage and 70.5 % overall; the paper says 70 %.
    """
    ratings = {(one.example, one.system): one.rating(name) for one in rated}
    examples = [example for example, system in ratings if system == first and (example, second) in ratings]
    if not examples:
        raise EnsueError(f"No question has summaries of both {first!r} and {second!r}.")
    return float(
        np.mean([(np.sign(ratings[one, first] - ratings[one, second]) + 1.0) / 2.0 for one in examples])
    )


def ranked_first(rated: Sequence[Rated], system: str, name: str = "overall") -> float:
    """The share of reviews in which a system's summary has the best rank, alone or with others.

    The paper has every annotator rank people's summaries first throughout. That is so of the mean ratings; of single
    reviews 98 % rank them first overall and by coverage, 90 % by correctness.
    """
    ranks = [review.judgments[name].rank for one in rated if one.system == system for review in one.reviews]
    if not ranks:
        raise EnsueError(f"There is no summary of {system!r}; choose one of {', '.join(SYSTEMS)}.")
    return sum(rank == 1 for rank in ranks) / len(ranks)


def _rated(row: Row, story: str, question: int, system: str) -> Rated:
    reviews = tuple(_review(inner) for inner in row.rows("reviews"))
    if len(reviews) != REVIEWS:
        row.refuse(f"there are {len(reviews)} reviews where {REVIEWS} were expected")
    if len({review.worker for review in reviews}) != len(reviews):
        row.refuse("one reviewer is there twice")
    one = Rated(story, question, system, row.text("response"), reviews)
    if "overall" in row.fields:
        _check_means(row.inner("overall"), one)
    return one


def _review(row: Row) -> Review:
    judgments = {}
    for name, field in _FIELDS.items():
        rank = row.whole(f"{field}-rank")
        judgments[name] = Judgment(row.score(f"{field}-rating", _LOWEST, _HIGHEST), rank)
    marks = tuple(_mark(inner) for inner in row.rows("annotations"))
    return Review(row.text("worker_id"), judgments, marks)


def _mark(row: Row) -> Mark:
    comments = row.value("annotation")
    listed = [comments] if isinstance(comments, str) else comments
    if not isinstance(listed, list) or not all(isinstance(comment, str) for comment in listed):
        row.refuse("'annotation' is not a list of texts")
    return Mark(row.any_text("selection"), tuple(str(comment) for comment in listed))


def _check_means(row: Row, one: Rated) -> None:
    """The means a file states must be those of its ratings; were they not, one of the two would be wrong."""
    for name, field in _FIELDS.items():
        stated = row.score(f"{field}-rating", _LOWEST, _HIGHEST)
        if not math.isclose(stated, one.rating(name), abs_tol=0.01):
            row.refuse(
                f"the mean {field}-rating is {stated:g} where the reviews' is {one.rating(name):g}; mend one"
            )
