"""Lengths and sharing against plain loops over all pairs."""

from __future__ import annotations

import statistics as standard
from collections import Counter
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from ensue.benchmarks.squality.data import Question, Response, Story, read_stories
from ensue.benchmarks.squality.statistics import PAIRS, lengths, plain_words, sharing, statistics_row
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


def a_story(name: str, document: str, plot: tuple[str, ...], other: tuple[str, ...]) -> Story:
    asked = (("What is the plot of the story?", plot), ("Where is it?", other))
    return Story(
        name,
        "",
        "",
        document,
        tuple(
            Question(number, question, tuple(Response("w", "", text) for text in texts))
            for number, (question, texts) in enumerate(asked, 1)
        ),
    )


STORIES = [
    a_story("1", "a b c d e f", ("a b c", "a b"), ("e f",)),
    a_story("2", "a a b", ("b a",), ("b", "a b")),
]


def test_every_field_of_the_tables_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ensue.benchmarks.squality.statistics.spacy_words", str.split)
    notes: Counter[str] = Counter()
    found = statistics_row(STORIES, notes)
    assert notes == {}
    assert found is not None
    assert found["words"] == "spacy"
    assert found["lengths"] == {
        "stories": 2,
        "examples": 4,
        "summaries": 6,
        "story_words": {"mean": 4.5, "deviation": 1.5, "least": 3, "most": 6},
        "summary_words": {
            "mean": pytest.approx(2.0),
            "deviation": pytest.approx(standard.pstdev([3, 2, 2, 2, 1, 2])),
            "least": 1,
            "most": 3,
        },
        "plot_words": {
            "mean": pytest.approx(7 / 3),
            "deviation": pytest.approx(standard.pstdev([3, 2, 2])),
            "least": 2,
            "most": 3,
        },
        "other_words": {
            "mean": pytest.approx(5 / 3),
            "deviation": pytest.approx(standard.pstdev([2, 1, 2])),
            "least": 1,
            "most": 2,
        },
        "compression": pytest.approx(1 - 2 / 4.5),
    }
    assert found["sharing"] == [line._asdict() for line in sharing(STORIES, str.split)]
    assert [line["text"] for line in found["sharing"]] == [*PAIRS, "story"]
    assert [line["pairs"] for line in found["sharing"]] == [18, 8, 4, 6]


def test_where_spacy_is_missing_words_are_counted_otherwise_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str] = []

    def missing(text: str) -> list[str]:
        seen.append(text)
        raise EnsueError("no spaCy")

    monkeypatch.setattr("ensue.benchmarks.squality.statistics.spacy_words", missing)
    notes: Counter[str] = Counter()
    found = statistics_row(STORIES, notes)
    assert found is not None
    assert (found["words"], len(seen)) == ("plain", 1)
    assert notes == {"statistics counted without spaCy: stories come out 0.7 % longer": 1}
    assert found["sharing"] == [line._asdict() for line in sharing(STORIES, plain_words)]


@pytest.mark.parametrize(
    ("stories", "why"),
    [
        ([], "no stories to count"),
        ([a_story("1", "a b", ("a",), ())], "plots and other questions"),
        ([a_story("1", "a b", (), ("a",))], "plots and other questions"),
        ([a_story("1", "...", ("a",), ("b",))], "stories have no words"),
    ],
)
def test_where_there_are_no_statistics_a_note_says_why(stories: list[Story], why: str) -> None:
    notes: Counter[str] = Counter()
    assert statistics_row(stories, notes) is None
    (note,) = [one for one in notes if one.startswith("no statistics: ")]
    assert (why in note, notes[note]) == (True, 1)
