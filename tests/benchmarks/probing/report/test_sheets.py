"""DiscoEval and SentEval runs in figures and in the terminal: layers chosen on dev, protocols kept apart."""

from __future__ import annotations

import pytest
from rich.console import Console

from ensue.benchmarks.discoeval.published import published_line
from ensue.benchmarks.probing.report.published import SHARED, ablations, systems_table
from ensue.benchmarks.probing.report.sheets import best_layer, common_layer, lines, mean_layer, sheets
from ensue.runs.tables import metrics_tables
from tests.benchmarks.probing.report.synthetic import make_discoeval_results, make_senteval_results

ABSENT = ("PDTB/explicit", "PDTB/implicit", "RST")


def printed(results, width=80):
    console = Console(width=width)
    with console.capture() as captured:
        console.print(metrics_tables(results)[0].to_rich())
    return captured.get().splitlines()


def cells(results):
    return [line.split() for line in printed(results)]


def only(results):
    [sheet] = sheets(results)
    return sheet


def scaled(results, split, task, layer, value):
    """The results with one value changed."""
    rows = [
        {**row, "value": value}
        if (row["task"], row["settings"]["split"], row["settings"].get("layer")) == (task, split, layer)
        else row
        for row in results["metrics"]
    ]
    return {**results, "metrics": rows}


def test_a_line_a_task_with_dev_test_interval_and_size():
    found = cells(make_discoeval_results())
    assert ["SP/arxiv", "0.480", "0.480", "0.468–0.492", "4,000"] in found
    assert ["SP", "0.480", "0.480", "0.475–0.485", "12,000"] in found
    for task in ABSENT:
        assert [task, "missing", "–"] in found
    text = " ".join(" ".join(line) for line in found)
    assert "The average covers 9 of 12 tasks." in text
    assert "Protocol paper." in text


def test_groups_and_average_are_bold():
    table = metrics_tables(make_discoeval_results(missing=()))[0].to_rich()
    names = list(table.columns[0].cells)
    bold = [name for name, row in zip(names, table.rows, strict=True) if row.style == "bold"]
    assert bold == ["SP", "BSO", "DC", "SSP/abs", "PDTB", "RST", "average"]


def test_the_best_layer_is_chosen_on_dev_never_on_test():
    results = make_discoeval_results(layers=range(13))
    sheet = only(results)
    assert best_layer(sheet, "SP/wiki") == 9
    [line] = [line for line in lines(sheet) if line.name == "SP/wiki"]
    assert (line.layer, line.test) == (9, sheet.at("SP/wiki", "test", 9))
    # Whatever happens on test changes nothing about the choice; what happens on dev does.
    assert best_layer(only(scaled(results, "test", "SP/wiki", 2, 0.99)), "SP/wiki") == 9
    assert best_layer(only(scaled(results, "dev", "SP/wiki", 2, 0.99)), "SP/wiki") == 2
    # Of equals the lower.
    assert best_layer(only(scaled(results, "dev", "SP/wiki", 4, line.dev.value)), "SP/wiki") == 4


def test_best_layers_are_averaged_over_tasks_as_in_table_3():
    results = make_discoeval_results(layers=range(13))
    best = mean_layer(only(results))
    assert (best.layer, best.tasks) == (pytest.approx(10.0), 9)
    text = " ".join(" ".join(printed(results)).split())
    assert "Mean best layer of 9 tasks: 10.0 (published, table 3: ELMo 1.3, BERT-Base 8.9)." in text
    assert ["SP/wiki", "9", "0.470", "0.466", "0.454–0.478", "4,000"] in cells(results)
    assert mean_layer(only(make_discoeval_results())) is None
    assert mean_layer(only(make_discoeval_results(layers=[6]))) is None


def test_a_layer_without_dev_figures_makes_no_choice():
    results = make_discoeval_results(layers=range(3))
    rows = [
        row
        for row in results["metrics"]
        if (row["task"], row["settings"]["split"], row["settings"]["layer"]) != ("SP/wiki", "dev", 1)
    ]
    sheet = only({**results, "metrics": rows})
    assert best_layer(sheet, "SP/wiki") is None
    assert best_layer(sheet, "SP/arxiv") == 2


def test_senteval_has_both_kinds_of_measure_and_sets_do_not_hide_their_year():
    results = make_senteval_results(layers=range(7))
    found = cells(results)
    sheet = only(results)
    assert common_layer(sheet) == 5
    year = sheet.at("STS12", "test", 5)
    assert year.n == 1500
    assert ["STS12", "Pearson", "5*", "–", f"{year.value:.3f}"] in [line[:5] for line in found]
    assert ["SSS", "mean", "5"] in [line[:3] for line in found]
    assert ["Length", "missing", "–"] in found
    assert mean_layer(sheet).without_dev == ("STS12", "STS13", "STS14", "STS15", "STS16")
    assert all(len(line) <= 80 for line in printed(results))


def test_protocols_have_columns_of_their_own():
    both = make_discoeval_results()
    both["metrics"] = both["metrics"] + make_discoeval_results(protocol="converged", shift=0.1)["metrics"]
    found = cells(both)
    assert ["SP/wiki", "0.470", "0.470", "0.570", "0.570", "4,000"] in found
    assert ["paper", "converged"] in found
    assert all("…" not in word for line in found for word in line)


def test_what_is_not_of_the_known_form_is_told_plainly():
    row = {"task": "SP/wiki", "metric": "accuracy", "value": 0.5, "n": 3, "settings": {}}
    assert sheets({"benchmark": "discoeval", "metrics": [row]}) == []
    assert sheets({**make_discoeval_results(), "benchmark": "shuffle"}) == []
    assert only({**make_discoeval_results(), "benchmark": "discoeval/SP"}).suite.title == "DiscoEval"


def test_table_2_averages_only_what_both_have():
    table = systems_table([only(make_discoeval_results())])
    assert table.columns == ["SP", "BSO", "DC", "SSP", SHARED]
    [bert] = [row for row in table.rows if row.name == "BERT-Base"]
    line = published_line("BERT-Base")
    assert bert.figures[SHARED].value == pytest.approx(sum(line[c] for c in ("SP", "BSO", "DC", "SSP")) / 4)
    [run] = table.measured
    assert run.figures[SHARED].low is not None
    whole = systems_table([only(make_discoeval_results(missing=()))])
    assert whole.columns[-3:] == ["PDTB/implicit", "RST", "average"]
    assert next(row for row in whole.rows if row.name == "BERT-Base").figures["average"].value == 0.574


def test_a_column_that_lacks_a_domain_is_no_part_of_the_shared_mean():
    table = systems_table([only(make_discoeval_results(missing=("SP/wiki", *ABSENT)))])
    assert table.shared == ["BSO", "DC", "SSP"]
    assert "SP/wiki" in table.partly
    [run] = table.measured
    assert run.figures[SHARED].value == pytest.approx(
        sum(run.figures[c].value for c in ("BSO", "DC", "SSP")) / 3
    )
    # The run's own average takes in what is left of SP, so its interval is not that of this mean.
    assert run.figures[SHARED].low is None


def test_published_figures_stand_only_beside_runs_of_the_papers_protocol():
    paper = systems_table([only(make_discoeval_results())])
    assert sum(row.published for row in paper.rows) == 15
    other = systems_table([only(make_discoeval_results(protocol="converged"))])
    assert not any(row.published for row in other.rows)
    [ablation] = ablations([only(make_discoeval_results(protocol="converged", ablated=("hidden",)))])
    assert not any(row.published for row in ablation.rows)


def test_ablations_stand_beside_tables_4_and_6():
    ablated, plain = (only(make_discoeval_results(ablated=a)) for a in (("context", "hidden"), ()))
    assert ablations([plain]) == []
    sp, dc = ablations([ablated, plain])
    assert (sp.task, sp.table, dc.task, dc.table) == ("SP", 6, "DC", 4)
    told = [(row.name, row.words, row.figure.value) for row in sp.rows if row.published]
    assert ("Baseline (NSP)", "without context", 0.432) in told
    assert [row.words for row in dc.rows if not row.published] == [
        "without a hidden layer",
        "with a hidden layer",
    ]
    text = " ".join(" ".join(printed(make_discoeval_results(ablated=("context",)))).split())
    assert "0.440†" in text
    assert "†: without context." in text
