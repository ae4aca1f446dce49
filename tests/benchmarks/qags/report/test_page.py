"""What is said of QAGS runs, in the terminal and on pages: every figure is the run's, pages are whole and safe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ensue.benchmarks.base import RunContext
from ensue.benchmarks.qags.inspecting import inspect
from ensue.benchmarks.qags.pipeline import QagsModels
from ensue.benchmarks.qags.questions import STRICT
from ensue.benchmarks.qags.report.page import write_inspection
from ensue.benchmarks.qags.report.table import ablation_tables, marked_summary, questions_table, set_sheets
from ensue.errors import EnsueError
from ensue.runs.report import write_report
from ensue.runs.tables import metrics_tables
from tests.benchmarks.qags.small_sets import prepared, write_sets
from tests.benchmarks.qags.toys import SOURCE, WRONG, NameAfter, NameFinder, WordsBefore
from tests.report.synthetic import write_run
from tests.support.pages import EVIL, Page


def printed(what: Any, width: int = 80) -> str:
    console = Console(width=width, no_color=True, record=True, file=None)
    with console.capture() as capture:
        console.print(what)
    return capture.get()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sets(tmp_path_factory.mktemp("qags") / "data")


@pytest.fixture(scope="module")
def told(data: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The results of a run on all sets, and its comparisons."""
    outcome = prepared(data, ablations="questions,similarity,filters").evaluate(WordsBefore(), RunContext())
    results = {
        "benchmark": "qags",
        "model": "words-before",
        "metrics": outcome.metrics,
        "skipped": outcome.skipped,
        "notes": dict(outcome.notes),
        "signature": outcome.signature,
        "seconds": 1.0,
        "tokens": 0,
    }
    return json.loads(json.dumps(results)), json.loads(json.dumps(outcome.extras["comparisons"]))


def run_folder(path: Path, told: tuple[dict[str, Any], list[dict[str, Any]]], **asked: Any) -> Path:
    results, comparisons = told
    settings = {"answerer": "name-after", **asked}
    run = {"asked": {"benchmark": "qags", "model": results["model"], "settings": settings}}
    folder = write_run(path, [], results, run=run)
    (folder / "comparisons.jsonl").write_text("".join(json.dumps(row) + "\n" for row in comparisons))
    return folder


def page_of(path: Path) -> Page:
    page = Page(path.read_text("utf-8"))
    assert (page.faults, page.open) == ([], [])
    assert not {"script", "img", "link", "iframe"} & set(page.tags)
    return page


def test_sheets_hold_the_rows_of_the_run(told) -> None:
    results, comparisons = told
    sheets = set_sheets(results, comparisons)
    names = [(sheet.name, sheet.level) for sheet in sheets]
    assert names == [
        ("cnndm", ""),
        ("xsum", ""),
        ("falke", ""),
        ("summeval", "system"),
        ("summeval", "summary"),
        ("realsumm", "system"),
        ("realsumm", "summary"),
    ]
    for sheet in sheets:
        for line in sheet.rows:
            for kind, cell in line.figures.items():
                settings = {"measure": line.measure}
                settings |= {"level": sheet.level, "human": sheet.human} if sheet.level else {}
                row = next(
                    row
                    for row in results["metrics"]
                    if (row["task"], row["metric"], row["settings"]) == (sheet.name, kind, settings)
                )
                assert (cell.value, [cell.low, cell.high], cell.n) == (row["value"], row["ci95"], row["n"])
    cnndm = sheets[0]
    assert cnndm.alpha is not None
    by_name = {row.measure: row for row in cnndm.rows}
    assert (by_name["qags"].published, by_name["rouge-1"].published) == (0.5453, 0.2874)
    assert not by_name["rouge-1"].figures
    against = by_name["qags"].against
    assert against is not None
    expected = by_name["qags"].figures["pearson"].value - by_name["overlap-2"].figures["pearson"].value
    assert against.value == pytest.approx(expected)
    assert by_name["overlap-2"].against is None


def test_ablations_stand_beside_published_ones(told) -> None:
    found = ablation_tables(told[0])
    assert set(found) == {
        "Number of questions",
        "How answers are compared",
        "Which questions are kept",
        "What fills up where too few are kept",
        "Which of too many are kept",
    }
    questions = found["Number of questions"]
    titles = [column.title for column in questions.columns]
    assert titles[:5] == ["QAGS with", "CNN/DM", "published", "XSum", "published"]
    assert [row.cells[2] for row in questions.rows] == [0.4161, 0.4117, 0.5453, 0.5794]
    similarity = found["How answers are compared"]
    assert [row.cells[4] for row in similarity.rows] == [0.1749, 0.1810]
    kept = [column.title for column in found["Which questions are kept"].columns]
    assert kept[:4] == ["QAGS with", "CNN/DM", "XSum", "Falke’s triplets"]


def test_the_terminal_table_fits_eighty_columns(told) -> None:
    text = printed(metrics_tables(told[0])[0].to_rich())
    assert "…" not in text
    for words in (
        "CNN/DM",
        "XSum",
        "Falke",
        "SummEval",
        "REALSumm",
        "qags",
        "content-overlap-2",
        "overlap-2 is the baseline",
    ):
        assert words in text, words
    value = set_sheets(told[0])[0].figure("overlap-2")
    assert value is not None
    assert value.text() in text


def test_the_page_of_a_run(told, tmp_path) -> None:
    page = page_of(write_report(run_folder(tmp_path / "run", told)))
    for words in [
        "Which metric tells consistent summaries from others?",
        "Workers agree at α",
        "Number of questions",
        "How answers are compared",
        "SummEval: system level, consistency",
        "bert",
        "0.545",
        "0.721",
    ]:
        assert words in page.text, words
    assert "By what asks and answers" not in page.text


def test_other_runs_stand_beside_it(told, tmp_path) -> None:
    one = run_folder(tmp_path / "one", told)
    two = run_folder(tmp_path / "two", told, answerer="another-answerer")
    page = page_of(write_report(one, beside=[two]))
    for words in ("By what asks and answers", "another-answerer", "bert-large-wwm", "BART, perplexity 9.50"):
        assert words in page.text, words


def test_a_broken_line_of_comparisons_is_named(told, tmp_path) -> None:
    folder = run_folder(tmp_path / "run", told)
    path = folder / "comparisons.jsonl"
    path.write_bytes(path.read_bytes() + b'{"a": 1}\n')
    with pytest.raises(EnsueError, match=r"comparisons.jsonl, line \d+"):
        write_report(folder)
    path.unlink()
    page_of(write_report(folder))


def test_one_summary_in_the_terminal_and_on_a_page(tmp_path) -> None:
    found = inspect(SOURCE, WRONG, QagsModels(NameFinder(), WordsBefore(), NameAfter()), STRICT)
    text = printed(marked_summary(found))
    assert "steered by [Hanna] left for [Lund]" in text
    table = printed(questions_table(found).to_rich())
    for words in (
        "Which name comes after left for?",
        "Ellery",
        "no answer",
        "(fills up)",
        "Filters took out:",
    ):
        assert words in table, words
    page = page_of(write_inspection(found, tmp_path / "page.html", "a asks, b answers", SOURCE))
    assert page.tags.count("mark") == 3 + 1
    assert "3 parts of the summary in doubt" in page.text


def test_nothing_in_a_text_is_taken_for_markup(tmp_path) -> None:
    summary = f"The ferry steered by Hanna {EVIL} [bold]left for Lund."
    found = inspect(SOURCE + EVIL, summary, QagsModels(NameFinder(), WordsBefore(), NameAfter()), STRICT)
    page_of(write_inspection(found, tmp_path / "page.html", EVIL, SOURCE + EVIL))
    assert "[bold]" in printed(marked_summary(found), width=300)
    printed(questions_table(found).to_rich())
