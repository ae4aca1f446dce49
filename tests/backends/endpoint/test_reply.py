"""Where the tokens an endpoint tells of lie in the text."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensue.backends.endpoint.reply import lay_along, lie_at_start
from tests.support.completions_server import LocalModel


@pytest.mark.parametrize(
    ("tokens", "text", "cuts"),
    [
        (["Hel", "lo"], "Hello", [0, 3, 5]),
        (["<|begin_of_text|>", "Hel", "lo"], "Hello", [0, 0, 3, 5]),
        (["<s>", "<s>", "a"], "<s>a", [0, 0, 3, 4]),
        ([None, "lo", " you"], "Hello you", [0, 3, 5, 9]),
        ([None, "Hello"], "Hello", [0, 0, 5]),
        (["▁The", "▁sun"], "The sun", [0, 3, 7]),
        (["<s>", "The", "sun", "."], "The sun.", [0, 0, 3, 7, 8]),
        (["a", "▁▁▁", "▁b"], "a    b", [0, 1, 4, 6]),
        (["a", "<0xE4>", "<0xBD>", "<0xA0>"], "a你", [0, 1, 2, 3, 4]),
        (["a", "\ufffd", "\ufffd"], "a你", [0, 1, 3, 4]),
        (["a", "", "", "你"], "a你", [0, 1, 1, 1, 4]),
        (["a", "", "", "b"], "a你b", [0, 1, 3, 4, 5]),
        (["\ufffd", "b"], "\ufffdb", [0, 3, 4]),
    ],
)
def test_tokens_are_laid_along_the_text(tokens: list[str | None], text: str, cuts: list[int]) -> None:
    assert lay_along(tokens, text.encode()) == cuts


@pytest.mark.parametrize("tokens", [["a", " b"], ["ab", "c"], ["A", "b"], []])
def test_tokens_that_are_not_the_text_are_refused(tokens: list[str | None]) -> None:
    assert lay_along(tokens, b"ab") is None


def test_the_start_of_a_text_is_told_apart_from_another_text() -> None:
    assert lay_along(["a", "b"], b"abc") is None
    assert lie_at_start(["a", "b"], b"abc")
    assert not lie_at_start(["a", "c"], b"abc")


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (["\ufffd"] * 1500, "你" * 500),
        (["\ufffd"] * 1250, "你" * 500),
        (["\ufffd", "\ufffd", "\ufffd", "\ufffd", "\ufffd", "。"] * 300, "你好。" * 300),
        ([None] + [" a"] * 1500, "a" + " a" * 1500),
        (["The", *["sun"] * 1500], "The" + " sun" * 1500),
    ],
    ids=["three pieces", "two or three pieces", "stops between", "untold first", "no spaces"],
)
def test_long_texts_take_no_long_time(tokens: list[str | None], text: str) -> None:
    begun = time.process_time()
    assert lay_along(tokens, text.encode())
    assert lay_along([*tokens[:-1], "x"], text.encode()) is None
    assert time.process_time() - begun < 3


@settings(max_examples=100, deadline=None)
@given(text=st.text(st.sampled_from("the sun rose, and “laugh” — é你好🙂\n"), min_size=1, max_size=40))
def test_laid_tokens_spell_the_text(text: str, plain: LocalModel) -> None:
    encoding = plain.tokenizer.encode(text, add_special_tokens=False)  # type: ignore[attr-defined]
    tokens = [plain.decode([token]) for token in encoding.ids]
    data = text.encode()
    for told in (tokens, ["<s>", *tokens], [None, *tokens], [None, *tokens[1:]]):
        cuts = lay_along(told, data)
        assert cuts is not None
        assert cuts[-1] == len(data)
        assert cuts == sorted(cuts)
        pieces = [data[a:b].decode("utf-8", "replace") for a, b in pairwise(cuts)]
        assert pieces[1:] == told[1:]
    if all("\ufffd" not in token for token in tokens):
        begins = [len(text[:begin].encode()) for begin, _ in encoding.offsets]
        assert lay_along(tokens, data) == [*begins, len(data)]
