"""GLUE from the hub: rows in memory make the same examples as files, and what cannot be reached is said."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ensue.benchmarks.glue.data import hub_examples
from ensue.benchmarks.glue.task import TASK
from ensue.benchmarks.nlu.examples import DEV, DEV_MISMATCHED, TEST, TRAIN, TaskData
from ensue.benchmarks.nlu.gathering import gather_hub
from ensue.errors import EnsueError

NAME = "owner/glue"


def _gather(
    task: str, splits: Mapping[str, list[Mapping[str, object]]], limit: int | None = None
) -> TaskData:
    found = gather_hub(NAME, TASK.select(task)[0], splits, hub_examples, limit)
    assert found is not None
    return found


def test_class_numbers_become_labels_and_hidden_ones_none() -> None:
    row = {"premise": "It snows.", "hypothesis": "It is warm.", "idx": 4}
    data = _gather(
        "MNLI",
        {
            "train": [{**row, "label": 2}],
            "validation_matched": [{**row, "label": 0}],
            "validation_mismatched": [{**row, "label": 1}],
            "test_matched": [{**row, "label": -1}],
        },
    )
    golds = {split: found[0].gold for split, found in data.splits.items()}
    assert golds == {TRAIN: "contradiction", DEV: "entailment", DEV_MISMATCHED: "neutral", TEST: None}
    assert data.splits[TRAIN][0].id == "4"
    assert data.splits[TRAIN][0].where == "owner/glue/mnli:train, row 1"


def test_scores_and_single_sentences() -> None:
    pair = {"sentence1": "A hen sat.", "sentence2": "A hen lay.", "idx": 0}
    scored = _gather("STS-B", {"validation": [{**pair, "label": 3.25}], "test": [{**pair, "label": -1.0}]})
    assert [found[0].gold for found in scored.splits.values()] == [3.25, None]
    rows = [{"sentence": "good ", "label": 1, "idx": n} for n in range(3)]
    assert [one.texts for one in _gather("SST-2", {"train": rows}, limit=2).splits[TRAIN]] == [("good",)] * 2


@pytest.mark.parametrize("label", [2, -2, "1", True, None])
def test_another_label_is_refused(label: object) -> None:
    with pytest.raises(
        EnsueError, match=r"owner/glue/cola:train, row 1: the label .* is no number from 0 to 1"
    ):
        _gather("CoLA", {"train": [{"sentence": "So it is.", "label": label, "idx": 0}]})


def test_without_a_known_split_there_is_no_task() -> None:
    assert gather_hub(NAME, TASK.select("RTE")[0], {"other": []}, hub_examples) is None


def test_what_cannot_be_reached_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(EnsueError, match=r"^owner/no-such-glue does not exist here"):
        TASK.read_hub_task("owner/no-such-glue", TASK.select("RTE")[0])
