"""What came of the stages of an annotated story: answers, rankings, ratings and pay.

Rankings, bonuses and costs are by the rules of `benchmarks.crowd`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.base import content_of
from ensue.benchmarks.crowd.protocol import Rates, RoundOutcome, settle
from ensue.benchmarks.crowd.rankings import ReviewerRanking, agreeing_pairs
from ensue.benchmarks.people.export import Export, Record
from ensue.benchmarks.people.kind import Done, Earned, Judged, mean_row
from ensue.benchmarks.squality.data import Question, StoryQuestion, find_file, read_stories, versions
from ensue.benchmarks.squality.human_eval import HUMAN, PROPERTIES
from ensue.errors import EnsueError
from ensue.jsonl import JSON_LINES, read_lines
from ensue.report.results import MetricRow
from ensue.text.documents import read_documents

QUESTIONING, WRITING, REVIEWING, RATING = STAGES = ("questions", "writing", "reviewing", "rating")
# What reviewers said comes back to the writers.
FEEDBACK = "feedback"


class Source(NamedTuple):
    """A story to be asked about; its `questions` are those of the data, none where it has none."""

    id: str
    uid: str
    license: str
    document: str
    text: str
    questions: tuple[Question, ...] = ()

    def asked(self) -> list[str]:
        """Return the data's questions; refuse a story without any."""
        if not self.questions:
            raise EnsueError(
                f"The story {self.id} has no questions in the data; let stages begin with questions."
            )
        return [question.text for question in self.questions]


class Round(NamedTuple):
    """A story: its questions, what each writer answered, and the reviews and ratings of that."""

    story: str
    content: str
    questions: tuple[str, ...]
    answers: Mapping[str, Sequence[str]]
    reviews: Sequence[Record]
    ratings: Sequence[Record]
    writers: int

    @property
    def written(self) -> bool:
        return len(self.answers) == self.writers

    @property
    def reviewed(self) -> bool:
        return self.written and reviews_in(self.reviews, sorted(self.answers), len(self.questions))

    def outcome(self, rates: Rates) -> RoundOutcome:
        """Return the outcome of a story that is reviewed."""
        given = rankings(self.reviews, sorted(self.answers))
        return settle(sorted(self.answers), given, rates, len(self.questions))


# Stories


def read_sources(data: str | None, settings: Mapping[str, Any]) -> list[Source]:
    """Read stories: SQuALITY's folder or file, or any documents (their texts alone)."""
    if data is None:
        raise EnsueError(
            "A squality project needs --data: SQuALITY's folder, a file of it, or any stories as documents."
        )
    path = Path(data).expanduser()
    if _is_squality(path):
        file, _ = find_file(path, settings["version"], settings["split"])
        found = [
            Source(one.id, one.uid, one.license, one.document, one.text, one.questions)
            for one in read_stories(file)
        ]
    else:
        texts = ((one.id, one.text or " ".join(one.sentences)) for one in read_documents(data))
        found = [Source(id, id, "", text, text) for id, text in texts]
    return found[: settings["limit"]]


def _is_squality(path: Path) -> bool:
    if path.is_dir():
        return bool(versions(path))
    if not path.is_file() or path.suffix not in JSON_LINES:
        return False
    first = next(read_lines(path), None)
    return first is not None and {"metadata", "document", "questions"} <= first[1].keys()


def systems_summaries(path: str) -> dict[str, dict[str, str]]:
    """Read systems' summaries, by system and by STORY/QUESTION, of JSON lines with id, system and summary."""
    found: dict[str, dict[str, str]] = {}
    for number, row in read_lines(Path(path).expanduser()):
        id, system, text = (row.get(name) for name in ("id", "system", "summary"))
        if not all(isinstance(one, str) and one.strip() for one in (id, system, text)):
            raise EnsueError(f"{path}, line {number} has no id, system and summary.")
        if str(system).partition("-")[0] == HUMAN:
            raise EnsueError(
                f"{path}, line {number}: a system cannot be called {system!r}, as people's summaries are."
            )
        found.setdefault(str(system), {})[str(id)] = str(text)
    return found


def human_name(place: int) -> str:
    """Return what a person's summary is called in an evaluation.

    >>> human_name(0), human_name(1)
    ('human', 'human-2')
    """
    return HUMAN if place == 0 else f"{HUMAN}-{place + 1}"


# Rounds


def rounds_of(export: Export) -> list[Round]:
    """Return every story that was written about, with all that was done on it."""
    by_stage: dict[str, dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for one in export.answers():
        by_stage[one.stage][str(one.key.get("story"))].append(one)
    found = []
    for story, written in by_stage[WRITING].items():
        asked = list(written[0].key["questions"])
        answers = {
            one.annotator: [one.values[f"answer{n}"] for n in range(1, len(asked) + 1)] for one in written
        }
        found.append(
            Round(
                story,
                str(written[0].key["content"]),
                tuple(asked),
                answers,
                by_stage[REVIEWING][story],
                by_stage[RATING][story],
                int(export.settings["writers"]),
            )
        )
    return found


def rankings(reviews: Iterable[Done | Record], writers: Sequence[str]) -> dict[int, list[ReviewerRanking]]:
    """Return what reviewers said, by question; reviews of answers that no longer count are left out."""
    found: dict[int, list[ReviewerRanking]] = defaultdict(list)
    for one in reviews:
        of = one.key["of"]
        if sorted([one.annotator, *of.values()]) == list(writers):
            places = {of[letter]: int(place) for letter, place in one.values["rank"].items()}
            found[int(one.key["question"])].append(ReviewerRanking(one.annotator, places))
    return dict(found)


def reviews_in(reviews: Iterable[Done | Record], writers: Sequence[str], questions: int) -> bool:
    """Return whether every writer has ranked the others' answers to every question."""
    given = rankings(reviews, writers)
    done = {(number, one.reviewer) for number, some in given.items() for one in some}
    return done == {(number, writer) for number in range(1, questions + 1) for writer in writers}


def answers_to(export: Export, examples: Sequence[StoryQuestion]) -> list[dict[str, str]]:
    """Return what people wrote in answer to each of the data's own questions, by writer; nothing where nobody did."""
    known = {one.story: one for one in rounds_of(export)}
    found: list[dict[str, str]] = []
    for example in examples:
        one = known.get(example.story.id)
        if one is not None and one.content != content_of(example.story.text):
            raise EnsueError(f"The story {one.story} is not the one people read; run on the project's data.")
        if one is None or example.question.text not in one.questions:
            found.append({})
            continue
        place = one.questions.index(example.question.text)
        found.append({writer: given[place] for writer, given in sorted(one.answers.items())})
    return found


# Numbers and pay


def scores(export: Export) -> list[MetricRow]:
    """Return how often reviewers agree with the aggregate ranking (76 % in the paper), and the mean ratings."""
    pairs: list[float] = []
    stories: list[str] = []
    for one in rounds_of(export):
        for question in one.outcome(Rates()).questions if one.reviewed else ():
            for ranking in question.rankings:
                count = len(ranking.places) * (len(ranking.places) - 1) // 2
                agreeing = agreeing_pairs(ranking, question.standings)
                pairs += [1.0] * agreeing + [0.0] * (count - agreeing)
                stories += [one.story] * count
    rows = [mean_row(export.kind, "agreement", pairs, stories)] if pairs else []
    rated: dict[str, list[tuple[str, Mapping[str, float]]]] = defaultdict(list)
    writers = {name for one in rounds_of(export) for name in one.answers}
    for record in export.answers(RATING):
        for letter, of in record.key["of"].items():
            system = HUMAN if of in writers else of
            given = {name: record.values[f"{name}_{letter}"] / 100 for name in PROPERTIES}
            rated[system].append((str(record.key["story"]), given))
    for system, some in sorted(rated.items()):
        clusters = [story for story, _ in some]
        rows += [
            mean_row(export.kind, name, [one[name] for _, one in some], clusters, system=system)
            for name in PROPERTIES
        ]
    return rows


def judged(record: Record) -> Iterator[Judged]:
    """Yield what a review or rating says of each response, under whatever letter it was shown; the rest is text."""
    of = record.key.get("of")
    if of is None:
        return
    item = f"{record.key['story']}/{record.key['question']}"
    for letter, name in of.items():
        for field in PROPERTIES:
            if (value := record.values.get(f"{field}_{letter}")) is not None:
                yield Judged(item, name, f"{field}_{letter}", field, value)
        marks = record.values.get(f"marks_{letter}") or []
        yield Judged(item, name, f"marks_{letter}", f"marks while {record.stage}", marks)
    if "rank" in record.values:
        places = {of[letter]: place for letter, place in record.values["rank"].items()}
        yield Judged(item, "", "rank", "rank", places)


def rates_of(export: Export) -> Rates:
    """Return the project's rates; bonuses are the paper's."""
    writing, reviewing = (Fraction(str(export.settings[name])) for name in ("writing_pay", "reviewing_pay"))
    return Rates(writing, reviewing)


def earned(export: Export) -> dict[str, Earned]:
    """Return what everybody is owed: so much a story and stage, by the share done, and bonuses once all is in.

    What was done beside somebody who was excluded, and is done again, is paid each time; bonuses are of what counts.
    """
    rates = rates_of(export)
    rating = Fraction(str(export.settings["rating_pay"]))
    pay: dict[str, Fraction] = defaultdict(Fraction)
    bonus: dict[str, Fraction] = defaultdict(Fraction)
    owed = {stage: [one for one in export.records if one.owed and one.stage == stage] for stage in STAGES}
    asked = {one.key["story"]: len(one.key["questions"]) for one in owed[WRITING]}
    for record in owed[WRITING]:
        pay[record.annotator] += rates.writing
    for record in owed[REVIEWING]:
        pay[record.annotator] += rates.reviewing / asked[record.key["story"]]
    for one in rounds_of(export):
        for person, amount in one.outcome(rates).bonuses.items() if one.reviewed else ():
            bonus[person] += amount
    rated: dict[str, set[int]] = defaultdict(set)
    for record in owed[RATING]:
        rated[record.key["story"]].add(record.key["question"])
    for record in owed[RATING]:
        # Exports of November 2026 before the 19th do not say how many questions a story that was only rated has.
        pay[record.annotator] += rating / (
            record.key.get("question_count") or len(rated[record.key["story"]])
        )
    return {name: Earned(pay[name], bonus[name]) for name in dict.fromkeys([*pay, *bonus])}
