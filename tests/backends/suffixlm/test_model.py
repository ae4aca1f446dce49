"""A SuffixLM as a model: what it reads of a suffix, and folders that stay what they were saved as."""

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, BertConfig, BertModel

from ensue.backends.names import load_model
from ensue.backends.suffixlm.model import Shape, SuffixLM, bare_encoder, save_suffixlm
from ensue.errors import RunFailed
from ensue.text.works.readers import Chapter, Work
from ensue.train.suffixlm.corpus import work_segments
from tests.support import tiny

SIZE = 24
SHAPE = Shape(dimension=16, inner=32, heads=2, layers=1, dropout=0.0, segment_tokens=SIZE, max_segments=8)
CONTEXT = "The boat drifted down the river. The town was asleep."
FIRST, SECOND, THIRD = tiny.SENTENCES[:3]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return AutoTokenizer.from_pretrained(tiny.save_encoder(tmp_path_factory.mktemp("words")))


def bert(tokenizer, layers):
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=32,
        initializer_range=0.5,
    )
    found = BertModel(config).eval()
    bare_encoder(found)
    return found


@pytest.fixture(scope="module")
def model(tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    save_suffixlm(folder, SuffixLM(bert(tokenizer, 2), SHAPE), tokenizer)
    return load_model(str(folder))


def score(model, *suffixes, suffix_tokens=SIZE):
    return model.score_suffixes(CONTEXT, suffixes, prefix_tokens=[SIZE], suffix_tokens=suffix_tokens)[0]


def count(tokenizer, text):
    return len(tokenizer(text, add_special_tokens=False)["input_ids"])


def test_a_suffix_is_the_sentences_that_fit_whole(model, tokenizer):
    assert count(tokenizer, FIRST) < SIZE - 2 < count(tokenizer, f"{FIRST} {SECOND}")
    longer, alone, other = score(model, f"{FIRST} {SECOND}", FIRST, SECOND)
    assert longer == pytest.approx(alone, abs=1e-6)
    assert abs(alone - other) > 1e-3


def test_a_first_sentence_longer_than_the_limit_is_cut_there(model, tokenizer):
    limit = 5
    words = FIRST.split()
    head = next(" ".join(words[:n]) for n in range(9) if count(tokenizer, " ".join(words[:n])) == limit)
    cut, by_hand = score(model, FIRST, suffix_tokens=limit) + score(model, head)
    assert cut == pytest.approx(by_hand, abs=1e-6)


def test_a_chapter_begins_with_the_same_segment_in_training_and_as_a_suffix(model, tokenizer):
    """The row a corpus holds for a chapter's opening gives the score that its text has as a suffix."""
    text = " ".join(tiny.SENTENCES)
    work = Work(id="w", title="", chapters=(Chapter("I", CONTEXT), Chapter("I", text)))
    row = work_segments(tokenizer, work, SIZE)[1][0]
    suffix = f"I\n\n{text}"
    with torch.no_grad():
        ids = torch.tensor([row])
        opening = model.network.vectors(model.network.encode(ids, torch.ones_like(ids)))[0]
        before = torch.tensor([tokenizer(CONTEXT)["input_ids"]])
        assert before.shape[1] <= SIZE
        vector = model.network.vectors(model.network.encode(before, torch.ones_like(before)))
        expected = float(model.network(vector[None])[0, -1] @ opening)
    assert score(model, suffix)[0] == pytest.approx(expected, abs=1e-5)


def test_a_folder_trained_on_the_last_layers_still_loads_as_that(tokenizer, tmp_path):
    """E kept the last two layers once; such a folder holds them itself."""
    encoder = bert(tokenizer, 4)
    encoder.encoder.layer = encoder.encoder.layer[-2:]
    encoder.config.num_hidden_layers = 2
    network = SuffixLM(encoder, SHAPE).eval()
    save_suffixlm(tmp_path / "old", network, tokenizer)
    loaded = load_model(str(tmp_path / "old"))
    ids = torch.tensor([tokenizer(FIRST)["input_ids"]])
    with torch.no_grad():
        expected = network.encode(ids, torch.ones_like(ids)).numpy()
        assert np.allclose(loaded.network.encode(ids, torch.ones_like(ids)).numpy(), expected, atol=1e-6)


def test_a_vector_that_is_no_number_is_refused_by_its_suffix(tokenizer, tmp_path):
    save_suffixlm(tmp_path, SuffixLM(bert(tokenizer, 2), SHAPE), tokenizer)
    model = load_model(str(tmp_path), dtype="float16")
    odd = set(tokenizer(SECOND)["input_ids"]) - set(tokenizer(f"{FIRST} {CONTEXT}")["input_ids"])
    model.network.encoder.get_input_embeddings().weight[sorted(odd)] = torch.inf
    score(model, FIRST)
    with pytest.raises(RunFailed, match=f"{SECOND[:20]}.* in float16.*bfloat16"):
        score(model, FIRST, SECOND)
