"""The paper's figures: each table whole, cells as printed, and the averages that can be checked."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean

import pytest

from ensue.benchmarks.glue import task as glue
from ensue.benchmarks.published import PublishedFigure, citation
from ensue.benchmarks.published import published as figures
from ensue.benchmarks.superglue import task as superglue

SPECS = {"glue": glue.SPECS, "superglue": superglue.SPECS}


def published(suite: str) -> tuple[PublishedFigure, ...]:
    return figures(f"ensue.benchmarks.{suite}")


def human(suite: str) -> list[PublishedFigure]:
    return [row for row in published(suite) if row.group == "human"]


def _cell(suite: str, table: str, system: str, task: str, metric: str, group: str = "", **more: str) -> float:
    found = [
        row
        for row in published(suite)
        if (row.table, row.system, row.task, row.metric) == (table, system, task, metric)
        and group in ("", row.group)
        and all(
            row.settings.get(name, "") == value for name, value in {"category": "", "tag": "", **more}.items()
        )
    ]
    assert len(found) == 1
    return found[0].value


@pytest.mark.parametrize(
    ("suite", "table", "cells"),
    [
        ("glue", "2.3", 17 * 14),
        ("glue", "2.4", 17 * 11),
        ("superglue", "3.3", 5 * 15 + 7),
        ("superglue", "A.2", 4 * 12),
    ],
)
def test_tables_are_whole(suite: str, table: str, cells: int) -> None:
    rows = [row for row in published(suite) if row.table == table]
    assert len(rows) == cells
    assert len({str(row) for row in rows}) == cells


def test_cells_are_as_printed() -> None:
    multi, single, ready = "multi-task", "single-task", "sentence representations"
    assert _cell("glue", "2.3", "BiLSTM +Attn, ELMo", "GLUE", "score", multi) == 0.690
    assert _cell("glue", "2.3", "BiLSTM", "CoLA", "mcc", single) == 0.157
    assert _cell("glue", "2.3", "CBoW", "QQP", "f1", ready) == 0.514
    assert _cell("glue", "2.3", "GenSen", "STS-B", "spearman", ready) == 0.792
    assert _cell("glue", "2.3", "GenSen", "MNLI", "accuracy", ready, split="test-mismatched") == 0.713
    assert _cell("glue", "2.4", "DisSent", "diagnostic", "r3", ready) == 0.16
    assert _cell("glue", "2.4", "BiLSTM +ELMo", "diagnostic", "r3", single, category="Knowledge") == 0.17
    down = {"category": "Logic", "tag": "Downward Monotone"}
    assert _cell("glue", "2.4", "BiLSTM +Attn", "diagnostic", "r3", multi, **down) == -0.20
    assert _cell("superglue", "3.3", "most-frequent", "CB", "f1") == 0.217
    assert _cell("superglue", "3.3", "most-frequent", "CB", "accuracy") == 0.484
    assert _cell("superglue", "3.3", "BERT++", "AX-g", "gender_parity") == 0.994
    assert _cell("superglue", "3.3", "Outside Best", "RTE", "accuracy") == 0.827
    assert _cell("superglue", "3.3", "CBoW", "AX-b", "mcc") == -0.004
    assert _cell("superglue", "A.2", "most-frequent", "MultiRC", "em") == 0.008
    assert _cell("superglue", "A.2", "CBoW", "WSC", "accuracy") == 0.615


def test_human_and_hypothesis_only_figures_of_the_diagnostic() -> None:
    assert [(row.task, row.metric, row.value) for row in human("glue")] == [("diagnostic", "r3", 0.80)]
    audit = [row.value for row in published("glue") if row.group == "hypothesis only"]
    assert audit == [0.327, 0.364]
    assert len(human("superglue")) == 15


@pytest.mark.parametrize("suite", ["glue", "superglue"])
def test_names_are_those_of_the_suite(suite: str) -> None:
    metrics = {spec.name: {*spec.metrics, "accuracy"} for spec in SPECS[suite]}
    metrics["GLUE" if suite == "glue" else "SuperGLUE"] = {"score"}
    for row in published(suite):
        assert row.metric in metrics[row.task]
        assert -1 <= row.value <= 1
        assert row.settings["split"] in ("dev" if row.table == "A.2" else "test", "test-mismatched")


def test_printed_averages_are_means_over_tasks_but_for_two() -> None:
    wrong = {}
    for suite, title in (("glue", "GLUE"), ("superglue", "SuperGLUE")):
        in_score = {spec.name for spec in SPECS[suite] if spec.in_score}
        lines: dict[tuple[str, str, str], list[PublishedFigure]] = defaultdict(list)
        for row in published(suite):
            lines[row.table, row.group, row.system].append(row)
        for key, rows in lines.items():
            printed = [row.value for row in rows if row.task == title]
            tasks: dict[str, list[float]] = defaultdict(list)
            for row in rows:
                if row.task in in_score:
                    tasks[row.task].append(row.value)
            if printed:
                assert set(tasks) == in_score
                mean = fmean(map(fmean, tasks.values()))
                if (
                    abs(mean - printed[0]) > 5.5e-4
                ):  # half a printed digit, and some for the digits of the cells
                    wrong[key] = (printed[0], round(mean, 4))
    assert wrong == {
        ("2.3", "multi-task", "BiLSTM +ELMo"): (0.648, 0.6487),
        ("3.3", "baseline", "CBoW"): (0.443, 0.4445),
    }


def test_the_paper_is_named() -> None:
    assert "2022" in citation("ensue.benchmarks.glue")
