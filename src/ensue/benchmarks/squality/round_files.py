"""An annotated story as files in SQuALITY's own format: what was written, reviews, outcomes and ratings."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ensue.benchmarks.base import content_of
from ensue.benchmarks.crowd.protocol import Rates
from ensue.benchmarks.people.export import Export, Record
from ensue.benchmarks.people.kind import Files
from ensue.benchmarks.squality.human_eval import FILE as EVALUATION
from ensue.benchmarks.squality.human_eval import REVIEWS
from ensue.benchmarks.squality.rounds import RATING, Round, Source, human_name, rates_of, rounds_of
from ensue.errors import EnsueError

# The file's names of our properties.
_RATED = {"correctness": "correctness", "coverage": "selection", "overall": "overall"}


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
        notes.append(f"{len(evaluated)} of them have {REVIEWS} ratings or more of everything")
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
        raise EnsueError(f"No story has {REVIEWS} ratings or more of everything yet.")
    done = {row["passage-id"] for row in evaluated}
    stories = [_published(one) for one in sources if one.id in done]
    return Files(
        {f"{export.settings['split']}.jsonl": _lines(stories), f"human-eval/{EVALUATION}": _lines(evaluated)},
        [f"{len(done)} of {len(given)} stories have {REVIEWS} ratings or more of everything"],
    )


def _lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _row(source: Source, questions: list[dict[str, Any]]) -> dict[str, Any]:
    about = {"passage_id": source.id, "uid": source.uid, "license": source.license}
    return {"metadata": about, "document": source.document, "questions": questions}


def _question(text: str, number: int, responses: Iterable[tuple[str, str, str]]) -> dict[str, Any]:
    """Return a question with its responses: who wrote each, its id and its text."""
    said = [{"worker_id": by, "uid": id, "response_text": response} for by, id, response in responses]
    return {"question_text": text, "question_number": number, "responses": said}


def _published(source: Source) -> dict[str, Any]:
    return _row(source, [_question(one.text, one.number, one.responses) for one in source.questions])


def _story(source: Source, one: Round) -> dict[str, Any]:
    asked = []
    for number, text in enumerate(one.questions, 1):
        written = (
            (by, f"{one.story}-{number}-{by}", one.answers[by][number - 1]) for by in sorted(one.answers)
        )
        asked.append(_question(text, number, written))
    return _row(source, asked)


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
        if min(counts, default=0) < REVIEWS:
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
