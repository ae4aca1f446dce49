"""SuperGLUE's list of tasks: what belongs to the score, names, labels."""

from __future__ import annotations

import pytest

from ensue.benchmarks.superglue.task import SPECS, TASK
from ensue.errors import EnsueError


def test_eight_tasks_make_the_score_and_two_sets_are_answered_by_rte() -> None:
    assert {spec.name: spec.answered_by for spec in SPECS if not spec.in_score} == {
        "AX-b": "RTE",
        "AX-g": "RTE",
    }
    assert sum(spec.in_score for spec in SPECS) == 8
    assert {spec.submission for spec in SPECS} == {f"{spec.name}.jsonl" for spec in SPECS}


def test_labels_stand_in_the_order_of_class_numbers() -> None:
    labels = {spec.name: spec.labels for spec in SPECS}
    assert labels["BoolQ"] == labels["WiC"] == labels["WSC"] == ("false", "true")
    assert labels["CB"] == ("entailment", "contradiction", "neutral")
    assert labels["ReCoRD"] == ()


def test_tasks_are_found_by_name() -> None:
    assert [spec.name for spec in TASK.select("ax-B")] == ["AX-b"]
    assert tuple(TASK.select("")) == SPECS
    with pytest.raises(EnsueError, match=r"SuperGLUE has no task 'multi-rc'; did you mean MultiRC\?"):
        TASK.select("multi-rc")
