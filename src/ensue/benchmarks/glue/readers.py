"""Makes examples of GLUE's rows: which columns each task has, and what in its official files is out of the ordinary.

Quirks: CoLA's training and development files name no columns; SST-2's sentences end in a space; MRPC's files begin
with a byte order mark; QQP's first release has rows broken by line ends within a question, and empty questions;
the labelled diagnostic set has no index, its order is that of the unlabelled one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ensue.benchmarks.nlu.examples import DEV, TRAIN, Example, TaskSpec, either_way
from ensue.benchmarks.nlu.files import Found, Row, tsv_rows

# What the columns of CoLA's files without a heading are; `mark` is the source's own judgment.
_COLA_COLUMNS = ("source", "label", "mark", "sentence")
_NAMED_AT_MOST = 20
LOWEST, HIGHEST = 0.0, 5.0
COARSE = ("Lexical Semantics", "Predicate-Argument Structure", "Logic", "Knowledge")


class Columns(NamedTuple):
    """Where a task's rows have their texts, gold answer and id; rows without an id are numbered from 0."""

    texts: tuple[str, ...]
    gold: str = "label"
    id: str = "index"


_PAIR = Columns(("sentence1", "sentence2"))
COLUMNS: Mapping[str, Columns] = {
    "CoLA": Columns(("sentence",)),
    "SST-2": Columns(("sentence",)),
    "MRPC": Columns(("#1 String", "#2 String"), "Quality"),
    "QQP": Columns(("question1", "question2"), "is_duplicate", "id"),
    "STS-B": _PAIR._replace(gold="score"),
    "MNLI": _PAIR._replace(gold="gold_label"),
    "QNLI": Columns(("question", "sentence")),
    "RTE": _PAIR,
    "WNLI": _PAIR,
    "diagnostic": _PAIR,
}
_DIAGNOSTIC_FULL = Columns(("Premise", "Hypothesis"), "Label")


def read_split(spec: TaskSpec, split: str, found: Found, notes: Counter[str]) -> Iterator[Example]:
    """The examples of a file; what is left out of QQP's training file is counted and named in the notes."""
    headless = spec.name == "CoLA" and split in (TRAIN, DEV)
    short: list[int] | None = [] if spec.name == "QQP" and split == TRAIN else None
    rows = tsv_rows(found, _COLA_COLUMNS if headless else None, short)
    yield from examples(spec, rows, COLUMNS[spec.name], notes)
    if short:
        more = ", ..." if len(short) > _NAMED_AT_MOST else ""
        lines = ", ".join(map(str, short[:_NAMED_AT_MOST])) + more
        notes[f"train rows with too few columns, left out (lines {lines})"] = len(short)


def examples(spec: TaskSpec, rows: Iterable[Row], columns: Columns, notes: Counter[str]) -> Iterator[Example]:
    """An example of every row."""
    for number, row in enumerate(rows):
        named = _DIAGNOSTIC_FULL if "Premise" in row.fields else columns
        texts = tuple(_text(spec, row, name, notes) for name in named.texts)
        yield Example(
            id=str(row.whole(named.id)) if named.id in row.fields else str(number),
            texts=texts,
            gold=_gold(spec, row, named.gold),
            cluster=either_way(texts) if spec.name == "diagnostic" else "",
            tags=_tags(row) if named is _DIAGNOSTIC_FULL else {},
            where=row.where,
        )


def _text(spec: TaskSpec, row: Row, name: str, notes: Counter[str]) -> str:
    """A text without the spaces around it. QQP alone has empty ones in its first release; they stay, for its
    submissions must answer every id."""
    if spec.name == "QQP" and not row.any_text(name).strip():
        notes["questions that are empty"] += 1
        return ""
    return row.text(name).strip()


def _gold(spec: TaskSpec, row: Row, name: str) -> str | float | None:
    if name not in row.fields:
        return None
    return row.label(name, spec.labels) if spec.labels else row.score(name, LOWEST, HIGHEST)


def _tags(row: Row) -> dict[str, tuple[str, ...]]:
    """The fine tags of each coarse category that the example has any of."""
    found = {coarse: split_tags(row.any_text(coarse)) for coarse in COARSE}
    return {coarse: fine for coarse, fine in found.items() if fine}


def split_tags(text: str) -> tuple[str, ...]:
    """Several tags are divided by semicolons."""
    return tuple(tag.strip() for tag in text.split(";") if tag.strip())
