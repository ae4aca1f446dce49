"""Runs and comparisons as tables, printed at 80 columns and read back."""

from __future__ import annotations

from ensue.runs.compare import compare_runs
from ensue.runs.tables import agreement_table, comparison_table, metrics_tables
from tests.report.synthetic import make_items, make_results, write_run
from tests.support.pages import printed


def test_the_terminal_table_of_another_benchmark_has_a_row_per_metric():
    row = {
        "task": "SP/wiki",
        "metric": "accuracy",
        "value": 0.5,
        "ci95": [0.4, None],
        "n": 10,
        "settings": {},
    }
    lines = printed(metrics_tables({"benchmark": "discoeval", "model": "m", "metrics": [row]})[0].to_rich())
    rows = [line.split() for line in lines]
    assert ["SP/wiki", "accuracy", "0.500", "–", "10", "–"] in rows


def test_a_comparison_has_a_row_per_metric_that_differs(tmp_path):
    items = make_items(documents=40)
    worse = [{**item, "scores": {**item["scores"], "accuracy": 0.0}} for item in items]
    write_run(tmp_path / "a", items, make_results(items), run={"model": {"name": "first"}})
    write_run(tmp_path / "b", worse, make_results(worse), run={"model": {"name": "second"}})
    found = compare_runs(tmp_path / "a", tmp_path / "b")
    lines = printed(comparison_table(found).to_rich())
    text = " ".join(" ".join(lines).split())
    assert "a: first (" in text
    assert "b: second (" in text
    row = found.rows[0]
    cells = f"1 accuracy {row.value_a:.3f} 0.000 {row.test.difference:+.3f} {row.test.low:+.3f} to"
    assert cells in text
    assert text.count("<0.001 <0.001") == 2
    assert "Equal everywhere and not shown: accuracy_per_token, ties." in text


def test_a_row_that_is_shown_alone_says_of_which_task_it_is(tmp_path):
    items = [
        {
            "id": f"{task}-{number}",
            "task": task,
            "cluster": str(number),
            "scores": {"accuracy": 1.0},
            "settings": {},
            "outputs": {},
        }
        for task in ("first", "second")
        for number in range(12)
    ]
    worse = [{**item, "scores": {"accuracy": float(item["task"] == "first")}} for item in items]
    write_run(tmp_path / "a", items, make_results([]))
    write_run(tmp_path / "b", worse, make_results([]))
    text = " ".join(
        " ".join(printed(comparison_table(compare_runs(tmp_path / "a", tmp_path / "b")).to_rich())).split()
    )
    assert "All rows: second, n 12." in text


def test_a_comparison_of_equal_runs_shows_every_metric(tmp_path):
    items = make_items()
    write_run(tmp_path / "a", items, make_results(items))
    lines = printed(comparison_table(compare_runs(tmp_path / "a", tmp_path / "a")).to_rich())
    # No item differs, which is not to say that none could.
    assert sum(" 0.000 " in line and "1.000" in line for line in lines) == 6


def test_the_share_of_items_scored_the_same_has_a_row_a_metric(tmp_path):
    items = make_items(documents=40)
    worse = [{**item, "scores": {**item["scores"], "accuracy": 0.0}} for item in items]
    write_run(tmp_path / "a", items, make_results(items))
    write_run(tmp_path / "b", worse, make_results(worse))
    found = compare_runs(tmp_path / "a", tmp_path / "b")
    lines = [line.split() for line in printed(agreement_table(found).to_rich())]
    row = found.rows[0]
    wrong = f"{1 - row.value_a:.3f}"
    shown = next(line for line in lines if "accuracy" in line and "token" not in line and wrong in line)
    assert shown[-2:] == [str(row.same.n), str(row.same.clusters)]
    assert any("ties" in line and "1.000" in line for line in lines)
