"""Invented articles in SQuAD's format for tests of question generation."""

from __future__ import annotations

import json
from pathlib import Path

_PEOPLE = ("Anna", "Boris", "Clara", "David", "Edith", "Felix")
_THINGS = ("a boat", "a mill", "an inn", "a farm", "a school", "a bridge")
_PLACES = ("the hill", "the river", "the garden", "the corner", "the town", "the map")


def articles(count: int = 6) -> list[dict]:
    """Each article has a paragraph for each person; questions about who, what and where."""
    out = []
    for number in range(count):
        paragraphs = []
        for place, person in enumerate(_PEOPLE):
            thing, where = _THINGS[(place + number) % 6], _PLACES[(place * 2 + number) % 6]
            context = f"{person} had {thing} by {where}."
            asked = (
                (person, f"Who had {thing} by {where}?"),
                (thing, f"What did {person} have by {where}?"),
                (where, f"By what did {person} have {thing}?"),
            )
            qas = [
                {
                    "id": f"{number}-{place}-{n}",
                    "question": question,
                    "answers": [{"text": answer, "answer_start": context.index(answer)}],
                }
                for n, (answer, question) in enumerate(asked)
            ]
            qas.append(
                {
                    "id": f"{number}-{place}-none",
                    "question": f"When did {person} sell it?",
                    "answers": [],
                    "is_impossible": True,
                }
            )
            paragraphs.append({"context": context, "qas": qas})
        out.append({"title": f"Article {number}", "paragraphs": paragraphs})
    return out


def write(path: Path, count: int = 6) -> Path:
    path.write_text(json.dumps({"version": "v2.0", "data": articles(count)}), "utf-8")
    return path
