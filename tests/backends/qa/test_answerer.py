"""Answerers of both kinds against a plain loop over windows, and what is refused of a broken folder."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import processors

from ensue.backends.hf.adapter import AdapterShape
from ensue.backends.names import load_model
from ensue.backends.qa.answerer import NOTHING, PairForm, Reading, best_spans
from ensue.backends.qa.network import SpanNetwork, prepare_adapter, save_answerer, save_full_answerer
from ensue.errors import EnsueError, RunFailed
from ensue.models.protocols import Answerer, abilities
from tests.support import tiny

_WORDS = [word for sentence in tiny.SENTENCES for word in sentence.split()]


@pytest.fixture(scope="module", params=["bert", "roberta"])
def form(request, tmp_path_factory):
    import transformers

    folder = tmp_path_factory.mktemp("models") / request.param
    {"bert": tiny.save_encoder, "roberta": tiny.save_roberta}[request.param](folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    if request.param == "bert":
        # As BERT's own tokenizer does it: the second text is of another type.
        tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[(name, tokenizer.convert_tokens_to_ids(name)) for name in ("[CLS]", "[SEP]")],
        )
    return PairForm(tokenizer)


@given(
    words=st.lists(st.sampled_from([*_WORDS, "naïve", "\u2003", "x1-y2"]), min_size=1, max_size=60),
    asked=st.lists(st.sampled_from(_WORDS), min_size=1, max_size=4),
    stride=st.integers(0, 6),
    longer=st.integers(1, 30),
)
@settings(max_examples=60, deadline=None)
def test_windows_are_those_of_the_tokenizer_and_cover_every_character(form, words, asked, stride, longer):
    context, question = " ".join(words), " ".join(asked)
    (q,), (c,) = form.tokens([question]), form.tokens([context])
    length = form.specials + len(q.ids) + stride + longer
    reading = Reading(max_length=length, stride=stride)
    windows = form.windows(q, c, reading)
    found = form.tokenizer(
        question,
        context,
        truncation="only_second",
        max_length=length,
        stride=stride,
        return_overflowing_tokens=True,
        return_token_type_ids=True,
    )
    if len(c.ids):
        assert [form.row(q, c, window)[0] for window in windows] == found["input_ids"]
        # Of later windows the tokenizer library says other types where its template states none.
        assert form.row(q, c, windows[0])[1] == found["token_type_ids"][0]
    covered = np.zeros(len(context), bool)
    for window in windows:
        ids, _ = form.row(q, c, window)
        assert len(ids) == window.length <= length
        here = ids[window.first : window.first + window.end - window.begin]
        assert here == c.ids[window.begin : window.end].tolist()
        for start, end in c.offsets[window.begin : window.end]:
            covered[start:end] = True
    assert all(covered[place] or character.isspace() for place, character in enumerate(context))


def test_rows_without_room_for_the_text_are_refused(form):
    (q,), (c,) = form.tokens(["Where are you going?"]), form.tokens([" ".join(_WORDS)])
    with pytest.raises(EnsueError, match="smaller stride"):
        form.windows(q, c, Reading(max_length=20, stride=19))
    assert form.windows(q, form.tokens([""])[0], Reading()) == []


@given(
    st.integers(1, 5).flatmap(
        lambda rows: st.tuples(
            st.lists(st.tuples(st.integers(0, 4), st.integers(1, 8)), min_size=rows, max_size=rows),
            st.integers(1, 10),
            st.integers(0, 10**6),
            st.booleans(),
        )
    )
)
@settings(max_examples=150, deadline=None)
def test_the_best_span_is_that_of_a_double_loop(case):
    places, longest, seed, coarse = case
    draw = np.random.default_rng(seed)
    shape = (len(places), 13)
    make = (lambda: draw.integers(0, 3, shape)) if coarse else (lambda: draw.normal(size=shape))
    starts, ends = make().astype(np.float32), make().astype(np.float32)
    best, begin, finish = best_spans(
        starts, ends, [first for first, _ in places], [count for _, count in places], longest
    )
    for row, (first, count) in enumerate(places):
        # Of equals the shortest, then the earliest.
        wanted = max(
            (starts[row, i] + ends[row, j], -(j - i), -i)
            for i in range(first, first + count)
            for j in range(i, min(first + count, i + longest))
        )
        assert (best[row], -(finish[row] - begin[row]), -begin[row]) == wanted


@pytest.mark.parametrize("wrong", [{"max_length": 0}, {"stride": -1}, {"max_answer": 0}])
def test_a_reading_that_will_not_do_is_refused(wrong):
    with pytest.raises(EnsueError, match="Invalid "):
        Reading(**wrong)


def test_a_tokenizer_without_a_token_of_its_own_first_is_refused(tmp_path):
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny.save_gpt2(tmp_path / "gpt2"))
    with pytest.raises(EnsueError, match="puts no token of its own first"):
        PairForm(tokenizer)


CONTEXTS = [
    " ".join(tiny.SENTENCES),
    tiny.SENTENCES[3],
    "  Two  geese,\u2003and a naïve dog. ",
    " ".join(tiny.SENTENCES[::-1]),
]
QUESTIONS = ["Where was the boat?", "Who was afraid of the cats, and why?", "What was closed?"]
PAIRS = [(question, context) for question in QUESTIONS for context in CONTEXTS]
READING = Reading(max_length=48, stride=12, max_question=20, max_answer=5, threshold=0.4)
SHAPE = AdapterShape(rank=3, alpha=6.0)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """An encoder; an adapter on it; the same trunk trained whole; a RoBERTa of Hugging Face's own."""
    import transformers

    folder = tmp_path_factory.mktemp("answerers")
    tiny.save_encoder(folder / "encoder", max_length=64)
    base = load_model(str(folder / "encoder"))
    torch.manual_seed(1)
    network = SpanNetwork(base.network)
    save_full_answerer(folder / "full", network, READING, base.tokenizer)
    prepare_adapter(network, SHAPE)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.requires_grad:
                parameter += 0.2 * torch.randn_like(parameter)
    save_answerer(
        folder / "adapter", network, SHAPE, READING, str(folder / "encoder"), base.card.identity["weights"]
    )
    tiny.save_roberta(folder / "roberta", max_length=64)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "roberta")
    config = transformers.AutoConfig.from_pretrained(folder / "roberta")
    torch.manual_seed(2)
    shutil.rmtree(folder / "roberta")
    transformers.RobertaForQuestionAnswering(config).save_pretrained(folder / "roberta")
    tokenizer.save_pretrained(folder / "roberta")
    return folder


def naive(model, question, context):
    """One pair, one window at a time, one span at a time, in the tokenizer's own windows."""
    reading, tokenizer = model.reading, model.tokenizer
    places = tokenizer(question, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    question = question[: places[: reading.max_question][-1][1]]
    rows = tokenizer(
        question,
        context,
        truncation="only_second",
        max_length=reading.max_length,
        stride=reading.stride,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
    )
    best, nulls = None, []
    for at, ids in enumerate(rows["input_ids"]):
        inputs = {
            "input_ids": torch.tensor([ids]),
            "attention_mask": torch.ones(1, len(ids), dtype=torch.long),
        }
        if model.form.typed:
            inputs["token_type_ids"] = torch.tensor([[0] * len(ids)])
        with torch.no_grad():
            scores = model.network(**inputs)[0].double().numpy()
        nulls.append(scores[0].sum())
        owners = rows.sequence_ids(at)
        for i in range(len(ids)):
            for j in range(i, min(i + reading.max_answer, len(ids))):
                if owners[i] == owners[j] == 1:
                    score = scores[i, 0] + scores[j, 1]
                    if best is None or score > best[0] + 1e-9:
                        best = (score, rows["offset_mapping"][at][i][0], rows["offset_mapping"][at][j][1])
    return best[0] - min(nulls), context[best[1] : best[2]].strip()


def test_a_window_without_numbers_loses_against_no_other_but_is_refused(place):
    model = load_model(str(place / "adapter"), device="cpu")
    (odd,) = model.tokenizer("the", add_special_tokens=False)["input_ids"]
    model.network.trunk.get_input_embeddings().weight[odd] = torch.inf
    # The first of several windows has the word.
    letters = "a b c d e f g h i " * 8
    assert np.isfinite(model.best_spans(["a b"], [letters])[0].score)
    with pytest.raises(RunFailed, match="adapter makes nan of the text that begins 'the a b c"):
        model.best_spans(["a b"], ["the " + letters])


@pytest.mark.parametrize("kind", ["adapter", "full", "roberta"])
def test_answers_are_those_of_a_plain_loop_whatever_else_is_asked(place, kind):
    model = load_model(str(place / kind), device="cpu", batch_tokens=128)
    assert isinstance(model, Answerer)
    assert abilities(model) == ["answer questions"]
    questions, contexts = zip(*PAIRS, strict=True)
    spans = model.best_spans(questions, contexts)
    middle = float(np.median([span.score for span in spans]))
    model.reading = replace(model.reading, threshold=middle)
    found = model.answer(questions, contexts)
    assert 0 < sum(not one.text for one in found) < len(found)
    for (question, context), span, one in zip(PAIRS, spans, found, strict=True):
        score, text = naive(model, question, context)
        assert span.score == pytest.approx(score, abs=1e-4)
        assert span.text == text == context[span.start : span.end]
        assert one.score == pytest.approx(span.score - model.reading.threshold)
        assert one.text == (span.text if one.score > 0 else "")
    assert model.answer(QUESTIONS[:1], CONTEXTS[:1])[0].score == pytest.approx(found[0].score, abs=1e-5)


def test_an_adapter_is_small_in_half_precision_and_gives_what_it_gave_unmerged(place):
    from safetensors.torch import load_file

    tensors = load_file(place / "adapter" / "adapter.safetensors")
    assert {value.dtype for value in tensors.values()} == {torch.float16}
    base = load_model(str(place / "encoder"))
    network = SpanNetwork(base.network)
    prepare_adapter(network, SHAPE)
    named = dict(network.named_parameters())
    with torch.no_grad():
        for name, value in tensors.items():
            named[name].copy_(value)
    ids = torch.tensor([base.tokenizer(CONTEXTS[1])["input_ids"]])
    model = load_model(str(place / "adapter"), device="cpu")
    torch.testing.assert_close(model.network(ids), network.eval()(ids), atol=1e-4, rtol=1e-4)


def test_the_same_pair_is_read_once_and_the_same_window_of_two_texts_too(place):
    model = load_model(str(place / "adapter"), device="cpu")
    read = []
    network = model.network

    def counting(**inputs):
        read.append(len(inputs["input_ids"]))
        return network(**inputs)

    model.network = counting
    question, context = QUESTIONS[0], CONTEXTS[1]
    same = model.answer([question] * 5, [context, context, context + "  ", "  " + context, context])
    assert sum(read) == 1
    assert len({one.text for one in same}) == 1
    assert same[3].start == same[0].start + (2 if same[0].text else 0)


def test_a_text_without_a_word_has_no_answer_and_no_questions_have_none(place):
    model = load_model(str(place / "adapter"), device="cpu")
    assert model.answer([], []) == []
    for empty in ("", " \n "):
        (found,) = model.answer(["Who?"], [empty])
        assert found == ("", 0, 0, NOTHING - READING.threshold)
    assert np.isfinite(model.answer([""], [CONTEXTS[0]])[0].score)
    assert np.isfinite(model.answer(["why " * 500], [CONTEXTS[0]])[0].score)
    with pytest.raises(EnsueError, match="2 questions for 1 texts"):
        model.answer(["Who?", "Why?"], ["He."])


def test_bf16_finds_nearly_the_same_scores(place):
    exact, coarse = (
        load_model(str(place / "adapter"), device="cpu", dtype=d) for d in ("float32", "bfloat16")
    )
    questions, contexts = zip(*PAIRS, strict=True)
    a = [one.score for one in exact.best_spans(questions, contexts)]
    b = [one.score for one in coarse.best_spans(questions, contexts)]
    assert a == pytest.approx(b, abs=0.25)
    assert exact.card.identity != coarse.card.identity


def test_a_copy_of_the_folder_is_the_same_model_and_another_base_is_refused(place, tmp_path):
    for name in ("config.json", "adapter.safetensors"):
        (tmp_path / name).write_bytes((place / "adapter" / name).read_bytes())
    (tmp_path / "checkpoint.safetensors").write_bytes(b"of a training")
    assert load_model(str(tmp_path)).card.identity == load_model(str(place / "adapter")).card.identity
    tiny.save_encoder(tmp_path / "other", seed=5, max_length=64)
    config = json.loads((tmp_path / "config.json").read_text())
    for change, words in [
        ({"base": str(tmp_path / "other")}, "other weights"),
        ({"base": ""}, "names no base"),
        ({"adapter": {"rank": 2}}, "is not an answerer that can be loaded"),
        ({"reading": {"max_length": 500}}, "its encoder takes 64"),
        ({"reading": {"width": 5}}, "how to read texts"),
    ]:
        (tmp_path / "config.json").write_text(json.dumps({**config, **change}))
        with pytest.raises(EnsueError, match=words):
            load_model(str(tmp_path))


@pytest.mark.slow
def test_the_default_adapter_on_minilm_is_small_and_reads_past_where_sentences_are_cut(tmp_path):
    base = load_model("minilm", device="cpu")
    network = SpanNetwork(base.network)
    shape = AdapterShape()
    prepare_adapter(network, shape)
    save_answerer(tmp_path, network, shape, Reading(), "minilm", base.card.identity["weights"])
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 5_000_000
    model = load_model(str(tmp_path), device="cpu")
    assert model.card.max_length == 384
    context = " ".join(tiny.SENTENCES * 4)
    (span,) = model.best_spans(["Who drifted down the river?"], [context])
    assert span.text == context[span.start : span.end] != ""
