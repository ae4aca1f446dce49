"""Classifiers on frozen vectors: every form is learnt, each text is encoded once, and a run goes on where it was."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ensue.backends.discourse.words import words_of
from ensue.backends.names import load_model
from ensue.benchmarks.base import RunContext
from ensue.benchmarks.nlu.examples import Example, TaskData
from ensue.benchmarks.nlu.frozen import Frozen, numbers_of
from ensue.benchmarks.nlu.systems import Answered
from ensue.benchmarks.nlu.training import Schedule, dev_score
from ensue.benchmarks.probing.vectors import encode_once
from ensue.errors import EnsueError
from ensue.models.card import ModelCard
from tests.support.run_context import records_of, run_context
from tests.support.small_tasks import FORMS, spec, task

SETTINGS = {"pooling": None, "layer": None, "classifier_device": "cpu", "runs": 1}


class Words:
    """The mean of a random vector a word; in layer 0 every text is alike. It remembers what it was given."""

    layer_count = 1

    def __init__(self) -> None:
        self.card = ModelCard("words", "toy", "here", {"of": "test_frozen"})
        self.given: list[str] = []

    def encode(
        self, texts: Sequence[str], *, layers: Sequence[int] | None = None, pooling: str | None = None
    ) -> np.ndarray:
        self.given += texts
        own = np.array([self.vector(text) for text in texts], dtype=np.float32).reshape(-1, 24)
        if layers is None:
            return own
        return np.stack([own * layer for layer in layers], axis=1)

    def vector(self, text: str) -> np.ndarray:
        drawn = [np.random.default_rng(list(word.encode())).normal(size=24) for word in words_of(text)]
        return np.mean(drawn, axis=0)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENSUE_HOME", str(tmp_path / "home"))


def answer(
    tasks: list[TaskData], encoder: Any, folder: Path | None = None, seed: int = 0, **more: Any
) -> list[Answered]:
    system = Frozen(Schedule(validate_every=10, max_steps=60))
    with run_context(folder) as place:
        return list(system.answer(encoder, tasks, SETTINGS | more, seed, place))


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_learnt(form: Any) -> None:
    data = task(form)
    (found,) = answer([data], Words())
    assert dev_score(data.spec, data.splits["dev"], found.predictions["dev"]) > 0.8
    assert found.predictions["test"].keys() == {example.id for example in data.splits["test"]}
    assert found.fits[0]["chosen"]


def test_each_text_is_encoded_once_for_all_tasks_and_runs() -> None:
    encoder = Words()
    tasks = [task("pair"), task("word"), task("pair", name="Again")]
    answer(tasks, encoder, runs=2)
    assert len(encoder.given) == len(set(encoder.given))
    answer(tasks, encoder, seed=5)
    assert len(encoder.given) == len(set(encoder.given))


def test_one_seed_gives_one_answer_and_the_best_run_is_chosen() -> None:
    (first,), (again,) = answer([task("score")], Words(), runs=2), answer([task("score")], Words(), runs=2)
    assert first.predictions == again.predictions
    assert [line["seed"] for line in first.fits] == [0, 1]
    best = max(first.fits, key=lambda line: line["dev_score"])
    assert best["chosen"]
    assert best["dev_mean"] == pytest.approx(np.mean([line["dev_score"] for line in first.fits]))
    assert first.fits[0]["dev_score"] != first.fits[1]["dev_score"]


def test_layers_are_answers_of_their_own() -> None:
    data = task("single")
    low, high = answer([data], Words(), layer=[0, 1])
    assert (low.settings, high.settings) == ({"layer": 0}, {"layer": 1})
    scores = [dev_score(data.spec, data.splits["dev"], found.predictions["dev"]) for found in (low, high)]
    assert scores[1] > 0.8 > scores[0]


def test_finished_trainings_are_not_repeated(tmp_path: Path) -> None:
    encoder = Words()
    (first,) = answer([task("pair")], encoder, tmp_path)
    given = len(encoder.given)
    (again,) = answer([task("pair")], encoder, tmp_path)
    assert again.predictions == first.predictions
    assert again.fits == first.fits
    assert len(encoder.given) == given
    records_of(tmp_path).write_bytes(records_of(tmp_path).read_bytes()[:-9])
    assert answer([task("pair")], encoder, tmp_path)[0].predictions == first.predictions


def test_a_diagnostic_is_answered_by_its_tasks_classifier_and_left_out_without_it() -> None:
    trained = task("pair", name="RTE")
    diagnostic = TaskData(spec("pair", "AX", answered_by="RTE"), {"test": trained.splits["dev"]}, "ax")
    both = {found.task: found for found in answer([trained, diagnostic], Words())}
    assert both["AX"].predictions["test"] == both["RTE"].predictions["dev"]
    assert answer([diagnostic], Words()) == []


def test_a_blank_text_has_zeros() -> None:
    vectors = encode_once(Words(), ["one"])
    assert numbers_of([("one", " ")], vectors).tolist() == [[0, -1]]
    data = task("pair")
    data.splits["train"].append(Example("blank", ("", "It is old."), "entailment"))
    assert len(answer([data], Words())) == 1


def test_a_model_that_cannot_encode_is_refused() -> None:
    with pytest.raises(EnsueError, match="Mode frozen needs a model that can encode"):
        answer([task("pair")], load_model("random"))


class Short(Words):
    """Reads two words of a text."""

    def count_cut(self, texts: Sequence[str]) -> int:
        return sum(len(words_of(text)) > 5 for text in texts)


def test_texts_the_encoder_cuts_are_counted_by_task() -> None:
    trained = task("pair", name="RTE")
    diagnostic = TaskData(spec("pair", "AX", answered_by="RTE"), {"test": trained.splits["dev"][:7]}, "ax")

    def long(*names: str, data: TaskData = trained) -> int:
        texts = {text for name in names for example in data.splits[name] for text in example.texts}
        return sum(len(words_of(text)) > 5 for text in texts)

    found = answer([trained, diagnostic], Short(), layer=[0, 1])
    assert [one.task for one in found] == ["RTE", "AX"] * 2
    for one in found[::2]:
        assert dict(one.notes) == {
            "training texts cut at None tokens": long("train"),
            "texts cut at None tokens": long("dev", "test"),
        }
        assert long("train") > long("dev", "test") > 0
    assert dict(found[1].notes) == {"texts cut at None tokens": long("test", data=diagnostic)}
    assert not answer([trained], Words())[0].notes


def test_trainings_on_vectors_are_told_of() -> None:
    told: list[tuple[int, int, str]] = []
    place = RunContext(progress=lambda *state: told.append(state))
    list(
        Frozen(Schedule(validate_every=10, max_steps=20)).answer(Words(), [task("pair")], SETTINGS, 0, place)
    )
    assert told[-1] == (20, 20, "updates of Pair at most")
