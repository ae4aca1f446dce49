"""GLUE and SuperGLUE runs in figures and in the terminal: dev and test apart, what a score covers, who is missing."""

from __future__ import annotations

import os
import statistics
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from ensue.benchmarks.nlu.report.scores import (
    Measure,
    Phenomenon,
    dev_spreads,
    phenomena,
    scores_of,
    spread_of,
)
from ensue.benchmarks.nlu.report.systems import diagnostics_table, split_tables
from ensue.benchmarks.nlu.report.table import trainings_table
from ensue.benchmarks.published import published
from ensue.errors import EnsueError
from ensue.report.results import read_fits
from ensue.runs.run import run
from ensue.runs.tables import metrics_tables
from tests.benchmarks.nlu.report.synthetic import make_fits, make_nlu_results, write_nlu

DATA = os.environ.get("ENSUE_DATA")
TEMPLATES = [{"template": name, "shots": 0} for name in ("question", "statement", "instruction")]


def printed(results, folder=None, width=80):
    console = Console(width=width)
    with console.capture() as captured:
        console.print(metrics_tables(results, folder)[0].to_rich())
    return captured.get().splitlines()


def cells(results, folder=None):
    return [line.split() for line in printed(results, folder)]


def words(results, folder=None):
    return " ".join(" ".join(line) for line in cells(results, folder))


def value(results, task, metric, **settings):
    [found] = [
        row["value"]
        for row in results["metrics"]
        if (row["task"], row["metric"]) == (task, metric)
        and {"category", "tag"}.isdisjoint(row["settings"])
        and settings.items() <= row["settings"].items()
    ]
    return found


def test_a_line_a_task_with_split_measures_score_interval_and_size():
    results = make_nlu_results()
    [line] = [line for line in cells(results) if line[:1] == ["MRPC"]]
    accuracy, f1 = (value(results, "MRPC", metric) for metric in ("accuracy", "f1"))
    low, high = next(
        row["ci95"] for row in results["metrics"] if (row["task"], row["metric"]) == ("MRPC", "score")
    )
    assert line == [
        "MRPC",
        "dev",
        "acc./F1",
        f"{accuracy:.3f}/{f1:.3f}",
        f"{(accuracy + f1) / 2:.3f}",
        f"{low:.3f}–{high:.3f}",
        "60",
    ]
    assert "The GLUE score covers 9 of 9 tasks on dev." in words(results)


def test_the_score_printed_is_the_mean_of_the_lines():
    results = make_nlu_results("superglue")
    lines = [line for line in cells(results) if line[1:2] == ["dev"]]
    scores = {line[0]: float(line[-3]) for line in lines}
    total = scores.pop("SuperGLUE")
    assert len(scores) == 8
    assert total == pytest.approx(np.mean(list(scores.values())), abs=1e-3)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=8))
def test_a_spread_is_that_of_numpy(values):
    found = spread_of(values, [str(place) for place in range(len(values))])
    assert found.mean == pytest.approx(np.mean(values), abs=1e-12)
    assert found.sd == pytest.approx(np.std(values, ddof=1) if len(values) > 1 else 0.0, abs=1e-9)
    assert (found.best, found.best_way) == (max(values), str(int(np.argmax(values))))


def test_dev_and_test_never_share_a_block():
    results = make_nlu_results(splits=("dev", "test"))
    splits = [line[1] for line in cells(results) if len(line) > 2 and line[1] in ("dev", "test")]
    assert splits == ["dev"] * 10 + ["test"] * 11
    sheet = scores_of(results)
    assert sheet.splits == ["dev", "test"]
    assert [line.name for line in sheet.on("dev")] == [line.name for line in sheet.on("test")]
    assert "9 of 9 tasks on dev and 9 of 9 tasks on test" in words(results)


def test_both_sections_of_mnli_stand_in_one_line():
    results = make_nlu_results()
    sheet = scores_of(results)
    [mnli] = [line for line in sheet.on("dev") if line.name == "MNLI"]
    assert mnli.measures == [Measure("accuracy", "m"), Measure("accuracy", "mm")]
    sections = [value(results, "MNLI", "accuracy", split=split) for split in ("dev", "dev-mismatched")]
    assert mnli.value == pytest.approx(np.mean(sections))
    assert ["MNLI", "dev", "acc.", "m/mm"] in [line[:4] for line in cells(results)]


def test_several_templates_have_mean_deviation_best_and_a_line_each():
    results = make_nlu_results(ways=TEMPLATES)
    sheet = scores_of(results)
    for line in sheet.on("dev")[:-1]:
        values = [value(results, line.name, "score", **way) for way in TEMPLATES]
        found = line.spread
        assert found.of == 3
        assert found.best_way == TEMPLATES[int(np.argmax(values))]["template"]
        assert (found.mean, found.sd, found.best) == pytest.approx(
            (np.mean(values), np.std(values, ddof=1), max(values))
        )
    found = cells(results)
    place = next(n for n, line in enumerate(found) if line[:1] == ["CoLA"])
    assert (
        found[place][-2]
        == f"±{np.std([value(results, 'CoLA', 'score', **way) for way in TEMPLATES], ddof=1):.3f}"
    )
    assert [line[0] for line in found[place + 1 : place + 4]] == ["question", "statement", "instruction"]
    assert [line[2] for line in found[place + 1 : place + 4]].count("best") == 1
    assert "Throughout: shots 0." in words(results)


def test_the_table_fits_80_columns_at_its_widest():
    results = make_nlu_results(ways=TEMPLATES, skill=0.1)
    results["metrics"] = [{**row, "n": 40_430} for row in results["metrics"]]
    lines = printed(results)
    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines)


@pytest.mark.parametrize("split", ["dev", "held-out"])
def test_no_figure_is_cut_short_where_tasks_are_judged_in_part(split):
    results = make_nlu_results(ways=TEMPLATES, skill=0.1)
    for row in results["metrics"]:
        row["settings"]["split"] = split
        if row["task"] == "GLUE":
            row["settings"]["covers"] = "0 of 9 tasks whole, CoLA in part (40 of 1,043 rows)"
        elif row["metric"] == "score":
            row["settings"]["part"] = "40 of 1,043 rows"
        if row["task"] == "STS-B":
            row.update(value=-0.051, ci95=[-0.567, -0.010])
    lines = printed(results)
    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines)
    [total] = [line.split() for line in lines if line.split()[:2] == ["GLUE", split]]
    assert total[2:6] == ["mean", "0", "of", "9"]
    assert [line.split()[3:5] for line in lines if line.split()[:2] == ["STS-B", "*"]] == [
        ["r/ρ", "−0.051/−0.051"]
    ]


def test_several_trainings_are_told_on_dev_only(tmp_path):
    fits = make_fits()
    results = make_nlu_results(splits=("dev", "test"))
    folder = write_nlu(tmp_path / "run", results, fits)
    scores = [fit["dev_score"] for fit in fits if fit["task"] == "CoLA"]
    told = [line for line in cells(results, folder) if line[1:2] == ["trainings"]]
    assert told[0] == [
        "3",
        "trainings",
        "dev",
        "best",
        f"{max(scores):.3f}",
        f"{np.mean(scores):.3f}",
        f"±{np.std(scores, ddof=1):.3f}",
    ]
    assert len(told) == 2
    assert not [line for line in cells(results) if "trainings" in line]


def test_tasks_trained_together_have_a_spread_each():
    fits = [
        {"task": "multitask", "seed": seed, "dev_score": s, "updates": 200, "dev_by_task": {"RTE": s + 0.1}}
        for seed, s in enumerate([0.4, 0.5])
    ]
    found = dev_spreads(fits)
    assert set(found) == {("multitask", ""), ("RTE", "")}
    assert found["RTE", ""].mean == pytest.approx(0.55)
    assert found["RTE", ""].sd == pytest.approx(statistics.stdev([0.5, 0.6]))
    assert found["RTE", ""].best_way == "seed 1"
    assert trainings_table(fits).rows[0].cells[2] == "200 updates"
    assert dev_spreads(fits[:1]) == {}


def test_a_broken_line_of_trainings_is_named(tmp_path):
    folder = write_nlu(tmp_path / "run", make_nlu_results(), [{"task": "CoLA"}, {"seed": 1}])
    with pytest.raises(EnsueError, match=r"fits.jsonl, line 2: it needs .*'task'"):
        list(read_fits(folder))


def test_tasks_without_a_figure_are_named_with_the_reason():
    results = make_nlu_results(
        without=("QNLI", "QQP", "CoLA"),
        skipped={
            "task QNLI left out, for want of files": 1,
            "task QQP left out: mode train has nothing to learn it from": 1,
        },
    )
    sheet = scores_of(results)
    assert (sheet.missing, sheet.unlearnt, sheet.unjudged) == (["QNLI"], ["QQP"], ["CoLA"])
    said = words(results)
    assert "Missing, for want of files: QNLI." in said
    assert "Could not be learnt or asked here: QQP." in said
    assert "Without labels to judge by: CoLA." in said
    assert "covers 6 of 9 tasks on dev" in said
    # Who asks for one task misses no other.
    rows = [row for row in make_nlu_results()["metrics"] if row["task"] == "RTE"]
    assert scores_of({**results, "benchmark": "glue/rte", "metrics": rows, "skipped": {}}).unjudged == []


def test_a_task_judged_in_part_is_starred_and_the_caption_says_which_part():
    results = make_nlu_results("superglue")
    for row in results["metrics"]:
        if (row["task"], row["metric"]) == ("CB", "score"):
            row["settings"]["part"] = "32 rows of the training set for 56"
        if row["task"] == "AX-g":
            row["settings"]["part"] = "5 of 356 rows"
        if row["task"] == "SuperGLUE":
            row["settings"]["covers"] = "7 of 8 tasks whole, CB in part (32 rows of the training set for 56)"
    said = words(results)
    assert "CB * dev" in said
    assert "covers 7 of 8 tasks whole, CB in part (32 rows of the training set for 56) on dev." in said
    assert "AX-g *" in said
    assert said.count("32 rows of the training set") == 1
    assert "* judged on a part of the published split: AX-g 5 of 356 rows on test." in said
    assert "*" not in words(make_nlu_results("superglue"))


def test_a_limit_is_said():
    results = make_nlu_results()
    results["signature"] += " limit:30"
    assert "Only the first 30 examples of each split." in words(results)


def test_a_name_is_not_markup():
    assert "[red]x[/red]" in printed(make_nlu_results(model="[red]x[/red]"))[0]


def test_diagnostics_stand_apart_and_by_phenomenon():
    results = make_nlu_results("superglue")
    sheet = scores_of(results)
    assert [line.name for line in sheet.diagnostics] == ["AX-b", "AX-g"]
    assert "AX-b" not in sheet.on("dev")[-1].tasks
    [diagnosis] = sheet.diagnoses
    assert (diagnosis.task, diagnosis.metric, diagnosis.split) == ("AX-b", "mcc", "test")
    for row in results["metrics"]:
        if row["task"] == "AX-b" and row["metric"] == "mcc":
            place = Phenomenon(row["settings"].get("category", ""), row["settings"].get("tag", ""))
            assert diagnosis.figures[place].value == row["value"]
            assert diagnosis.figures[place].n == row["n"]
            assert place in phenomena()
    assert len(phenomena()) == 1 + 4 + 33


def shown(table):
    """Cells by system and column of a table, and its headings."""
    names = [column.title for column in table.columns]
    rows = [dict(zip(names, row.cells, strict=True)) for row in table.rows if not row.heading]
    texts = {
        row["system"]: {name: cell and cell.text for name, cell in list(row.items())[1:]} for row in rows
    }
    return texts, [row.cells[0] for row in table.rows if row.heading]


def test_published_figures_are_beside_runs_of_the_same_split_only():
    sheet = scores_of(make_nlu_results("superglue"))
    dev, test = split_tables([sheet])
    assert [(one.split, one.measured, one.published) for one in (dev, test)] == [
        ("dev", True, True),
        ("test", False, True),
    ]
    cells, headings = shown(dev.table)
    assert headings == ["measured here, dev", "published, dev: baseline (table A.2)"]
    assert next(iter(cells)) == "some-model"
    by_cell = {
        (row.system, row.task, row.metric): row.value
        for row in published("ensue.benchmarks.superglue")
        if row.table == "A.2"
    }
    metrics = {
        "SuperGLUE": ["score"],
        **{line.name: [m.metric for m in line.measures] for line in sheet.lines[:8]},
    }
    for system in list(cells)[1:]:
        for column, text in cells[system].items():
            task = column.partition(" ")[0]
            wanted = [by_cell[system, task, metric] for metric in metrics[task]]
            assert text == "/".join(f"{value:.3f}" for value in wanted)
    # Printed as F1/accuracy in table 3.3, shown as accuracy/F1 like everything else.
    cells, headings = shown(test.table)
    assert cells["Human"]["CB acc./F1"] == "0.989/0.958"
    assert headings[-1] == "published, test: human (table 3.3)"


def test_columns_are_those_of_the_runs():
    results = make_nlu_results(without=("CoLA", "QQP", "MNLI", "diagnostic"))
    [dev, test] = split_tables([scores_of(results)])
    names = ["system", "GLUE", "SST-2", "MRPC", "STS-B", "QNLI", "RTE", "WNLI"]
    for found in (dev, test):
        assert [column.title.partition(" ")[0] for column in found.table.columns] == names
    assert not dev.published
    assert diagnostics_table([scores_of(results)]) is None


def test_a_section_of_mnli_that_was_not_judged_is_a_gap():
    results = make_nlu_results(splits=("test",))
    [found] = split_tables([scores_of(results)])
    cells, _ = shown(found.table)
    assert cells["some-model"]["MNLI acc. m/mm"] == f"{value(results, 'MNLI', 'accuracy'):.3f}/–"
    bilstm = next(row for row in found.table.rows if row.cells[0] == "BiLSTM")
    assert "0.703/0.708" in [cell.text for cell in bilstm.cells[1:]]


def test_the_diagnostic_table_has_the_columns_of_table_2_4():
    found = diagnostics_table([scores_of(make_nlu_results(ways=TEMPLATES))])
    cells, _ = shown(found.table)
    assert [column.title for column in found.table.columns[1:3]] == ["diagnostic R3", "diagnostic accuracy"]
    assert len(found.table.columns) == 1 + 2 + 10
    assert found.table.rows[1].cells[1].below.startswith("± ")
    assert cells["GenSen"]["Double Negation"] == "0.02"
    assert cells["fastText on SNLI hypotheses"]["diagnostic accuracy"] == "0.327"


def test_rows_of_another_form_are_told_plainly():
    results = make_nlu_results()
    results["metrics"] = [{**row, "settings": {}} for row in results["metrics"]]
    assert scores_of(results) is None
    assert "clusters" in " ".join(printed(results, width=120))
    assert scores_of({**results, "benchmark": "discoeval"}) is None


@pytest.mark.data
@pytest.mark.skipif(not DATA, reason="ENSUE_DATA does not name the folder of the real data")
def test_the_most_frequent_row_of_table_a_2_is_printed_as_published(tmp_path):
    folder = Path(DATA) / "superglue"
    done = run("superglue", model="most-frequent", data=str(folder), output=tmp_path / "run")
    found = {line[0]: line[3] for line in cells(done.results, done.folder) if line[1:2] == ["dev"]}
    paper = {
        (row.task, row.metric): row.value
        for row in published("ensue.benchmarks.superglue")
        if (row.table, row.system) == ("A.2", "most-frequent")
    }
    # ReCoRD's dev file here is a sample of 32, and the average is over it too.
    for task in ("BoolQ", "CB", "COPA", "MultiRC", "RTE", "WiC", "WSC"):
        metrics = [metric for of, metric in paper if of == task]
        assert found[task] == "/".join(f"{paper[task, metric]:.3f}" for metric in metrics), task
