"""The paper's figures: each table whole, and the sums that can be checked."""

from __future__ import annotations

import pytest

from ensue.benchmarks.discoeval import published as p
from ensue.benchmarks.discoeval.suite import SPECS


def test_table_2_has_fourteen_lines_of_eight_columns() -> None:
    rows = [row for row in p.published() if row.table == 2]
    assert len(rows) == 14 * 8
    assert {row.task for row in rows} == {spec.column for spec in SPECS} | {"average"}
    assert len({row.model for row in rows if row.ours}) == 8
    assert all(0 < row.accuracy < 1 for row in rows)


@pytest.mark.parametrize("model", ["ELMo", "BERT-Base", "BERT-Large", "+ SDT"])
def test_the_average_is_that_of_the_seven_columns(model: str) -> None:
    line = p.published_line(model)
    average = line.pop("average")
    assert sum(line.values()) / 7 == pytest.approx(average, abs=6e-4)


def test_an_unknown_model_has_no_line() -> None:
    assert p.published_line("minilm") == {}


def test_human_figures_cover_sp_bso_and_dc() -> None:
    assert len(p.human()) == 3 + 8
    assert {task.partition("/")[0] for task in p.human()} == {"SP", "BSO", "DC"}
    bert = {row.task: row.accuracy for row in p.published() if row.table == 5 and not row.human}
    for group in ("SP", "BSO", "DC"):
        members = [value for task, value in bert.items() if task.startswith(f"{group}/")]
        assert sum(members) / len(members) == pytest.approx(bert[group], abs=1e-3)
        assert bert[group] == p.published_line("BERT-Large")[group]


def test_ablations_say_their_setting() -> None:
    found = {(row.table, row.setting): row.accuracy for row in p.published() if row.table in (4, 6)}
    assert found[4, (("hidden", "no"),)] == 0.52
    assert found[6, (("context", "no"),)] == 0.432
    assert found[6, ()] == 0.2


def test_the_other_tables() -> None:
    assert [(row.suite, row.layer) for row in p.best_layers() if row.model == "BERT-Base"] == [
        ("SentEval", 5.0),
        ("DiscoEval", 8.9),
    ]
    assert len(p.published_senteval()) == 14
    assert p.published_senteval()[0].groups == {"USS": 0.417, "SSS": 0.812, "SC": 0.784, "Probing": 0.701}
    assert "2019" in p.citation()
