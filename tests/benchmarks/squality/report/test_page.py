"""The page and the table of SQuALITY runs: well-formed, complete, published figures beside the measured ones."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from ensue.errors import EnsueError
from ensue.report.results import read_results
from ensue.runs.report import write_report
from ensue.runs.run import run
from ensue.runs.tables import metrics_tables
from tests.benchmarks.squality.invented import STORY, evaluation_row, story_row, write_rows
from tests.support.pages import EVIL, Page


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("squality")
    data = folder / "data"
    evil = story_row("2", f"{EVIL} {STORY}")
    evil["questions"][0]["question_text"] = f"What {EVIL}?"
    write_rows(data / "v1" / "test.jsonl", story_row("1"), evil, story_row("3"))
    write_rows(data / "human-eval" / "all-responses.jsonl", evaluation_row("1"), evaluation_row("3", 2.0))
    found = {}
    for name, more in [
        ("lead", {}),
        ("oracle", {"statistics": "no"}),
        ("human", {"statistics": "no", "limit": 2}),
    ]:
        done = run("squality", model=name, data=data, output=folder / name, metrics="rouge", **more)
        found[name] = done.folder
    done = run("squality/human-eval", model="human", data=data, output=folder / "he", metrics="rouge")
    return {**found, "human-eval": done.folder}


def page_of(path: Path) -> Page:
    page = Page(path.read_text("utf-8"))
    assert (page.faults, page.open) == ([], [])
    assert "<script" not in path.read_text("utf-8")
    return page


def test_the_page_has_the_systems_beside_the_published_ones(runs: dict[str, Path], tmp_path: Path) -> None:
    beside = [runs["oracle"], runs["human"]]
    text = page_of(write_report(runs["lead"], tmp_path / "page.html", beside=beside)).text
    rows = {row["metric"]: row["value"] for row in read_results(runs["lead"])["metrics"]}
    for words in [
        "How well does lead summarise?",
        "Beside it: oracle, human",
        "oracle is no system but a bound",
        "A trial of human: only the first 2 stories",
        "BART+DPR",
        "0.415",
        "0.466",
        f"{rows['rouge1']:.3f}",
        f"{rows['rouge1_loo']:.3f}",
        "Three summaries to read",
        "The data",
        "words of a plot",
        "5200",
        "same question",
        "tables 5.2 and 5.3",
        "ensue run squality --model lead",
    ]:
        assert words in text, words
    assert "BERTScores of different encoders" not in text
    assert "The data" not in page_of(write_report(runs["oracle"], tmp_path / "other.html")).text


def test_the_human_evaluation_has_its_own_page(runs: dict[str, Path], tmp_path: Path) -> None:
    text = page_of(write_report(runs["human-eval"], tmp_path / "page.html")).text
    for words in [
        "Ratings",
        "94.1 ± 5.5",
        "Pearson’s r",
        "Kendall’s τ",
        "−0.074",
        "One reference or four",
        "0.379",
    ]:
        assert words in text, words
    with pytest.raises(EnsueError, match="report them apart"):
        write_report(runs["human-eval"], tmp_path / "no.html", beside=[runs["lead"]])


def shown(folder: Path) -> str:
    out = io.StringIO()
    for table in metrics_tables(read_results(folder), folder):
        Console(file=out, width=80).print(table.to_rich())
    return out.getvalue()


def test_the_terminals_tables_fit_and_say_the_same(runs: dict[str, Path]) -> None:
    table = shown(runs["lead"])
    rows = {row["metric"]: row["value"] for row in read_results(runs["lead"])["metrics"]}
    for words in [
        "SQuALITY v1 test · lead",
        "ROUGE-L",
        f"{rows['rougeL']:.3f}",
        "0.227",
        "6 questions, 3 stories",
    ]:
        assert words in table, words
    ratings = shown(runs["human-eval"])
    for words in ["bart-dpr", "0.454", "Pearson’s r", "models'", "−0.074", "One reference or four"]:
        assert words in ratings, words
    assert "…" not in table + ratings
