"""The table of a Shuffle Test run, printed at 80 columns and read back."""

from __future__ import annotations

from ensue.benchmarks.shuffle.report.table import block_rows
from ensue.runs.tables import metrics_tables
from tests.report.synthetic import make_items, make_results
from tests.support.pages import printed


def test_the_terminal_table_has_a_row_per_block_size():
    items = make_items(documents=400)
    lines = printed(metrics_tables(make_results(items, model="[bold]odd[/bold]"))[0].to_rich())
    assert "[bold]odd[/bold]" in lines[0]
    first = block_rows(make_results(items))[0]
    expected = [first.accuracy.text(), first.accuracy.interval(), "1.000", "–", "0", "2,000", "400"]
    assert ["1", *expected, "0.975", "0.945"] in [line.split() for line in lines]
    assert sum(line.split()[:1] in (["1"], ["3"]) for line in lines) == 2


def test_what_the_authors_count_stands_beside_what_they_published():
    results = make_results(make_items())
    for row in [row for row in results["metrics"] if row["metric"] == "accuracy_per_token"]:
        results["metrics"].append({**row, "metric": "accuracy_per_token_authors", "value": 0.625})
    (table,) = metrics_tables(results)
    lines = [line.split() for line in printed(table.to_rich())]
    assert all(line[4] == "0.625" for line in lines if line[:1] in (["1"], ["3"]))
    assert "compares with 'as the authors'" in table.caption
    assert max(map(len, printed(table.to_rich()))) <= 80
