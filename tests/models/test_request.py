"""Parts, keys and mixes, by value: what makes two requests one, and how parts make a score."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from ensue.models.request import (
    MaskedPart,
    Mix,
    PartScore,
    Policy,
    Prepared,
    Request,
    Score,
    TextPart,
    TokenPart,
)


def ids(*numbers: int) -> np.ndarray:  # type: ignore[type-arg]
    return np.asarray(numbers, dtype=np.int32)


def part_score(*logprobs: float, spans: tuple[tuple[int, int], ...] | None = None) -> PartScore:
    return PartScore(np.asarray(logprobs), spans)


def test_what_is_not_said_is_as_documented() -> None:
    assert Policy() == Policy("average", "refuse", "auto", None, "original")
    assert Request("a") == Request("a", "", False, None)
    assert Prepared(()).mix == Mix("sum", ())
    assert (Prepared(()).tokens, Prepared(()).spans, Prepared(()).context_tokens) == (None, None, None)
    assert Prepared(()).notes == Counter()


def test_the_key_of_a_part_holds_its_tokens_and_where_scoring_starts() -> None:
    keys = [
        TokenPart(ids(1, 2, 3), 1).key,
        TokenPart(ids(1, 2, 3), 2).key,
        TokenPart(ids(1, 2, 4), 1).key,
        TokenPart(ids(1, 2), 1).key,
        TokenPart(ids(1, 2, 3), 257).key,
        MaskedPart(ids(1, 2, 3), (1,), ((1,),)).key,
        MaskedPart(ids(1, 2, 3), (1,), ((1, 2),)).key,
        MaskedPart(ids(1, 2, 3), (2,), ((2,),)).key,
        MaskedPart(ids(1, 2, 3), (1, 2), ((1,), (2,))).key,
        MaskedPart(ids(1, 2, 3), (1, 2), ((1, 2), (2,))).key,
        MaskedPart(ids(1, 2, 4), (1,), ((1,),)).key,
        MaskedPart(ids(1, 12), (1,), ((1,),)).key,
        TextPart("abc", 1).key,
        TextPart("abc", 2).key,
        TextPart("abd", 1).key,
        TextPart("abc", 1, apart=True).key,
        TextPart("\ud800", 0).key,
    ]
    assert len(set(keys)) == len(keys)
    assert TokenPart(ids(1, 2, 3), 1).key == TokenPart(ids(1, 2, 3), 1).key


def test_the_size_of_a_part_is_its_work() -> None:
    assert TokenPart(ids(1, 2, 3), 2).size == 3
    assert MaskedPart(ids(1, 2, 3, 4), (1, 2, 3), ((1,), (2,), (3,))).size == 12
    assert [TextPart("a" * n, 0).size for n in (0, 3, 4, 9)] == [1, 1, 2, 3]


def test_the_journal_key_holds_identity_parts_their_order_and_how_they_mix() -> None:
    one, two = TokenPart(ids(1, 2), 1), TokenPart(ids(3, 4), 1)
    digests = [
        Prepared((one,)).digest(b"m"),
        Prepared((one,)).digest(b"n"),
        Prepared((two,)).digest(b"m"),
        Prepared((one, two)).digest(b"m"),
        Prepared((two, one)).digest(b"m"),
        Prepared((one,), Mix("average")).digest(b"m"),
        Prepared((one,), Mix("means", (1.0,))).digest(b"m"),
        Prepared((one,), Mix("means", (0.5,))).digest(b"m"),
        Prepared((one,), tokens=1).digest(b"m"),
        Prepared(()).digest(b"m"),
    ]
    assert len(set(digests)) == len(digests)
    # Where characters lie is the text's own and no part of what is computed.
    assert Prepared((one,), spans=((0, 1),)).digest(b"m") == digests[0]
    assert len(digests[0]) == 64


def test_parts_make_one_score_as_their_mix_says() -> None:
    parts = (TokenPart(ids(1, 2, 3), 1), TokenPart(ids(4, 5), 1))
    scores = [part_score(-1.0, -2.0), part_score(-6.0)]
    assert Prepared(parts, tokens=3).combine(scores, False) == Score(-9.0, 3, -3.0)
    assert Prepared(parts).combine(scores, False) == Score(-9.0, 3, -3.0)
    assert Prepared(parts, Mix("average"), tokens=2).combine(scores, False) == Score(-4.5, 2, -3.75)
    shares = Prepared(parts, Mix("means", (0.25, 0.75)), tokens=10)
    assert shares.combine(scores, False) == Score(-48.75, 10, -4.875)
    assert Prepared((), tokens=0).combine([], True) == Score(0.0, 0, 0.0, (), None)
    assert Prepared(parts).combine([part_score(), part_score()], False) == Score(0.0, 0, 0.0)
    empty = Prepared(parts, Mix("average"), tokens=1).combine([part_score(-2.0), part_score()], False)
    assert empty == Score(-1.0, 1, -1.0)


def test_a_total_does_not_depend_on_the_order_of_its_tokens() -> None:
    values = [1e16, 1.0, -1e16, -1e-3]
    prepared = Prepared((TokenPart(ids(1, 2), 1),))
    totals = {
        prepared.combine([part_score(*order)], False).logprob
        for order in (values, values[::-1], sorted(values))
    }
    assert totals == {math.fsum(values)}


@pytest.mark.parametrize("spans", [None, ((0, 1), (1, 3), (3, 4))])
def test_detail_is_given_where_each_token_was_scored_once(spans: tuple[tuple[int, int], ...] | None) -> None:
    parts = (TokenPart(ids(1, 2, 3), 1), TokenPart(ids(4, 5), 1))
    scores = [part_score(-1.0, -2.0), part_score(-6.0)]
    found = Prepared(parts, tokens=3, spans=spans).combine(scores, True)
    assert found == Score(-9.0, 3, -3.0, (-1.0, -2.0, -6.0), spans)
    assert all(type(x) is float for x in found.token_logprobs or ())
    assert Prepared(parts, Mix("average"), tokens=2).combine(scores, True).token_logprobs is None
    # A scorer that divides the text itself says where its tokens lie.
    own = part_score(-1.0, spans=((0, 5),))
    assert Prepared((TextPart("a", 0),)).combine([own], True).token_spans == ((0, 5),)
    two = Prepared((TextPart("a", 0), TextPart("b", 0))).combine([own, own], True)
    assert (two.token_logprobs, two.token_spans) == ((-1.0, -1.0), None)
