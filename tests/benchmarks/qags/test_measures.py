"""Overlap with the source against counts by hand and a table filled cell by cell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics import BLEU

from ensue.backends.names import load_model
from ensue.benchmarks.qags.data.sets import JudgedSet
from ensue.benchmarks.qags.measures import (
    BASELINES,
    FUNCTION_WORDS,
    REFERENCE_VALUES,
    TO_BEAT,
    bertscore_values,
    bleu_values,
    content_words,
    longest_common,
    meteor_values,
    overlap_values,
    rouge_values,
)
from ensue.benchmarks.qags.pipeline import Pair
from ensue.benchmarks.summaries.bertscore import bertscore_of
from ensue.metrics.meteor import meteor_of
from ensue.text.wordnet import load_wordnet
from tests.support import tiny
from tests.support.wordnet import write_wordnet

SOURCE = "The old ferry left Port Ellery at noon. The fog stopped it an hour later."
tokens = st.lists(st.sampled_from("abcd"), max_size=12)


def naive_precision(source: list[str], summary: list[str], n: int) -> float:
    left = [source[i : i + n] for i in range(len(source) - n + 1)]
    runs = [summary[i : i + n] for i in range(len(summary) - n + 1)]
    found = 0
    for run in runs:
        if run in left:
            left.remove(run)
            found += 1
    return found / len(runs) if runs else 0.0


def naive_common(a: list[str], b: list[str]) -> int:
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, one in enumerate(a, 1):
        for j, other in enumerate(b, 1):
            table[i][j] = table[i - 1][j - 1] + 1 if one == other else max(table[i - 1][j], table[i][j - 1])
    return table[-1][-1]


@given(tokens, tokens, st.integers(1, 3))
def test_precision_takes_a_run_out_of_the_source_once(source: list[str], summary: list[str], n: int) -> None:
    found = BASELINES[f"overlap-{n}"](" ".join(source), " ".join(summary))
    assert found == pytest.approx(naive_precision(source, summary, n))


@given(tokens, tokens)
def test_the_longest_common_subsequence_is_that_of_the_table(a: list[str], b: list[str]) -> None:
    assert longest_common(a, b) == naive_common(a, b)
    found = BASELINES["overlap-l"](" ".join(a), " ".join(b))
    assert found == (naive_common(a, b) / len(b) if b else 0.0)


@pytest.mark.parametrize("name", list(BASELINES))
def test_a_copy_has_one_and_something_else_has_none(name: str) -> None:
    score = BASELINES[name]
    assert score(SOURCE, SOURCE) == 1.0
    assert score(SOURCE, "Port Ellery at noon") == 1.0
    assert score(SOURCE, "Seven geese slept under willows") == 0.0
    assert score(SOURCE, "") == 0.0
    assert score("", "Port Ellery at noon") == 0.0


def test_the_baseline_to_beat_counts_pairs_of_words() -> None:
    assert BASELINES[TO_BEAT](SOURCE, "The fog left Port Ellery.") == 3 / 4


def test_function_words_are_left_out() -> None:
    assert content_words("It was the OLD ferry's crew, not she.") == ["old", "ferry", "crew"]
    assert all(content_words(f"{word} x") == ["x"] for word in FUNCTION_WORDS)


JUDGED = JudgedSet(
    "made up",
    ("s0", "s1"),
    ("a", "a"),
    (Pair(SOURCE, "The ferry left at noon."), Pair(SOURCE, "Fog stopped the old ferries.")),
    (("A ferry left the port.", "The ferries left at noon."), ("Fog.",)),
    {"consistency": (1.0, 0.0)},
)
SUMMARIES = [pair.summary for pair in JUDGED.pairs]


def test_every_baseline_has_a_value_of_every_summary() -> None:
    assert overlap_values(JUDGED) == {
        name: [score(SOURCE, summary) for summary in SUMMARIES] for name, score in BASELINES.items()
    }
    assert list(BASELINES) == [
        *("overlap-1", "overlap-2", "overlap-3", "content-overlap-1", "content-overlap-2", "overlap-l")
    ]


def test_rouge_with_stems_is_the_best_over_references() -> None:
    found = rouge_values(JUDGED)
    assert list(found) == ["rouge-1", "rouge-2", "rouge-l"]
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True)
    for name, kind in (("rouge-1", "rouge1"), ("rouge-2", "rouge2"), ("rouge-l", "rougeL")):
        expected = [
            max(scorer.score(reference, summary)[kind].fmeasure for reference in own)
            for summary, own in zip(SUMMARIES, JUDGED.references, strict=True)
        ]
        assert found[name] == pytest.approx(expected)


def test_bleu_is_sacrebleus_of_each_order_with_all_references() -> None:
    found = bleu_values(JUDGED)
    assert list(found) == ["bleu-1", "bleu-2", "bleu-3", "bleu-4"]
    for order, values in enumerate(found.values(), 1):
        expected = [
            BLEU(max_ngram_order=order, effective_order=True).sentence_score(summary, list(own)).score / 100
            for summary, own in zip(SUMMARIES, JUDGED.references, strict=True)
        ]
        assert values == pytest.approx(expected)
    with pytest.raises(ValueError, match="zip"):
        bleu_values(replace(JUDGED, references=JUDGED.references[:1]))


def test_meteor_is_the_best_over_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENSUE_WORDNET", str(write_wordnet(tmp_path / "wordnet")))
    judged = replace(JUDGED, references=(("A mill.", "The ferry left at dawn."), ("Fog stopped wolves.",)))
    found = meteor_values(judged)
    rows = meteor_of(SUMMARIES, judged.references, load_wordnet(tmp_path / "wordnet").synonyms)
    assert found == {"meteor": [max(row) for row in rows]}
    assert rows[0][0] != rows[0][1]


def test_bertscore_is_the_best_over_references(tmp_path: Path) -> None:
    encoder: Any = load_model(str(tiny.save_encoder(tmp_path / "encoder")))
    found = bertscore_values(JUDGED, encoder)
    rows = bertscore_of(encoder, SUMMARIES, JUDGED.references)
    assert found == {"bertscore": [max(one.f1 for one in row) for row in rows]}
    assert len(rows[0]) == 2


def test_groups_that_need_references_are_found_by_name() -> None:
    assert dict(REFERENCE_VALUES) == {"rouge": rouge_values, "bleu": bleu_values, "meteor": meteor_values}
