"""SuperGLUE from the hub: the rows in its flat form make the same examples as the official files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ensue.benchmarks.nlu.examples import TEST, Example, TaskSpec
from ensue.benchmarks.nlu.gathering import gather_hub
from ensue.benchmarks.superglue.data import hub_examples, read_task
from ensue.benchmarks.superglue.task import SPECS, TASK
from ensue.errors import EnsueError
from tests.benchmarks.superglue.folders import ROWS, write_superglue

_SPLITS = {"train": "train", "val": "validation", "test": "test"}


def _flat(spec: TaskSpec, row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A row of an official file as the hub has it."""
    if spec.name == "MultiRC":
        for question in row["passage"]["questions"]:
            for answer in question["answers"]:
                number = {"paragraph": row["idx"], "question": question["idx"], "answer": answer["idx"]}
                yield {
                    "paragraph": row["passage"]["text"],
                    "question": question["question"],
                    "answer": answer["text"],
                    "idx": number,
                    "label": answer.get("label", -1),
                }
    elif spec.name == "ReCoRD":
        text = row["passage"]["text"]
        spans = [(one["start"], one["end"] + 1) for one in row["passage"]["entities"]]
        for query in row["qas"]:
            yield {
                "passage": text,
                "query": query["query"],
                "entities": sorted({text[a:b] for a, b in spans}),
                "answers": [answer["text"] for answer in query.get("answers", [])],
                "idx": {"passage": row["idx"], "query": query["idx"]},
            }
    else:
        label = row.get("label", -1)
        number = spec.labels.index(label) if isinstance(label, str) else int(label)
        yield {**row, **row.get("target", {}), "idx": int(row["idx"]), "label": number}


def _same(example: Example, spec: TaskSpec) -> Example:
    """What both forms have: not the place nor the tags; the hub's entities are in another order."""
    choices = sorted(example.choices) if spec.name == "ReCoRD" else example.choices
    return replace(example, where="", tags={}, choices=tuple(choices))


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_rows_make_the_same_examples_as_files(tmp_path: Path, spec: TaskSpec) -> None:
    splits = {
        _SPLITS.get(split, "test"): [flat for row in rows for flat in _flat(spec, row)]
        for name, rows in ROWS.items()
        for task, _, split in [name.partition("/")]
        if task == spec.name
    }
    hub = gather_hub("owner/super", spec, splits, hub_examples)
    files = read_task(write_superglue(tmp_path), spec)
    assert hub is not None
    assert files is not None
    assert list(hub.splits) == list(files.splits)
    for split, found in files.splits.items():
        assert [_same(one, spec) for one in hub.splits[split]] == [_same(one, spec) for one in found]
    assert hub.notes == files.notes


def test_faults_name_the_row() -> None:
    row = {"premise": "x", "hypothesis": "y", "idx": 0, "label": 3}
    with pytest.raises(
        EnsueError, match=r"^owner/super/cb:test, row 1: the label 3 is no number from 0 to 2"
    ):
        gather_hub("owner/super", TASK.select("CB")[0], {TEST: [row]}, hub_examples)
    query = {"passage": "x", "query": "@placeholder", "entities": "x", "answers": [], "idx": {}}
    with pytest.raises(EnsueError, match="row 1: 'entities' is not a list of texts"):
        gather_hub("owner/super", TASK.select("ReCoRD")[0], {TEST: [query]}, hub_examples)


def test_what_cannot_be_reached_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(EnsueError, match=r"^owner/no-such-super does not exist here"):
        TASK.read_hub_task("owner/no-such-super", TASK.select("CB")[0])
