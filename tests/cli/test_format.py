"""`--format`: the tables of run, compare and report as Markdown, CSV and LaTeX, and what is refused."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.report.synthetic import make_items, make_results, write_run
from tests.support.command import here, refused


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    items = make_items()
    worse = [{**item, "scores": {**item["scores"], "accuracy": 0.0}} for item in items]
    return (
        write_run(tmp_path / "a", items, make_results(items)),
        write_run(tmp_path / "b", worse, make_results(worse)),
    )


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def test_a_run_prints_its_table_alone_so_that_it_can_be_piped(tmp_path: Path) -> None:
    asked = (
        "run",
        "shuffle",
        "--model",
        "random",
        "--limit",
        2,
        "--set",
        "shuffles=2",
        "--set",
        "block_size=1",
    )
    done = here(*asked, "--output", tmp_path / "run", "--format", "csv")
    assert done.code == 0, done.err
    head, row = rows_of(done.out)
    assert head[:3] == ["block size", "accuracy", "95 % interval"]
    results = json.loads((tmp_path / "run" / "results.json").read_text("utf-8"))
    accuracy = next(found for found in results["metrics"] if found["metric"] == "accuracy")
    assert float(row[1]) == accuracy["value"]


def test_a_comparison_is_a_table_in_every_form(runs: tuple[Path, Path]) -> None:
    found = rows_of(here("compare", *runs, "--format", "csv").out)
    assert found[0] == ["block size", "metric", "a", "b", "a − b", "95 % interval", "p", "Holm"]
    assert [row[1] for row in found[1:]] == ["accuracy", "accuracy"]
    assert all(float(row[2]) - float(row[3]) == float(row[4]) for row in found[1:])
    markdown = here("compare", *runs, "--format", "markdown").out
    assert "| block size | metric | a | b | a − b | 95 % interval | p | Holm |" in markdown
    assert "\\begin{tabular}{llrrrrrr}" in here("compare", *runs, "--format", "latex").out


@pytest.mark.parametrize("form", ["table", "markdown", "csv", "latex"])
def test_a_report_prints_tables_in_place_of_a_page(runs: tuple[Path, Path], form: str) -> None:
    done = here("report", runs[0], "--format", form)
    assert done.code == 0, done.err
    assert "0.975" in done.out
    assert not (runs[0] / "report.html").exists()


def test_a_report_writes_tables_to_a_file(runs: tuple[Path, Path], tmp_path: Path) -> None:
    path = tmp_path / "table.md"
    assert here("report", runs[0], "--format", "markdown", "--output", path).out.strip() == str(path)
    assert path.read_text("utf-8") == here("report", runs[0], "--format", "markdown").out
    refused(here("report", runs[0], "--format", "table", "--output", path), "--format table")
    said = here("report", runs[0], "--format", "csv", "--output", path, "--json").out
    assert json.loads(said) == {"tables": str(path)}
    refused(here("report", runs[0], "--format", "csv", "--json"), "--format", "not JSON")


@pytest.mark.parametrize("command", ["run", "compare", "report"])
def test_another_form_is_refused_before_anything_is_done(runs: tuple[Path, Path], command: str) -> None:
    arguments = {"run": ["shuffle"], "compare": list(runs), "report": [runs[0]]}[command]
    done = here(command, *arguments, "--format", "pdf")
    refused(done, "Invalid format 'pdf'", "markdown, csv, latex")
