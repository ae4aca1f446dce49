"""SuperGLUE's tasks from the folder of the official download, or from a hub data set."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from ensue.benchmarks.nlu.examples import DEV, TEST, TRAIN, TaskData, TaskSpec
from ensue.benchmarks.nlu.files import Found, find, jsonl_rows, task_folder
from ensue.benchmarks.nlu.gathering import Gathering
from ensue.benchmarks.nlu.hub import hub_splits
from ensue.benchmarks.superglue.hub_rows import CONFIGS, hub_examples
from ensue.benchmarks.superglue.readers import examples
from ensue.errors import EnsueError

_FILES: Mapping[str, tuple[str, ...]] = {
    TRAIN: ("train.jsonl",),
    DEV: ("val.jsonl", "dev.jsonl"),
    TEST: ("test.jsonl",),
}
_HUB_SPLITS = {"train": TRAIN, "validation": DEV, "test": TEST}
# FewGLUE's small sets: both were taken out of the published training set.
_FEW = re.compile(r"fewglue_(?P<split>train|dev)(?P<rows>\d+)\.jsonl")


def read_task(folder: Path, spec: TaskSpec, limit: int | None = None) -> TaskData | None:
    """The splits of a task that are there, or None where there is none.

    `folder` is the suite's folder or the task's own. A file marked as partial, or FewGLUE's, stands in for a
    missing one and is noted; so is every number of rows that differs from the published one.
    """
    home = task_folder(folder, spec.name)
    gathering = Gathering(spec, limit)
    if home is None:
        return None
    for split, names in _files(spec).items():
        found = find(home, *names) or _few(home, split)
        if found is not None:
            gathering.add_files(split, [found], examples(spec, jsonl_rows(found), gathering.notes))
    return gathering.finish()


def read_hub_task(name: str, spec: TaskSpec, limit: int | None = None) -> TaskData | None:
    """A task of a hub data set such as `aps/super_glue`, or None where it has no split of the task."""
    return gather_hub_rows(name, spec, hub_splits(name, CONFIGS[spec.name]), limit)


def gather_hub_rows(
    name: str, spec: TaskSpec, splits: Mapping[str, Iterable[Mapping[str, object]]], limit: int | None = None
) -> TaskData | None:
    """A task of rows as the hub has them, by the hub's names of splits."""
    gathering = Gathering(spec, limit)
    for theirs, ours in _HUB_SPLITS.items():
        if theirs in splits:
            place = f"{name}/{CONFIGS[spec.name]}:{theirs}"
            gathering.add_rows(ours, hub_examples(spec, place, splits[theirs], gathering.notes))
    return gathering.finish()


def _files(spec: TaskSpec) -> Mapping[str, tuple[str, ...]]:
    """A diagnostic set is one file of its own name."""
    return {TEST: (f"{spec.name}.jsonl", "test.jsonl")} if spec.answered_by else _FILES


def _few(home: Path, split: str) -> Found | None:
    matches = [match for path in sorted(home.iterdir()) if (match := _FEW.fullmatch(path.name))]
    found = [match for match in matches if match["split"] == split]
    if len(found) > 1:
        raise EnsueError(f"{home} has {found[0].string} and {found[1].string}; leave one of them.")
    if not found:
        return None
    instead = "" if split == TRAIN else "of the training set"
    return Found(home / found[0].string, int(found[0]["rows"]), instead)
