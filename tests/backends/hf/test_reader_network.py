"""A reader on a language model: its first layers, some of them seeing both ways, and sentences seeing each other."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from ensue.backends.hf.adapter import AdapterShape, adapt, base_fingerprint
from ensue.backends.hf.headed import head_of
from ensue.backends.hf.lora import LoraLinear
from ensue.backends.hf.reader_network import NOBODY, READER, ReaderNetwork, ReaderReading
from ensue.backends.names import load_model
from ensue.errors import EnsueError
from tests.support import tiny
from tests.support.corpus import document

READING = ReaderReading(max_length=96, max_sentence=24, layers=2, both_ways=1, among=16)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return tiny.save_llama(tmp_path_factory.mktemp("models") / "llama", max_length=128)


def network_on(base, reading):
    torch.manual_seed(5)
    return ReaderNetwork(AutoModel.from_pretrained(base), reading).eval()


@pytest.fixture(scope="module")
def folder(base, tmp_path_factory):
    """A reader with all that this module is about, saved as an adapter."""
    made = tmp_path_factory.mktemp("readers") / "reader"
    loaded = load_model(str(base), device="cpu", dtype="float32")
    fingerprint = base_fingerprint(loaded.network)
    network = ReaderNetwork(loaded.network.base_model, READING)
    shape = AdapterShape(rank=2, alpha=4.0)
    adapt(network.trunk, shape)
    torch.manual_seed(6)
    for layer in network.modules():
        if isinstance(layer, LoraLinear):
            torch.nn.init.normal_(layer.up, std=0.3)
    READER.save_adapted(made, network, asdict(READING), base=str(base), fingerprint=fingerprint, shape=shape)
    return made, network.eval()


def test_states_are_those_of_the_layers_one_after_the_other(base):
    """Against attention written out: the first layer sees what came before, the last one everything."""
    network = network_on(base, READING)
    ids = torch.tensor([[5, 9, 3, 7, 11, 2]])
    whole = AutoModel.from_pretrained(base, attn_implementation="eager").eval()
    hidden = whole.embed_tokens(ids)
    turned = whole.rotary_emb(hidden, torch.arange(6)[None])
    with torch.no_grad():
        for layer, ahead in ((0, False), (1, True)):
            mask = torch.zeros(1, 1, 6, 6)
            if not ahead:
                mask += torch.full((6, 6), float("-inf")).triu(1)
            hidden = whole.layers[layer](hidden, attention_mask=mask, position_embeddings=turned)
        wanted = whole.norm(hidden)
        assert torch.allclose(network.states(ids, torch.ones_like(ids)), wanted, atol=1e-5)


def test_what_stands_beside_a_text_changes_nothing(base):
    """Padding and other rows of a batch leave a text's logits as they are alone."""
    network = network_on(base, READING)
    long, short = torch.arange(2, 14), torch.arange(4, 9)
    owners = torch.tensor([0] * 4 + [1] * 4 + [2] * 4), torch.tensor([0] * 2 + [1] * 3)
    with torch.no_grad():
        alone = [
            network(ids[None], torch.ones(1, len(ids)), own[None], int(own.max()) + 1)
            for ids, own in zip((long, short), owners, strict=True)
        ]
        ids = torch.stack([long, torch.cat([short, torch.zeros(7, dtype=torch.long)])])
        theirs = torch.stack([owners[0], torch.cat([owners[1] + 3, torch.full((7,), NOBODY)])])
        together = network(ids, (theirs != NOBODY).long(), theirs, 5)
    assert torch.allclose(together, torch.cat(alone), atol=1e-5)


def test_sentences_see_each_other(base):
    """Another last sentence changes what is said of the first one, although the model reads from left to right."""
    reading = ReaderReading(max_length=96, max_sentence=24, layers=2, among=16)
    owners = torch.tensor([[0, 0, 1, 1]])
    mask = torch.ones(1, 4)
    for width, same in ((16, False), (0, True)):
        network = network_on(base, ReaderReading(**{**asdict(reading), "among": width}))
        with torch.no_grad():
            one, other = (
                network(torch.tensor([ids]), mask, owners, 2) for ids in ([3, 4, 5, 6], [3, 4, 9, 8])
            )
        assert torch.allclose(one[0], other[0], atol=1e-6) is same


def test_a_folder_says_what_the_network_said(folder, base):
    made, network = folder
    reader = load_model(str(made), device="cpu")
    assert len(reader._network.trunk.layers) == READING.layers
    tokenizer = AutoTokenizer.from_pretrained(base)
    line = tokenizer("\n", add_special_tokens=False)["input_ids"]
    text = document(3, 4)
    ids, owners = [], []
    for number, sentence in enumerate(text):
        own = (
            tokenizer(sentence, add_special_tokens=False)["input_ids"][: READING.max_sentence - len(line)]
            + line
        )
        ids += own
        owners += [number] * len(own)
    with torch.no_grad():
        wanted = network(torch.tensor([ids]), torch.ones(1, len(ids)), torch.tensor([owners]), len(text))
    # Half precision is what an adapter is kept in.
    assert reader.read([text])[0] == pytest.approx(wanted.tolist(), abs=0.02)


def test_one_that_was_saved_whole_is_as_short(base, tmp_path):
    network = network_on(base, READING)
    READER.save_whole(tmp_path / "whole", network, AutoTokenizer.from_pretrained(base), asdict(READING))
    reader = load_model(str(tmp_path / "whole"), device="cpu")
    assert len(reader._network.trunk.layers) == READING.layers
    for name, value in head_of(network).items():
        assert torch.equal(value, head_of(reader._network)[name])


@pytest.mark.parametrize(
    "wrong", [{"layers": 1, "both_ways": 2}, {"among": 12}, {"layers": -1}, {"layers": 99, "both_ways": 0}]
)
def test_a_folder_that_asks_for_what_there_is_not_is_one_sentence(folder, wrong, tmp_path):
    made, _ = folder
    broken = tmp_path / "reader"
    broken.mkdir()
    for path in made.iterdir():
        (broken / path.name).write_bytes(path.read_bytes())
    config = json.loads((made / "config.json").read_text())
    config["reader"] |= wrong
    (broken / "config.json").write_text(json.dumps(config))
    with pytest.raises(EnsueError, match="cannot be read"):
        load_model(str(broken), device="cpu")


def test_of_a_model_the_first_layers_are_run(base):
    network = network_on(base, ReaderReading(max_length=96, max_sentence=24, layers=1))
    whole = AutoModel.from_pretrained(base).eval()
    ids = torch.tensor([[5, 9, 3, 7]])
    with torch.no_grad():
        after_one = whole(input_ids=ids, output_hidden_states=True).hidden_states[1]
        found = network.states(ids, torch.ones_like(ids))
        assert torch.allclose(found, whole.norm(after_one), atol=1e-5)
        assert not torch.allclose(found, whole(input_ids=ids)[0], atol=1e-3)
