"""The page and the tables of an intruder run: what is in the results is what a reader sees."""

from __future__ import annotations

import csv

import pytest

import ensue
from ensue.benchmarks.intruder.report.page import curves_of, example_of
from ensue.benchmarks.intruder.report.table import Figures, domains_table, positions_table, tables
from ensue.report.table import render
from ensue.runs.report import render_report, write_report
from tests.support.command import write_lines
from tests.support.corpus import document
from tests.support.pages import EVIL, Page, printed


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    rows = [
        {"id": f"d{n}", "domain": "law" if n % 2 else "news", "sentences": [*document(n, 9), EVIL]}
        for n in range(14)
    ]
    data = write_lines(folder / "corpus.jsonl", rows)
    return ensue.run(
        "intruder", model="random", data=data, output=folder / "run", encoder="none", false_alarms=0.3
    )


def test_the_table_has_every_figure_of_the_results(run):
    table, whole = tables(run.results, run.folder)
    lines = printed(table.to_rich())
    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines)
    firsts = [line.split()[:2] for line in lines]
    assert [words[1] for words in firsts if words[:1] == ["random"]] == ["following", "chance"]
    assert len(lines) < 30
    shown, preferred = (list(csv.reader(one.to_csv().splitlines())) for one in (table, whole))
    for row in run.results["metrics"]:
        settings = row["settings"]
        if row["task"] == "intruder" and "position" not in settings and settings["kind"] != "untouched":
            name = settings.get("rule", "chance")
            (cells,) = (
                [c for c in preferred if c[0] == settings["kind"]]
                if row["metric"] == "accuracy"
                else [c for c in shown if c[:2] == [settings["kind"], name]]
            )
            assert str(row["value"]) in cells
        if row["task"] == "intruder" and row["metric"] == "false_alarms":
            for cells in (c for c in shown if c[1] == settings["rule"]):
                assert cells[6] == str(row["value"])
    for form in ("markdown", "csv", "latex"):
        assert "surprisal" in render([table], form)
    header = table.to_csv().splitlines()[0].split(",")
    assert "hit rate at 0.3 false alarms" in header


def test_results_of_something_else_have_no_table(run):
    assert tables({**run.results, "metrics": []}) == []


def test_by_position_and_by_domain(run):
    figures = Figures(run.results)
    by_position = positions_table(figures).to_csv().splitlines()
    assert by_position[0] == "kind,rule,beginning,middle,end"
    found = figures.get("hit_rate_at", "random", "following", "middle")
    assert found is not None
    (row,) = [line.split(",") for line in by_position if line.startswith("random,following")]
    assert float(row[3]) == found.value
    domains = domains_table(run.results, "following").to_csv().splitlines()
    assert [line.split(",")[0] for line in domains[1:]] == ["law", "news"]
    law = Figures(run.results, "intruder/law").get("hit_rate_at", "random", "following")
    assert float(domains[1].split(",")[1]) == law.value


def test_the_curves_pass_through_the_hit_rates(run):
    curves = curves_of(run.items)
    figures = Figures(run.results)
    for kind in figures.kinds:
        for rule in figures.rules:
            points = curves[kind][rule]
            assert points[0] == (0.0, 0.0)
            assert points[-1] == (1.0, pytest.approx(figures.get("hit_rate", kind, rule).value))


def test_the_page_is_whole_and_safe(run):
    path = write_report(run)
    text = path.read_text("utf-8")
    page = Page(text)
    assert page.open == page.faults == []
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert "Does random find the sentence that does not follow?" in page.text
    for words in (
        "What each rule finds",
        "Hit rate against false alarms",
        "By position",
        "By domain",
        "Examples",
    ):
        assert words in page.text
    assert EVIL in " ".join(page.words) or "alert('x')" in page.text
    labels = [value for tag, name, value in page.attributes if tag == "svg" and name == "aria-label"]
    assert sum(label.startswith("Hit rate against false alarms") for label in labels) == 2
    assert sum(label.startswith("Hit rate by position, rule following") for label in labels) == 2
    assert render_report(run.folder) == text


def test_an_example_marks_what_was_edited_and_what_was_found():
    row = {
        "document": "d", "kind": "random", "rule": "gain", "right": True, "places": [1], "flagged": 1,
        "sentences": ["A.", "B.", "C."], "before": ["Z."], "values": [None, -1.0, 2.0],
    }  # fmt: skip
    found = example_of(row)
    assert found.verdict == "found"
    assert [(line.place, line.edited, line.flagged) for line in found.lines] == [
        (1, False, False),
        (2, True, True),
        (3, False, False),
    ]
    long = {**row, "sentences": ["A."] * 60, "values": [None, *[0.0] * 59], "places": [30], "flagged": 50}
    assert [line.place for line in example_of(long).lines] == list(range(11, 61))
    assert example_of(long).left_out == 10
    missed = example_of({**row, "right": False, "flagged": None})
    assert missed.verdict == "missed: nothing stands out"
    assert "another sentence" in example_of({**row, "right": False, "flagged": 2}).verdict
    alarm = example_of({**row, "kind": "untouched", "right": False, "places": [], "before": [], "flagged": 2})
    assert (alarm.verdict, [line.flagged for line in alarm.lines]) == ("false alarm", [False, False, True])
