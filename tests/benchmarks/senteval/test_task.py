"""The suite from files to rows, with a real (if simple) encoder and real classifiers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ensue.benchmarks import registry
from ensue.benchmarks.base import Outcome, RunContext
from ensue.benchmarks.published import facts_of, published
from ensue.benchmarks.senteval.task import TASK
from ensue.benchmarks.settings import resolve
from ensue.errors import EnsueError
from ensue.models.card import ModelCard
from tests.benchmarks.senteval.folders import WordEncoder, pairs, write_downstream, write_probing
from tests.support.run_context import records_of, run_context


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENSUE_HOME", str(tmp_path / "home"))


def _run(
    folder: Path, task: str, encoder: Any, context: RunContext | None = None, **settings: Any
) -> Outcome:
    values = resolve("senteval", TASK.settings, {"classifier_device": "cpu", **settings})
    prepared = TASK.prepare(task, str(folder), None, 0, values)
    outcome = prepared.evaluate(encoder, context or RunContext())
    outcome.items = list(outcome.items)
    return outcome


def _value(outcome: Outcome, task: str, metric: str, **settings: Any) -> float:
    rows = [
        row["value"]
        for row in outcome.metrics
        if (row["task"], row["metric"]) == (task, metric)
        and {k: v for k, v in row["settings"].items() if k not in ("covers", "tasks")} == settings
    ]
    assert len(rows) == 1, outcome.metrics
    return rows[0]


def test_the_registry_knows_it() -> None:
    assert registry.find("senteval").load_task() is TASK


def test_an_sts_year_agrees_with_scipy_end_to_end(folder: Path, encoder: WordEncoder) -> None:
    outcome = _run(folder, "STS12", encoder)
    made = pairs(24)
    first, second = (encoder.encode([pair[side] for pair in made]).astype(float) for side in (0, 1))
    cosines = (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    items = [item for item in outcome.items if item["settings"]["subset"] == "MSRpar"]
    given = [item["outputs"]["similarity"] for item in items]
    np.testing.assert_allclose(given, cosines, atol=1e-6)
    golds = [score for *_, score in made]
    expected = stats.spearmanr(given, golds).statistic
    assert _value(outcome, "STS12", "spearman", split="test", subset="MSRpar") == pytest.approx(expected)
    assert _value(outcome, "STS12", "spearman", split="test") == pytest.approx(expected)
    assert len(outcome.items) == 5 * 24
    assert (items[1]["id"], items[1]["outputs"]["gold"]) == ("STS12/MSRpar/2", 1.0)


def test_a_group_is_averaged_and_every_sentence_encoded_once(folder: Path, encoder: WordEncoder) -> None:
    outcome = _run(folder, "USS", encoder)
    years = [_value(outcome, f"STS{year}", "pearson", split="test") for year in range(12, 17)]
    assert _value(outcome, "USS", "pearson", split="test") == pytest.approx(np.mean(years))
    assert outcome.skipped == {
        "STS15 pairs without a gold score": 10,
        "STS16 pairs without a gold score": 10,
    }
    assert encoder.calls == len({text for first, second, _ in pairs(24) for text in (first, second)})


@pytest.fixture(scope="module")
def larger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Enough to learn from: protocol `paper` gives up early on very little data."""
    root = tmp_path_factory.mktemp("larger")
    write_downstream(root / "downstream", times=10)
    return root


@pytest.mark.parametrize("protocol", ["paper", "converged"])
@pytest.mark.parametrize(
    ("task", "metrics", "splits"),
    [
        ("MR", {"accuracy"}, {"dev": None, "test": 600}),
        ("SST2", {"accuracy"}, {"dev": 20, "test": 20}),
        ("TREC", {"accuracy"}, {"dev": 720, "test": 18}),
        ("MRPC", {"accuracy", "f1"}, {"dev": 600, "test": 24}),
        ("SICKEntailment", {"accuracy"}, {"dev": 30, "test": 30}),
        ("STSBenchmark", {"pearson", "spearman"}, {"dev": 30, "test": 30}),
    ],
)
def test_each_kind_of_training_learns_what_is_easy(
    larger: Path, encoder: WordEncoder, protocol: str, task: str, metrics: set[str], splits: dict[str, Any]
) -> None:
    outcome = _run(larger, task, encoder, protocol=protocol)
    items = list(outcome.items)
    for split, count in splits.items():
        for metric in metrics if count else {"accuracy"}:
            assert _value(outcome, task, metric, split=split, protocol=protocol) > 0.75
        assert sum(item["settings"]["split"] == split for item in items) == (count or 0)
    if "accuracy" in metrics:
        right = [item["scores"]["accuracy"] for item in items if item["settings"]["split"] == "test"]
        assert _value(outcome, task, "accuracy", split="test", protocol=protocol) == np.mean(right)


def test_probing_tasks_and_what_is_missing(folder: Path, encoder: WordEncoder) -> None:
    write_probing(folder / "probing", ["Tense", "SubjNumber"])
    outcome = _run(folder, "Probing", encoder, protocol="converged")
    (row,) = [r for r in outcome.metrics if r["task"] == "Probing" and r["settings"]["split"] == "test"]
    assert row["settings"]["tasks"] == "Tense,SubjNumber"
    assert row["settings"]["missing"].split(",")[0] == "Length"
    assert row["value"] > 0.9
    assert outcome.skipped["task Depth left out, for want of tree_depth.txt"] == 1


def test_layers_have_rows_of_their_own(folder: Path, encoder: WordEncoder) -> None:
    outcome = _run(folder, "STS13", encoder, layer="all")
    assert {row["settings"]["layer"] for row in outcome.metrics} == {0, 1, 2}
    assert _value(outcome, "STS13", "pearson", split="test", layer=0) == 0.0
    assert _value(outcome, "STS13", "pearson", split="test", layer=2) > 0.5
    assert outcome.notes == {"correlations of answers that are all the same, counted as 0": 3}
    ids = [(item["id"], item["settings"]["layer"]) for item in outcome.items]
    assert len(ids) == len(set(ids)) == 3 * 3 * 24


def test_a_killed_run_does_not_answer_again(folder: Path, encoder: WordEncoder, tmp_path: Path) -> None:
    class Killed(Exception): ...

    def kill(done: int, total: int, unit: str) -> None:
        if unit == "tasks" and done == 1:
            raise Killed

    place = tmp_path / "run"
    place.mkdir()
    with run_context(place, kill) as stopped, pytest.raises(Killed):
        _run(folder, "SC", encoder, stopped, protocol="converged")
    assert records_of(place).read_bytes().count(b"\n") == 1
    seen: list[tuple[int, int]] = []
    with run_context(place, lambda d, t, u: seen.append((d, t)) if u == "tasks" else None) as again:
        outcome = _run(folder, "SC", encoder, again, protocol="converged")
    assert seen[0] == (2, 8)
    fresh = _run(folder, "SC", encoder, protocol="converged")
    assert outcome.metrics == fresh.metrics
    assert outcome.items == fresh.items


@pytest.mark.parametrize(
    ("task", "settings", "words"),
    [
        ("STS12", {"layer": "3"}, "has layers 0 \\(the embedding\\) to 2, no layer 3"),
        ("STS12", {"layer": "1", "pooling": "cls-average-over-layers"}, "takes all layers at once"),
        ("STS99", {}, "no task 'STS99'"),
    ],
)
def test_bad_questions(
    folder: Path, encoder: WordEncoder, task: str, settings: dict[str, str], words: str
) -> None:
    with pytest.raises(EnsueError, match=words):
        _run(folder, task, encoder, **settings)


def test_what_it_needs_is_said(folder: Path) -> None:
    class Nothing:
        card = ModelCard("stone", "test", "test")

    with pytest.raises(EnsueError, match="SentEval needs a model that can encode text, but stone"):
        _run(folder, "STS12", Nothing())
    with pytest.raises(EnsueError, match="senteval needs --data"):
        TASK.prepare("", None, None, 0, resolve("senteval", TASK.settings, {}))


def test_published_figures() -> None:
    figures = published("ensue.benchmarks.senteval")
    assert len(figures) == 14 * 4
    bert = {one.task: one.value for one in figures if one.system == "BERT-Large"}
    assert bert == {"USS": 0.436, "SSS": 0.707, "SC": 0.834, "Probing": 0.75}
    assert {one.task: one.metric for one in figures if one.group == "ours"} == {
        "USS": "pearson",
        "SSS": "average",
        "SC": "accuracy",
        "Probing": "accuracy",
    }
    assert facts_of("ensue.benchmarks.senteval")["best_layers"] == {"ELMo": 0.8, "BERT-Base": 5.0}
