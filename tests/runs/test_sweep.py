"""Sweeps: the runs that were asked for one by one, in their order, each with a folder of its own."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import ensue
from ensue.errors import EnsueError
from tests.support.command import here
from tests.support.corpus import write_corpus

# What is no name of a file has a digest beside it, so that no two values have one name.
NAMES = {"1": "1", "2,3": f"2-3-{hashlib.sha256(b'2,3').hexdigest()[:6]}"}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("sweep") / "corpus.jsonl", (5,) * 6)


def measured(run: ensue.Run) -> dict[str, Any]:
    return {key: value for key, value in run.results.items() if key != "seconds"}


def test_every_combination_is_the_run_that_is_asked_for_alone(corpus: Path, tmp_path: Path) -> None:
    asked = {"data": corpus, "shuffles": 4}
    reported: list[tuple[int, int, str]] = []
    found = ensue.sweep(
        "shuffle",
        model=["random", "unigram"],
        seed=[0, 7],
        over={"block_size": ["1", "2,3"]},
        output=tmp_path / "sweep",
        progress=lambda *said: reported.append(said),
        **asked,
    )
    wanted = [
        (model, seed, size) for model in ("random", "unigram") for seed in (0, 7) for size in ("1", "2,3")
    ]
    assert [run.folder.name for run in found] == [
        f"model-{model}-seed-{seed}-block_size-{NAMES[size]}" for model, seed, size in wanted
    ]
    for run, (model, seed, size) in zip(found, wanted, strict=True):
        alone = ensue.run(
            "shuffle",
            model=model,
            seed=seed,
            block_size=size,
            output=tmp_path / f"{model}{seed}{size}",
            **asked,
        )
        assert measured(run) == measured(alone)
        assert (run.folder / "items.jsonl").read_bytes() == (alone.folder / "items.jsonl").read_bytes()
    assert reported == [(number, 8, "runs") for number in range(1, 9)]
    # A second time all of it is read.
    again = ensue.sweep(
        "shuffle",
        model=["random", "unigram"],
        seed=[0, 7],
        over={"block_size": ["1", "2,3"]},
        output=tmp_path / "sweep",
        **asked,
    )
    assert again == found
    assert not any(run.computed for run in again)


def test_a_model_is_loaded_once_for_all_its_runs(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ensue.backends.names import load_model
    from ensue.runs import run as runs

    loaded: list[str] = []

    def load(model: str, **options: Any) -> Any:
        loaded.append(model)
        return load_model(model, **options)

    monkeypatch.setattr(runs, "load_model", load)
    ensue.sweep(
        "shuffle", model=["random", "unigram"], seed=[0, 1, 2], data=corpus, output=tmp_path / "sweep"
    )
    assert loaded == ["random", "unigram"]


def test_values_that_look_alike_in_a_name_have_folders_of_their_own(corpus: Path, tmp_path: Path) -> None:
    asked = {"model": "random", "data": corpus, "over": {"joiner": [" ", "\n"]}}
    found = ensue.sweep("shuffle", output=tmp_path / "sweep", **asked)
    assert len({run.folder for run in found}) == 2
    assert found[0].results["signature"] != found[1].results["signature"]


def test_what_cannot_be_swept_is_refused(corpus: Path) -> None:
    with pytest.raises(EnsueError, match="seed has a value twice"):
        ensue.sweep("shuffle", model="random", seed=[1, 1], data=corpus)
    with pytest.raises(EnsueError, match="model has no value"):
        ensue.sweep("shuffle", model=[], data=corpus)
    with pytest.raises(EnsueError, match="block_size is given both for all runs"):
        ensue.sweep("shuffle", model="random", data=corpus, block_size=1, over={"block_size": [1, 2]})
    with pytest.raises(EnsueError, match="at_once is 0"):
        ensue.sweep("shuffle", model="random", data=corpus, at_once=0)


def test_the_command_takes_several_seeds(corpus: Path, tmp_path: Path) -> None:
    command = ["run", "shuffle", "--model", "random", "--data", corpus, "--output", tmp_path / "sweep"]
    said = here(*command, "--seed", "3,5", "--json")
    assert said.code == 0, said.err
    runs = json.loads(said.out)["runs"]
    assert [Path(run["folder"]).name for run in runs] == ["seed-3", "seed-5"]
    alone = ensue.run("shuffle", model="random", seed=5, data=corpus, output=tmp_path / "alone")
    assert runs[1]["metrics"] == alone.results["metrics"]
    shown = here(*command, "--seed", "3,5")
    assert shown.code == 0
    assert [line for line in shown.out.splitlines() if line.startswith("seed ")] == ["seed 3", "seed 5"]
