"""Words, vocabularies and numbered rows against plain rereading of the texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.backends.discourse.words import words_of
from ensue.benchmarks.nlu.examples import TextSpan
from ensue.benchmarks.nlu.framing import TextRow
from ensue.errors import EnsueError
from ensue.train.sentences.rows import (
    TextVocabulary,
    number,
    published_vectors,
    vocabulary_of,
    words_and_marks,
)
from tests.support.small_tasks import write_vectors


def test_marks_are_the_words_between_their_characters() -> None:
    text = "The mayor's dog bit the Lord Mayor, who hit it."
    marks = [TextSpan(0, 24, 34), TextSpan(0, 44, 46)]
    words, marked = words_and_marks(text, marks)
    assert words == words_of(text)
    assert [words[a:b] for a, b in marked] == [["lord", "mayor"], ["it"]]


@given(st.text("ab .'", max_size=30), st.integers(0, 30), st.integers(0, 30))
def test_marked_words_are_those_of_the_stretch(text: str, a: int, b: int) -> None:
    start, end = sorted((min(a, len(text)), min(b, len(text))))
    words, ((begin, stop),) = words_and_marks(text, [TextSpan(0, start, end)])
    assert words[begin:stop] == words_of(text[start:end])
    assert words[:begin] == words_of(text[:start])


def test_a_vocabulary_has_the_words_with_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENSUE_HOME", str(tmp_path / "home"))
    published = published_vectors(str(write_vectors(tmp_path / "words.txt")))
    assert published is not None
    made = vocabulary_of(published, ["The Kettle hums."], ["A violin."])
    assert set(made.numbers) == {"the", "kettle", ".", "a", "violin"}
    assert made.vectors is not None
    assert made.number(["kettle", "hums"])[1] == 0
    np.testing.assert_array_equal(
        made.vectors[made.numbers["kettle"]], published.table[published.rows["kettle"]]
    )
    assert not made.vectors[0].any()


def test_learned_words_are_those_that_training_texts_repeat() -> None:
    made = vocabulary_of(published_vectors("learned"), ["red fish", "Red bird"], ["blue fish"])
    assert made.numbers == {"red": 1}
    assert made.vectors is None


def test_vectors_that_are_none_are_refused() -> None:
    with pytest.raises(EnsueError, match="vectors=random is not a set of word vectors"):
        published_vectors("random")


VOCABULARY = TextVocabulary(
    {word: place for place, word in enumerate(["a", "b", "c", "d", "e", "f"], 1)}, None
)


def test_rows_share_their_texts_and_batches_hold_each_once() -> None:
    rows = [TextRow(("a b c", "d")), TextRow(("e", "a b c")), TextRow(("f f f f", "d"))]
    numbered = number(rows, VOCABULARY, 3)
    assert len(numbered.texts) == 4
    assert numbered.lengths.tolist() == [3, 3, 3]
    batch = numbered.batch(np.array([0, 1]), "cpu")
    assert batch.words.shape == (3, 3)
    for row, (first, second) in enumerate(batch.sides.tolist()):
        for side, text in ((first, rows[row].texts[0]), (second, rows[row].texts[1])):
            assert batch.words[side, : batch.lengths[side]].tolist() == VOCABULARY.number(text.split())


def test_marks_follow_their_texts_into_a_batch_and_are_cut_with_them() -> None:
    rows = [
        TextRow(("a b c", "d e"), (TextSpan(0, 2, 3), TextSpan(1, 0, 1))),
        TextRow(("d e", "a b c"), (TextSpan(0, 2, 3), TextSpan(1, 4, 5))),
    ]
    batch = number(rows, VOCABULARY, 2).batch(np.array([1]), "cpu")
    (first, second), (one, two) = batch.sides[0].tolist(), batch.marks[0].tolist()
    assert (one, two) == ([first, 1, 2], [second, 2, 2])


def test_a_text_without_words_is_one_unknown_word() -> None:
    assert [text.tolist() for text in number([TextRow(("  ",))], VOCABULARY, 5).texts] == [[0]]
