"""One summary held against its source: each question with both answers, and the spans in doubt."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ensue.benchmarks.qags.choices import Preset
from ensue.benchmarks.qags.pipeline import Examined, Pair, Parts, examine
from ensue.benchmarks.qags.scores import Scored, scored
from ensue.benchmarks.qags.steps import Steps
from ensue.errors import EnsueError
from ensue.models.protocols import Encoder
from ensue.progress import Progress

# A span whose questions agree less than this on average is marked: of "Ruth Olsen" and "Hanna Olsen" half agrees.
CONSISTENT = 0.6


class Line(NamedTuple):
    """One question: what was asked about, what both texts answer, how alike that is.

    `padded` says that the question did not pass the filters and only fills up their number.
    """

    question: str
    expected: str
    by_summary: str
    by_source: str
    similarity: float
    log_probability: float
    start: int
    end: int
    padded: bool


class Piece(NamedTuple):
    """A part of the summary and the mean similarity of the questions it answers; None where it answers none."""

    text: str
    start: int
    end: int
    similarity: float | None
    questions: int

    @property
    def inconsistent(self) -> bool:
        return self.similarity is not None and self.similarity < CONSISTENT


class Inspection(NamedTuple):
    """All there is to show."""

    score: float
    lines: tuple[Line, ...]
    pieces: tuple[Piece, ...]
    removed: dict[str, int]

    def as_dict(self) -> dict[str, Any]:
        return {
            "score": self.score,
            "questions": [line._asdict() for line in self.lines],
            "inconsistent": [
                {"text": p.text, "start": p.start, "end": p.end, "similarity": p.similarity}
                for p in self.pieces
                if p.inconsistent
            ],
            "removed": dict(self.removed),
        }


def inspect(
    source: str,
    summary: str,
    parts: Parts,
    preset: Preset,
    *,
    similarity: str = "f1",
    encoder: Encoder | None = None,
    steps: Steps | None = None,
    progress: Progress | None = None,
) -> Inspection:
    """Question one summary; a text with nothing to ask about is one sentence."""
    for name, text in (("source", source), ("summary", summary)):
        if not text.strip():
            raise EnsueError(f"The {name} has no text; give one that has.")
    found = examine(
        [Pair(source, summary)], parts, preset.asking, [preset.keeping], steps=steps, progress=progress
    )[0]
    result = scored([found], 0, similarity, encoder)[0]
    if result.trouble:
        raise EnsueError(
            f"There is nothing to check the summary by ({result.trouble}: 1); give another summary, another "
            f"questioner or weaker filters."
        )
    lines = lines_of(found, result)
    return Inspection(result.score, lines, pieces_of(summary, lines), dict(found.removed(preset.keeping)))


def lines_of(found: Examined, result: Scored, which: int = 0) -> tuple[Line, ...]:
    """Each question of a selection once, those that fill up last."""
    selection = found.selections[which]
    padded = set(selection.places[len(selection.places) - selection.padded :])
    alike = dict(zip(selection.places, result.similarities, strict=True))
    lines = []
    for place, similarity in alike.items():
        proposal, on_summary, on_source = (
            found.proposals[place],
            found.on_summary[place],
            found.on_source[place],
        )
        # What the summary answers is what is in doubt; where it has no answer, what was asked about.
        span = on_summary if on_summary.text else proposal.expected
        lines.append(
            Line(
                proposal.question,
                proposal.expected.text,
                on_summary.text,
                "" if on_source is None else on_source.text,
                similarity,
                proposal.score,
                span.start,
                span.end,
                place in padded,
            )
        )
    return tuple(lines)


def pieces_of(summary: str, lines: Sequence[Line]) -> tuple[Piece, ...]:
    """The summary cut wherever an answer begins or ends; joined, the pieces are the summary again.

    Questions the summary has no answer to mark nothing, and those that only fill up do so where there are no others.
    """
    placed = [line for line in lines if line.by_summary and 0 <= line.start < line.end <= len(summary)]
    telling = [line for line in placed if not line.padded] or placed
    edges = sorted({0, len(summary), *(edge for line in telling for edge in (line.start, line.end))})
    pieces = []
    for start, end in pairwise(edges):
        over = [line.similarity for line in telling if line.start <= start and end <= line.end]
        mean = sum(over) / len(over) if over else None
        pieces.append(Piece(summary[start:end], start, end, mean, len(over)))
    return tuple(pieces)
