"""Many summaries of one's own, scored in one go: a file of pairs in, one line a summary out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ensue.atomic import write_atomic
from ensue.benchmarks.nlu.files import Found, Row, jsonl_rows
from ensue.benchmarks.qags.choices import Preset
from ensue.benchmarks.qags.inspect import lines_of, pieces_of
from ensue.benchmarks.qags.pipeline import Pair, Parts, examine, is_halved
from ensue.benchmarks.qags.scores import scored
from ensue.benchmarks.qags.steps import Steps
from ensue.errors import EnsueError
from ensue.models.protocols import Encoder
from ensue.progress import Progress


class Given(NamedTuple):
    """A pair as it was given, and what it is called."""

    id: str
    pair: Pair


def read_pairs(path: Path) -> list[Given]:
    """Rows with `source`, `summary` and perhaps `id`; either text may be empty, which is told when it is scored."""
    found = [
        Given(_id(row, number), Pair(row.any_text("source"), row.any_text("summary")))
        for number, row in enumerate(jsonl_rows(Found(path)), start=1)
    ]
    if twice := [name for name, count in Counter(one.id for one in found).items() if count > 1]:
        raise EnsueError(f"{path} has the id {twice[0]!r} twice; give every pair an id of its own, or none.")
    return found


def _id(row: Row, number: int) -> str:
    """What a pair is called: its number where it says nothing."""
    given = row.fields.get("id")
    if isinstance(given, list | dict | bool):
        row.refuse("'id' is neither a text nor a number")
    if is_halved(str(given)):
        row.refuse("'id' has half a character in it (a lone surrogate)")
    return str(number if given is None else given)


def score_pairs(
    given: Sequence[Given],
    parts: Parts,
    preset: Preset,
    *,
    similarity: str = "f1",
    encoder: Encoder | None = None,
    steps: Steps | None = None,
    progress: Progress | None = None,
) -> Iterator[dict[str, Any]]:
    """One row a pair: its score, its questions and the parts in doubt; 0 where `trouble` says why."""
    pairs = [one.pair for one in given]
    examined = examine(pairs, parts, preset.asking, [preset.keeping], steps=steps, progress=progress)
    results = scored(examined, 0, similarity, encoder)
    for one, found, result in zip(given, examined, results, strict=True):
        lines = () if result.trouble else lines_of(found, result)
        pieces = pieces_of(one.pair.summary, lines)
        yield {
            "id": one.id,
            "score": result.score,
            "questions": [line._asdict() for line in lines],
            "inconsistent": [
                {"text": piece.text, "start": piece.start, "end": piece.end}
                for piece in pieces
                if piece.inconsistent
            ],
            **({"trouble": result.trouble} if result.trouble else {}),
        }


def write_rows(rows: Iterable[dict[str, Any]], path: Path) -> None:
    """One JSON line a row."""
    write_atomic(path, (json.dumps(row, ensure_ascii=False) + "\n" for row in rows), make_folder=True)
