"""Sequences against the tokenizer's own: token by token, with spans, and cut where they are too long."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, processors
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from ensue.benchmarks.nlu.examples import Example, TextSpan
from ensue.errors import EnsueError
from ensue.train.finetune.inputs import Inputs, find_frames, kept_lengths
from tests.support import tiny

FIRST, SECOND = "The old letter was closed.", "My sister opened the green door again."


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    """One of each family; `typed` gives the second text a type of its own, as BERT's does."""
    folder = tmp_path_factory.mktemp("tokenizers")
    found = {
        name: AutoTokenizer.from_pretrained(save(folder / name))
        for name, save in (
            ("bert", tiny.save_encoder),
            ("roberta", tiny.save_roberta),
            ("gpt2", tiny.save_gpt2),
        )
    }
    typed = Tokenizer.from_str(found["bert"].backend_tokenizer.to_str())
    specials = [(name, typed.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    typed.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=specials
    )
    kinds = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return {**found, "typed": PreTrainedTokenizerFast(tokenizer_object=typed, **kinds)}


def rows(tokenizer, form, *examples, length=64, **options):
    chosen = {"joint": True, "apart": False, **options}
    return Inputs(tokenizer, length).sequences(form, examples, **chosen)


def text_of(tokenizer, ids):
    return tokenizer.decode(ids, clean_up_tokenization_spaces=False).replace(" ##", "")


@pytest.mark.parametrize("name", ["bert", "typed", "roberta"])
def test_pairs_are_as_the_tokenizer_makes_them(tokenizers, name):
    tokenizer = tokenizers[name]
    expected = tokenizer(FIRST, SECOND, return_token_type_ids=True)
    (row,) = rows(tokenizer, "pair", Example("0", (FIRST, SECOND))).joint
    assert row.ids == expected["input_ids"]
    assert row.types == expected["token_type_ids"]
    assert (1 in row.types) == (name == "typed")
    assert not row.cut


@pytest.mark.parametrize("name", ["bert", "typed", "roberta", "gpt2"])
def test_single_texts_and_texts_apart_are_as_the_tokenizer_makes_them(tokenizers, name):
    tokenizer = tokenizers[name]
    assert rows(tokenizer, "single", Example("0", (FIRST,))).joint[0].ids == tokenizer(FIRST)["input_ids"]
    apart = rows(tokenizer, "score", Example("0", (FIRST, SECOND)), joint=False, apart=True)
    assert [row.ids for row in apart.apart] == [tokenizer(text)["input_ids"] for text in (FIRST, SECOND)]
    assert apart.joint == []


def test_a_tokenizer_without_a_form_for_pairs_gets_a_line_break(tokenizers):
    (row,) = rows(tokenizers["gpt2"], "pair", Example("0", (FIRST, SECOND))).joint
    assert tokenizers["gpt2"].decode(row.ids) == f"{FIRST}\n{SECOND}"


def test_what_is_read_of_each_form(tokenizers):
    tokenizer = tokenizers["bert"]

    def read(form, example):
        found = rows(tokenizer, form, example)
        assert found.counts == [len(found.joint)]
        return [text_of(tokenizer, row.ids) for row in found.joint]

    def naive(first, second):
        return text_of(tokenizer, tokenizer(first, second)["input_ids"])

    copa = Example("0", ("The rain stopped.", "effect"), "0", ("They sang.", "They ran."))
    asked = "The rain stopped. What came of this?"
    assert read("choice", copa) == [naive(asked, "They sang."), naive(asked, "They ran.")]
    goes_on = Example("0", ("The rain stopped.", ""), "0", ("They sang.",))
    assert read("choice", goes_on) == [naive("The rain stopped.", "They sang.")]
    answers = Example("0", ("The rain stopped.", "What stopped?", "the rain"))
    assert read("answers", answers) == [naive("The rain stopped.", "What stopped? the rain")]
    record = Example("0", ("The rain stopped.", "They like the @placeholder."), choices=("rain", "cat"))
    assert read("entity", record) == [
        naive(record.texts[0], f"They like the {one}.") for one in ("rain", "cat")
    ]


@pytest.mark.parametrize(
    ("name", "length", "cut"),
    [("bert", 96, False), ("bert", 24, True), ("roberta", 96, False), ("roberta", 34, True)],
)
def test_spans_point_at_their_words_even_where_texts_are_cut(tokenizers, name, length, cut):
    tokenizer = tokenizers[name]
    first = f"{SECOND} The captain asked."
    spans = (TextSpan(0, first.index("captain"), first.index("captain") + 7), TextSpan(1, 0, 3))
    example = Example("0", (first, "The captain is another one, and the whole class laughed."), spans=spans)
    (row,) = rows(tokenizer, "word", example, length=length).joint
    found = [text_of(tokenizer, row.ids[start:end]).strip().lower() for start, end in row.spans]
    assert found == ["captain", "the"]
    assert len(row.ids) <= length
    assert row.cut == cut


def test_both_spans_of_one_text_stay_or_it_is_said(tokenizers):
    tokenizer = tokenizers["bert"]
    text = f"{SECOND} The judge saw the dog before he spoke. {SECOND}"
    spans = tuple(TextSpan(0, text.index(word), text.index(word) + len(word)) for word in ("judge", "spoke"))
    example = Example("0", (text,), spans=spans, where="val.jsonl, line 7")
    (row,) = rows(tokenizer, "coreference", example, length=40).joint
    assert [text_of(tokenizer, row.ids[a:b]) for a, b in row.spans] == ["judge", "spoke"]
    with pytest.raises(
        EnsueError, match=r"val.jsonl, line 7: .* further apart than the 6 tokens .* max_length"
    ):
        rows(tokenizer, "coreference", example, length=8)


def test_a_span_of_nothing_is_said(tokenizers):
    example = Example("0", ("The dog  laughed.",), spans=(TextSpan(0, 7, 9),), where="val.jsonl, line 2")
    with pytest.raises(EnsueError, match=r"val.jsonl, line 2: the tokenizer keeps nothing"):
        rows(tokenizers["bert"], "coreference", example)


@pytest.mark.parametrize(
    ("form", "kept"), [("answers", "What stopped? the rain"), ("entity", "They like the rain.")]
)
def test_cutting_eats_the_passage_and_never_what_is_asked(tokenizers, form, kept):
    tokenizer = tokenizers["bert"]
    passage = " ".join([FIRST, SECOND] * 5)
    texts = {
        "answers": (passage, "What stopped?", "the rain"),
        "entity": (passage, "They like the @placeholder."),
    }[form]
    example = Example("0", texts, choices=("rain",) if form == "entity" else ())
    found = rows(tokenizer, form, example, length=32)
    (row,) = found.joint
    asked = tokenizer(kept, add_special_tokens=False)["input_ids"]
    whole = tokenizer(passage, add_special_tokens=False)["input_ids"]
    room = 32 - 3 - len(asked)
    sep = tokenizer.sep_token_id
    assert row.ids == [tokenizer.cls_token_id, *whole[:room], sep, *asked, sep]
    assert found.cut == 1


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 50))
def test_the_longest_is_cut_first(first, second, room):
    lengths = [first, second]
    while sum(lengths) > room:  # the tokenizers' own rule: one token at a time, of the longer text
        lengths[0 if lengths[0] > lengths[1] else 1] -= 1
    found = kept_lengths([first, second], room, False)
    assert sum(found) == sum(lengths)
    assert sorted(found) == sorted(lengths)
    assert found[0] <= first
    assert found[1] <= second


@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 50))
def test_what_is_asked_is_kept_whole_where_it_can_be(first, second, room):
    found = kept_lengths([first, second], room, True)
    assert found[1] == min(second, room)
    assert found[0] == min(first, room - found[1])


def test_bad_questions_and_lengths_are_said(tokenizers):
    with pytest.raises(EnsueError, match=r"x.jsonl, line 3: the question is 'why'"):
        rows(tokenizers["bert"], "choice", Example("0", ("A.", "why"), "0", ("B.",), where="x.jsonl, line 3"))
    with pytest.raises(EnsueError, match="needs @placeholder"):
        rows(tokenizers["bert"], "entity", Example("0", ("A.", "B."), choices=("C",)))
    with pytest.raises(EnsueError, match="max_length=4 leaves no room"):
        Inputs(tokenizers["bert"], 4)
    assert find_frames(tokenizers["bert"])[1].extra == 3
