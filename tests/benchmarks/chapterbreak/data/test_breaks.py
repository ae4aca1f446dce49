"""Causes and dialogue: where they are, and examples that keep clear of one another."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.chapterbreak.data.breaks import (
    Recipe,
    cause_positions,
    dialogue_positions,
    inner_breaks,
    later_apart,
    lay_out,
    positions,
)
from ensue.benchmarks.chapterbreak.data.words import Sizes
from ensue.text.works.readers import Chapter


def recipe(sizes, seed, per_work):
    return Recipe("s", "robust", ("cause",), sizes, seed, negatives=5, per_work=per_work)


def rest(text, places):
    return [text[place:].split()[0] for place in places]


def test_causes_are_whole_words_in_any_case_over_line_breaks():
    text = "BECAUSE of rain, owing  to fog and due\nto frost, the undue total was owing too. Just because."
    assert rest(text, cause_positions(text)) == ["BECAUSE", "owing", "due", "because."]


@pytest.mark.parametrize(
    ("text", "first_words"),
    [
        ('"Come," he said. "Go," said she.', ['"Come,"', '"Go,"']),
        ("“Come.” “Go?” ‘Stay!’ he said, “and wait.”", ["“Come.”", "“Go?”", "‘Stay!’"]),
        ("He came.\n\n'Go,' she said. 'Now.'\n\n'Tis late.", ["'Go,'"]),
        ('It was "good" and "bad". The end. " Stray.', []),
        ('He said: "Go." (She left.) "Well…" "Yes."', ['"Well…"', '"Yes."']),
        ("  “Indented,” he said.", ["“Indented,”"]),
        ("", []),
    ],
)
def test_dialogue_opens_a_paragraph_or_a_sentence(text, first_words):
    assert rest(text, dialogue_positions(text)) == first_words


def test_headings_and_suffixes_over_a_chapter_break_are_left_out():
    body = "one two three because four five six because seven"
    laid = lay_out([Chapter("Because", body), Chapter("", body)])
    found = positions("cause", laid, suffix=5)
    assert [laid.words.text[place:].split()[:2] for place in found] == [["because", "four"]] * 2
    assert len(positions("cause", laid, suffix=2)) == 4


def most_apart(numbers, apart):
    """How many can be chosen, by trying them all."""
    if not numbers:
        return 0
    with_first = 1 + most_apart([n for n in numbers if n >= numbers[0] + apart], apart)
    return max(with_first, most_apart(numbers[1:], apart))


@given(st.lists(st.integers(0, 60), max_size=9).map(sorted), st.integers(1, 20))
def test_how_many_fit_after_each_is_what_trying_all_says(numbers, apart):
    expected = [most_apart([m for m in numbers if m >= n + apart], apart) for n in numbers]
    assert later_apart(numbers, apart) == expected


def long_work(seed, chapters=6, cues=12):
    """Chapters of numbered words, so that every place in the text can be told from every other."""
    generator = random.Random(seed)
    made = []
    for chapter in range(chapters):
        words = [f"w{chapter}x{n}" for n in range(400)]
        for place in sorted(generator.sample(range(400), cues), reverse=True):
            words.insert(place, "because" if generator.random() < 0.5 else "due to")
        made.append(Chapter(f"CHAPTER {chapter + 1}.", " ".join(words)))
    return lay_out(made)


@given(st.integers(0, 500), st.integers(1, 6), st.integers(20, 90))
def test_examples_begin_with_a_cue_and_do_not_overlap(seed, per_work, suffix):
    laid = long_work(seed)
    drafts, skipped = inner_breaks("cause", "w", laid, recipe(Sizes(300, suffix), seed, per_work))
    assert (len(drafts), skipped) == (per_work, {})
    text = " ".join(laid.words.text.split())
    golds = []
    for draft in drafts:
        whole = f"{draft.context} {draft.gold}".split()
        assert " ".join(whole) in text
        places = [text.index(suffix_text) for suffix_text in (draft.gold, *draft.negatives)]
        golds.append(places[0])
        assert all(place > places[0] for place in places[1:])
        ordered = sorted(text[:place].count(" ") for place in places)
        assert all(b - a >= suffix for a, b in itertools.pairwise(ordered))
        for suffix_text in (draft.gold, *draft.negatives):
            assert suffix_text.startswith(("because", "due to"))
            assert len(suffix_text.split()) == suffix
            assert "CHAPTER" not in suffix_text
        assert 128 <= len(draft.context.split()) <= 300
    assert golds == sorted(golds)
    assert inner_breaks("cause", "w", laid, recipe(Sizes(300, suffix), seed, per_work))[0] == drafts


def test_little_room_is_used_to_the_last():
    # After the first there are exactly five places with room for a suffix between them, and some to block them.
    words = ["word"] * 128
    for n in range(6):
        words += [
            "because",
            f"a{n}",
            "because",
            f"b{n}",
            f"c{n}",
            f"d{n}",
            f"e{n}",
            f"f{n}",
            f"g{n}",
            f"h{n}",
        ]
    laid = lay_out([Chapter("", " ".join(words))])
    for seed in range(20):
        drafts, _ = inner_breaks("cause", "w", laid, recipe(Sizes(50, 8), seed, None))
        assert len(drafts) == 2
        assert all(len(set(draft.negatives)) == 5 for draft in drafts)


def test_a_work_without_places_is_counted():
    laid = lay_out([Chapter("", "nothing of the kind " * 100)])
    for boundary in ("cause", "dialogue"):
        drafts, skipped = inner_breaks(boundary, "w", laid, recipe(Sizes(100, 20), 0, None))
        assert drafts == []
        assert skipped == {f"works with too few places for a {boundary} boundary": 1}
