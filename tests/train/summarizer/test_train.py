"""Training a summariser end to end on invented stories: the loss falls, resuming repeats, the best is kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ensue.backends.names import load_model
from ensue.errors import EnsueError
from ensue.runs.report import write_report
from ensue.runs.run import run
from ensue.train.report.page import read_log
from ensue.train.summarizer.options import SummarizerOptions, read_values
from ensue.train.summarizer.train import GRID, train_summarizer
from tests.benchmarks.squality.invented import story_row, write_rows
from tests.support.command import here
from tests.support.tiny import save_encoder, save_llama
from tests.support.tiny_seq2seq import save_bart

SETTINGS: dict[str, Any] = {
    "learning_rate": "1e-2", "max_input": 120, "max_output": 60, "epochs": 2, "batch": 4, "precision": "no",
    "device": "cpu", "log_every": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("summarizer")
    write_rows(folder / "data" / "v1" / "train.jsonl", story_row("1"), story_row("2"))
    write_rows(folder / "data" / "v1" / "dev.jsonl", story_row("3"))
    write_rows(folder / "data" / "v1" / "test.jsonl", story_row("4"))
    save_bart(folder / "bart")
    save_llama(folder / "llama", max_length=256)
    save_encoder(folder / "encoder")
    return folder


def options(place: Path, output: Path, model: str = "bart", **more: Any) -> SummarizerOptions:
    given = {**SETTINGS, "data": place / "data", **more}
    return SummarizerOptions(model=str(place / model), output=output, **given)


def train(place: Path, output: Path, model: str = "bart", told: Any = None, **more: Any) -> Any:
    return train_summarizer(options(place, output, model, **more), told)


@pytest.mark.parametrize("kind", ["bart", "llama"])
def test_the_loss_falls_and_the_model_can_be_run(place: Path, tmp_path: Path, kind: str) -> None:
    fitted = train(place, tmp_path / "out", kind, epochs=3)
    log = read_log(tmp_path / "out" / "training.jsonl")
    losses = [each.found["loss"] for each in log.evaluations]
    assert len(losses) == 3
    assert fitted.best_loss == min(losses) < 0.8 * log.loss.values[0]
    record = json.loads((tmp_path / "out" / "training.json").read_text("utf-8"))
    assert record["instances"] == {"train": 16, "dev": 8}
    card = load_model(str(tmp_path / "out")).card
    assert "fine-tuned to summarise on 2 stories" in card.training
    found = run(
        "squality",
        model=str(tmp_path / "out"),
        data=place / "data",
        output=tmp_path / "run",
        metrics="rouge",
        statistics="no",
        max_tokens=20,
        beams=2,
    )
    assert len(found.items) == 2
    assert "perplexity" in write_report(tmp_path / "out").read_text("utf-8")


def test_a_training_that_goes_on_ends_where_one_in_one_piece_does(place: Path, tmp_path: Path) -> None:
    whole = train(place, tmp_path / "whole")
    steps = []

    def stop(done: int, total: int, unit: str) -> None:
        steps.append(done)
        if done == 5 and len(steps) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(place, tmp_path / "parts", told=stop)
    with pytest.raises(EnsueError, match="--resume"):
        train(place, tmp_path / "parts")
    with pytest.raises(EnsueError, match="other settings"):
        train(place, tmp_path / "parts", epochs=4, resume=True)
    parts = train(place, tmp_path / "parts", resume=True, told=stop)
    assert (parts.best_step, parts.best_loss) == (whole.best_step, whole.best_loss)
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts")]
    assert weights[0] == weights[1]


def test_the_best_of_a_grid_is_kept_and_the_others_weights_are_not(place: Path, tmp_path: Path) -> None:
    searched = {"learning_rate": "1e-6,1e-2", "label_smoothing": "0,0.2", "epochs": 1}
    told: list[tuple[int, int]] = []

    def stop(done: int, total: int, unit: str) -> None:
        told.append((done, total))
        if len(told) == 6:
            raise KeyboardInterrupt

    output = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        train(place, output, told=stop, **searched)
    fitted = train(place, output, resume=True, told=stop, **searched)
    assert told[-1] == (16, 16)
    record = json.loads((output / "training.json").read_text("utf-8"))
    assert len(record["grid"]) == 4
    best = min(record["grid"], key=lambda line: line["dev_loss"])
    assert (record["best"], fitted.best_loss) == (best["name"], best["dev_loss"])
    assert best["learning_rate"] == 1e-2
    assert [path.parent for path in output.rglob("*.safetensors")] == [output]
    points = options(place, output, **searched).points()
    assert {path.name for path in (output / GRID).iterdir()} == {point.name for point in points}
    (one,) = (point for point in points if point.name == best["name"])
    alone = train_summarizer(replace(one, output=tmp_path / "one"))
    assert alone.best_loss == fitted.best_loss
    load_model(str(output))
    # A finished grid that is asked for again says the same.
    assert train(place, output, resume=True, **searched) == fitted


def test_sentences_can_be_retrieved_for_training(place: Path, tmp_path: Path) -> None:
    retrieve = str(place / "encoder")
    train(place, tmp_path / "out", retrieve=retrieve, epochs=1, max_input=60, checkpointing=True)
    assert "sentences retrieved with" in load_model(str(tmp_path / "out")).card.training


def test_the_papers_grid_has_108_points(tmp_path: Path) -> None:
    points = options(tmp_path, tmp_path, grid=True, epochs=5).points()
    assert len(points) == len({point.name for point in points}) == 108
    assert "lr5e-05-wr0.1-wd0.01-ls0.1" in {point.name for point in points}
    loop = points[40].counted(100, 1)
    assert (loop.steps, loop.evaluate_every, loop.schedule) == (500, 100, "linear")
    assert loop.warmup == 500 * float(points[40].warmup_ratio)


def test_bad_settings_are_one_sentence(place: Path, tmp_path: Path) -> None:
    wrong = {"learning_rate": "fast", "label_smoothing": "1", "weight_decay": "nan", "warmup_ratio": ","}
    for name, text in wrong.items():
        with pytest.raises(EnsueError, match=name.replace("_", "-")):
            read_values(name, text)
    with pytest.raises(EnsueError, match="cannot be trained to summarise"):
        train(place, tmp_path / "a", "encoder")
    with pytest.raises(EnsueError, match="set --max-output lower"):
        train(place, tmp_path / "b", "llama", max_output=256)
    with pytest.raises(EnsueError, match="needs SQuALITY's folder"):
        train(place, tmp_path / "c", data=place / "data" / "v1" / "train.jsonl")
    with pytest.raises(EnsueError, match="precision"):
        options(place, tmp_path / "d", precision="half")


def test_the_command(place: Path, tmp_path: Path) -> None:
    words = ["train", "summarizer", "--data", place / "data", "--model", place / "bart", "--epochs", "1"]
    sizes = ["--max-input", "80", "--max-output", "20", "--batch", "8", "--device", "cpu", "--json"]
    done = here(*words, *sizes, "--output", tmp_path / "out", "--learning-rate", "1e-3,1e-2")
    assert done.code == 0, done.err
    assert json.loads(done.out)["folder"] == str(tmp_path / "out")
    again = here(*words, *sizes, "--output", tmp_path / "out", "--learning-rate", "1e-3,1e-2")
    assert again.code == 2
    assert "--resume" in again.sentence
