"""Which surprisal profiles are shown, and which sentence is said to surprise most."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.errors import EnsueError
from ensue.report.profiles import most_surprising, most_surprising_place, shape
from tests.report.synthetic import make_profile


def test_the_most_striking_documents_come_first():
    jumps = [1.0, 5.0, 0.5, 3.0, 5.0]
    documents, count = most_surprising((make_profile(str(n), jump=j) for n, j in enumerate(jumps)), limit=3)
    assert count == 5
    assert [document.name for document in documents] == ["1", "4", "3"]


def test_a_shaped_profile_knows_where_sentences_come_from():
    document = shape(make_profile(jump=2.0))
    original, shuffled = document.versions
    assert not any(sentence.highest for sentence in original.sentences)
    assert [sentence.home for sentence in shuffled.sentences] == [5, 4, 3, 2, 1]
    assert [sentence.highest for sentence in shuffled.sentences] == [False, False, True, False, False]
    assert [sentence.change for sentence in shuffled.sentences] == [0.0, 0.0, 2.0, 0.0, 0.0]
    assert shuffled.sentences[2].share == 1.0
    assert shuffled.jump == pytest.approx(5.0 - 3.4)


def test_a_profile_of_unequal_lists_is_an_error():
    profile = make_profile("broken one")
    profile["versions"][1]["surprisal"].pop()
    with pytest.raises(EnsueError, match="'broken one' has unequal numbers"):
        shape(profile)


@given(st.lists(st.none() | st.floats(0, 20), max_size=12))
def test_the_most_surprising_sentence_is_the_highest_later_one(surprisal):
    place = most_surprising_place(surprisal)
    known = [value for value in surprisal if value is not None]
    later = [value for value in surprisal[1:] if value is not None]
    if place is None:
        assert not later or max(later) <= sum(known) / len(known)
    else:
        assert place > 0
        assert surprisal[place] == max(later) > sum(known) / len(known)
