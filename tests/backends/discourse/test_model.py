"""The discourse encoder as a model: its words, its vectors against a plain GRU, and broken folders."""

import json

import numpy as np
import pytest
import torch
from torch import nn

from ensue.backends.discourse.model import DiscourseNetwork, EncoderShape, save_discourse
from ensue.backends.discourse.words import UNKNOWN, Vocabulary, WordCounter, load_vocabulary, words_of
from ensue.backends.names import load_model
from ensue.errors import EnsueError, RunFailed
from ensue.models.protocols import Encoder, abilities
from tests.support.tiny import SENTENCES


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("models") / "discourse"
    counter = WordCounter()
    for sentence in SENTENCES[:8]:
        counter.add(words_of(sentence))
    vocabulary = counter.vocabulary(50)
    torch.manual_seed(0)
    save_discourse(place, DiscourseNetwork(EncoderShape(len(vocabulary), 7, 5)), vocabulary)
    return place


def by_hand(model, text):
    """The vector of one text from the weights alone: a GRU cell step by step in both directions."""
    weights = {name: value.double() for name, value in model.network.gru.state_dict().items()}
    ids = model.vocabulary.encode(text) or [0]
    inputs = [model.network.embedding.weight[i].double() for i in ids]
    states = []
    for suffix, order in (("l0", inputs), ("l0_reverse", inputs[::-1])):
        h, found = torch.zeros(5, dtype=torch.double), []
        for x in order:
            gi = weights[f"weight_ih_{suffix}"] @ x + weights[f"bias_ih_{suffix}"]
            gh = weights[f"weight_hh_{suffix}"] @ h + weights[f"bias_hh_{suffix}"]
            (ri, zi, ni), (rh, zh, nh) = gi.chunk(3), gh.chunk(3)
            r, z = torch.sigmoid(ri + rh), torch.sigmoid(zi + zh)
            h = (1 - z) * torch.tanh(ni + r * nh) + z * h
            found.append(h)
        states.append(torch.stack(found).mean(0))
    return torch.cat(states).numpy()


def test_a_vector_that_is_no_number_is_refused_by_its_text(folder):
    model = load_model(str(folder), dtype="float16")
    model.network.embedding.weight[model.vocabulary.encode("birds")[0]] = torch.nan
    assert np.isfinite(model.encode([SENTENCES[1]])).all()
    with pytest.raises(RunFailed, match=r"makes nan of the text that begins 'The sun rose .* in float16"):
        model.encode([SENTENCES[1], SENTENCES[0]])


def test_vectors_are_those_of_the_formula_whatever_else_is_in_the_batch(folder):
    model = load_model(str(folder), device="cpu")
    assert isinstance(model, Encoder)
    assert abilities(model) == ["encode text"]
    texts = [*SENTENCES, "Rain.", "", "zzz qqq", "The sun " * 90]
    found = model.encode(texts)
    assert found.shape == (len(texts), 10)
    assert found.dtype == np.float32
    for text, vector in zip(texts, found, strict=True):
        np.testing.assert_allclose(vector, by_hand(model, text), atol=1e-5)
        np.testing.assert_allclose(vector, model.encode([text])[0], atol=1e-5)


def test_vectors_are_those_of_torchs_gru_one_sentence_at_a_time(folder):
    model = load_model(str(folder), device="cpu")
    gru = nn.GRU(7, 5, bidirectional=True, batch_first=True)
    gru.load_state_dict(model.network.gru.state_dict())
    for text, vector in zip(SENTENCES, model.encode(SENTENCES), strict=True):
        ids = torch.tensor([model.vocabulary.encode(text)])
        with torch.no_grad():
            states, _ = gru(model.network.embedding(ids))
        np.testing.assert_allclose(vector, states[0].mean(0).numpy(), atol=1e-5)


def test_padding_is_not_read(folder):
    network = load_model(str(folder), device="cpu").network
    ids = torch.tensor([[3, 4, 5], [6, 7, 0]])
    other = torch.tensor([[3, 4, 5], [6, 7, 9]])
    lengths = torch.tensor([3, 2])
    assert torch.equal(network(ids, lengths), network(other, lengths))


def test_what_it_cannot_do_is_one_sentence(folder):
    model = load_model(str(folder), device="cpu")
    with pytest.raises(EnsueError, match="no layers"):
        model.encode(["a"], layers=[0])
    with pytest.raises(EnsueError, match="pooling 'cls'"):
        model.encode(["a"], pooling="cls")
    assert model.encode([], pooling="mean").shape == (0, 10)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't stop!", ["do", "n't", "stop", "!"]),
        ("The town 's port , too", ["the", "town", "'s", "port", ",", "too"]),
        ("the town's port, too", ["the", "town", "'s", "port", ",", "too"]),
        ("“Yes,” she said—twice…", ['"', "yes", ",", '"', "she", "said", "-", "twice", "."]),
        ("1.5 m or 1,200 at 5pm", ["1.5", "m", "or", "1,200", "at", "5", "pm"]),
        ("_Emma_ and the <unk> café", ["emma", "and", "the", "<unk>", "café"]),
        ("e.g. the U.S.", ["e.g.", "the", "u.s."]),
        (" \n ", []),
    ],
)
def test_words(text, words):
    assert words_of(text) == words


def test_a_vocabulary_is_the_most_frequent_words_and_comes_back_from_disk(tmp_path):
    counter = WordCounter()
    counter.add(["b", "a", "b", "c", "a", "b", "<unk>", "<unk>", "<unk>", "<unk>", "d"])
    vocabulary = counter.vocabulary(4)
    assert vocabulary.words == (UNKNOWN, "b", "a", "c")
    assert vocabulary.number(["a", "d", "<unk>", "b"]) == [2, 0, 0, 1]
    vocabulary.save(tmp_path)
    assert load_vocabulary(tmp_path).words == vocabulary.words


def test_counting_forgets_rare_words_when_there_are_too_many():
    counter = WordCounter(most=10)
    for number in range(100):
        counter.add(["often", "also", f"w{number}"])
    assert len(counter.counts) <= 10
    assert counter.vocabulary(3).words == (UNKNOWN, "also", "often")


def test_a_vocabulary_must_begin_with_the_unknown_word():
    with pytest.raises(EnsueError, match="begins"):
        Vocabulary(["a"])
    with pytest.raises(EnsueError, match="twice"):
        Vocabulary([UNKNOWN, "a", "a"])


def test_broken_folders_are_refused_in_one_sentence(folder, tmp_path):
    import shutil

    def broken(name, change):
        copy = tmp_path / name
        shutil.copytree(folder, copy)
        change(copy)
        with pytest.raises(EnsueError) as caught:
            load_model(str(copy), device="cpu")
        return str(caught.value)

    assert "words where" in broken("short", lambda f: (f / "vocab.txt").write_text("<unk>\na\n"))
    assert "begins with" in broken("other", lambda f: (f / "vocab.txt").write_text("a\nb\n"))
    assert "no tokenizer" in broken("none", lambda f: (f / "vocab.txt").unlink())
    assert "no weights" in broken("weightless", lambda f: (f / "model.safetensors").unlink())
    config = {
        "architectures": ["DiscourseEncoder"],
        "shape": {"vocabulary": 50, "embedding": 9, "dimension": 5},
    }
    assert "not a sentence encoder" in broken(
        "shape", lambda f: (f / "config.json").write_text(json.dumps(config))
    )
    del config["shape"]
    assert "not a sentence encoder" in broken(
        "shapeless", lambda f: (f / "config.json").write_text(json.dumps(config))
    )
