"""The paper's figures: each table whole, and the sums that can be checked."""

from __future__ import annotations

import pytest

from ensue.benchmarks.discoeval.data import SPECS
from ensue.benchmarks.published import citation, facts_of, published

PACKAGE = "ensue.benchmarks.discoeval"
FIGURES = published(PACKAGE)


def line(system: str, table: str = "2") -> dict[str, float]:
    return {one.task: one.value for one in FIGURES if (one.system, one.table) == (system, table)}


def test_table_2_has_fourteen_lines_of_eight_columns() -> None:
    rows = [one for one in FIGURES if one.table == "2"]
    assert len(rows) == 14 * 8
    assert {one.task for one in rows} == {spec.column for spec in SPECS} | {"average"}
    assert len({one.system for one in rows if one.group == "ours"}) == 8
    assert all(0 < one.value < 1 and one.metric == "accuracy" for one in FIGURES)


@pytest.mark.parametrize("system", ["ELMo", "BERT-Base", "BERT-Large", "+ SDT"])
def test_the_average_is_that_of_the_seven_columns(system: str) -> None:
    values = line(system)
    average = values.pop("average")
    assert sum(values.values()) / 7 == pytest.approx(average, abs=6e-4)


def test_human_figures_cover_sp_bso_and_dc() -> None:
    human = {one.task: one.value for one in FIGURES if one.group == "human"}
    assert human == line("Human", "5")
    assert (len(human), human["SP/wiki"], human["DC/chat"]) == (3 + 8, 0.84, 0.74)
    assert {task.partition("/")[0] for task in human} == {"SP", "BSO", "DC"}
    bert = line("BERT-Large", "5")
    for group in ("SP", "BSO", "DC"):
        members = [value for task, value in bert.items() if task.startswith(f"{group}/")]
        assert sum(members) / len(members) == pytest.approx(bert[group], abs=1e-3)
        assert bert[group] == line("BERT-Large")[group]


def test_ablations_say_their_setting() -> None:
    found = {(one.table, *one.settings.items()): one.value for one in FIGURES if one.table in ("4", "6")}
    assert found["4", ("hidden", "no")] == 0.52
    assert found["6", ("context", "no")] == 0.432
    assert found["6",] == 0.2


def test_best_layers_and_citation() -> None:
    assert facts_of(PACKAGE)["best_layers"] == {"ELMo": 1.3, "BERT-Base": 8.9}
    assert "2019" in citation(PACKAGE)
