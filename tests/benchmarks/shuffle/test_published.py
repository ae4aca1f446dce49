"""The published figures against the paper's printed tables."""

from __future__ import annotations

import pytest

from ensue.benchmarks.shuffle.published import citation, published, published_series


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
    found = [
        row.accuracy
        for row in published()
        if (row.table, row.model, row.domain, row.block_size) == (table, model, domain, block_size)
    ]
    assert found == [pytest.approx(percent / 100, abs=1e-12)]


def test_holds_both_tables_whole():
    rows = published()
    assert sum(row.table == 1 for row in rows) == 6 * 4
    assert sum(row.table == 2 for row in rows) == 5 * 5
    assert len({(row.table, row.model, row.domain, row.block_size) for row in rows}) == len(rows)


def test_only_the_human_rows_are_human():
    assert {(row.model, row.domain, row.table) for row in published() if row.human} == {("Human", "WSJ", 2)}


def test_averages_are_the_mean_of_the_three_domains_as_printed():
    figures = {(row.table, row.model, row.domain, row.block_size): row.accuracy for row in published()}
    overall = [key for key in figures if key[2] == "Overall"]
    assert len(overall) == 6 + 5
    for table, model, _, size in overall:
        mean = sum(figures[table, model, domain, size] for domain in ("WSJ", "Legal", "Reddit")) / 3
        assert figures[table, model, "Overall", size] == pytest.approx(mean, abs=0.00051)


def test_series_come_by_block_size():
    assert published_series("Human", "WSJ") == {1: 0.975, 2: 0.945, 3: 0.930, 4: 0.960, 5: 0.940}
    assert published_series("GPT2-medium", "Legal", table=1) == {1: 0.986}
    assert published_series("GPT9", "WSJ") == {}


def test_names_its_source():
    assert "Laban" in citation()
    assert "2021" in citation()
