"""ROUGE against the rouge-score package, and a naive table; overlap."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from ensue.metrics.overlap import (
    Overlap,
    Rouge,
    Text,
    Texts,
    harmonic,
    overlap,
    rouge,
    rouge_l,
    rouge_n,
    rouge_of,
    words,
)

DATA = os.environ.get("ENSUE_DATA")
KINDS = ["rouge1", "rouge2", "rougeL"]
PIECES = [
    "The",
    "runs",
    "was",
    "mill",
    "mills",
    "milling",
    "owner's",
    "café",
    "2nd",
    "generously",
    "—",
    "river-bank",
    "running",
    ".",
    "",
]
TEXT = st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join) | st.text(max_size=20)
STORY = (
    "The ferryman counted his passengers twice, because the fog had made him doubtful. Nobody was missing.",
    "A doubtful ferryman was counting passengers in the fog; he counted them twice, and nobody missed the boat.",
    "Fog lay on the river. The passengers counted the hours.",
)


def peer(candidate: str, reference: str, stemming: bool) -> list[list[float]]:
    scores = RougeScorer(KINDS, use_stemmer=stemming).score(reference, candidate)
    return [list(scores[kind]) for kind in KINDS]


@pytest.mark.parametrize("stemming", [False, True])
@settings(max_examples=150, deadline=None)
@given(TEXT, TEXT)
def test_equal_to_rouge_score(stemming: bool, candidate: str, reference: str) -> None:
    found = rouge_of([candidate], [[reference]], stemming=stemming)[0][0]
    for ours, theirs in zip(found, peer(candidate, reference, stemming), strict=True):
        assert list(ours) == pytest.approx(theirs, abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_the_longest_common_subsequence_by_recursion(first: list[str], second: list[str]) -> None:
    table = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, one in enumerate(first):
        for j, two in enumerate(second):
            longer = max(table[i][j + 1], table[i + 1][j])
            table[i + 1][j + 1] = table[i][j] + 1 if one == two else longer
    texts = Texts()
    found = rouge_l(texts(" ".join(first)), texts(" ".join(second)))
    assert found.precision == pytest.approx(table[-1][-1] / len(first) if first else 0.0)
    assert found.recall == pytest.approx(table[-1][-1] / len(second) if second else 0.0)


@settings(max_examples=100, deadline=None)
@given(TEXT, TEXT)
def test_bounds_and_what_happens_when_the_texts_change_places(first: str, second: str) -> None:
    there, back = rouge_of([first, second], [[second], [first]], stemming=False)
    for one, other in zip(there[0], back[0], strict=True):
        assert 0.0 <= min(one) <= max(one) <= 1.0
        assert one == Overlap(other.recall, other.precision, pytest.approx(other.f1))


def test_a_text_with_itself_has_one_and_with_nothing_nought() -> None:
    same = rouge_of([STORY[0]], [[STORY[0]]])[0][0]
    assert same == Rouge(*[Overlap(1.0, 1.0, 1.0)] * 3)
    assert rouge_of([""], [[STORY[0], ""]])[0] == [Rouge(*[Overlap(0.0, 0.0, 0.0)] * 3)] * 2
    texts = Texts()
    assert rouge_n(texts("one word"), texts("one word"), 3) == (0.0, 0.0, 0.0)


def test_several_references_as_rouge_score_takes_them() -> None:
    rows = rouge_of([STORY[0]], [STORY[1:]])[0]
    theirs = RougeScorer(KINDS, use_stemmer=True).score_multi(list(STORY[1:]), STORY[0])
    for kind in KINDS:
        ours = max((getattr(row, kind) for row in rows), key=lambda one: one.f1)
        assert list(ours) == pytest.approx(list(theirs[kind]))


def test_every_text_is_taken_apart_once() -> None:
    seen: list[str] = []

    def tokenise(text: str) -> list[str]:
        seen.append(text)
        return words(text)

    texts = Texts(tokenise)
    for candidate in STORY:
        for reference in STORY:
            rouge(texts(candidate), texts(reference))
    assert sorted(seen) == sorted(STORY)


def test_many_long_texts_at_once_are_rouge_scores_to_the_last_bit() -> None:
    generator = random.Random(4)
    pool = [a + b + c for a in "mprst" for b in ("il", "ar", "en") for c in ("l", "ding", "tness", "ted")]
    texts = [" ".join(generator.choices(pool, k=240)) for _ in range(24)]
    candidates, references = texts[:6], [texts[6 + 3 * i : 9 + 3 * i] for i in range(6)]
    found = rouge_of(candidates, references)
    expected = [[peer(c, r, True) for r in own] for c, own in zip(candidates, references, strict=True)]
    assert [[[list(kind) for kind in one] for one in row] for row in found] == expected


@pytest.mark.data
@pytest.mark.skipif(not DATA, reason="ENSUE_DATA does not name the folder of the real data")
def test_the_human_row_of_table_5_4() -> None:
    import json

    lines = (Path(str(DATA)) / "squality" / "v1" / "test.jsonl").read_text("utf-8").splitlines()
    candidates, references = [], []
    for question in (question for line in lines for question in json.loads(line)["questions"]):
        responses = [response["response_text"] for response in question["responses"]]
        for i, one in enumerate(responses):
            candidates.append(one)
            references.append(responses[:i] + responses[i + 1 :])
    assert len(candidates) == 720
    rows = rouge_of(candidates, references, stemming=True)
    found = [100 * sum(max(getattr(one, kind).f1 for one in row) for row in rows) / 720 for kind in KINDS]
    assert found == pytest.approx([46.6, 12.5, 22.7], abs=0.1)


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))
def test_f1_is_twice_what_is_shared_over_what_either_has(shared: int, more: int, also: int) -> None:
    found = overlap(shared, shared + more, shared + also)
    assert found.f1 == pytest.approx(2 * shared / max(2 * shared + more + also, 1))
    assert harmonic(found.precision, found.recall) == found.f1


@given(st.lists(st.integers(0, 3), max_size=9), st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_runs_of_words_with_and_without_their_counts(numbers: list[int], orders: list[int]) -> None:
    text = Text(numbers)
    for place, n in enumerate(orders):
        runs = [tuple(numbers[i : i + n]) for i in range(len(numbers) - n + 1)]
        assert list(text.grams(n)) == runs
        if place % 2:
            assert text.counts(n) == {run: runs.count(run) for run in runs}
        assert text.unique(n) == set(runs)
        assert text.counts(n) == {run: runs.count(run) for run in runs}
    assert len(text) == len(numbers)


def test_candidates_and_references_belong_together() -> None:
    for candidates, references in ((["a"], []), (["a"], [["a"], ["b"]])):
        with pytest.raises(ValueError, match="zip"):
            rouge_of(candidates, references)
