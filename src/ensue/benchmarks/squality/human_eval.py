"""`squality/human-eval`: what people made of three summaries a question, and how metrics agree with them.

The ratings are tables 5.5 and A.10. The paper's coverage is the file's `selection`. A table's value is the mean over
100 questions of the mean of three ratings, its deviation the population's, of those 100 means. All nine means and
eight deviations come out as printed; the ninth (BART+DPR, overall) is 16.448 and printed as 16.5, as if rounded to
16.45 first.

Table 5.6's model-only correlations are all near zero and partly negative (ROUGE-1 -7.4, ROUGE-2 -7.8, ROUGE-L -3.2).
From the published texts and ratings they are 27.6, 28.8 and 31.9, and their intervals leave zero out: on these 200
summaries ROUGE does tell better ones from worse. Neither the mean over references, nor the first alone, nor leaving
stems out, nor another property, nor Spearman's or Kendall's correlation, nor stories in another order, nor the two
systems exchanged gives the printed numbers. The other columns are nearer: human-only 2.7, 6.0, 1.0 for 6.8, 5.2, 14.0
(none told from zero), and all 57.6, 36.8, 40.5 for 63.1, 42.8, 47.8.

Table 5.7 is of BART+DPR's 180 summaries of the test split, of which 100 are published: ROUGE-1 37.0 and 41.3 where
37.9 and 41.5 are printed, ROUGE-2 8.8 and 11.4 for 8.7 and 11.4, ROUGE-L 18.9 and 21.1 for 18.8 and 21.0. The printed
difference for ROUGE-2 is 2.1; that of its own columns is 2.7.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.benchmarks.base import Outcome, RunContext, content_of
from ensue.benchmarks.drawn import Drawn
from ensue.benchmarks.nlu.files import Found, Row, jsonl_rows
from ensue.benchmarks.squality.data import Story, examples, find_file, read_stories
from ensue.benchmarks.squality.evaluation import bertscore_by, measures_of, rows_of
from ensue.benchmarks.summaries.scoring import LEFT_OUT, named, scores_of
from ensue.errors import EnsueError
from ensue.metrics.correlation import kendall, pearson, spearman
from ensue.models.protocols import Model
from ensue.report.results import Item, MetricRow
from ensue.stats.correlation import correlation_draws, kendall_draws
from ensue.stats.ranges import CORRELATION

TASK = "human-eval"
FILE = "all-responses.jsonl"
# The summary that a person wrote; further ones of a question are `human-2` and so on.
HUMAN = "human"
PROPERTIES = ("correctness", "coverage", "overall")
REVIEWS = 3  # the paper's; more are as good
# Which summaries a correlation is over: models', people's, or both.
SUBSETS = {"model": (False,), "human": (True,), "all": (False, True)}
KINDS: Mapping[str, Callable[[Sequence[float], Sequence[float]], float]] = {
    "pearson": pearson,
    "spearman": spearman,
    "kendall": kendall,
}
# Our names of properties, after the paper's tables, and the file's.
_FIELDS = {"correctness": "correctness", "coverage": "selection", "overall": "overall"}
# Raters were told 1 to 100; some gave 0. Rows are of fractions.
_LOWEST, _HIGHEST = 0.0, 100.0


class Rated(NamedTuple):
    """One summary with its reviews, a rating of each property; questions are counted from 1, as in the stories."""

    story: str
    question: int
    system: str
    text: str
    reviews: tuple[Mapping[str, float], ...]

    @property
    def example(self) -> str:
        return f"{self.story}/{self.question}"

    @property
    def by_person(self) -> bool:
        return self.system.partition("-")[0] == HUMAN

    def rating(self, name: str) -> float:
        """Return the mean rating of a property."""
        return float(np.mean([review[name] for review in self.reviews]))


def find_human_eval(data: Path) -> Path:
    """Return the evaluation's file within SQuALITY's folder."""
    for place in (data / FILE, data / "human-eval" / FILE, data / "data" / "human-eval" / FILE):
        if place.is_file():
            return place
    raise EnsueError(f"{data} has no human-eval/{FILE}; name SQuALITY's folder with --data.")


def read_human_eval(path: Path) -> list[Rated]:
    """Read every summary of the evaluation with its reviews, by story, question and system."""
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


def _rated(row: Row, story: str, question: int, system: str) -> Rated:
    reviews = row.rows("reviews")
    if len(reviews) < REVIEWS:
        row.refuse(f"there are {len(reviews)} reviews where at least {REVIEWS} were expected")
    if len({review.text("worker_id") for review in reviews}) != len(reviews):
        row.refuse("one reviewer is there twice")
    one = Rated(story, question, system, row.text("response"), tuple(map(_ratings, reviews)))
    if "overall" in row.fields:
        # The means a file states must be those of its ratings; were they not, one of the two would be wrong.
        for name, stated in _ratings(row.inner("overall")).items():
            if not math.isclose(stated, one.rating(name), abs_tol=0.01):
                row.refuse(
                    f"the mean {_FIELDS[name]}-rating is {stated:g} where the reviews' is {one.rating(name):g}; "
                    f"mend one"
                )
    return one


def _ratings(row: Row) -> dict[str, float]:
    return {name: row.score(f"{field}-rating", _LOWEST, _HIGHEST) for name, field in _FIELDS.items()}


def rating_rows(rated: Sequence[Rated]) -> list[dict[str, Any]]:
    """Return tables 5.5 and A.10: systems in order of appearance, each with its properties."""
    rows = []
    for system in dict.fromkeys(one.system for one in rated):
        for name in PROPERTIES:
            values = [one.rating(name) for one in rated if one.system == system]
            mean, deviation = float(np.mean(values)), float(np.std(values))
            rows.append(
                {"system": system, "property": name, "mean": mean, "deviation": deviation, "n": len(values)}
            )
    return rows


def references_of(rated: Sequence[Rated], stories: list[Story]) -> list[tuple[str, ...]]:
    """Return each summary's references: all of its question's, without itself where a person wrote it."""
    questions = {one.id: one.question.references for one in examples(stories)}
    found = []
    for one in rated:
        if one.example not in questions:
            raise EnsueError(
                f"Question {one.question} of story {one.story} was rated but is not among the stories; "
                "read the test split of version 1."
            )
        references = questions[one.example]
        if one.by_person:
            left = tuple(text for text in references if text.split() != one.text.split())
            if len(left) == len(references):
                raise EnsueError(
                    f"The human summary of question {one.question}, story {one.story} is none of its references."
                )
            references = left
        found.append(references)
    return found


def correlation_rows(
    rated: Sequence[Rated], metrics: Mapping[str, Sequence[float]], kind: str, seed: int = 0
) -> Iterator[MetricRow]:
    """Correlate metrics of single summaries with their overall ratings (table 5.6), resampling whole stories.

    A correlation that does not exist (a constant metric, a single summary) has no row.
    """
    for name, values in metrics.items():
        for subset, human in SUBSETS.items():
            places = [place for place, one in enumerate(rated) if one.by_person in human]
            if len(places) < 2:
                continue
            x = np.array([values[place] for place in places], dtype=np.float64)
            y = np.array([rated[place].rating("overall") for place in places])
            value = KINDS[kind](x.tolist(), y.tolist())
            if np.isnan(value):
                continue
            clusters = [rated[place].story for place in places]
            drawn = Drawn(value, _draws(kind, x, y, clusters, seed), len(x), len(set(clusters)), CORRELATION)
            yield drawn.row(TASK, kind, {"of": name, "with": "overall", "summaries": subset})


def _draws(
    kind: str, x: NDArray[np.float64], y: NDArray[np.float64], clusters: Sequence[str], seed: int
) -> NDArray[np.float64]:
    if kind == "kendall":
        return kendall_draws(x, y, clusters, seed=seed)
    return np.asarray(getattr(correlation_draws(x, y, clusters, seed=seed), kind))


@dataclass(frozen=True)
class HumanEvalRun:
    """The evaluation's summaries with their ratings, and the stories whose references they are measured against."""

    rated: list[Rated]
    stories: list[Story]
    path: Path
    label: str
    seed: int
    settings: dict[str, Any]

    @classmethod
    def read(cls, folder: Path, limit: int | None, seed: int, settings: dict[str, Any]) -> HumanEvalRun:
        """Read the evaluation and the stories of SQuALITY's folder; a limit is of rated stories."""
        if folder.is_file():
            raise EnsueError(f"{folder} is a file; {TASK} needs SQuALITY's folder, for its references, too.")
        rated = read_human_eval(find_human_eval(folder))
        path, label = find_file(folder, settings["version"], settings["split"])
        few = set(list(dict.fromkeys(one.story for one in rated))[:limit])
        rated = [one for one in rated if one.story in few]
        return cls(rated, read_stories(path), folder, label, seed, settings)

    @property
    def fingerprint(self) -> str:
        texts = [f"{one.example}\t{one.system}\t{one.text}\t{one.rating('overall')}" for one in self.rated]
        return hashlib.sha256("\n".join([*texts, *map(repr, self.stories)]).encode()).hexdigest()

    @property
    def source(self) -> str:
        return str(self.path)

    def evaluate(self, model: Model, context: RunContext) -> Outcome:
        """Measure the rated summaries; the model takes no part."""
        notes = Counter({f"the model {model.card.name} takes no part in {TASK}": 1})
        references = references_of(self.rated, self.stories)
        measures = measures_of(self.settings, context.load_further, notes)
        by_metric = scores_of([one.text for one in self.rated], references, measures)
        best = {name: [max(row) for row in rows] for name, rows in by_metric.items()}
        items = list(self._items(by_metric, references))
        rows = []
        for system in dict.fromkeys(one.system for one in self.rated):
            # Ratings are table 5.5, metrics table 5.7.
            rows += rows_of([item for item in items if item["settings"]["system"] == system])
        for kind in KINDS:
            rows += correlation_rows(self.rated, best, kind, self.seed)
        parts = [f"set:{self.label}", f"metrics:{','.join(self.settings['metrics'])}"]
        if "bertscore" in self.settings["metrics"]:
            parts.append(bertscore_by(self.settings, context.load_further))
        return Outcome(
            items=items,
            metrics=rows,
            signature=" ".join([*parts, "property:overall", f"seed:{self.seed}"]),
            skipped={},
            tokens=0,
            # Table A.10's deviations belong to no single metric row.
            extras={"ratings": rating_rows(self.rated)},
            notes=notes,
        )

    def _items(
        self, by_metric: Mapping[str, Sequence[Sequence[float]]], references: Sequence[tuple[str, ...]]
    ) -> Iterator[Item]:
        for place, one in enumerate(self.rated):
            ratings = {name: one.rating(name) for name in PROPERTIES}
            by_reference = {name: list(rows[place]) for name, rows in by_metric.items()}
            scores = named(by_reference)
            if one.by_person:
                # Its own text is left out of the references already.
                scores |= {name + LEFT_OUT: scores[name] for name in by_metric}
            yield Item(
                id=f"{one.example}/{one.system}",
                cluster=one.story,
                task=TASK,
                settings={"system": one.system},
                scores={**{name: rating / _HIGHEST for name, rating in ratings.items()}, **scores},
                outputs={"summary": one.text, "by_reference": by_reference},
                content=content_of(one.text, references[place], ratings),
            )
