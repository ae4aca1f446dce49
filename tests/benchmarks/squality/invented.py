"""Invented stories with summaries, and an invented evaluation, in the layout of the published files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ensue.benchmarks.settings import resolve
from ensue.benchmarks.squality.task import SETTINGS

STORY = (
    "The ferry had not run since spring. Every morning Ilse carried two pails down to the landing, waited until the "
    "fog lifted, and carried them home again, full of river water and one small silver fish."
)
ANSWERS = (
    (
        "Ilse walks to the landing each morning although the ferry has stopped running, and brings back water.",
        "A woman waits at the river every morning. The ferry does not come, and she carries home two pails.",
        "The ferry stopped in spring. Ilse still goes to the landing every morning and returns with a fish.",
        "Each day Ilse waits for a ferry that never comes, then carries her pails home full of river water.",
    ),
    (
        "The setting is a landing by a foggy river where the ferry has not run since spring.",
        "It takes place by a river, in fog, at a landing that no boat calls at any more.",
        "The story is set at the landing of a ferry that stopped in spring.",
        "A landing on a river, in the fog of early morning.",
    ),
)
# Settings of a run that takes no time.
QUICK: dict[str, Any] = {"metrics": "rouge", "statistics": "no"}
LONG = " ".join(f"On day {n} Ilse went down to the landing and no ferry came." for n in range(60))
ASKED = ("What is the plot of the story?", "Where does it happen?")


def story_row(story: str = "9001", document: str = STORY) -> dict[str, Any]:
    """A row as the files of every version have it."""
    return {
        "metadata": {"passage_id": story, "uid": f"story-{story}", "license": "written for these tests"},
        "document": document,
        "questions": [
            {
                "question_text": ASKED[number - 1],
                "question_number": number,
                "responses": [
                    {"worker_id": str(place), "uid": f"{story}-{number}-{place}", "response_text": text}
                    for place, text in enumerate(texts, 1)
                ],
            }
            for number, texts in enumerate(ANSWERS, 1)
        ],
    }


def review_row(worker: str, rating: float, rank: int) -> dict[str, Any]:
    """A review that rates every property alike."""
    scores = {f"{name}-rating": rating for name in ("correctness", "selection", "overall")}
    ranks = {f"{name}-rank": rank for name in ("correctness", "selection", "overall")}
    marks = [{"selection": "full of river water", "annotation": ["it was half full"]}] if rank == 3 else []
    return {"worker_id": worker, "annotations": marks, **scores, **ranks}


def evaluation_row(story: str = "9001", shift: float = 0.0) -> dict[str, Any]:
    """An evaluated story; people's summary is the question's second reference."""
    questions = {}
    for key, texts in enumerate(ANSWERS):
        given = {"bart": "Ilse waits.", "bart-dpr": "Ilse waits for a ferry in fog.", "human": texts[1]}
        ratings = {"bart": (10, 20, 33), "bart-dpr": (30 + key, 45, 60), "human": (90, 95, 100)}
        questions[str(key)] = {
            system: {
                "response": text,
                "reviews": [
                    review_row(str(worker), ratings[system][worker] - shift, 3 - place) for worker in range(3)
                ],
            }
            for place, (system, text) in enumerate(given.items())
        }
    return {"passage-id": story, "questions": questions}


def write_rows(path: Path, *rows: object) -> Path:
    """A file with a JSON value a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def values(found: Any) -> dict[str, float]:
    """The values of a run by metric."""
    return {row["metric"]: row["value"] for row in found.results["metrics"]}


def asked(**given: Any) -> dict[str, Any]:
    """All settings, those that are given and the defaults."""
    return resolve("squality", SETTINGS, given)
