"""GLUE's list of tasks: what belongs to the score, names, labels."""

from __future__ import annotations

import pytest

from ensue.benchmarks.glue.task import SPECS, TASK
from ensue.errors import EnsueError


def test_nine_tasks_make_the_score_and_the_diagnostic_does_not() -> None:
    assert [spec.name for spec in SPECS if not spec.in_score] == ["diagnostic"]
    assert {spec.answered_by for spec in SPECS} == {"", "MNLI"}
    assert len({spec.submission for spec in SPECS}) == len(SPECS) == 10
    assert all(spec.suite == "glue" for spec in SPECS)


def test_pairs_and_scores_have_the_labels_of_submissions() -> None:
    labels = {spec.name: spec.labels for spec in SPECS}
    assert labels["STS-B"] == ()
    assert labels["diagnostic"] == labels["MNLI"] == ("entailment", "neutral", "contradiction")
    assert labels["QNLI"] == labels["RTE"] == ("entailment", "not_entailment")


def test_tasks_are_found_by_name() -> None:
    assert [spec.name for spec in TASK.select("sst-2")] == ["SST-2"]
    assert tuple(TASK.select("")) == SPECS
    with pytest.raises(EnsueError, match=r"GLUE has no task 'MNLL'; did you mean MNLI\?"):
        TASK.select("MNLL")
    with pytest.raises(EnsueError, match="there are CoLA, SST-2, MRPC"):
        TASK.select("translation")
