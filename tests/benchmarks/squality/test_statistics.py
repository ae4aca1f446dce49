"""Lengths and sharing against plain loops over all pairs."""

from __future__ import annotations

import statistics as standard
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from ensue.benchmarks.squality.data import Question, Response, Story, read_stories
from ensue.benchmarks.squality.statistics import PAIRS, lengths, plain_words, sharing
from ensue.errors import EnsueError
from tests.benchmarks.squality.invented import ANSWERS, STORY, story_row, write_rows

WORDS = some.lists(some.sampled_from("abcd"), min_size=1, max_size=7).map(" ".join)


def _grams(text: str, n: int) -> set[tuple[str, ...]]:
    words = text.split()
    return {tuple(words[start : start + n]) for start in range(len(words) - n + 1)}


def _share(first: str, second: str, n: int) -> float:
    own = _grams(first, n)
    return len(own & _grams(second, n)) / len(own) if own else 0.0


def _kind(a: tuple[str, int, str], b: tuple[str, int, str]) -> str:
    if a[0] != b[0]:
        return PAIRS[0]
    return PAIRS[1] if a[1] != b[1] else PAIRS[2]


@settings(max_examples=60, deadline=None)
@given(
    some.lists(
        some.lists(some.lists(WORDS, min_size=1, max_size=3), min_size=1, max_size=3), max_size=3, min_size=1
    )
)
def test_sharing_is_the_mean_over_all_ordered_pairs(texts: list[list[list[str]]]) -> None:
    stories = [
        Story(
            str(number),
            "",
            "",
            "a b c d a",
            tuple(
                Question(place, "?", tuple(Response("w", "", text) for text in answers))
                for place, answers in enumerate(questions, 1)
            ),
        )
        for number, questions in enumerate(texts)
    ]
    flat = [(s.id, q.number, text) for s in stories for q in s.questions for text in q.references]
    found = {line.text: line for line in sharing(stories, str.split)}
    for name in PAIRS:
        pairs = [(a[2], b[2]) for a, b in permutations(flat, 2) if _kind(a, b) == name]
        assert (name in found) == bool(pairs)
        if pairs:
            wanted = [standard.fmean(_share(a, b, n) for a, b in pairs) for n in (1, 2, 3, 4)]
            assert found[name].shares == pytest.approx(wanted)
            assert found[name].pairs == len(pairs)
    wanted = [standard.fmean(_share(text, "a b c d a", n) for *_, text in flat) for n in (1, 2, 3, 4)]
    assert found["story"].shares == pytest.approx(wanted)


def test_lengths_are_told_apart_by_kind_of_question(tmp_path: Path) -> None:
    stories = read_stories(
        write_rows(tmp_path / "a.jsonl", story_row("1"), story_row("2", STORY + " " + STORY))
    )
    found = lengths(stories, plain_words)
    counts = [[len(plain_words(text)) for text in texts] for texts in ANSWERS]
    both = counts[0] + counts[1]
    assert (found.stories, found.examples, found.summaries) == (2, 4, 16)
    assert found.plot_words.mean == pytest.approx(standard.fmean(counts[0]))
    assert found.other_words.deviation == pytest.approx(standard.pstdev(counts[1]))
    assert (found.summary_words.least, found.summary_words.most) == (min(both), max(both))
    size = len(plain_words(STORY))
    assert found.story_words == pytest.approx((1.5 * size, 0.5 * size, size, 2 * size))
    assert found.compression == pytest.approx(1 - standard.fmean(both) / (1.5 * size))


def test_nothing_to_count_is_said() -> None:
    with pytest.raises(EnsueError, match="no stories"):
        lengths([], plain_words)


def test_the_words_of_spacy_and_ours_are_the_same_on_plain_prose() -> None:
    pytest.importorskip("spacy")
    from ensue.benchmarks.squality.statistics import spacy_words

    text = "\"It's late,\" she said; he didn't (or wouldn't) answer... The ferry — gone!\nWho'd row?"
    assert spacy_words(text) == plain_words(text)
