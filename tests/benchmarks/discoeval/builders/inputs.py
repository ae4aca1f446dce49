"""Invented corpora for the builders: every sentence says which document and which place it is from."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

_SAYS = re.compile(r"Document (\d+) says its sentence (\d+) here\.")


def sentence(document: int, place: int) -> str:
    return f"Document {document} says its sentence {place} here."


def origin(text: str) -> tuple[int, int]:
    """The document and the place that a sentence is from."""
    match = _SAYS.fullmatch(text)
    assert match is not None, text
    return int(match[1]), int(match[2])


def documents(count: int, lengths: tuple[int, ...] = (8,), **more: Any) -> list[dict[str, Any]]:
    """Documents of the lengths in turn; `more` are columns, each a function of the document's number."""
    return [
        {
            "id": f"d{number}",
            "sentences": [sentence(number, place) for place in range(lengths[number % len(lengths)])],
            **{name: make(number) for name, make in more.items()},
        }
        for number in range(count)
    ]


def write_lines(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return str(path)


def read_rows(folder: Path) -> dict[str, list[list[str]]]:
    """The columns of a task's three files."""
    return {
        split: [line.split("\t") for line in (folder / f"{split}.txt").read_text("utf-8").splitlines()]
        for split in ("train", "valid", "test")
    }


def disjoint(sets: list[set[Any]]) -> bool:
    return sum(map(len, sets)) == len(set().union(*sets))
