"""Summaries of one's own held against their sources: each question with both answers, and the spans in doubt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.nlu.files import Found, jsonl_rows
from ensue.benchmarks.qags.pipeline import Pair, QagsModels, examine, is_halved
from ensue.benchmarks.qags.questions import Preset
from ensue.benchmarks.qags.scoring import QuestionRow, question_rows, scored
from ensue.errors import EnsueError
from ensue.models.protocols import Encoder
from ensue.progress import Progress, ignore
from ensue.records import Records

# A span whose questions agree less than this on average is marked: of "Ruth Olsen" and "Hanna Olsen" half agrees.
CONSISTENT = 0.6


class Piece(NamedTuple):
    """A part of the summary and the mean similarity of the questions it answers; None where it answers none."""

    text: str
    start: int
    end: int
    similarity: float | None
    questions: int

    @property
    def place(self) -> dict[str, Any]:
        return {"text": self.text, "start": self.start, "end": self.end}

    @property
    def inconsistent(self) -> bool:
        return self.similarity is not None and self.similarity < CONSISTENT


class Inspection(NamedTuple):
    """A summary's score, its questions, the summary in pieces, what filters removed, and the models' names."""

    score: float
    lines: tuple[QuestionRow, ...]
    pieces: tuple[Piece, ...]
    removed: dict[str, int]
    questioner: str
    answerer: str

    def as_dict(self) -> dict[str, Any]:
        return {
            "score": self.score,
            "questions": [line._asdict() for line in self.lines],
            "inconsistent": [
                piece.place | {"similarity": piece.similarity} for piece in self.pieces if piece.inconsistent
            ],
            "removed": dict(self.removed),
            "questioner": self.questioner,
            "answerer": self.answerer,
        }


def inspect(
    source: str,
    summary: str,
    models: QagsModels,
    preset: Preset,
    *,
    similarity: str = "f1",
    encoder: Encoder | None = None,
    records: Records | None = None,
    progress: Progress = ignore,
) -> Inspection:
    """Question one summary; a text with nothing to ask about is one sentence."""
    for name, text in (("source", source), ("summary", summary)):
        if not text.strip():
            raise EnsueError(f"The {name} has no text; give one that has.")
    found = examine(
        [Pair(source, summary)], models, preset.asking, [preset.keeping], records=records, progress=progress
    )[0]
    result = scored([found], 0, similarity, encoder)[0]
    if result.trouble:
        raise EnsueError(
            f"There is nothing to check the summary by ({result.trouble}: 1); give another summary, another "
            f"questioner or weaker filters."
        )
    lines = question_rows(found, result)
    pieces, removed = pieces_of(summary, lines), dict(found.removed(preset.keeping))
    names = (models.questioner.card.name, models.answerer.card.name)
    return Inspection(result.score, lines, pieces, removed, *names)


def pieces_of(summary: str, lines: Sequence[QuestionRow]) -> tuple[Piece, ...]:
    """Cut the summary wherever an answer begins or ends; joined, the pieces are the summary again.

    Questions the summary has no answer to mark nothing, and those that only fill up do so where there are no others.
    """
    placed = [line for line in lines if line.by_summary and 0 <= line.start < line.end <= len(summary)]
    counted = [line for line in placed if not line.padded] or placed
    edges = sorted({0, len(summary), *(edge for line in counted for edge in (line.start, line.end))})
    pieces = []
    for start, end in pairwise(edges):
        over = [line.similarity for line in counted if line.start <= start and end <= line.end]
        mean = sum(over) / len(over) if over else None
        pieces.append(Piece(summary[start:end], start, end, mean, len(over)))
    return tuple(pieces)


def read_pairs(path: Path) -> dict[str, Pair]:
    """Read rows with `source`, `summary` and perhaps `id`, by id or else by number.

    A text may be empty, which is noted when it is scored.
    """
    found: dict[str, Pair] = {}
    for number, row in enumerate(jsonl_rows(Found(path)), start=1):
        given = row.fields.get("id")
        if isinstance(given, list | dict | bool):
            row.refuse("'id' is neither a text nor a number")
        name = str(number if given is None else given)
        if is_halved(name):
            row.refuse("'id' has half a character in it (a lone surrogate)")
        if name in found:
            row.refuse(f"the id {name!r} is there twice; give every pair an id of its own, or none")
        found[name] = Pair(row.any_text("source"), row.any_text("summary"))
    return found


def score_pairs(
    given: Mapping[str, Pair],
    models: QagsModels,
    preset: Preset,
    *,
    similarity: str = "f1",
    encoder: Encoder | None = None,
    records: Records | None = None,
    progress: Progress = ignore,
) -> Iterator[dict[str, Any]]:
    """Yield one row a pair: its score, its questions and the parts in doubt; 0 where `trouble` says why."""
    pairs = list(given.values())
    examined = examine(pairs, models, preset.asking, [preset.keeping], records=records, progress=progress)
    results = scored(examined, 0, similarity, encoder)
    for name, found, result in zip(given, examined, results, strict=True):
        lines = () if result.trouble else question_rows(found, result)
        pieces = pieces_of(given[name].summary, lines)
        yield {
            "id": name,
            "score": result.score,
            "questions": [line._asdict() for line in lines],
            "inconsistent": [piece.place for piece in pieces if piece.inconsistent],
            **({"trouble": result.trouble} if result.trouble else {}),
        }
