"""GLUE's tasks from the folder of the official download, or from a hub data set of the same columns.

Quirks: CoLA's training and development files name no columns; SST-2's sentences end in a space; MRPC's files begin
with a byte order mark; QQP's first release has rows broken by line ends within a question, and empty questions;
the labelled diagnostic set has no index, its order is that of the unlabelled one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ensue.benchmarks.nlu.examples import (
    COARSE,
    DEV,
    DEV_MISMATCHED,
    TEST,
    TEST_MISMATCHED,
    TRAIN,
    Example,
    TaskData,
    TaskSpec,
    either_way,
    split_tags,
)
from ensue.benchmarks.nlu.files import Found, Row, find, task_folder, tsv_rows
from ensue.benchmarks.nlu.gathering import Gathering, named_label
from ensue.errors import EnsueError

# What the columns of CoLA's files without a heading are; `mark` is the source's own judgment.
_COLA_COLUMNS = ("source", "label", "mark", "sentence")
_NAMED_AT_MOST = 20
LOWEST, HIGHEST = 0.0, 5.0


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

_FILES: Mapping[str, tuple[str, ...]] = {TRAIN: ("train.tsv",), DEV: ("dev.tsv",), TEST: ("test.tsv",)}
_OTHER_FILES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "MNLI": {
        TRAIN: ("train.tsv",),
        DEV: ("dev_matched.tsv",),
        DEV_MISMATCHED: ("dev_mismatched.tsv",),
        TEST: ("test_matched.tsv",),
        TEST_MISMATCHED: ("test_mismatched.tsv",),
    },
    # The labelled file first; the others are as the site offers the set, without labels.
    "diagnostic": {TEST: ("diagnostic-full.tsv", "diagnostic.tsv", "AX.tsv", "test.tsv")},
}
_FOLDERS = {"diagnostic": ("diagnostic", "AX")}

# The hub's data set has other names for some columns; labels are class numbers, -1 where there is none.
_HUB_TEXTS = {
    "MRPC": ("sentence1", "sentence2"),
    **dict.fromkeys(("MNLI", "diagnostic"), ("premise", "hypothesis")),
}
# MRPC's original two files, divided into training and development as GLUE's download script divides them.
_MRPC_TRAIN, _MRPC_TEST = "msr_paraphrase_train.txt", "msr_paraphrase_test.txt"
_MRPC_DEV_IDS, _MRPC_IDS = "dev_ids.tsv", ("#1 ID", "#2 ID")


def read_task(
    folder: Path, spec: TaskSpec, limit: int | None = None, splits: Collection[str] | None = None
) -> TaskData | None:
    """Return the splits of a task that are there, or those of them that are wanted; None where there is none.

    `folder` is the suite's folder or the task's own. A file marked as partial stands in for a missing one and is
    noted; so is every number of rows that differs from the published one.
    """
    home = task_folder(folder, *_FOLDERS.get(spec.name, (spec.name,)))
    gathering = Gathering(spec, limit)
    if home is None:
        return None
    for split, names in _OTHER_FILES.get(spec.name, _FILES).items():
        if splits is not None and split not in splits:
            continue
        found = find(home, *names)
        if found is not None:
            gathering.add_files(split, [found], read_split(spec, split, found, gathering.notes))
        elif spec.name == "MRPC" and (originals := _original_files(home, split)):
            rows = _original_rows(originals, split)
            made = examples(spec, rows, COLUMNS["MRPC"], gathering.notes)
            gathering.add_files(split, originals, made)
    return gathering.finish()


def hub_examples(spec: TaskSpec, rows: Iterable[Row], notes: Counter[str]) -> Iterator[Example]:
    """Return examples of rows as a hub data set such as `nyu-mll/glue` has them."""
    columns = Columns(_HUB_TEXTS.get(spec.name, COLUMNS[spec.name].texts), id="idx")
    return examples(spec, (named_label(row, spec) for row in rows), columns, notes)


def _original_files(home: Path, split: str) -> list[Found]:
    """Return the original files a split can be made of; none where they are not there."""
    if split == TEST:
        return [Found(home / _MRPC_TEST)] if (home / _MRPC_TEST).is_file() else []
    if split not in (TRAIN, DEV) or not (home / _MRPC_TRAIN).is_file():
        return []
    if not (home / _MRPC_DEV_IDS).is_file():
        raise EnsueError(
            f"{home / _MRPC_TRAIN} holds the training and the development set, which {_MRPC_DEV_IDS} tells apart: "
            "put that file beside it, or train.tsv and dev.tsv."
        )
    return [Found(home / _MRPC_TRAIN), Found(home / _MRPC_DEV_IDS)]


def _original_rows(files: list[Found], split: str) -> Iterator[Row]:
    """Return the rows of a split; the development set is those pairs whose ids `dev_ids.tsv` lists."""
    if split == TEST:
        yield from tsv_rows(files[0])
        return
    pairs, listed = files
    developed = {
        (row.text("first"), row.text("second")): row for row in tsv_rows(listed, ("first", "second"))
    }
    unseen = dict(developed)
    for row in tsv_rows(pairs):
        key = (row.text(_MRPC_IDS[0]), row.text(_MRPC_IDS[1]))
        unseen.pop(key, None)
        if (key in developed) == (split == DEV):
            yield row
    for row in unseen.values():
        row.refuse(f"no pair of {pairs.path.name} has these ids; take the list that belongs to it")


def read_split(spec: TaskSpec, split: str, found: Found, notes: Counter[str]) -> Iterator[Example]:
    """Return the examples of a file; what is left out of QQP's training file is counted and named in the notes."""
    headless = spec.name == "CoLA" and split in (TRAIN, DEV)
    short: list[int] | None = [] if spec.name == "QQP" and split == TRAIN else None
    rows = tsv_rows(found, _COLA_COLUMNS if headless else None, short)
    yield from examples(spec, rows, COLUMNS[spec.name], notes)
    if short:
        more = ", ..." if len(short) > _NAMED_AT_MOST else ""
        lines = ", ".join(map(str, short[:_NAMED_AT_MOST])) + more
        notes[f"train rows with too few columns, left out (lines {lines})"] = len(short)


def examples(spec: TaskSpec, rows: Iterable[Row], columns: Columns, notes: Counter[str]) -> Iterator[Example]:
    """Return an example of every row."""
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
    """Return a text without the spaces around it. QQP alone has empty ones in its first release; they stay, for its
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
    """Return the fine tags of each coarse category that the example has any of."""
    found = {coarse: split_tags(row.any_text(coarse)) for coarse in COARSE}
    return {coarse: fine for coarse, fine in found.items() if fine}
