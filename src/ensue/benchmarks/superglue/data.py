"""SuperGLUE's tasks from the folder of the official download, or from a hub data set."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ensue.benchmarks.nlu.examples import DEV, TEST, TRAIN, Example, TaskData, TaskSpec
from ensue.benchmarks.nlu.files import Found, Row, find, jsonl_rows, task_folder
from ensue.benchmarks.nlu.gathering import Gathering, HubSplits, gather_hub, hub_splits, named_label
from ensue.benchmarks.superglue.readers import answer_text, entity_example, examples
from ensue.errors import EnsueError

_FILES: Mapping[str, tuple[str, ...]] = {
    TRAIN: ("train.jsonl",),
    DEV: ("val.jsonl", "dev.jsonl"),
    TEST: ("test.jsonl",),
}
# The hub's rows are flat, with class numbers for labels.
_CONFIGS = {
    "BoolQ": "boolq",
    "CB": "cb",
    "COPA": "copa",
    "MultiRC": "multirc",
    "ReCoRD": "record",
    "RTE": "rte",
    "WiC": "wic",
    "WSC": "wsc",
    "AX-b": "axb",
    "AX-g": "axg",
}
_TARGET = ("span1_text", "span1_index", "span2_text", "span2_index")
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
    """Return a task of a hub data set such as `aps/super_glue`, None where it has no split of the task."""
    return gather_hub_rows(name, spec, hub_splits(name, _CONFIGS[spec.name]), limit)


def gather_hub_rows(
    name: str, spec: TaskSpec, splits: HubSplits, limit: int | None = None
) -> TaskData | None:
    """Return a task of rows as the hub has them, by the hub's names of splits."""
    return gather_hub(f"{name}/{_CONFIGS[spec.name]}", spec, splits, _hub_examples, limit)


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


def _hub_examples(spec: TaskSpec, rows: Iterable[Row], notes: Counter[str]) -> Iterator[Example]:
    if spec.name == "ReCoRD":
        return map(_entity, rows)
    named = (named_label(row, spec) for row in rows)
    if spec.name == "MultiRC":
        return (_answer(spec, row, notes) for row in named)
    return examples(spec, map(_with_target, named) if spec.name == "WSC" else named, notes)


def _with_target(row: Row) -> Row:
    """WSC's mentions lie within `target` in the official files."""
    return row._replace(fields={**row.fields, "target": {name: row.value(name) for name in _TARGET}})


def _answer(spec: TaskSpec, row: Row, notes: Counter[str]) -> Example:
    """MultiRC: an answer a row."""
    number = row.inner("idx")
    cluster = str(number.whole("paragraph"))
    group = f"{cluster}-{number.whole('question')}"
    texts = (row.text("paragraph"), row.text("question"), answer_text(row, "answer", notes))
    gold = row.label("label", spec.labels) if "label" in row.fields else None
    name = f"{group}-{number.whole('answer')}"
    return Example(name, texts, gold, group=group, cluster=cluster, where=row.where)


def _entity(row: Row) -> Example:
    """ReCoRD: a query a row, with the names of its entities; a query of the test set has no answers."""
    number = row.inner("idx")
    texts = (row.text("passage"), row.text("query"))
    right = _texts(row, "answers") or None
    choices = tuple(dict.fromkeys(_texts(row, "entities")))
    return entity_example(
        row, str(number.whole("query")), str(number.whole("passage")), texts, choices, right
    )


def _texts(row: Row, name: str) -> list[str]:
    value = row.value(name)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        row.refuse(f"{name!r} is not a list of texts")
    return value
