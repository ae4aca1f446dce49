"""The tables of the terminal, printed at 80 columns and read back."""

from __future__ import annotations

from rich.console import Console

from ensue.benchmarks.shuffle.report.rows import block_rows
from ensue.report.profiles import profile_table
from ensue.report.table import Column, Table
from ensue.runs.compare import compare_runs
from ensue.runs.tables import comparison_table, metrics_tables
from tests.report.synthetic import make_items, make_profile, make_results, write_run


def printed(table):
    console = Console(width=80)
    with console.capture() as captured:
        console.print(table)
    return captured.get().splitlines()


def test_the_terminal_table_has_a_row_per_block_size():
    items = make_items(documents=400)
    lines = printed(metrics_tables(make_results(items, model="[bold]odd[/bold]"))[0].to_rich())
    assert "[bold]odd[/bold]" in lines[0]
    first = block_rows(make_results(items))[0]
    expected = [f"{first.accuracy:.3f}", f"{first.low:.3f}–{first.high:.3f}", "1.000", "0", "2,000", "400"]
    assert ["1", *expected, "0.975", "0.945"] in [line.split() for line in lines]
    assert sum(line.split()[:1] in (["1"], ["3"]) for line in lines) == 2


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
    assert sum(" +0.000 " in line and "1.000" in line for line in lines) == 6


def test_a_profile_marks_where_the_text_stops_following():
    lines = printed(profile_table(make_profile("[red]doc[/red]", text="Short.")).to_rich())
    assert "[red]doc[/red]" in lines[0]
    marked = [line for line in lines if "+1.60" in line]
    assert len(marked) == 1
    assert "Short. Number 2." in marked[0]
    assert "5.00" in marked[0]
    assert marked[0].count("█") == 16
    assert "the first aside" in " ".join(" ".join(lines).split())


def chapterbreak_rows(split, prefix, **settings):
    values = {"accuracy": 0.25, "rank": 2.5, "margin": -0.05, "ties": 0.0, "word_perplexity": 45.67}
    where = {"boundary": "chapter", "negatives": "in-book", "prefix_tokens": prefix, "suffix_tokens": 128}
    return [
        {
            "task": split,
            "metric": metric,
            "value": value,
            "ci95": [0.2, 0.3],
            "n": 241,
            "clusters": 17,
            "settings": {**where, **settings},
        }
        for metric, value in values.items()
    ]


def test_chapterbreak_has_a_row_per_split_and_prefix_beside_the_published_figures():
    rows = chapterbreak_rows("pg19", 128) + chapterbreak_rows("pg19", 8064)
    lines = printed(
        metrics_tables({"benchmark": "chapterbreak/pg19", "model": "m", "metrics": rows})[0].to_rich()
    )
    cells = [line.split() for line in lines]
    assert ["pg19", "8,064", "0.250", "0.200–0.300", "2.50", "−0.050", "45.7", "241", "17"] in cells
    assert "suffix" not in lines[2]
    text = " ".join(" ".join(lines).split())
    assert "GPT-2 0.23 (1K)" in text
    assert "GPT-3 0.36 (2K, a subset)" in text


def test_chapterbreak_shows_only_settings_that_differ():
    rows = chapterbreak_rows("mine", 128) + chapterbreak_rows("mine", 128, negatives="same-split")
    rows = [row for row in rows if row["metric"] != "word_perplexity"]
    lines = printed(metrics_tables({"benchmark": "chapterbreak", "model": "m", "metrics": rows})[0].to_rich())
    cells = [line.split() for line in lines]
    assert ["mine", "same-split", "128", "0.250", "0.200–0.300", "2.50", "−0.050", "–", "241", "17"] in cells
    assert not any("Published" in line for line in lines)


def test_a_heading_spans_the_columns_of_a_page_and_keeps_its_words_elsewhere() -> None:
    table = Table([Column("system", words=True), Column("score")])
    table.add_heading("published (table 2)", tone="published")
    table.add("  CBoW", 0.5, tone="published")
    assert (
        '<th scope="rowgroup" colspan="2" class="words published">published (table 2)</th>' in table.to_html()
    )
    assert "\u2003\u2003CBoW" in table.to_html()
    assert "| published (table 2) |  |" in table.to_markdown()
