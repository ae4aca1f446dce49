"""Windows against the tokenizer's own, every character covered, and span decoding against a double loop."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import processors

from ensue.backends.qa.windows import PairForm, Reading, best_spans
from ensue.errors import EnsueError
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
    with pytest.raises(EnsueError, match="will not do"):
        Reading(**wrong)


def test_a_tokenizer_without_a_token_of_its_own_first_is_refused(tmp_path):
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny.save_gpt2(tmp_path / "gpt2"))
    with pytest.raises(EnsueError, match="puts no token of its own first"):
        PairForm(tokenizer)
