"""Metrics over several references against naive loops, scikit-free; METEOR's two kinds are what they say."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ensue.benchmarks.squality.human import leave_one_out_of, rouge_measure
from ensue.benchmarks.summaries.scoring import (
    exact_meteor_measure,
    meteor_measure,
    named,
    over_references,
    scores_of,
    wordnet_for_meteor,
)
from ensue.errors import EnsueError
from ensue.metrics.meteor import meteor, tokens
from ensue.text.wordnet import load_wordnet
from tests.benchmarks.squality.invented import ANSWERS


@given(some.lists(some.floats(0, 1), min_size=1, max_size=6))
def test_best_mean_and_all_but_one_by_naive_loops(values: list[float]) -> None:
    found = over_references(values)
    best = values[0]
    for value in values:
        if value > best:
            best = value
    assert found.best == best
    assert found.mean == pytest.approx(statistics.fmean(values))
    if len(values) == 1:
        assert found.left_out is None
    else:
        ways = [max(values[:n] + values[n + 1 :]) for n in range(len(values))]
        assert found.left_out == pytest.approx(statistics.fmean(ways))
        assert found.left_out == pytest.approx(leave_one_out_of([values])[0])


def test_the_maximum_over_references_is_that_of_rouge_score_itself() -> None:
    package = pytest.importorskip("rouge_score.rouge_scorer")
    names = ["rouge1", "rouge2", "rougeL"]
    scorer = package.RougeScorer(names, use_stemmer=True)
    candidates = ["Ilse waits by the river.", "The ferry is running again, full of fish and pails."]
    found = scores_of(candidates, ANSWERS, [rouge_measure])
    for name in names:
        for place, candidate in enumerate(candidates):
            best = max(scorer.score(reference, candidate)[name].fmeasure for reference in ANSWERS[place])
            assert named({name: found[name][place]})[name] == pytest.approx(best)


def test_a_summary_without_references_is_refused() -> None:
    with pytest.raises(EnsueError, match="without a reference"):
        over_references([])
    assert "rouge1_loo" not in named({"rouge1": [0.5]})


def test_both_meteors_and_what_is_said_where_wordnet_is_missing(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:  # type: ignore[no-untyped-def]
    nltk = pytest.importorskip("nltk.translate.meteor_score")
    try:
        wordnet = wordnet_for_meteor()
    except EnsueError:
        pytest.skip("WordNet is not on this machine")
    candidate, references = ANSWERS[0][0], ANSWERS[0][1:]
    found = scores_of([candidate], [references], [meteor_measure(wordnet), exact_meteor_measure(wordnet)])
    for value, reference in zip(found["meteor_exact"][0], references, strict=True):
        assert value == pytest.approx(meteor(tokens(candidate), tokens(reference), wordnet.senses).score)

    class Lookup:
        def synsets(self, word: str):  # type: ignore[no-untyped-def]
            return []

    for value, reference in zip(found["meteor"][0], references, strict=True):
        plain = nltk.single_meteor_score(tokens(reference), tokens(candidate), wordnet=Lookup())
        assert value >= plain - 1e-9
    monkeypatch.setenv("ENSUE_WORDNET", str(tmp_path))
    load_wordnet.cache_clear()
    with pytest.raises(EnsueError, match="leave METEOR out with --set metrics=rouge"):
        wordnet_for_meteor()
