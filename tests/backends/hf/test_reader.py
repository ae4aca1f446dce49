"""A reader's logits are those of the encoder's states, however its text is cut into windows and batches."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModel, AutoTokenizer

from ensue.backends.hf.reader import windows_of
from ensue.backends.hf.reader_network import NOBODY, READER, ReaderNetwork, ReaderReading, sentence_means
from ensue.backends.names import load_model
from ensue.errors import EnsueError
from ensue.models.protocols import Reader, abilities
from tests.support import tiny
from tests.support.corpus import document

READING = ReaderReading(max_length=64, max_sentence=16)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return tiny.save_encoder(tmp_path_factory.mktemp("models") / "encoder", max_length=128)


@pytest.fixture(scope="module")
def folder(base, tmp_path_factory):
    """A reader with a head of its own, saved whole."""
    torch.manual_seed(3)
    made = tmp_path_factory.mktemp("readers") / "reader"
    network = ReaderNetwork(AutoModel.from_pretrained(base))
    READER.save_whole(made, network, AutoTokenizer.from_pretrained(base), asdict(READING))
    return made


def by_hand(folder, base, sentences):
    """One window, with transformers alone: the mean of each sentence's last states times the head."""
    from safetensors.torch import load_file

    tokenizer, trunk = AutoTokenizer.from_pretrained(base), AutoModel.from_pretrained(folder).eval()
    ids, spans = [tokenizer.cls_token_id], []
    for one in sentences:
        own = tokenizer(one, add_special_tokens=False)["input_ids"][: READING.max_sentence - 1]
        spans.append((len(ids), len(ids) + len(own) + 1))
        ids += [*own, tokenizer.sep_token_id]
    assert len(ids) <= READING.max_length
    with torch.no_grad():
        states = trunk(input_ids=torch.tensor([ids]))[0][0]
    head = load_file(folder / "head.safetensors")
    return [float(states[a:b].mean(0) @ head["weight"][0] + head["bias"][0]) for a, b in spans]


def test_logits_are_those_of_the_mean_states(folder, base):
    reader = load_model(str(folder), device="cpu")
    assert isinstance(reader, Reader)
    assert abilities(reader) == ["say which sentences belong"]
    texts = [document(1, 3), ["One word."], document(2, 4)]
    for text, found in zip(texts, reader.read(texts), strict=True):
        assert found == pytest.approx(by_hand(folder, base, text), abs=1e-5)


def test_a_long_text_is_read_in_windows_and_each_sentence_where_most_stands_around_it(folder, base):
    reader = load_model(str(folder), device="cpu")
    text = document(5, 30)
    tokenizer = AutoTokenizer.from_pretrained(base)
    lengths = [min(len(tokenizer(one, add_special_tokens=False)["input_ids"]) + 1, 16) for one in text]
    windows = windows_of(lengths, READING.max_length - 1)
    assert len(windows) > 3
    (found,) = reader.read([text])
    for (begin, end), places in windows:
        alone = by_hand(folder, base, text[begin:end])
        assert [found[place] for place in places] == pytest.approx(
            [alone[place - begin] for place in places], abs=1e-5
        )
    assert reader.read([]) == []
    assert reader.read([[]]) == [[]]


@given(st.lists(st.integers(1, 9), max_size=40), st.integers(9, 30))
def test_windows_fit_and_every_sentence_is_where_it_is_deepest(lengths, room):
    windows = windows_of(lengths, room)
    assert sorted(place for _, places in windows for place in places) == list(range(len(lengths)))

    def depth(begin, end, place):
        before = sum(lengths[begin:place]) if begin else float("inf")
        after = sum(lengths[place + 1 : end]) if end < len(lengths) else float("inf")
        return min(before, after) if begin <= place < end else -1

    for (begin, end), places in windows:
        assert sum(lengths[begin:end]) <= room
        for place in places:
            best = max(depth(*other, place) for other, _ in windows)
            assert depth(begin, end, place) == best


def test_the_mean_of_a_sentence_is_that_of_its_tokens_alone():
    states = torch.arange(24, dtype=torch.float32).view(2, 4, 3)
    owners = torch.tensor([[NOBODY, 0, 0, 1], [NOBODY, 2, NOBODY, NOBODY]])
    wanted = [states[0, 1:3].mean(0), states[0, 3], states[1, 1], torch.zeros(3)]
    assert np.allclose(sentence_means(states, owners, 4), torch.stack(wanted))


def test_a_folder_that_says_nonsense_is_one_sentence(folder, tmp_path):
    import json
    import shutil

    shutil.copytree(folder, tmp_path / "reader")
    config = json.loads((folder / "config.json").read_text())
    for reading in ({"max_length": 8, "max_sentence": 9}, {"max_length": 1.5}, {"max_sentence": 0}):
        (tmp_path / "reader" / "config.json").write_text(json.dumps({**config, "reader": reading}))
        with pytest.raises(EnsueError, match="cannot be read"):
            load_model(str(tmp_path / "reader"), device="cpu")
