"""Texts tokenised by the sentences they repeat: the same tokens as whole, or not at all."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from ensue.scoring.repeated import tokenise_repeated

SENTENCES = [
    "The ferry left at nine.",
    "Nobody had told Mara!",
    'She said: "Wait."',
    "3,000 people came (most by bus).",
    "Was it true? it was.",
    "Über den Fluss… 12.5 km.",
    "I'd go... they'll stay.",
    "No end",
    "<sep> stands here.",
    " Two spaces.",
    "Line\nbreak. ",
    "東京. 川。",
]
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def trained(pre: Any, normalizer: Any = None, model: Any = None, added: Any = ()) -> Any:
    tokenizer = Tokenizer(model or models.BPE())
    tokenizer.pre_tokenizer = pre
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    kind = trainers.WordPieceTrainer if isinstance(model, models.WordPiece) else trainers.BpeTrainer
    alphabet = pre_tokenizers.ByteLevel.alphabet() if model is None else []
    trainer = kind(vocab_size=420, initial_alphabet=alphabet, special_tokens=["[UNK]"], show_progress=False)
    tokenizer.train_from_iterator([" ".join(SENTENCES)] * 3, trainer)
    tokenizer.add_tokens(list(added))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


TOKENIZERS = {
    "byte level": trained(pre_tokenizers.ByteLevel(add_prefix_space=False)),
    "single digits": trained(
        pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
    ),
    "a pattern": trained(
        pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        ),
        normalizers.NFC(),
        added=[AddedToken("<sep>")],
    ),
    "words": trained(
        pre_tokenizers.BertPreTokenizer(),
        normalizers.BertNormalizer(),
        models.WordPiece(unk_token="[UNK]"),
    ),
}


def whole(tokenizer: Any, texts: Any) -> list[Any]:
    found = tokenizer(list(texts), add_special_tokens=False)["input_ids"]
    return [np.asarray(ids, dtype=np.int32) for ids in found]


def by_pieces(tokenizer: Any, texts: list[str]) -> tuple[list[Any] | None, int]:
    """What comes out, and how many characters were tokenised for it."""
    given: list[str] = []

    def encode(some: Any) -> list[Any]:
        given.extend(some)
        return whole(tokenizer, some)

    return tokenise_repeated(tokenizer, texts, encode), sum(map(len, given))


def shuffles(sentences: list[str], count: int) -> list[str]:
    generator = random.Random(0)
    return [" ".join(generator.sample(sentences, len(sentences))) for _ in range(count)]


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(SENTENCES) | st.text("aZ .!?'\"é9\n", max_size=9), min_size=3, max_size=8))
def test_same_tokens_as_whole(name: str, sentences: list[str]) -> None:
    texts = shuffles(sentences, 40)
    found, _ = by_pieces(TOKENIZERS[name], texts)
    if found is not None:
        for one, expected in zip(found, whole(TOKENIZERS[name], texts), strict=True):
            np.testing.assert_array_equal(one, expected)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_each_sentence_is_tokenised_once(name: str) -> None:
    sentences = [one for one in SENTENCES if one.strip() == one]
    texts = shuffles(sentences, 60)
    found, characters = by_pieces(TOKENIZERS[name], texts)
    assert found is not None
    assert characters < sum(map(len, texts)) / 3


def test_texts_that_repeat_nothing_are_left_whole() -> None:
    assert by_pieces(TOKENIZERS["byte level"], SENTENCES) == (None, 0)
    assert by_pieces(TOKENIZERS["byte level"], []) == (None, 0)


PLAIN = ["The ferry left at nine.", "Nobody had told Mara.", "She waited.", "It rained."]


@pytest.mark.parametrize(
    "tokenizer",
    [
        trained(pre_tokenizers.Metaspace()),
        # Divides at the ends of lines alone, so that a token may reach across two sentences.
        trained(pre_tokenizers.Split("\n", "isolated")),
        # A full stop and the word after it are one word.
        trained(pre_tokenizers.Split(Regex(r"\. \w+|\w+|\s+|\S"), "isolated")),
        trained(pre_tokenizers.ByteLevel(add_prefix_space=False), normalizers.Replace(". ", "_")),
        trained(pre_tokenizers.ByteLevel(add_prefix_space=False), added=[AddedToken("Nobody", lstrip=True)]),
        trained(pre_tokenizers.ByteLevel(add_prefix_space=False), added=[AddedToken("nine. She")]),
    ],
    ids=["metaspace", "lines", "across", "normalised", "takes spaces", "with a space"],
)
def test_a_tokenizer_that_does_not_divide_there_is_given_whole_texts(tokenizer: Any) -> None:
    texts = shuffles(PLAIN, 40)
    # Refused by what it is, before anything is tokenised to compare.
    assert by_pieces(tokenizer, texts) == (None, 0)
