"""CBoW and BiLSTM baselines learn every form, alone and together, the same from one seed, and go on after a kill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ensue.backends.discourse.words import words_of
from ensue.backends.names import load_model
from ensue.benchmarks.nlu.examples import Example, TaskData
from ensue.benchmarks.nlu.framing import parts_of
from ensue.benchmarks.nlu.systems import Answered, find, mode_of, named
from ensue.benchmarks.nlu.training import dev_score
from ensue.benchmarks.settings import resolve
from ensue.errors import EnsueError
from ensue.runs import run as run  # registers this way of answering
from ensue.train.sentences import ARCHITECTURES
from ensue.train.sentences.system import system
from ensue.train.sentences.training import Member, words_for
from tests.support.run_context import records_of, run_context
from tests.support.small_tasks import FORMS, spec, task, write_vectors


@pytest.fixture
def vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ENSUE_HOME", str(tmp_path / "home"))
    return str(write_vectors(tmp_path / "words.txt"))


def answer(
    model: str, tasks: list[TaskData], folder: Path | None = None, seed: int = 0, runs: int = 1, **more: Any
) -> list[Answered]:
    small = {"width": 12, "classifier_hidden": 24, "validate_every": 20, "max_steps": 160}
    settings = resolve("glue", system.settings, small | more) | {"runs": runs}
    with run_context(folder) as place:
        return list(
            system.answer(
                named(model) if model in ARCHITECTURES else load_model(model), tasks, settings, seed, place
            )
        )


def score(data: TaskData, found: Answered) -> float:
    return dev_score(data.spec, data.splits["dev"], found.predictions["dev"])


@pytest.mark.parametrize("form", FORMS)
def test_bags_of_words_learn_every_form(form: Any, vectors: str) -> None:
    data = task(form)
    (found,) = answer("cbow", [data], vectors=vectors)
    assert score(data, found) > 0.8
    assert found.predictions["test"].keys() == {example.id for example in data.splits["test"]}


@pytest.mark.parametrize(
    ("model", "form"),
    [
        ("bilstm", "single"),
        ("bilstm", "coreference"),
        ("bilstm-attention", "pair"),
        ("bilstm-attention", "word"),
    ],
)
def test_bilstms_learn(model: str, form: Any, vectors: str) -> None:
    data = task(form)
    (found,) = answer(model, [data], vectors=vectors, max_steps=100)
    assert score(data, found) > 0.8


def test_vectors_can_be_learnt() -> None:
    data = task("single")
    (found,) = answer("cbow", [data], vectors="learned")
    assert score(data, found) > 0.8


def test_tasks_learn_together_from_one_encoder(vectors: str) -> None:
    tasks = [task("single"), task("pair", train=320), task("choice")]
    found = answer("bilstm", tasks, vectors=vectors, multitask="yes", max_steps=300)
    assert [one.task for one in found] == ["Single", "Pair", "Choice"]
    assert all(score(data, one) > 0.7 for data, one in zip(tasks, found, strict=True))
    (told,) = found[0].fits
    assert told["task"] == "multitask"
    assert told["dev_score"] == pytest.approx(
        sum(score(*pair) for pair in zip(tasks, found, strict=True)) / 3
    )
    assert not found[1].fits


def test_a_diagnostic_with_new_words_changes_nothing_in_its_task(vectors: str) -> None:
    trained = task("pair", name="RTE")
    diagnostic = TaskData(spec("pair", "AX", answered_by="RTE"), {"test": task("entity").splits["dev"]}, "ax")
    (alone,) = answer("cbow", [trained], vectors=vectors, max_steps=40)
    among, _ = answer("cbow", [trained, diagnostic], vectors=vectors, max_steps=40)
    assert among.fits[0]["words"] > alone.fits[0]["words"]
    assert among.chances == alone.chances


def test_words_are_numbered_as_they_come() -> None:
    data = task("single")
    parts = parts_of(data, 0)
    assert parts is not None
    seen = [word for example in parts.train for word in words_of(example.texts[0])]
    repeated = [word for word in dict.fromkeys(seen) if seen.count(word) > 1]
    assert list(words_for([Member(data, parts, [data])], None).numbers) == repeated


def test_a_task_alone_does_not_depend_on_the_others(vectors: str) -> None:
    (alone,) = answer("cbow", [task("pair")], vectors=vectors, max_steps=40)
    _, among = answer("cbow", [task("single"), task("pair")], vectors=vectors, max_steps=40)
    assert among.predictions == alone.predictions
    assert among.chances == alone.chances


def test_seeds_repeat_and_differ(vectors: str) -> None:
    def chances(seed: int) -> Any:
        return answer("bilstm", [task("pair")], seed=seed, vectors=vectors, max_steps=20)[0].chances

    assert chances(0) == chances(0)
    assert chances(0) != chances(1)


def test_the_best_of_several_runs_answers(vectors: str) -> None:
    (found,) = answer("cbow", [task("score")], runs=3, vectors=vectors, max_steps=40)
    scores = [line["dev_score"] for line in found.fits]
    (chosen,) = [line for line in found.fits if line["chosen"]]
    assert [line["seed"] for line in found.fits] == [0, 1, 2]
    assert chosen["dev_score"] == max(scores) == pytest.approx(score(task("score"), found))
    assert (chosen["runs"], chosen["dev_mean"]) == (3, pytest.approx(sum(scores) / 3))


def test_finished_runs_are_taken_from_the_folder(vectors: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (first,) = answer("cbow", [task("pair")], folder, runs=2, vectors=vectors, max_steps=40)
    (again,) = answer("cbow", [task("pair")], folder, runs=2, vectors=vectors, max_steps=40)
    # Seconds are measured, so that they are equal shows that nothing was trained.
    assert again == first
    records_of(folder).write_bytes(records_of(folder).read_bytes().splitlines(keepends=True)[0])
    (resumed,) = answer("cbow", [task("pair")], folder, runs=2, vectors=vectors, max_steps=40)
    assert resumed.predictions == first.predictions
    assert resumed.fits[0] == first.fits[0] or resumed.fits[1]["chosen"] == first.fits[1]["chosen"]
    (other,) = answer("cbow", [task("pair")], folder, runs=2, vectors=vectors, max_steps=20)
    assert other.fits[0]["updates"] == 20


def test_diagnostics_are_answered_by_their_task_and_tasks_without_training_left_out(vectors: str) -> None:
    trained = task("pair", name="RTE")
    diagnostic = TaskData(spec("pair", "AX", answered_by="RTE"), {"test": trained.splits["dev"]}, "ax")
    untrained = TaskData(spec("pair", "QNLI"), {"dev": trained.splits["dev"]}, "")
    found = answer("cbow", [diagnostic, untrained, trained], vectors=vectors, max_steps=40)
    assert [one.task for one in found] == ["RTE", "AX"]
    assert found[1].predictions["test"] == found[0].predictions["dev"]
    assert answer("cbow", [untrained]) == []


def test_the_mode_is_found_and_other_models_are_refused() -> None:
    assert find(mode_of(named("bilstm"), None)) is system
    with pytest.raises(EnsueError, match="Mode train is for cbow, bilstm, bilstm-attention, not for random"):
        answer("random", [task("pair")])
    signed = system.signature(named("bilstm"), resolve("glue", system.settings, {}))
    assert "train:bilstm vectors:glove-50d width:256" in signed


def test_texts_that_are_cut_are_counted(vectors: str) -> None:
    """Of each task the distinct texts that are longer than max_words, in training and in what is answered."""
    trained = task("pair", name="RTE")
    diagnostic = TaskData(spec("pair", "AX", answered_by="RTE"), {"test": trained.splits["dev"][:7]}, "ax")
    found = answer("cbow", [trained, diagnostic], vectors=vectors, max_steps=20, max_words=5)

    def long(*splits: list[Example]) -> int:
        texts = {text for split in splits for example in split for text in example.texts}
        return sum(len(words_of(text)) > 5 for text in texts)

    def long_each(*splits: list[Example]) -> int:
        return sum(long(split) for split in splits)

    assert long(trained.splits["train"]) > 0
    assert dict(found[0].notes) == {
        "training texts cut at 5 words": long(trained.splits["train"]),
        "texts cut at 5 words": long_each(trained.splits["dev"], trained.splits["test"]),
    }
    assert dict(found[1].notes) == {"texts cut at 5 words": long(diagnostic.splits["test"])}
    (whole,) = answer("cbow", [trained], vectors=vectors, max_steps=20)
    assert not whole.notes


def test_a_task_with_one_training_example_and_no_dev_is_left_out(vectors: str) -> None:
    data = task("pair")
    alone = TaskData(data.spec, {"train": data.splits["train"][:1]}, "one")
    assert answer("cbow", [alone], vectors=vectors) == []
