"""The hypothesis-only audit: its optimum against scikit-learn, what it finds and what it cannot."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from ensue.benchmarks.nlu.examples import Example
from ensue.benchmarks.nlu.hypothesis_only import bags, classifier, grams_of, solve, vocabulary
from ensue.errors import EnsueError
from tests.benchmarks.nlu.answered import spec

NOUNS = ["ferry", "lantern", "baker", "orchard", "clock", "gate", "sailor", "bridge"]
VERBS = ["waited", "shone", "turned", "opened", "sang", "fell"]


def _pairs(n: int, seed: int, labels: tuple[str, ...], giveaway: bool) -> list[Example]:
    """Pairs whose hypothesis says nothing of the label, unless it gives away the second one by a negation."""
    generator = np.random.default_rng(seed)
    found = []
    for place in range(n):
        code = int(generator.integers(0, len(labels)))
        noun, verb = generator.choice(NOUNS), generator.choice(VERBS)
        adverb = "never" if giveaway and code == 1 else generator.choice(["soon", "then", "once"])
        found.append(Example(str(place), ("Nothing of use.", f"The {noun} {adverb} {verb}."), labels[code]))
    return found


def test_the_weights_are_scikit_learns() -> None:
    examples = _pairs(120, 0, ("entailment", "neutral", "contradiction"), giveaway=True)
    texts = [example.texts[1] for example in examples]
    gold = np.array([["entailment", "neutral", "contradiction"].index(str(e.gold)) for e in examples])
    known = vocabulary(texts)
    weights, bias = solve(bags(texts, known), gold, len(known) + 1, 3, 1e-3)
    counter = CountVectorizer(ngram_range=(1, 2), token_pattern=r"\w+|[^\w\s]", min_df=2)
    counts = counter.fit_transform(texts).toarray().astype(float)
    assert set(counter.vocabulary_) == set(known)
    features = counts / counts.sum(axis=1, keepdims=True)
    reference = LogisticRegression(C=1 / (1e-3 * len(texts)), tol=1e-10, max_iter=5000).fit(features, gold)
    data = bags(texts, known)
    ours = torch.nn.functional.embedding_bag(
        torch.from_numpy(data.grams), weights, torch.from_numpy(data.starts), mode="mean"
    )
    np.testing.assert_allclose(
        (ours + bias).softmax(-1).numpy(), reference.predict_proba(features), atol=1e-4
    )


def _accuracy(train: list[Example], evaluated: list[Example], *, l2: list[float] | None = None) -> float:
    """What a classifier of second texts reaches on other pairs; all that is no entailment is one class."""
    gold = [np.array([int(example.gold == "entailment") for example in side]) for side in (train, evaluated)]
    strengths = (l2,) if l2 else ()
    predict, _ = classifier([example.texts[1] for example in train], gold[0], 2, *strengths)
    return float(np.mean(predict([example.texts[1] for example in evaluated]) == gold[1]))


def test_a_giveaway_is_found_and_fair_data_are_at_chance() -> None:
    labels = ("entailment", "not_entailment")
    assert _accuracy(_pairs(300, 1, labels, giveaway=True), _pairs(200, 2, labels, giveaway=True)) == 1.0
    fair = _pairs(300, 3, labels, giveaway=False), _pairs(400, 4, labels, giveaway=False)
    found = _accuracy(*fair)
    assert 0.4 < found < 0.6
    assert _accuracy(*fair) == found


def test_what_looks_like_an_entailed_hypothesis_is_not_given_away() -> None:
    train = _pairs(200, 5, ("entailment", "not_entailment"), giveaway=True)
    evaluated = _pairs(150, 6, ("entailment", "contradiction", "neutral"), giveaway=True)
    # Contradictions are given away; neutral hypotheses look like entailed ones.
    right = np.mean([example.gold != "neutral" for example in evaluated])
    assert _accuracy(train, evaluated, l2=[1e-4]) == pytest.approx(right, abs=0.02)


def test_texts_without_known_grams_are_one_kind() -> None:
    known = vocabulary(["old gate", "old clock"])
    assert known == {"old": 1}
    data = bags(["new bridge", "old gate old", ""], known)
    assert (data.grams.tolist(), data.starts.tolist()) == ([0, 1, 1, 0], [0, 1, 3])
    assert list(grams_of("Don't go")) == ["don", "'", "t", "go", "don '", "' t", "t go"]


def test_too_few_examples_to_hold_any_out_are_refused() -> None:
    few = _pairs(4, 7, ("entailment", "not_entailment"), giveaway=False)
    with pytest.raises(EnsueError, match="at least 10 training examples, not 4"):
        _accuracy(few, few)


@pytest.mark.data
def test_hypotheses_of_the_diagnostic_set_give_little_away() -> None:
    root = os.environ.get("ENSUE_DATA")
    if not root or not (Path(root) / "glue" / "diagnostic").is_dir():
        pytest.skip("set ENSUE_DATA to the folder that holds glue")
    from ensue.benchmarks.glue.data import read_task

    rte, diagnostic = (read_task(Path(root) / "glue", spec(name)) for name in ("RTE", "diagnostic"))
    assert rte is not None
    assert diagnostic is not None
    (split,) = diagnostic.judged_splits
    asked = diagnostic.splits[split]
    entailed = np.mean([example.gold == "entailment" for example in asked])
    assert len(asked) == 1104
    assert _accuracy(rte.splits["train"], asked) < max(entailed, 1 - entailed) + 0.03
