"""Settings: read from text as from Python, checked, and named when they will not do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks import registry
from ensue.benchmarks.settings import resolve
from ensue.benchmarks.shuffle.task import SETTINGS
from ensue.console import parse_settings
from ensue.errors import EnsueError


def test_defaults_are_those_of_the_design():
    values = resolve("shuffle", SETTINGS, {})
    assert values["block_size"] == [1, 2, 3, 4, 5]
    assert (values["shuffles"], values["max_sentences"], values["joiner"]) == (20, 20, " ")


@given(st.lists(st.integers(1, 99), min_size=1))
def test_lists_are_read_by_commas_or_from_python_each_value_once(sizes):
    written = ",".join(map(str, sizes))
    expected = list(dict.fromkeys(sizes))
    for given_value in (written, sizes, tuple(sizes), written.replace(",", " , ")):
        assert resolve("shuffle", SETTINGS, {"block_size": given_value})["block_size"] == expected


def test_values_from_python_are_as_good_as_text():
    values = resolve("shuffle", SETTINGS, {"block_size": 3, "max_sentences": None, "joiner": "\n"})
    assert (values["block_size"], values["max_sentences"], values["joiner"]) == ([3], None, "\n")


@given(st.text() | st.integers().map(str) | st.from_regex(r"0*[0-9]{1,20}", fullmatch=True))
def test_any_text_is_a_whole_number_or_one_sentence(text):
    if text.isascii() and text.isdigit() and len(text) < 19 and int(text) > 0:
        assert resolve("shuffle", SETTINGS, {"shuffles": text})["shuffles"] == int(text)
    else:
        with pytest.raises(EnsueError, match="whole number from 1"):
            resolve("shuffle", SETTINGS, {"shuffles": text})


def test_pairs_are_parsed_and_none_may_be_given_twice():
    pairs = ["shuffles=4", "joiner= = ", "max-sentences=none"]
    assert parse_settings(pairs) == {"shuffles": "4", "joiner": " = ", "max_sentences": "none"}
    assert parse_settings(None) == {}
    for again in ("max-sentences=3", "max_sentences=3", "max-sentences=none"):
        with pytest.raises(EnsueError, match="--set max_sentences is given twice, as none and"):
            parse_settings([*pairs, again])


def test_the_registry_knows_shuffle_and_guesses():
    assert "shuffle" in registry.names()
    assert registry.find("shuffle").name == "shuffle"
    with pytest.raises(EnsueError, match="did you mean shuffle"):
        registry.find("Shuffle")
