"""The published figures against the paper's printed tables."""

from __future__ import annotations

import pytest

from ensue.benchmarks.published import citation, published
from ensue.benchmarks.shuffle.report.table import PACKAGE, published_series

# The average over the domains is a figure of the whole task.
TASKS = {"Overall": "shuffle", **{name: f"shuffle/{name}" for name in ("WSJ", "Legal", "Reddit")}}


def key(row):
    return row.table, row.system, row.task, row.settings["block_size"]


@pytest.mark.parametrize(
    ("table", "model", "domain", "block_size", "percent"),
    [
        (1, "GPT2-base", "WSJ", 1, 47.2),
        (1, "GPT2-medium", "WSJ", 1, 91.2),
        (1, "GPT2-large", "Legal", 1, 99.3),
        (1, "BERT-base", "Overall", 1, 85.1),
        (1, "RoBERTa-base", "Reddit", 1, 96.7),
        (1, "GPT2-med-id", "Overall", 1, 94.0),
        (2, "Human", "WSJ", 1, 97.5),
        (2, "Human", "WSJ", 4, 96.0),
        (2, "GPT2-medium", "WSJ", 1, 95.3),
        (2, "GPT2-medium", "WSJ", 3, 89.5),
        (2, "GPT2-medium", "Legal", 5, 94.5),
        (2, "GPT2-medium", "Reddit", 5, 53.8),
        (2, "GPT2-medium", "Overall", 5, 77.9),
    ],
)
def test_holds_what_the_paper_prints(table, model, domain, block_size, percent):
    wanted = (str(table), model, TASKS[domain], block_size)
    found = [row.value for row in published(PACKAGE) if key(row) == wanted]
    assert found == [pytest.approx(percent / 100, abs=1e-12)]


def test_holds_both_tables_whole():
    rows = published(PACKAGE)
    assert sum(row.table == "1" for row in rows) == 6 * 4
    assert sum(row.table == "2" for row in rows) == 5 * 5
    assert len({key(row) for row in rows}) == len(rows)
    assert {row.metric for row in rows} == {"accuracy"}


def test_only_the_human_rows_are_human():
    human = [row for row in published(PACKAGE) if row.facts.get("human")]
    assert {(row.system, row.task, row.table) for row in human} == {("Human", "shuffle/WSJ", "2")}


def test_averages_are_the_mean_of_the_three_domains_as_printed():
    figures = {key(row): row.value for row in published(PACKAGE)}
    overall = [found for found in figures if found[2] == "shuffle"]
    assert len(overall) == 6 + 5
    for table, model, _, size in overall:
        mean = sum(figures[table, model, f"shuffle/{d}", size] for d in ("WSJ", "Legal", "Reddit")) / 3
        assert figures[table, model, "shuffle", size] == pytest.approx(mean, abs=0.00051)


def test_series_come_by_block_size():
    assert published_series("Human", "shuffle/WSJ") == {1: 0.975, 2: 0.945, 3: 0.930, 4: 0.960, 5: 0.940}
    assert published_series("GPT2-medium", "shuffle/Legal", table="1") == {1: 0.986}
    assert published_series("GPT9", "shuffle/WSJ") == {}


def test_names_its_source():
    assert "Laban" in citation(PACKAGE)
    assert "2021" in citation(PACKAGE)
