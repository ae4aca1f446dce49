"""Training an answerer end to end on an invented quiz: it learns, resumes to the same model, and says what it did."""

import json

import pytest

from ensue.backends.names import load_model
from ensue.errors import EnsueError
from ensue.text.io.squad import examples_of, read_squad, split_articles
from ensue.train.qa.options import AnswererOptions
from ensue.train.qa.quality import evaluate_answerer
from ensue.train.qa.train import train_answerer
from tests.support import tiny
from tests.support.command import here, read_lines, refused
from tests.train.qa.quiz import save_reader, write_quiz

SETTINGS = {
    "rank": 4, "epochs": 2, "batch": 16, "patience": 99, "precision": "no", "device": "cpu",
    "max_length": 64, "stride": 16, "max_question": 16, "max_answer": 8,
}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("qa")
    tiny.save_encoder(folder / "encoder")
    write_quiz(folder / "small.json", articles=10)
    return folder


def train(place, output, told=None, **others):
    given = {"model": str(place / "encoder"), "data": [str(place / "small.json")], **SETTINGS, **others}
    return train_answerer(AnswererOptions(output=output, **given), told)


@pytest.mark.parametrize(("full", "rate", "epochs"), [(True, 2e-3, 9), (False, 1e-2, 12)])
def test_a_tiny_bert_learns_to_find_the_answer(place, tmp_path, full, rate, epochs):
    data = write_quiz(tmp_path / "quiz.json", articles=40, paragraphs=12)
    asked = {"full": full, "epochs": epochs, "learning_rate": rate, "head_faster": 5.0 if full else 1.0}
    model = str(save_reader(tmp_path / "encoder"))
    fitted = train(place, tmp_path / "model", data=[str(data)], model=model, **asked)
    found = [row["dev_f1"] for row in read_lines(tmp_path / "model" / "training.jsonl") if "dev_f1" in row]
    # Guessing one of two or three, or silence where a fifth has no answer.
    assert found[0] < 0.6
    assert max(found) > 0.8, found
    losses = [row["loss"] for row in read_lines(tmp_path / "model" / "training.jsonl") if "loss" in row]
    assert losses[-1] < losses[0] / 2
    assert fitted.best["dev_f1"] == max(found) == pytest.approx(1 - fitted.best_loss)


@pytest.mark.parametrize("full", [False, True])
def test_the_folder_loads_says_what_was_done_and_scores_as_its_card_says(place, tmp_path, full):
    output = tmp_path / "model"
    train(place, output, full=full, about_data="An invented quiz.")
    record = json.loads((output / "training.json").read_text())
    parts = split_articles(read_squad(place / "small.json"))
    assert record["corpora"]["test"]["names"] == [article.id for article in parts.test]
    figures = evaluate_answerer(load_model(str(output), device="cpu"), examples_of(parts.test))
    assert record["held_out"]["test"] == pytest.approx(figures.as_dict())
    assert record["held_out"]["dev"]["f1"] == pytest.approx(record["fitted"]["best"]["dev_f1"], abs=0.1)
    readme = (output / "README.md").read_text()
    assert f"| F1 | {record['held_out']['dev']['f1']:.3f} | {figures.f1:.3f} |" in readme
    assert "An invented quiz." in readme
    if not full:
        base = sum(value.numel() for value in load_model(str(place / "encoder")).network.parameters())
        assert record["trained_parameters"] < base / 2
        assert (output / "adapter.safetensors").stat().st_size < 2 * record["trained_parameters"] + 12_000


def test_a_killed_training_resumes_to_the_same_model(place, tmp_path):
    def stop(done, total, unit):
        if done == 4:
            raise KeyboardInterrupt

    train(place, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(place, tmp_path / "parts", told=stop)
    with pytest.raises(EnsueError, match="--resume"):
        train(place, tmp_path / "parts")
    train(place, tmp_path / "parts", resume=True)
    for name in ("adapter.safetensors", "config.json"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes(), name


def test_the_command_trains_and_refuses_what_will_not_do(place, tmp_path):
    command = [
        "train",
        "qa",
        "--model",
        place / "encoder",
        "--max-length",
        64,
        "--stride",
        8,
        "--max-question",
        16,
    ]
    small = ["--data", place / "small.json", "--output", tmp_path / "model", "--device", "cpu"]
    done = here(*command, *small, "--epochs", 1, "--rank", 2, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["steps"] == 2
    refused(here(*command, *small), "--resume")
    other = ["--output", tmp_path / "other", "--device", "cpu"]
    refused(here(*command, "--data", tmp_path / "none.json", *other), "none.json", "cannot be read")
    refused(here(*command, *small[:2], *other, "--targets", "nose"), "called nose", "query")
    refused(here(*command, *small[:2], *other, "--schedule", "odd"), "--schedule odd")
    refused(here(*command, *small[:2], *other, "--dev-share", 0.95), "are invalid")
    refused(here(*command, *small[:2], *other, "--max-length", 500), "takes 128 tokens")
    refused(here("train", "qa", "--model", "random", *small[:2], *other), "random is not an encoder")


def test_further_questions_are_trained_on_but_never_held_out(place, tmp_path):
    extra = write_quiz(tmp_path / "extra.json", articles=4, seed=9)
    held = json.loads(extra.read_text("utf-8"))
    split = split_articles(read_squad(place / "small.json"))
    names = [f"Further {n}" for n in range(3)]
    # A held-out article under another spelling, which must not be learned.
    for article, name in zip(held["data"], [*names, split.test[0].id.upper().replace(" ", "_")], strict=True):
        article["title"] = name
    extra.write_text(json.dumps(held), "utf-8")
    train(place, tmp_path / "without", about_data="invented")
    train(place, tmp_path / "with", about_data="invented", extra=[str(extra)])
    facts = {
        name: json.loads((tmp_path / name / "training.json").read_text("utf-8"))
        for name in ("without", "with")
    }
    without, others = (facts[name]["corpora"] for name in ("without", "with"))
    assert others["extra"]["articles"] == 3
    assert without["extra"]["articles"] == 0
    assert [others[part]["names"] for part in ("train", "dev", "test")] == [
        without[part]["names"] for part in ("train", "dev", "test")
    ]
    assert others["train"]["rows"] == without["train"]["rows"] + others["extra"]["questions"]
    assert "extra.json" in (tmp_path / "with" / "README.md").read_text("utf-8")
