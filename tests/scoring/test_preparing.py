"""What becomes of a request before a model sees it, worked by hand with a tokenizer of single letters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.errors import EnsueError
from ensue.models.request import MaskedPart, Mix, Policy, Prepared, Request, TokenCut, TokenPart
from ensue.scoring.masked import Specials, prepare_masked, specials_of
from ensue.scoring.tokens import (
    own_bos,
    prepare_causal,
    specials_around,
    tokenise,
    tokenise_requests,
    tokenise_with_spans,
)

BOS, MASK = ord("<"), ord("_")
AROUND = Specials((ord("["),), (ord("]"), ord("]")), MASK)


class Encoded(dict[str, Any]):
    words: list[int | None]

    def word_ids(self) -> list[int | None]:
        return self.words


class Letters:
    """Every letter is a token with its own code as its number, and so is "th"; words are runs of letters."""

    is_fast = True
    mask_token_id: int | None = MASK
    bos_token_id: int | None = BOS

    def __init__(self, before: str = "", after: str = "", fast: bool = True) -> None:
        self.before, self.after, self.is_fast = before, after, fast
        self.asked: list[int] = []

    def pieces(self, text: str) -> list[re.Match[str]]:
        return list(re.finditer(r"th|[^ ]", text))

    def ids(self, text: str) -> list[int]:
        return [1000 if piece[0] == "th" else ord(piece[0]) for piece in self.pieces(text)]

    def __call__(
        self, given: str | Sequence[str], add_special_tokens: bool = True, **options: Any
    ) -> Encoded:
        assert not add_special_tokens or isinstance(given, str)
        if isinstance(given, str):
            around = (self.before, self.after) if add_special_tokens else ("", "")
            found = Encoded(input_ids=[*map(ord, around[0]), *self.ids(given), *map(ord, around[1])])
            words = list(re.finditer(r"[a-z]+", given))
            found.words = [
                next((n for n, w in enumerate(words) if w.start() <= p.start() < w.end()), None)
                for p in self.pieces(given)
            ]
            return found
        assert options.pop("verbose") is False
        spans = options.pop("return_offsets_mapping")
        assert options == {"return_attention_mask": False, "return_token_type_ids": False}
        self.asked.append(len(given))
        found = Encoded(input_ids=[self.ids(text) for text in given])
        if spans:
            found["offset_mapping"] = [[piece.span() for piece in self.pieces(text)] for text in given]
        return found


def letters(ids: Any) -> str:
    assert ids.dtype == np.int32
    return "".join("þ" if number == 1000 else chr(number) for number in ids)


class Case(NamedTuple):
    """What is asked, and what should come of it: the tokens of each part with where its scoring starts."""

    request: Request
    parts: list[tuple[str, int]]
    spans: list[tuple[int, int]] | None
    notes: dict[str, int] = {}  # noqa: RUF012 (never changed)
    tokens: int | None = None
    rule: str = "sum"
    bos: int | None = None
    policy: Policy = Policy()
    size: int = 4


def text(continuation: str, context: str = "") -> Request:
    return Request(continuation, context, detail=True)


def cut(continuation: str, context: str, last: int, first: int) -> Request:
    return Request(continuation, context, detail=True, cut=TokenCut(last, first))


STRIDED, AVERAGE = Policy(window="strided"), Policy(window="average")
RELEASED, TRUNCATE = Policy(window="released"), Policy(overflow="truncate")
ONE = [(1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7)]

CASES = {
    "whole": Case(text("abc"), [("abc", 1)], ONE[:2]),
    "whole after BOS": Case(text("abc"), [("<abc", 1)], [(0, 1), *ONE[:2]], bos=BOS),
    "just as long": Case(text("abcd"), [("abcd", 1)], ONE[:3]),
    "strided": Case(
        text("abcdefg"), [("abcd", 1), ("cdef", 2), ("defg", 3)], ONE, {"windowed": 1}, policy=STRIDED
    ),
    "strided after BOS": Case(
        text("abcde"),
        [("<abc", 1), ("<bcd", 3), ("<cde", 3)],
        [(0, 1), *ONE[:4]],
        {"windowed": 1},
        bos=BOS,
        policy=STRIDED,
    ),
    # Windows that overlap score a token twice, so it has no one place.
    "average": Case(text("abcde"), [("abcd", 1), ("bcde", 1)], None, {"windowed": 1}, 4, "average"),
    "average after BOS": Case(
        text("abcd"), [("<abc", 1), ("<bcd", 1)], None, {"windowed": 1}, 4, "average", bos=BOS
    ),
    "released": Case(
        text("abcdef"), [("abcd", 1), ("ef", 1)], None, {"windowed": 1}, 6, "means", policy=RELEASED
    ),
    "released, of one window": Case(text("abc"), [("abc", 1)], None, {}, 3, "means", policy=RELEASED),
    # The last window has one token, which nothing conditions: the others are added up as they are.
    "released, with a token over": Case(
        text("abcde"), [("abcd", 1)], ONE[:3], {"windowed": 1}, policy=RELEASED
    ),
    "after a context": Case(text("cd", "ab"), [("abcd", 2)], [(0, 1), (1, 2)]),
    "after a context and BOS": Case(text("cd", "ab"), [("<abcd", 3)], [(0, 1), (1, 2)], bos=BOS, size=5),
    "a token across the join": Case(text("he", "at"), [("aþe", 1)], [(0, 1), (1, 2)], {"boundary token": 1}),
    "a context that is all one token": Case(text("he", "t"), [("þe", 1)], [(1, 2)], {"boundary token": 1}),
    "a context cut from the left": Case(
        text("fg", "abcde"),
        [("defg", 2)],
        [(0, 1), (1, 2)],
        {"context truncated": 1, "context tokens dropped": 3},
        policy=TRUNCATE,
    ),
    "a context of which one token stays": Case(
        text("cdefg", "ab"),
        [("bcde", 1), ("defg", 2)],
        [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)],
        {"context truncated": 1, "context tokens dropped": 1, "windowed": 1},
        policy=TRUNCATE,
    ),
    "a context of one token that stays": Case(
        text("bcdef", "a"),
        [("abcd", 1), ("cdef", 2)],
        [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)],
        {"windowed": 1},
        policy=TRUNCATE,
    ),
    "one letter": Case(text("a"), [], [], {"nothing to score": 1}, 0),
    "one letter after BOS": Case(text("a"), [("<a", 1)], [(0, 1)], bos=BOS),
    "nothing": Case(text(""), [], [], {"nothing to score": 1}, 0),
    "nothing after a context": Case(text("", "ab"), [], [], {"nothing to score": 1}, 0),
    "cut": Case(cut("defg", "abc", 2, 2), [("bcde", 2)], [(0, 1), (1, 2)]),
    "cut, after BOS": Case(cut("defg", "abc", 1, 2), [("<cde", 2)], [(0, 1), (1, 2)], bos=BOS),
    "cut, with a short context": Case(cut("defg", "c", 9, 2), [("cde", 1)], [(0, 1), (1, 2)]),
    "cut, the sides apart": Case(cut("he", "at", 9, 9), [("athe", 2)], [(0, 1), (1, 2)]),
    "cut, without a context": Case(cut("abc", "", 3, 3), [("abc", 1)], ONE[:2]),
    "cut, without a context after BOS": Case(cut("ab", "", 3, 3), [("<ab", 1)], [(0, 1), (1, 2)], bos=BOS),
    "cut, one letter": Case(cut("abc", "", 3, 1), [], [], {"nothing to score": 1}, 0),
    "cut, nothing": Case(cut("", "abc", 2, 3), [], [], {"nothing to score": 1}, 0),
}


def check(found: Prepared, case: Case) -> None:
    assert found.notes == case.notes
    assert set(found.notes) == set(case.notes)
    scored = sum(len(part) - start for part, start in case.parts)
    assert found.tokens == (scored if case.tokens is None else case.tokens)
    assert found.spans == (None if case.spans is None else tuple(case.spans))
    assert found.mix.rule == case.rule
    request = case.request
    before = len(Letters().ids(request.context))
    assert found.context_tokens == (None if request.cut is None else min(request.cut[0], before))


@pytest.mark.parametrize("name", CASES)
def test_a_causal_models_parts_by_hand(name: str) -> None:
    case = CASES[name]
    (found,) = prepare_causal(
        [case.request], case.policy, tokenizer=Letters(), bos=case.bos, max_length=case.size, model="m"
    )
    assert [
        (letters(part.ids), part.start) for part in found.parts if isinstance(part, TokenPart)
    ] == case.parts
    check(found, case)
    if case.rule == "means":
        assert sum(found.mix.shares) == pytest.approx(1.0)
    # Without detail there are no spans; all else is the same.
    plain = Request(case.request.continuation, case.request.context, cut=case.request.cut)
    (bare,) = prepare_causal(
        [plain], case.policy, tokenizer=Letters(), bos=case.bos, max_length=case.size, model="m"
    )
    assert [part.key for part in bare.parts] == [part.key for part in found.parts]
    assert (bare.tokens, bare.notes, bare.mix) == (found.tokens, found.notes, found.mix)
    assert bare.spans == (None if bare.parts else ())


def test_many_requests_keep_their_order_whatever_they_are() -> None:
    cases = [case for case in CASES.values() if (case.bos, case.policy, case.size) == (None, Policy(), 4)]
    found = prepare_causal(
        [case.request for case in cases], Policy(), tokenizer=Letters(), bos=None, max_length=4, model="m"
    )
    for one, case in zip(found, cases, strict=True):
        assert [letters(part.ids) for part in one.parts] == [part for part, _ in case.parts]  # type: ignore[attr-defined]
        check(one, case)


class MaskedCase(NamedTuple):
    """What is asked of a masked model, and for each part its tokens with what is hidden, target by target."""

    request: Request
    parts: list[tuple[str, list[tuple[int, ...]]]]
    spans: list[tuple[int, int]] | None
    notes: dict[str, int] = {}  # noqa: RUF012 (never changed)
    tokens: int | None = None
    rule: str = "sum"
    policy: Policy = Policy()
    size: int = 7
    bos: None = None


WORDS = Policy(masked="within-word")
LONG = Policy(overflow="truncate")
MASKED_CASES = {
    "whole": MaskedCase(text("ab c"), [("[abc]]", [(1,), (2,), (3,)])], [(0, 1), (1, 2), (3, 4)]),
    "words": MaskedCase(
        text("ab.c"),
        [("[ab.c]]", [(1, 2), (2,), (3,), (4,)])],
        [(0, 1), (1, 2), (2, 3), (3, 4)],
        policy=WORDS,
    ),
    "after a context": MaskedCase(text("cd", "ab"), [("[abcd]]", [(3,), (4,)])], [(0, 1), (1, 2)]),
    # The letters before it are the context's, though of the same word; only what follows is hidden with it.
    "words after a context": MaskedCase(
        text("cd", "ab"), [("[abcd]]", [(3, 4), (4,)])], [(0, 1), (1, 2)], policy=WORDS
    ),
    "a token across the join": MaskedCase(
        text("he", "at"), [("[aþe]]", [(2,), (3,)])], [(0, 1), (1, 2)], size=9
    ),
    "strided": MaskedCase(
        text("abcdefg"),
        [("[abcd]]", [(1,), (2,), (3,), (4,)]), ("[cdef]]", [(3,), (4,)]), ("[defg]]", [(4,)])],
        [(0, 1), *ONE],
        {"windowed": 1},
        policy=STRIDED,
    ),
    "words in windows": MaskedCase(
        text("abcdef"),
        [("[abcd]]", [(1, 2, 3, 4), (2, 3, 4), (3, 4), (4,)]), ("[cdef]]", [(3, 4), (4,)])],
        [(0, 1), *ONE[:5]],
        {"windowed": 1},
        policy=Policy(window="strided", masked="within-word"),
    ),
    "average": MaskedCase(
        text("abcde"),
        [("[abcd]]", [(1,), (2,), (3,), (4,)]), ("[bcde]]", [(1,), (2,), (3,), (4,)])],
        None,
        {"windowed": 1},
        5,
        "average",
    ),
    "a long context": MaskedCase(
        text("efg", "abcd"),
        [("[cdef]]", [(3,), (4,)]), ("[defg]]", [(4,)])],
        [(0, 1), (1, 2), (2, 3)],
        {"windowed": 1},
        policy=LONG,
    ),
    "nothing": MaskedCase(text(" "), [], [], {"nothing to score": 1}, 0),
    "nothing after a context": MaskedCase(text("", "ab"), [], [], {"nothing to score": 1}, 0),
    "cut": MaskedCase(cut("defg", "abc", 2, 2), [("[bcde]]", [(3,), (4,)])], [(0, 1), (1, 2)]),
    "cut, words": MaskedCase(
        cut("de.g", "abc", 1, 3), [("[cde.]]", [(2, 3), (3,), (4,)])], [(0, 1), (1, 2), (2, 3)], policy=WORDS
    ),
    "cut, without a context": MaskedCase(cut("de", "", 1, 3), [("[de]]", [(1,), (2,)])], [(0, 1), (1, 2)]),
    "cut, nothing": MaskedCase(cut("", "abc", 2, 3), [], [], {"nothing to score": 1}, 0),
}


@pytest.mark.parametrize("name", MASKED_CASES)
def test_a_masked_models_parts_by_hand(name: str) -> None:
    case = MASKED_CASES[name]
    (found,) = prepare_masked(
        [case.request], case.policy, tokenizer=Letters(), specials=AROUND, max_length=case.size, model="m"
    )
    made = [part for part in found.parts if isinstance(part, MaskedPart)]
    assert [(letters(part.ids), list(part.hidden)) for part in made] == case.parts
    assert all(part.targets == tuple(hidden[0] for hidden in part.hidden) for part in made)
    targets = [(part, len(part) - len(hidden)) for part, hidden in case.parts]
    check(found, Case(case.request, targets, case.spans, case.notes, case.tokens, case.rule))


def test_released_windows_of_a_masked_model_weigh_alike() -> None:
    (found,) = prepare_masked(
        [Request("abcde")], RELEASED, tokenizer=Letters(), specials=AROUND, max_length=7, model="m"
    )
    assert [letters(part.ids) for part in found.parts] == ["[abcd]]", "[e]]"]  # type: ignore[attr-defined]
    assert (found.mix, found.tokens, found.notes) == (Mix("means", (0.5, 0.5)), 5, Counter(windowed=1))


def test_many_masked_requests_keep_their_order() -> None:
    cases = [case for case in MASKED_CASES.values() if (case.policy, case.size) == (Policy(), 7)]
    found = prepare_masked(
        [case.request for case in cases],
        Policy(),
        tokenizer=Letters(),
        specials=AROUND,
        max_length=7,
        model="m",
    )
    for one, case in zip(found, cases, strict=True):
        assert [letters(part.ids) for part in one.parts] == [part for part, _ in case.parts]  # type: ignore[attr-defined]


REFUSALS = [
    (text("abcde"), Policy(window="refuse"), "5 tokens is longer than the 4 that the model takes"),
    (text("e", "abcd"), Policy(), None),
    (
        cut("de", "abc", 3, 2),
        Policy(),
        "3 tokens of context and 2 of continuation do not fit the 4 tokens the model",
    ),
]


@pytest.mark.parametrize(("request_", "policy", "words"), REFUSALS)
def test_what_does_not_fit_is_refused_with_the_models_name(
    request_: Request, policy: Policy, words: str | None
) -> None:
    causal = words or "context of 4 tokens and its continuation of 1 do not fit the 4 tokens the model takes"
    masked = words or "5 tokens is longer than the 4 that the model takes"
    with pytest.raises(EnsueError, match=causal):
        prepare_causal([request_], policy, tokenizer=Letters(), bos=None, max_length=4, model="the model")
    with pytest.raises(EnsueError, match=causal):
        prepare_causal([request_], policy, tokenizer=Letters(), bos=BOS, max_length=5, model="the model")
    with pytest.raises(EnsueError, match=masked):
        prepare_masked(
            [request_], policy, tokenizer=Letters(), specials=AROUND, max_length=7, model="the model"
        )


def test_what_just_fits_is_not_refused() -> None:
    asked = [text("abcd"), text("d", "abc"), cut("de", "abc", 2, 2)]
    refuse = Policy(window="refuse")
    tokenizer = Letters()
    causal = prepare_causal(asked, refuse, tokenizer=tokenizer, bos=None, max_length=4, model="m")
    masked = prepare_masked(asked, refuse, tokenizer=tokenizer, specials=AROUND, max_length=7, model="m")
    assert [one.tokens for one in causal] == [3, 1, 2]
    assert [one.tokens for one in masked] == [4, 1, 2]


@pytest.mark.parametrize(("bos", "least"), [(None, 2), (BOS, 3)])
def test_a_window_must_have_room_to_score_a_token(bos: int | None, least: int) -> None:
    (found,) = prepare_causal(
        [Request("ab")], Policy(), tokenizer=Letters(), bos=bos, max_length=least, model="m"
    )
    assert found.tokens == (1 if bos is None else 2)
    with pytest.raises(EnsueError, match=f"max_length {least - 1} leaves m no room"):
        prepare_causal([], Policy(), tokenizer=Letters(), bos=bos, max_length=least - 1, model="m")


def test_a_masked_window_must_have_room_for_a_token() -> None:
    (found,) = prepare_masked(
        [Request("a")], Policy(), tokenizer=Letters(), specials=AROUND, max_length=4, model="m"
    )
    assert found.tokens == 1
    with pytest.raises(EnsueError, match="max_length 3 leaves m no room"):
        prepare_masked([], Policy(), tokenizer=Letters(), specials=AROUND, max_length=3, model="m")


def test_words_need_a_fast_tokenizer() -> None:
    for request in (text("ab"), cut("ab", "c", 1, 1)):
        with pytest.raises(EnsueError, match="within-word variant needs a fast tokenizer"):
            prepare_masked(
                [request], WORDS, tokenizer=Letters(fast=False), specials=AROUND, max_length=9, model="m"
            )


def test_special_tokens_are_read_off_an_example() -> None:
    assert specials_around(Letters("<[", "]"), "m") == ((BOS, ord("[")), (ord("]"),))
    assert specials_around(Letters(), "m") == ((), ())
    assert specials_of(Letters("[", "]]"), "m") == AROUND

    class Changing(Letters):
        def ids(self, text: str) -> list[int]:
            return [ord("x")]

        def __call__(self, given: Any, add_special_tokens: bool = True, **options: Any) -> Encoded:
            return Encoded(input_ids=[1, 2]) if add_special_tokens else Encoded(input_ids=[3])

    with pytest.raises(EnsueError, match="tokenizer of m changes a text"):
        specials_around(Changing(), "m")
    maskless = Letters()
    maskless.mask_token_id = None
    with pytest.raises(EnsueError, match="tokenizer of m has no mask token"):
        specials_of(maskless, "m")


def test_a_bos_is_the_tokenizers_own_only_where_it_puts_it_first() -> None:
    assert own_bos(Letters("<")) == BOS
    assert own_bos(Letters()) is None
    assert own_bos(Letters("[<")) is None
    nameless = Letters("<")
    nameless.bos_token_id = None
    assert own_bos(nameless) is None

    class Mute(Letters):
        def ids(self, text: str) -> list[int]:
            return []

    assert own_bos(Mute()) is None


@pytest.mark.parametrize("count", [0, 1, 512, 513, 1030])
def test_texts_go_to_the_tokenizer_in_slices(count: int) -> None:
    texts = [f"t{number}h" for number in range(count)]
    plain, spanned, slow = Letters(), Letters(), Letters(fast=False)
    expected = [plain.ids(text) for text in texts]
    assert [ids.tolist() for ids in tokenise(plain, texts)] == expected
    found = tokenise_with_spans(spanned, texts)
    assert [ids.tolist() for ids, _ in found] == expected
    assert [spans for _, spans in found] == [[(i, i + 1) for i in range(len(text))] for text in texts]
    assert [(ids.tolist(), spans) for ids, spans in tokenise_with_spans(slow, texts)] == [
        (ids, []) for ids in expected
    ]
    slices = [min(512, count - begin) for begin in range(0, count, 512)]
    assert plain.asked == spanned.asked == slow.asked == slices
    assert all(ids.dtype == np.int32 for ids in tokenise(plain, texts))
    assert all(ids.dtype == np.int32 for ids, _ in found)


@given(st.lists(st.tuples(st.sampled_from(["a", "th", "bc", ""]), st.booleans()), max_size=9))
def test_each_text_is_tokenised_once_and_has_spans_where_any_asks(asked: list[tuple[str, bool]]) -> None:
    tokenizer = Letters()
    requests = [Request(one, "a", detail=detail) for one, detail in asked]
    found = tokenise_requests(tokenizer, requests)
    detailed = {one for one, detail in asked if detail}
    for (one, _), (ids, spans) in zip(asked, found, strict=True):
        assert ids.tolist() == tokenizer.ids("a" + one)
        wanted = [piece.span() for piece in tokenizer.pieces("a" + one)]
        assert spans == (wanted if one in detailed else [])
    distinct = {one for one, _ in asked}
    assert sorted(tokenizer.asked) == sorted(filter(None, [len(detailed), len(distinct - detailed)]))
