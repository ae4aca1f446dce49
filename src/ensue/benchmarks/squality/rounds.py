"""What came of the stages of an annotated story: answers, rankings, ratings, pay, and files in SQuALITY's own format.

Rankings, bonuses and costs are by the rules of `benchmarks.crowd`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ensue.benchmarks.base import content_of
from ensue.benchmarks.crowd.protocol import Rates, RoundOutcome, settle
from ensue.benchmarks.crowd.rankings import ReviewerRanking, agreeing_pairs
from ensue.benchmarks.people.export import Export, Record
from ensue.benchmarks.people.form import Values
from ensue.benchmarks.people.kind import Earned, Files, Judged, mean_row
from ensue.benchmarks.squality.data import Question, StoryQuestion, find_file, read_stories, versions
from ensue.benchmarks.squality.human_eval import FILE as EVALUATION
from ensue.benchmarks.squality.human_eval import HUMAN, PROPERTIES, REVIEWS
from ensue.errors import EnsueError
from ensue.jsonl import JSON_LINES, read_lines
from ensue.report.results import MetricRow
from ensue.text.documents import read_documents

QUESTIONING, WRITING, REVIEWING, RATING = STAGES = ("questions", "writing", "reviewing", "rating")
# What reviewers said comes back to the writers.
FEEDBACK = "feedback"
# The file's names of our properties.
_RATED = {"correctness": "correctness", "coverage": "selection", "overall": "overall"}


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


class Answered(Protocol):
    """What `Done` and `Record` share."""

    @property
    def key(self) -> Mapping[str, Any]: ...
    @property
    def annotator(self) -> str: ...
    @property
    def values(self) -> Values: ...


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
        # Where questions were composed anew, the later ones hold.
        asked = list(written[-1].key["questions"])
        kept = [one for one in written if one.key["questions"] == asked]
        answers = {
            one.annotator: [one.values[f"answer{n}"] for n in range(1, len(asked) + 1)] for one in kept
        }
        found.append(
            Round(
                story,
                str(kept[-1].key["content"]),
                tuple(asked),
                answers,
                by_stage[REVIEWING][story],
                by_stage[RATING][story],
                int(export.settings["writers"]),
            )
        )
    return found


def rankings(reviews: Iterable[Answered], writers: Sequence[str]) -> dict[int, list[ReviewerRanking]]:
    """Return what reviewers said, by question; reviews of answers that no longer count are left out."""
    found: dict[int, list[ReviewerRanking]] = defaultdict(list)
    for one in reviews:
        of = one.key["of"]
        if sorted([one.annotator, *of.values()]) == list(writers):
            places = {of[letter]: int(place) for letter, place in one.values["rank"].items()}
            found[int(one.key["question"])].append(ReviewerRanking(one.annotator, places))
    return dict(found)


def reviews_in(reviews: Iterable[Answered], writers: Sequence[str], questions: int) -> bool:
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
    """Return what everybody is owed: so much a story and stage, by the share done, and bonuses once all is in."""
    rates = rates_of(export)
    rating = Fraction(str(export.settings["rating_pay"]))
    pay: dict[str, Fraction] = defaultdict(Fraction)
    bonus: dict[str, Fraction] = defaultdict(Fraction)
    for one in rounds_of(export):
        for writer in one.answers:
            pay[writer] += rates.writing
        for review in one.reviews:
            pay[review.annotator] += rates.reviewing / len(one.questions)
        for person, amount in one.outcome(rates).bonuses.items() if one.reviewed else ():
            bonus[person] += amount
    rated = list(export.answers(RATING))
    questions: dict[str, set[int]] = defaultdict(set)
    for record in rated:
        questions[record.key["story"]].add(record.key["question"])
    for record in rated:
        pay[record.annotator] += rating / len(questions[record.key["story"]])
    return {name: Earned(pay[name], bonus[name]) for name in dict.fromkeys([*pay, *bonus])}


# Files


def files(export: Export, sources: Sequence[Source]) -> Files:
    """Return stories that are written in SQuALITY's format, with their reviews, outcomes and ratings."""
    known = {one.id: one for one in sources}
    every = rounds_of(export)
    whole = [one for one in every if one.written]
    if not whole:
        raise EnsueError("No story has all its answers yet.")
    for one in whole:
        if one.story not in known or content_of(known[one.story].text) != one.content:
            raise EnsueError(
                f"The story {one.story} is not as it was read in the data; name the project's data with --data."
            )
    texts = {f"{export.settings['split']}.jsonl": _lines(_story(known[one.story], one) for one in whole)}
    reviewed = [one for one in whole if one.reviewed]
    if reviewed:
        texts["reviews.jsonl"] = _lines(_review(review, one) for one in reviewed for review in one.reviews)
        outcomes = [_outcome(one, rates_of(export)) for one in reviewed]
        texts["rounds.json"] = json.dumps(outcomes, indent=2, ensure_ascii=False) + "\n"
    notes = [f"{len(whole)} of {len(every)} stories have all answers, {len(reviewed)} all reviews"]
    evaluated = _evaluation([(one.story, _ratings(one)) for one in whole])
    if evaluated:
        texts[f"human-eval/{EVALUATION}"] = _lines(evaluated)
        notes.append(f"{len(evaluated)} of them have {REVIEWS} ratings of everything")
    return Files(texts, notes)


def rating_files(export: Export, sources: Sequence[Source], texts: Mapping[tuple[str, str], str]) -> Files:
    """Return what was rated of the data's own stories, with these stories; `texts` are by item and letter."""
    given: dict[str, _Collected] = {}
    for one in export.answers(RATING):
        story = given.setdefault(one.key["story"], defaultdict(lambda: defaultdict(list)))
        for letter, system in one.key["of"].items():
            story[int(one.key["question"])][system, texts[one.item, letter]].append((one, letter))
    evaluated = _evaluation(list(given.items()))
    if not evaluated:
        raise EnsueError(f"No story has {REVIEWS} ratings of everything yet.")
    done = {row["passage-id"] for row in evaluated}
    stories = [_published(one) for one in sources if one.id in done]
    return Files(
        {f"{export.settings['split']}.jsonl": _lines(stories), f"human-eval/{EVALUATION}": _lines(evaluated)},
        [f"{len(done)} of {len(given)} stories have {REVIEWS} ratings of everything"],
    )


def _lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _row(source: Source, questions: list[dict[str, Any]]) -> dict[str, Any]:
    about = {"passage_id": source.id, "uid": source.uid, "license": source.license}
    return {"metadata": about, "document": source.document, "questions": questions}


def _published(source: Source) -> dict[str, Any]:
    return _row(
        source,
        [
            {
                "question_text": one.text,
                "question_number": one.number,
                "responses": [
                    {"worker_id": said.writer, "uid": said.uid, "response_text": said.text}
                    for said in one.responses
                ],
            }
            for one in source.questions
        ],
    )


def _story(source: Source, one: Round) -> dict[str, Any]:
    return _row(
        source,
        [
            {
                "question_text": text,
                "question_number": number,
                "responses": [
                    {
                        "worker_id": writer,
                        "uid": f"{one.story}-{number}-{writer}",
                        "response_text": one.answers[writer][number - 1],
                    }
                    for writer in sorted(one.answers)
                ],
            }
            for number, text in enumerate(one.questions, 1)
        ],
    )


def _review(review: Record, one: Round) -> dict[str, Any]:
    of = review.key["of"]
    return {
        "story": one.story,
        "question": review.key["question"],
        "reviewer": review.annotator,
        "places": {of[letter]: place for letter, place in review.values["rank"].items()},
        "feedback": {of[letter]: review.values[f"feedback_{letter}"] for letter in of},
        "marks": {of[letter]: review.values.get(f"marks_{letter}") or [] for letter in of},
    }


def _outcome(one: Round, rates: Rates) -> dict[str, Any]:
    found = one.outcome(rates)
    return {
        "story": one.story,
        "writers": sorted(one.answers),
        "rankings": [
            [
                {"writer": each.writer, "place": each.place, "mean_rank": float(each.mean_rank)}
                for each in settled.standings
            ]
            for settled in found.questions
        ],
        "agreement": found.agreement,
        "bonuses": {person: float(amount) for person, amount in sorted(found.bonuses.items())},
        "cost": float(found.costs.total),
        "cost_per_summary": float(found.costs.per_summary),
    }


# By question, then by system and its text, who rated it in which item under which letter.
_Ratings = Mapping[int, Mapping[tuple[str, str], Sequence[tuple[Record, str]]]]
_Collected = defaultdict[int, defaultdict[tuple[str, str], list[tuple[Record, str]]]]


def _ratings(one: Round) -> _Ratings:
    names = {writer: human_name(place) for place, writer in enumerate(sorted(one.answers))}
    found: _Collected = defaultdict(lambda: defaultdict(list))
    for record in one.ratings:
        number = int(record.key["question"])
        for letter, writer in record.key["of"].items():
            if writer in one.answers:
                found[number][names[writer], one.answers[writer][number - 1]].append((record, letter))
    return found


def _evaluation(stories: Sequence[tuple[str, _Ratings]]) -> list[dict[str, Any]]:
    """Return lines of the evaluation's file for stories all of whose answers have as many ratings as it wants."""
    rows = []
    for story, questions in stories:
        counts = {len(given) for systems in questions.values() for given in systems.values()}
        if counts != {REVIEWS}:
            continue
        rows.append(
            {
                "passage-id": story,
                "questions": {
                    str(number - 1): {
                        system: {
                            "response": text,
                            "reviews": [_rated(record, letter, text) for record, letter in given],
                        }
                        for (system, text), given in sorted(systems.items())
                    }
                    for number, systems in sorted(questions.items())
                },
            }
        )
    return rows


def _rated(record: Record, letter: str, text: str) -> dict[str, Any]:
    found: dict[str, Any] = {"worker_id": record.annotator}
    found["annotations"] = [
        {"selection": text[mark["start"] : mark["end"]], "annotation": [mark.get("note") or mark["label"]]}
        for mark in record.values.get(f"marks_{letter}") or ()
    ]
    for name, called in _RATED.items():
        own = record.values[f"{name}_{letter}"]
        others = [record.values[f"{name}_{other}"] for other in record.key["of"]]
        found[f"{called}-rating"] = own
        found[f"{called}-rank"] = 1 + sum(other > own for other in others)
    return found
