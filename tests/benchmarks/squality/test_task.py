"""SQuALITY as a benchmark: its command, its settings, its statistics, the human evaluation, and bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ensue.backends.names import load_model
from ensue.benchmarks.base import RunContext
from ensue.benchmarks.squality.systems import named
from ensue.benchmarks.squality.task import TASK
from ensue.errors import EnsueError
from ensue.runs.run import run
from tests.benchmarks.squality.invented import (
    ANSWERS,
    QUICK,
    asked,
    evaluation_row,
    story_row,
    values,
    write_rows,
)
from tests.support.command import here, refused


def test_bertscore_comes_from_any_encoder(data: Path, tmp_path: Path, models: dict[str, Path]) -> None:
    from ensue.benchmarks.summaries.bertscore import bertscore_of

    folder = str(models["encoder"])
    found = run(
        "squality",
        model="lead",
        data=data,
        output=tmp_path / "a",
        metrics="bertscore",
        bertscore_model=folder,
        bertscore_layer=1,
        words=10,
        statistics="no",
    )
    encoder: Any = load_model(folder)
    texts = [item["outputs"]["summary"] for item in found.items]
    rows = bertscore_of(encoder, texts, [ANSWERS[n % 2] for n in range(len(texts))], layer=1)
    expected = sum(max(one.f1 for one in row) for row in rows) / len(rows)
    assert values(found)["bertscore"] == pytest.approx(expected)
    assert f"bertscore:encoder/{encoder.card.identity['weights'][:12]}/1" in found.results["signature"]
    whole = encoder.tokenizer([*dict.fromkeys([*texts, *ANSWERS[0], *ANSWERS[1]])])["input_ids"]
    cut = sum(len(ids) >= encoder.card.max_length for ids in whole)
    assert sum(n for words, n in found.results["notes"].items() if "only the beginning" in words) == cut


def test_the_command_ends_with_a_sentence(data: Path, tmp_path: Path) -> None:
    done = here("run", "squality", "--model", "lead", "--data", data, "--output", tmp_path / "a", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["benchmark"] == "squality"
    refused(here("run", "squality", "--model", "lead", "--data", data / "nowhere"), "is not there")
    refused(here("run", "squality", "--model", "lead", "--data", data, "--set", "split=holdout"), "no split")
    refused(here("run", "squality", "--model", "lead", "--data", data, "--set", "metrics=bleu"), "metrics")
    lengths = ("--set", "min_tokens=6", "--set", "max_tokens=5")
    refused(
        here("run", "squality", "--model", "lead", "--data", data, *lengths),
        "6 tokens at least and 5 at most",
    )
    refused(
        here("run", "squality", "--model", "lead", "--data", data, "--set", "length_penalty=inf"), "a number"
    )
    refused(here("run", "glue", "--model", "lead", "--data", data), "")


def test_statistics_are_of_every_split_that_is_here(data: Path, tmp_path: Path) -> None:
    found = run("squality", model="lead", data=data, output=tmp_path / "a", metrics="rouge", limit=1)
    statistics = json.loads((found.folder / "statistics.jsonl").read_text("utf-8"))
    assert statistics["lengths"]["stories"] == 4
    assert statistics["lengths"]["summaries"] == 4 * 8
    assert [line["text"] for line in statistics["sharing"]][-1] == "story"
    assert len(found.items) == 2
    assert "limit:1" in found.results["signature"]


def test_the_human_evaluation_is_a_run_of_its_own(data: Path, tmp_path: Path) -> None:
    found = run("squality/human-eval", model="human", data=data, output=tmp_path / "he", metrics="rouge")
    rows = {(r["metric"], *r["settings"].values()): r for r in found.results["metrics"]}
    assert rows["overall", "bart"]["value"] == pytest.approx((63 - 3) / 3 / 100)
    assert rows["overall", "human"]["n"] == 4
    assert ("pearson", "rouge1", "overall", "all") in rows
    assert len(found.items) == 12
    for item in found.items:
        best = {name: max(each) for name, each in item["outputs"]["by_reference"].items()}
        assert all(item["scores"][name] == best[name] for name in best)
    ratings = [json.loads(line) for line in (found.folder / "ratings.jsonl").read_text("utf-8").splitlines()]
    assert {row["system"] for row in ratings} == {"bart", "bart-dpr", "human"}


def test_bad_input_is_one_sentence(tmp_path: Path) -> None:
    def refusal(*rows: object, task: str = "", data: Path | None = None, **given: Any) -> str:
        path = data or write_rows(tmp_path / "bad.jsonl", *rows)
        with pytest.raises(EnsueError) as caught:
            TASK.prepare(task, str(path), None, 0, asked(**given))
        return str(caught.value)

    few = story_row("7")
    del few["questions"][1]["responses"][1:]
    assert "story 7, question 2 has one summary where 4 are expected" in refusal(story_row("1"), few)
    assert "'document' is empty" in refusal(story_row("1", "  "))
    assert "no words besides its markup" in refusal(story_row("1", "<html><p> </p></html>"))
    missing = story_row("1")
    del missing["questions"]
    assert "bad.jsonl, line 2" in refusal(story_row("2"), missing)
    (tmp_path / "odd.jsonl").write_bytes(b'{"a": "\xff"}\n')
    assert "odd.jsonl" in refusal(data=tmp_path / "odd.jsonl")
    assert "no task 'plots'" in refusal(story_row("1"), task="plots")
    assert "is not there" in refusal(data=tmp_path / "nowhere")
    assert "needs SQuALITY's folder" in refusal(evaluation_row("1"), task="human-eval")
    with pytest.raises(EnsueError, match="needs --data"):
        TASK.prepare("", None, None, 0, asked())
    # Measured by itself, it counts with what it has, and people's row leaves it out and says so.
    path = write_rows(tmp_path / "few.jsonl", story_row("1"), few)
    prepared = TASK.prepare("", str(path), None, 0, asked(references="none", **QUICK))
    outcome = prepared.evaluate(named("human"), RunContext())
    assert sum(outcome.skipped.values()) == 1
    assert len(list(outcome.items)) == 3
    lead = prepared.evaluate(named("lead"), RunContext())
    assert lead.notes["questions with 1 references"] == 1
    assert "rouge1_loo" not in {row["metric"] for row in lead.metrics}
