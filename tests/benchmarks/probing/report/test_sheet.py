"""DiscoEval and SentEval runs in figures and in the terminal: layers chosen on dev, protocols kept apart."""

from __future__ import annotations

import pytest
from rich.console import Console

from ensue.benchmarks.probing.report.sheet import read_sheet
from ensue.benchmarks.probing.report.systems import SHARED, ablations, systems_of
from ensue.benchmarks.published import published
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
    sheet = read_sheet(results)
    assert sheet is not None
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
    assert sheet.best_layer("SP/wiki") == 9
    [line] = [line for line in sheet.lines if line.name == "SP/wiki"]
    assert (line.layer, line.test) == (9, sheet.at("SP/wiki", "test", 9))
    # Whatever happens on test changes nothing about the choice; what happens on dev does.
    assert only(scaled(results, "test", "SP/wiki", 2, 0.99)).best_layer("SP/wiki") == 9
    assert only(scaled(results, "dev", "SP/wiki", 2, 0.99)).best_layer("SP/wiki") == 2
    # Of equals the lower.
    assert only(scaled(results, "dev", "SP/wiki", 4, line.dev.value)).best_layer("SP/wiki") == 4


def test_best_layers_are_averaged_over_tasks_as_in_table_3():
    results = make_discoeval_results(layers=range(13))
    best = only(results).mean_layer
    assert (best.layer, best.tasks) == (pytest.approx(10.0), 9)
    text = " ".join(" ".join(printed(results)).split())
    assert "Mean best layer of 9 tasks: 10.0 (published, table 3: ELMo 1.3, BERT-Base 8.9)." in text
    assert ["SP/wiki", "9", "0.470", "0.466", "0.454–0.478", "4,000"] in cells(results)
    assert only(make_discoeval_results()).mean_layer is None
    assert only(make_discoeval_results(layers=[6])).mean_layer is None


def test_a_layer_without_dev_figures_makes_no_choice():
    results = make_discoeval_results(layers=range(3))
    rows = [
        row
        for row in results["metrics"]
        if (row["task"], row["settings"]["split"], row["settings"]["layer"]) != ("SP/wiki", "dev", 1)
    ]
    sheet = only({**results, "metrics": rows})
    assert sheet.best_layer("SP/wiki") is None
    assert sheet.best_layer("SP/arxiv") == 2


def test_senteval_has_both_kinds_of_measure_and_sets_do_not_hide_their_year():
    results = make_senteval_results(layers=range(7))
    found = cells(results)
    sheet = only(results)
    assert sheet.common_layer == 5
    year = sheet.at("STS12", "test", 5)
    assert year.figure.n == 1500
    assert ["STS12", "Pearson", "5*", "–", f"{year.value:.3f}"] in [line[:5] for line in found]
    assert ["SSS", "mean", "5"] in [line[:3] for line in found]
    assert ["Length", "missing", "–"] in found
    assert sheet.mean_layer.without_dev == ("STS12", "STS13", "STS14", "STS15", "STS16")
    assert all(len(line) <= 80 for line in printed(results))


def test_what_is_not_of_the_known_form_is_told_plainly():
    row = {"task": "SP/wiki", "metric": "accuracy", "value": 0.5, "n": 3, "settings": {}}
    assert read_sheet({"benchmark": "discoeval", "metrics": [row]}) is None
    assert read_sheet({**make_discoeval_results(), "benchmark": "shuffle"}) is None
    assert only({**make_discoeval_results(), "benchmark": "discoeval/SP"}).suite.title == "DiscoEval"


def test_table_2_averages_only_what_both_have():
    table = systems_of([only(make_discoeval_results())])
    assert table.columns == ["SP", "BSO", "DC", "SSP", SHARED]
    [bert] = [row for row in table.rows if row.name == "BERT-Base"]
    line = {
        one.task: one.value for one in published("ensue.benchmarks.discoeval") if one.system == "BERT-Base"
    }
    assert bert.entries[SHARED].value == pytest.approx(sum(line[c] for c in ("SP", "BSO", "DC", "SSP")) / 4)
    [run] = table.measured
    assert run.entries[SHARED].figure.low is not None
    whole = systems_of([only(make_discoeval_results(missing=()))])
    assert whole.columns[-3:] == ["PDTB/implicit", "RST", "average"]
    assert next(row for row in whole.rows if row.name == "BERT-Base").entries["average"].value == 0.574


def test_a_column_that_lacks_a_domain_is_no_part_of_the_shared_mean():
    table = systems_of([only(make_discoeval_results(missing=("SP/wiki", *ABSENT)))])
    assert table.shared == ["BSO", "DC", "SSP"]
    assert "SP/wiki" in table.partly
    [run] = table.measured
    assert run.entries[SHARED].value == pytest.approx(
        sum(run.entries[c].value for c in ("BSO", "DC", "SSP")) / 3
    )
    # The run's own average takes in what is left of SP, so its interval is not that of this mean.
    assert run.entries[SHARED].figure.low is None


def test_published_figures_stand_only_beside_runs_of_the_papers_protocol():
    paper = systems_of([only(make_discoeval_results())])
    assert sum(row.published for row in paper.rows) == 15
    other = systems_of([only(make_discoeval_results(protocol="converged"))])
    assert not any(row.published for row in other.rows)
    [ablation] = ablations([only(make_discoeval_results(protocol="converged", ablated=("hidden",)))])
    assert not any(row.published for row in ablation.rows)


def test_ablations_stand_beside_tables_4_and_6():
    ablated, plain = (only(make_discoeval_results(ablated=a)) for a in (("context", "hidden"), ()))
    assert ablations([plain]) == []
    sp, dc = ablations([ablated, plain])
    assert (sp.task, sp.table, dc.task, dc.table) == ("SP", "6", "DC", "4")
    told = [(row.name, row.words, row.figure.value) for row in sp.rows if row.published]
    assert ("Baseline (NSP)", "without context", 0.432) in told
    assert [row.words for row in dc.rows if not row.published] == [
        "without a hidden layer",
        "with a hidden layer",
    ]
    text = " ".join(" ".join(printed(make_discoeval_results(ablated=("context",)))).split())
    assert "0.440†" in text
    assert "†: without context." in text
