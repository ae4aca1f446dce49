"""GLUE's tasks from the folder of the official download, or from a hub data set of the same columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ensue.benchmarks.glue import mrpc
from ensue.benchmarks.glue.readers import COLUMNS, Columns, examples, read_split
from ensue.benchmarks.nlu.examples import (
    DEV,
    DEV_MISMATCHED,
    TEST,
    TEST_MISMATCHED,
    TRAIN,
    TaskData,
    TaskSpec,
)
from ensue.benchmarks.nlu.files import Found, Row, find, task_folder
from ensue.benchmarks.nlu.gathering import Gathering
from ensue.benchmarks.nlu.hub import hub_splits, named_label

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
_HUB_PAIR = Columns(("sentence1", "sentence2"), id="idx")
_HUB_PREMISE = Columns(("premise", "hypothesis"), id="idx")
_HUB: Mapping[str, tuple[str, Columns]] = {
    "CoLA": ("cola", Columns(("sentence",), id="idx")),
    "SST-2": ("sst2", Columns(("sentence",), id="idx")),
    "MRPC": ("mrpc", _HUB_PAIR),
    "QQP": ("qqp", Columns(("question1", "question2"), id="idx")),
    "STS-B": ("stsb", _HUB_PAIR),
    "MNLI": ("mnli", _HUB_PREMISE),
    "QNLI": ("qnli", Columns(("question", "sentence"), id="idx")),
    "RTE": ("rte", _HUB_PAIR),
    "WNLI": ("wnli", _HUB_PAIR),
    "diagnostic": ("ax", _HUB_PREMISE),
}
_HUB_SPLITS = {
    "train": TRAIN,
    "validation": DEV,
    "validation_matched": DEV,
    "validation_mismatched": DEV_MISMATCHED,
    "test": TEST,
    "test_matched": TEST,
    "test_mismatched": TEST_MISMATCHED,
}


def read_task(folder: Path, spec: TaskSpec, limit: int | None = None) -> TaskData | None:
    """The splits of a task that are there, or None where there is none.

    `folder` is the suite's folder or the task's own. A file marked as partial stands in for a missing one and is
    noted; so is every number of rows that differs from the published one.
    """
    home = task_folder(folder, *_FOLDERS.get(spec.name, (spec.name,)))
    gathering = Gathering(spec, limit)
    if home is None:
        return None
    for split, names in _OTHER_FILES.get(spec.name, _FILES).items():
        found = find(home, *names)
        if found is not None:
            gathering.add_files(split, [found], read_split(spec, split, found, gathering.notes))
        elif spec.name == "MRPC" and (originals := mrpc.original_files(home, split)):
            _add_original(gathering, split, originals)
    return gathering.finish()


def read_hub_task(name: str, spec: TaskSpec, limit: int | None = None) -> TaskData | None:
    """A task of a hub data set such as `nyu-mll/glue`, or None where it has no split of the task."""
    config, _ = _HUB[spec.name]
    return gather_hub_rows(name, spec, hub_splits(name, config), limit)


def gather_hub_rows(
    name: str, spec: TaskSpec, splits: Mapping[str, Iterable[Mapping[str, object]]], limit: int | None = None
) -> TaskData | None:
    """A task of rows as the hub has them, by the hub's names of splits."""
    config, columns = _HUB[spec.name]
    gathering = Gathering(spec, limit)
    for theirs, ours in _HUB_SPLITS.items():
        if theirs in splits:
            rows = _official(spec, f"{name}/{config}:{theirs}", splits[theirs])
            gathering.add_rows(ours, examples(spec, rows, columns, gathering.notes))
    return gathering.finish()


def _add_original(gathering: Gathering, split: str, files: list[Found]) -> None:
    made = examples(gathering.spec, mrpc.original_rows(files, split), COLUMNS["MRPC"], gathering.notes)
    gathering.add_files(split, files, made)


def _official(spec: TaskSpec, place: str, rows: Iterable[Mapping[str, object]]) -> Iterator[Row]:
    """Rows with their labels spelled out, without those that stand for none."""
    for number, fields in enumerate(rows, 1):
        yield named_label(Row(f"{place}, row {number}", fields), spec)
