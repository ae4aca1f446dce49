"""`ensue qags` and `ensue run qags`: what they print, and what is wrong in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.benchmarks.qags.small_sets import write_sets
from tests.benchmarks.qags.toys import FAITHFUL, SOURCE
from tests.support.command import here, refused


@pytest.fixture
def texts(tmp_path: Path) -> tuple[Path, Path]:
    source, summary = tmp_path / "source.txt", tmp_path / "summary.txt"
    source.write_text(SOURCE, "utf-8")
    summary.write_text(FAITHFUL, "utf-8")
    return source, summary


def test_a_model_that_cannot_ask_is_named(texts) -> None:
    source, summary = texts
    done = here("qags", "--source", source, "--summary", summary, "--questioner", "unigram")
    refused(done, "QAGS needs a model that can ask questions", "unigram")


def test_bad_files_and_settings_are_one_sentence(texts, tmp_path) -> None:
    source, summary = texts
    refused(here("qags", "--source", source, "--summary", tmp_path / "no.txt"), "no.txt", "cannot be read")
    bad = tmp_path / "latin.txt"
    bad.write_bytes("Ein Café.\nNoch eins: é\n".encode("latin-1"))
    refused(here("qags", "--source", bad, "--summary", summary), "latin.txt", "line 1", "not UTF-8")
    refused(here("qags", "--source", source, "--summary", summary, "--set", "preset=slow"), "preset=slow")
    refused(here("qags", "--source", source, "--summary", summary, "--set", "beam=3"), "did you mean beams?")


def test_one_summary_or_many_but_not_both(texts, tmp_path) -> None:
    source, summary = texts
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text(json.dumps({"source": SOURCE}) + "\n", "utf-8")
    refused(here("qags"), "--source and --summary")
    refused(here("qags", "--source", source), "--source and --summary")
    refused(
        here("qags", "--source", source, "--summary", summary, "--pairs", pairs), "--source and --summary"
    )
    refused(here("qags", "--pairs", pairs), "--pairs needs --output")
    done = here("qags", "--pairs", pairs, "--output", tmp_path / "out.jsonl")
    refused(done, "pairs.jsonl, line 1", "'summary'")
    assert not (tmp_path / "out.jsonl").exists()


def test_a_run_without_models(tmp_path) -> None:
    data = write_sets(tmp_path / "data")
    command = ("run", "qags", "--model", "source-overlap", "--data", data, "--output", tmp_path / "run")
    done = here(*command, "--set", "metrics=overlap,bleu", "--report")
    assert done.code == 0
    assert "overlap-2" in done.out
    assert (tmp_path / "run" / "report.html").is_file()
    again = here(*command, "--set", "metrics=overlap,bleu", "--resume", "--json")
    measures = {row["settings"].get("measure") for row in json.loads(again.out)["metrics"]}
    assert {"overlap-2", "bleu-4"} <= measures


def test_a_run_needs_data_it_knows(tmp_path) -> None:
    refused(here("run", "qags", "--model", "source-overlap"), "qags needs --data")
    refused(here("run", "qags", "--model", "source-overlap", "--data", tmp_path), "holds none of cnndm")
    data = write_sets(tmp_path / "data")
    done = here("run", "qags", "--model", "unigram", "--data", data, "--output", tmp_path / "run")
    refused(done, "QAGS needs a model that can ask questions", "unigram")
