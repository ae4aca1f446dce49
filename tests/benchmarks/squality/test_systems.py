"""Every system from the command's function to the run folder: what it writes, what it is measured by, resuming."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ensue.backends.names import load_model
from ensue.benchmarks.base import RunContext
from ensue.benchmarks.squality.task import TASK
from ensue.errors import EnsueError
from ensue.models.card import ModelCard
from ensue.runs.compare import compare_runs
from ensue.runs.run import run
from tests.benchmarks.squality.invented import ANSWERS, LONG, QUICK, asked, story_row, values, write_rows
from tests.support.run_context import records_of, run_context
from tests.support.tiny import save_encoder


def by_rouge_score(candidates: list[str], name: str) -> float:
    package = pytest.importorskip("rouge_score.rouge_scorer")
    scorer = package.RougeScorer([name], use_stemmer=True)
    best = [
        max(scorer.score(reference, candidate)[name].fmeasure for reference in ANSWERS[place % 2])
        for place, candidate in enumerate(candidates)
    ]
    return sum(best) / len(best)


@pytest.mark.parametrize("system", ["lead", "oracle"])
def test_a_system_without_a_model_is_measured_by_its_best_reference(
    data: Path, tmp_path: Path, system: str
) -> None:
    found = run("squality", model=system, data=data, output=tmp_path / system, words=12, **QUICK)
    items = found.items
    assert [item["id"] for item in items] == [f"{story}/{q}" for story in (1, 2, 3) for q in (1, 2)]
    for name in ("rouge1", "rouge2", "rougeL"):
        expected = by_rouge_score([item["outputs"]["summary"] for item in items], name)
        assert values(found)[name] == pytest.approx(expected)
    rows = found.results["metrics"]
    assert all((row["n"], row["clusters"]) == (6, 3) for row in rows)
    assert all(row["settings"] == {"version": "v1", "split": "test"} for row in rows)
    assert all(row["ci95"][0] <= row["value"] <= row["ci95"][1] for row in rows)
    if system == "lead":
        assert max(item["scores"]["words"] for item in items) <= 12


def test_people_are_measured_against_one_another(data: Path, tmp_path: Path) -> None:
    found = run("squality", model="human", data=data, output=tmp_path / "human", **QUICK)
    package = pytest.importorskip("rouge_score.rouge_scorer")
    scorer = package.RougeScorer(["rougeL"], use_stemmer=True)
    best = [
        max(scorer.score(other, one)["rougeL"].fmeasure for other in texts if other != one)
        for texts in ANSWERS
        for one in texts
    ]
    assert values(found)["rougeL"] == pytest.approx(sum(best) / len(best))
    assert values(found)["rougeL_loo"] == values(found)["rougeL"]
    other = run("squality", model="lead", data=data, output=tmp_path / "lead", **QUICK)
    rows = {row.metric: row for row in compare_runs(other.folder, found.folder).rows}
    assert rows["rouge1_loo"].test.difference == pytest.approx(
        values(other)["rouge1_loo"] - values(found)["rouge1_loo"]
    )


def test_an_encoder_retrieves_and_named_retrieval_takes_one(
    data: Path, tmp_path: Path, models: dict[str, Path]
) -> None:
    own = run("squality", model=str(models["encoder"]), data=data, output=tmp_path / "a", words=20, **QUICK)
    named = run(
        "squality",
        model="retrieval",
        retrieve=str(models["encoder"]),
        data=data,
        output=tmp_path / "b",
        words=20,
        **QUICK,
    )
    assert values(own) == values(named)
    assert "system:retrieval" in own.results["signature"]
    [text] = [item["outputs"]["summary"] for item in own.items if item["id"] == "2/1"]
    days = [int(word) for word in text.split() if word.isdigit()]
    assert days == sorted(days)
    assert len(text.split()) <= 20


@pytest.mark.parametrize("kind", ["llama", "bart"])
def test_a_model_that_writes_reads_no_more_than_it_takes(
    data: Path, tmp_path: Path, models: dict[str, Path], kind: str
) -> None:
    small = {"max_tokens": 6, "min_tokens": 2, "beams": 2, **QUICK}
    folder = str(models[kind])
    found = run("squality", model=folder, data=data, output=tmp_path / "cut", **small)
    cut = {item["id"]: item["outputs"]["words_cut"] for item in found.items}
    assert cut["2/1"] > 0
    assert found.results["notes"]["stories cut to what the model takes"] == sum(map(bool, cut.values()))
    assert not records_of(found.folder).exists()
    again = run(
        "squality",
        model=folder,
        data=data,
        output=tmp_path / "found",
        retrieve=str(models["encoder"]),
        **small,
    )
    left = {item["id"]: item["outputs"]["sentences_left_out"] for item in again.items}
    assert left["2/1"] > 0
    # The same story read whole, or cut alike, is summarised alike.
    assert values(run("squality", model=folder, data=data, output=tmp_path / "same", **small)) == values(
        found
    )


class Counting:
    """Writes the last word it read; stops the run after so many portions."""

    card = ModelCard(name="counting", kind="endpoint", source="test", identity={"weights": "w"})

    def __init__(self, portions: int) -> None:
        self.portions, self.seen = portions, 0

    def generate(self, prompts: Any, *, max_tokens: int = 64, stop: Any = (), **options: Any) -> list[str]:
        assert options == {}
        if not self.portions:
            raise KeyboardInterrupt
        self.portions -= 1
        self.seen += len(prompts)
        return [f"  {prompt.split()[-2]} " for prompt in prompts]


def test_every_setting_of_a_generation_reaches_the_model(tmp_path: Path) -> None:
    heard: dict[str, Any] = {}

    class Listening(Counting):
        card = replace(Counting.card, kind="seq2seq")

        def generate(self, prompts: Any, **options: Any) -> list[str]:
            heard.update(options)
            return ["The ferry came."] * len(prompts)

    path = write_rows(tmp_path / "t.jsonl", story_row("1"))
    settings = {"beams": 3, "min_tokens": 7, "block_ngrams": 0, "length_penalty": 0.5, "max_tokens": 11}
    with run_context(tmp_path) as place:
        TASK.prepare("", str(path), None, 0, asked(**settings, **QUICK)).evaluate(Listening(1), place)
    assert heard == {**settings, "stop": ()}


def test_what_an_interrupted_run_wrote_is_taken(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "t.jsonl", *(story_row(str(n)) for n in range(20)))
    prepared = TASK.prepare("", str(path), None, 0, asked(**QUICK))
    stopped = Counting(1)
    with run_context(tmp_path) as place, pytest.raises(KeyboardInterrupt):
        prepared.evaluate(stopped, place)
    assert records_of(tmp_path).read_bytes().count(b"\n") == 16
    going = Counting(9)
    with run_context(tmp_path) as place:
        outcome = prepared.evaluate(going, place)
    assert (stopped.seen, going.seen) == (16, 24)
    whole = prepared.evaluate(Counting(9), RunContext())
    assert list(outcome.items) == list(whole.items)
    assert outcome.metrics == whole.metrics


def test_portions_are_the_same_when_a_run_goes_on(tmp_path: Path) -> None:
    """One lost line has its whole portion written again: the same texts meet in a batch."""
    path = write_rows(tmp_path / "t.jsonl", *(story_row(str(n), LONG[: 400 + n]) for n in range(5)))
    prepared = TASK.prepare("", str(path), None, 0, asked(**QUICK))

    class Slow(Counting):
        device_kind = "cpu"

        def __init__(self, portions: int) -> None:
            super().__init__(portions)
            self.given: list[list[str]] = []

        def generate(self, prompts: Any, **options: Any) -> list[str]:
            texts = super().generate(prompts, **options)
            self.given.append(list(prompts))
            return texts

    whole = Slow(9)
    prepared.evaluate(whole, RunContext())
    assert [len(one) for one in whole.given] == [4, 4, 2]
    kept = tmp_path / "kept"
    kept.mkdir()
    with run_context(kept) as place, pytest.raises(KeyboardInterrupt):
        prepared.evaluate(Slow(2), place)
    lines = records_of(kept).read_text("utf-8").splitlines(keepends=True)
    assert len(lines) == 8
    records_of(kept).write_text("".join(lines[:5] + lines[6:]), "utf-8")
    going = Slow(9)
    with run_context(kept) as place:
        prepared.evaluate(going, place)
    assert going.given == whole.given[1:]


def test_texts_of_another_retriever_of_that_name_are_not_taken(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "t.jsonl", *(story_row(str(n)) for n in range(20)))
    named = save_encoder(tmp_path / "encoder", seed=1)
    prepared = TASK.prepare("", str(path), None, 0, asked(retrieve=str(named), **QUICK))
    kept = tmp_path / "kept"
    kept.mkdir()
    with run_context(kept) as place, pytest.raises(KeyboardInterrupt):
        prepared.evaluate(Counting(1), replace(place, load=load_model))
    shutil.rmtree(named)
    save_encoder(named, seed=2)
    going = Counting(9)
    with run_context(kept) as place:
        outcome = prepared.evaluate(going, replace(place, load=load_model))
    assert going.seen == 40
    assert f"retrieve:encoder/{load_model(str(named)).card.identity['weights'][:12]}" in outcome.signature


def test_texts_by_other_words_on_generation_are_not_taken(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "t.jsonl", *(story_row(str(n)) for n in range(20)))
    prepared = TASK.prepare("", str(path), None, 0, asked(**QUICK))
    with run_context(tmp_path) as place, pytest.raises(KeyboardInterrupt):
        prepared.evaluate(Counting(1), place)
    going = Counting(9)
    going.card = replace(going.card, generation="0123456789abcdef")
    with run_context(tmp_path) as place:
        outcome = prepared.evaluate(going, place)
    assert going.seen == 40
    assert "generation:0123456789ab " in outcome.signature


@pytest.mark.parametrize("kind", ["llama", "bart"])
def test_a_setting_of_nought_reaches_the_model(
    data: Path, tmp_path: Path, models: dict[str, Path], kind: str
) -> None:
    folder = shutil.copytree(models[kind], tmp_path / kind)
    path = folder / "generation_config.json"
    stated = json.loads(path.read_text()) | {"no_repeat_ngram_size": 2, "num_beams": 3, "min_length": 30}
    path.write_text(json.dumps(stated))
    small = {"max_tokens": 24, "min_tokens": 0, "beams": 1, "limit": 1, "block_ngrams": 0, **QUICK}

    def written(model: Path, name: str, **more: Any) -> list[str]:
        found = run("squality", model=str(model), data=data, output=tmp_path / name, **small | more)
        said = found.results["signature"]
        assert f"ngrams:{more.get('block_ngrams', 'all')} length:1 sampling:no" in said
        return [item["outputs"]["summary"] for item in found.items]

    plain = written(models[kind], "plain")
    assert written(folder, "wayward") == plain
    # A folder that says other things of generation is another question.
    path.write_text(json.dumps(stated | {"min_length": 31}))
    with pytest.raises(EnsueError, match="model_generation"):
        run("squality", model=str(folder), data=data, output=tmp_path / "wayward", resume=True, **small)
    assert written(models[kind], "blocked", block_ngrams=2) != plain


def test_an_empty_summary_scores_nothing_and_is_counted(tmp_path: Path) -> None:
    class Silent(Counting):
        def generate(self, prompts: Any, **options: Any) -> list[str]:
            return [" \n"] * len(prompts)

    path = write_rows(tmp_path / "t.jsonl", story_row("1"))
    prepared = TASK.prepare("", str(path), None, 0, asked(**QUICK))
    outcome = prepared.evaluate(Silent(1), RunContext())
    assert {row["metric"]: row["value"] for row in outcome.metrics}["rouge1"] == 0.0
    assert outcome.notes["summaries that are empty, which score 0"] == 2


def test_a_model_that_neither_writes_nor_encodes_is_refused(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "t.jsonl", story_row("1"))
    prepared = TASK.prepare("", str(path), None, 0, asked(**QUICK))
    with pytest.raises(EnsueError, match="neither writes nor encodes"):
        prepared.evaluate(load_model("random"), RunContext())


def given(tmp_path: Path, **changed: str | None) -> tuple[Path, Path]:
    """Two stories, and for every question the lead's summary, but for what is changed or taken away (None)."""
    data = write_rows(tmp_path / "test.jsonl", story_row("1"), story_row("2"))
    done = run("squality", model="lead", data=data, output=tmp_path / "lead", statistics="no")
    texts = {item["id"]: item["outputs"]["summary"] for item in done.items} | changed
    rows = [{"id": name, "summary": text} for name, text in texts.items() if text is not None]
    path = tmp_path / "summaries.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return data, path


def test_they_score_what_the_system_scored(tmp_path) -> None:
    data, path = given(tmp_path)
    options = {"data": data, "statistics": "no", "summaries": str(path)}
    done = run("squality", model="written", output=tmp_path / "run", **options)
    lead = json.loads((tmp_path / "lead" / "results.json").read_text("utf-8"))
    assert done.results["metrics"] == lead["metrics"]
    few = run("squality", model="written", output=tmp_path / "few", limit=1, **options)
    assert {item["cluster"] for item in few.items} == {"1"}


def test_bad_files_are_one_sentence(tmp_path) -> None:
    for changed, words in (
        ({"1/1": None}, "no summary for 1 of"),
        ({"9/1": "Who is that?"}, "9/1 is no question"),
    ):
        data, path = given(tmp_path, **changed)
        with pytest.raises(EnsueError, match=words):
            run(
                "squality",
                model="written",
                data=data,
                summaries=str(path),
                output=tmp_path / "x",
                statistics="no",
            )
        assert not (tmp_path / "x").exists()
        shutil.rmtree(tmp_path / "lead")
    with pytest.raises(EnsueError, match="summaries=FILE"):
        run("squality", model="written", data=data, output=tmp_path / "y", statistics="no")
    with pytest.raises(EnsueError, match="cannot be read"):
        run(
            "squality",
            model="written",
            data=data,
            summaries="no.jsonl",
            output=tmp_path / "z",
            statistics="no",
        )
