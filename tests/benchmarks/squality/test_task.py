"""SQuALITY as a benchmark: every system from the command's function to the run folder, resuming, and bad input."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ensue.backends.names import load_model
from ensue.benchmarks.base import RunContext
from ensue.benchmarks.settings import resolve
from ensue.benchmarks.squality.task import SETTINGS, TASK
from ensue.errors import EnsueError
from ensue.models.card import ModelCard
from ensue.runs.compare import compare_runs
from ensue.runs.run import run
from tests.benchmarks.squality.invented import ANSWERS, evaluation_row, story_row, write_rows
from tests.support.command import here, refused
from tests.support.run_context import records_of, run_context
from tests.support.tiny import save_encoder, save_llama
from tests.support.tiny_seq2seq import save_bart

QUICK: dict[str, Any] = {"metrics": "rouge", "statistics": "no"}
LONG = " ".join(f"On day {n} Ilse went down to the landing and no ferry came." for n in range(60))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("squality")
    write_rows(folder / "v1" / "test.jsonl", story_row("1"), story_row("2", LONG), story_row("3"))
    write_rows(folder / "v1" / "train.jsonl", story_row("4"))
    write_rows(folder / "human-eval" / "all-responses.jsonl", evaluation_row("1"), evaluation_row("3", 2.0))
    return folder


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {
        "llama": save_llama(folder / "llama", max_length=256),
        "bart": save_bart(folder / "bart"),
        "encoder": save_encoder(folder / "encoder"),
    }


def values(found: Any) -> dict[str, float]:
    return {row["metric"]: row["value"] for row in found.results["metrics"]}


def asked(**given: Any) -> dict[str, Any]:
    return resolve("squality", SETTINGS, given)


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
        prepared.evaluate(Counting(1), place)
    shutil.rmtree(named)
    save_encoder(named, seed=2)
    going = Counting(9)
    with run_context(kept) as place:
        outcome = prepared.evaluate(going, place)
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
    outcome = prepared.evaluate(load_model("human"), RunContext())
    assert sum(outcome.skipped.values()) == 1
    assert len(list(outcome.items)) == 3
    lead = prepared.evaluate(load_model("lead"), RunContext())
    assert lead.notes["questions with 1 references"] == 1
    assert "rouge1_loo" not in {row["metric"] for row in lead.metrics}


def test_a_model_that_neither_writes_nor_encodes_is_refused(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "t.jsonl", story_row("1"))
    prepared = TASK.prepare("", str(path), None, 0, asked(**QUICK))
    with pytest.raises(EnsueError, match="neither writes nor encodes"):
        prepared.evaluate(load_model("random"), RunContext())
