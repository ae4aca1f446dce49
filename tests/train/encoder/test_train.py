"""Training an encoder end to end on tiny documents: the losses fall, resuming repeats, and the command."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from ensue.backends.names import load_model
from ensue.errors import EnsueError
from ensue.models.protocols import Encoder
from ensue.train.encoder.options import EncoderOptions, parse_losses
from ensue.train.encoder.train import train_encoder
from ensue.train.report.page import read_log
from tests.support.command import here, refused
from tests.train.encoder.articles import write_articles

LOOP = {
    "learning_rate": 1e-2, "warmup": 0, "schedule": "constant", "weight_decay": 0.0, "precision": "no",
    "device": "cpu", "evaluate_every": 5, "log_every": 5, "patience": 9, "seed": 0, "workers": 1,
}  # fmt: skip
SIZES = {"vocabulary": 80, "embedding": 8, "dimension": 6, "hidden": 8, "batch": 16, "dev_share": 0.2}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder")
    write_articles(folder / "data")
    return folder


def sources(place):
    return [str(place / "data" / name) for name in ("wiki.tokens", "pages", "works.jsonl")]


def train(place, output, losses="nsp,nl,spp,sdt", steps=20, told=None, **more):
    given = {**LOOP, **SIZES, "data": sources(place), "corpora": place / "corpus", **more}
    return train_encoder(EncoderOptions(losses=losses, steps=steps, output=output, **given), told)


@pytest.mark.parametrize("losses", ["nsp", "nsp,spp", "nsp,nl", "nsp,spp,nl", "nsp,nl,spp,sdt", "sdt"])
def test_the_losses_fall_and_the_model_loads_as_an_encoder(place, tmp_path, losses):
    fitted = train(place, tmp_path / "model", losses, steps=60)
    log = read_log(tmp_path / "model" / "training.jsonl")
    assert log.loss.values[-1] < log.loss.values[0]
    assert log.evaluations[-1].found["loss"] < log.evaluations[0].found["loss"]
    assert set(fitted.best) == {"dev_loss", *(f"dev_{name}" for name in losses.split(","))}
    model = load_model(str(tmp_path / "model"))
    assert isinstance(model, Encoder)
    vectors = model.encode(["The boat drifted.", "The boat drifted.", "A dog."])
    assert vectors.shape == (3, 12)
    assert np.allclose(vectors[0], vectors[1], atol=1e-6)
    assert not np.allclose(vectors[0], vectors[2], atol=1e-3)
    assert "NSP" in model.card.training or losses == "sdt"


def test_a_killed_training_resumes_to_the_same_weights(place, tmp_path):
    def stop(done, total, unit):
        if unit == "steps" and done == 12:
            raise KeyboardInterrupt

    train(place, tmp_path / "whole", dropout=0.2)
    with pytest.raises(KeyboardInterrupt):
        train(place, tmp_path / "parts", dropout=0.2, told=stop)
    with pytest.raises(EnsueError, match="--resume"):
        train(place, tmp_path / "parts", dropout=0.2)
    with pytest.raises(EnsueError, match="other settings"):
        train(place, tmp_path / "parts", dropout=0.1, resume=True)
    assert train(place, tmp_path / "parts", dropout=0.2, resume=True).steps == 20
    for name in ("model.safetensors", "config.json", "vocab.txt"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes(), name
    whole, parts = (load_file(tmp_path / part / "checkpoint.safetensors") for part in ("whole", "parts"))
    assert whole.keys() == parts.keys()
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


def test_a_training_is_not_resumed_on_documents_that_have_changed(tmp_path):
    write_articles(tmp_path / "data")
    train(tmp_path, tmp_path / "model", "nl", steps=5)
    works = tmp_path / "data" / "works.jsonl"
    works.write_text(works.read_text().replace("the", "thy"))
    with pytest.raises(EnsueError, match="other data"):
        train(tmp_path, tmp_path / "model", "nl", steps=5, resume=True)


def test_epochs_are_counted_out_in_steps(place, tmp_path):
    fitted = train(place, tmp_path / "model", "nl", steps=None, epochs=2)
    record = json.loads((tmp_path / "model" / "training.json").read_text())
    assert fitted.steps == 2 * (record["corpora"]["train"]["sentences"] // 16)
    assert record["corpora"]["dev"]["documents"] == 4
    assert record["corpora"]["train"]["documents"] == 18


def test_word_vectors_are_put_in_place(place, tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text("the " + " ".join(["0.5"] * 8) + "\nnowhere " + " ".join(["1"] * 8) + "\n")
    train(place, tmp_path / "model", "nl", steps=1, learning_rate=0.0, vectors=path)
    model = load_model(str(tmp_path / "model"))
    row = model.network.embedding.weight[model.vocabulary.number(["the"])[0]]
    assert torch.equal(row, torch.full((8,), 0.5))
    assert json.loads((tmp_path / "model" / "training.json").read_text())["words_with_vectors"] == 1


def test_the_command_trains_and_reports_in_json(place, tmp_path):
    given = [option for source in sources(place) for option in ("--data", source)]
    finished = here(
        "train", "encoder", *given, "--losses", "nsp,spp", "--output", tmp_path / "model", "--vocabulary", 80,
        "--dimension", 6, "--embedding", 8, "--hidden", 8, "--batch", 16, "--steps", 4, "--evaluate-every", 2,
        "--dev-share", 0.2, "--device", "cpu", "--workers", 1, "--json",
    )  # fmt: skip
    assert finished.code == 0, finished.err
    told = json.loads(finished.out)
    assert (told["steps"], told["folder"]) == (4, str(tmp_path / "model"))
    assert set(told["best"]) == {"dev_loss", "dev_nsp", "dev_spp"}


def test_the_command_says_in_words_what_was_left_out(place, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for number in range(4):
        (data / f"{number}.md").write_text("# A page\n\nThe boat drifted. The town was asleep. A dog ran.\n")
    (data / "table.csv").write_text("a,b\n")
    finished = here(
        "train", "encoder", "--data", data, "--output", tmp_path / "model", "--dimension", 4, "--embedding", 4,
        "--hidden", 4, "--batch", 3, "--steps", 2, "--device", "cpu", "--workers", 1,
    )  # fmt: skip
    assert finished.code == 0, finished.err
    expected = (
        "trained on 9 sentences of 3 documents, held out 3 sentences of 1; left out: files ending in .csv: 1"
    )
    assert expected in finished.out.splitlines()


def test_losses_and_their_weights():
    assert parse_losses("SPP=0.5, nsp") == {"nsp": 1.0, "spp": 0.5}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--losses", "nsp,xyz"], ["xyz", "sdt"]),
        (["--losses", "nsp,nsp"], ["twice"]),
        (["--losses", "nl=much"], ["nl=much"]),
        (["--losses", "nl=0"], ["above 0"]),
        (["--losses", ","], ["empty"]),
        (["--data", "/nowhere"], ["/nowhere"]),
        (["--schedule", "zigzag"], ["schedule"]),
        (["--precision", "int4"], ["precision"]),
        (["--positions", "near"], ["positions"]),
        (["--dev-share", "1.5"], ["dev-share"]),
        (["--dev-share", "0.99"], ["Too few documents"]),
        (["--epochs", "2"], ["--steps or --epochs"]),
        (["--batch", "40000"], ["smaller --batch"]),
        (["--vectors", "/nowhere.txt"], ["/nowhere.txt"]),
        (["--vectors", "WIDE"], ["wide.txt", "--embedding is 8"]),
        (["--vectors", "WORDS"], ["words.txt, line 1", "not a finite number"]),
        (["--device", "cuda"], ["cuda"]),
    ],
)
def test_what_will_not_do_is_one_sentence(place, tmp_path, options, words):
    (tmp_path / "wide.txt").write_text("the 1 2 3\n")
    (tmp_path / "words.txt").write_text("the a b c d e f g h\n")
    files = {"WIDE": tmp_path / "wide.txt", "WORDS": tmp_path / "words.txt"}
    given = {
        "--data": sources(place)[0], "--output": tmp_path / "model", "--embedding": 8, "--dimension": 6,
        "--batch": 8, "--steps": 2, "--workers": 1, "--vocabulary": 80,
    }  # fmt: skip
    given |= {key: files.get(value, value) for key, value in zip(options[::2], options[1::2], strict=True)}
    if "cuda" in words and torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    refused(here("train", "encoder", *(x for pair in given.items() for x in pair)), *words)
