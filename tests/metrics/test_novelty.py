"""N-grams shared, copied and new, against plain loops over lists of words."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import pearsonr

from ensue.metrics.novelty import (
    FUNCTION_WORDS,
    clipped_precision,
    compression,
    copied_ngrams,
    jaccard,
    novel_ngrams,
    shared_ngrams,
    source_overlap,
)
from ensue.metrics.rouge import rouge_n
from ensue.metrics.texts import Texts, words

DATA = os.environ.get("ENSUE_DATA")
TEXT = st.lists(st.sampled_from(["the", "of", "mill", "river", "bank", "sold"]), max_size=12).map(" ".join)


def runs(text: str, n: int) -> list[str]:
    split = text.split()
    return [" ".join(split[i : i + n]) for i in range(len(split) - n + 1)]


@settings(max_examples=150, deadline=None)
@given(TEXT, TEXT)
def test_by_loops_over_words(first: str, second: str) -> None:
    texts = Texts()
    one, two = texts(first), texts(second)
    shared, copied, novel = shared_ngrams(one, two), copied_ngrams(one, two), novel_ngrams(one, two)
    assert shared == pytest.approx(shared_ngrams(two, one))
    for n in (1, 2, 3, 4):
        mine, theirs = set(runs(first, n)), set(runs(second, n))
        both = [run for run in mine if run in theirs]
        assert shared[n - 1] == pytest.approx(2 * len(both) / max(len(mine) + len(theirs), 1))
        assert copied[n - 1] == pytest.approx(len(both) / max(len(mine), 1))
        assert novel[n - 1] == pytest.approx(len(mine - theirs) / max(len(mine), 1))
        assert jaccard(one, two, n) == pytest.approx(len(both) / max(len(mine | theirs), 1))
        assert clipped_precision(one, two, n) == pytest.approx(rouge_n(one, two, n).precision)


@settings(max_examples=150, deadline=None)
@given(TEXT, TEXT)
def test_overlap_with_the_source_by_loops(summary: str, source: str) -> None:
    texts = Texts()
    one, two = texts(summary), texts(source)
    found = source_overlap(one, two, texts.numbers_of(FUNCTION_WORDS))

    def share(given: list[str], n: int) -> float:
        return sum(run in runs(source, n) for run in given) / max(len(given), 1)

    assert found.words == pytest.approx(share(runs(summary, 1), 1))
    assert found.content == pytest.approx(share([w for w in summary.split() if w not in FUNCTION_WORDS], 1))
    assert found.bigrams == pytest.approx(share(runs(summary, 2), 2))
    assert found.trigrams == pytest.approx(share(runs(summary, 3), 3))
    assert found.subsequence <= found.words
    assert source_overlap(one, two).content == found.words


def test_a_copy_has_everything_and_nothing_has_nothing() -> None:
    texts = Texts()
    text, empty = texts("the mill by the river was sold twice"), texts("")
    assert source_overlap(text, text) == (1.0, 1.0, 1.0, 1.0, 1.0)
    assert copied_ngrams(text, text) == (1.0, 1.0, 1.0, 1.0)
    assert source_overlap(empty, text) == (0.0, 0.0, 0.0, 0.0, 0.0)
    assert novel_ngrams(empty, text) == shared_ngrams(empty, empty) == (0.0, 0.0, 0.0, 0.0)


def test_compression_needs_a_source() -> None:
    assert compression(25, 100) == 0.75
    assert compression(150, 100) == -0.5
    with pytest.raises(ValueError, match="without words"):
        compression(3, 0)


@pytest.mark.data
@pytest.mark.skipif(not DATA, reason="ENSUE_DATA does not name the folder of the real data")
def test_bigrams_of_the_source_are_the_baseline_to_beat_on_qags() -> None:
    texts, human, found = Texts(), [], []
    for line in (Path(str(DATA)) / "qags" / "mturk_cnndm.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        votes = [[r["response"] == "yes" for r in one["responses"]] for one in row["summary_sentences"]]
        human.append(sum(sum(one) > len(one) / 2 for one in votes) / len(votes))
        summary = " ".join(one["sentence"] for one in row["summary_sentences"])
        found.append(source_overlap(texts(summary), texts(row["article"])).bigrams)
    assert len(found) == 235
    assert pearsonr(found, human).statistic == pytest.approx(0.668, abs=0.001)


@pytest.mark.data
@pytest.mark.skipif(not DATA, reason="ENSUE_DATA does not name the folder of the real data")
def test_table_5_3_is_near_without_spacy() -> None:
    texts, copied, shared = Texts(words), [], []
    for split in ("train", "dev", "test"):
        for line in (Path(str(DATA)) / "squality" / "v1" / f"{split}.jsonl").read_text("utf-8").splitlines():
            story = json.loads(line)
            document = texts(story["document"])
            for question in story["questions"]:
                responses = [texts(one["response_text"]) for one in question["responses"]]
                copied += [copied_ngrams(one, document) for one in responses]
                shared += [shared_ngrams(a, b) for i, a in enumerate(responses) for b in responses[:i]]
    means = [
        [100 * sum(column) / len(column) for column in zip(*rows, strict=True)] for rows in (shared, copied)
    ]
    # Published with spaCy's words: 33.4, 8.7, 2.3, 0.8 and 69.4, 22.0, 5.0, 1.7.
    assert means[0] == pytest.approx([33.4, 8.7, 2.3, 0.8], abs=0.5)
    assert means[1] == pytest.approx([69.4, 22.0, 5.0, 1.7], abs=2.5)
