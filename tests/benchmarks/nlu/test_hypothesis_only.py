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
from ensue.benchmarks.nlu.hypothesis_only import audit, bags, grams_of, solve, vocabulary
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


def test_a_giveaway_is_found_and_fair_data_are_at_chance() -> None:
    labels = ("entailment", "not_entailment")
    found = audit(_pairs(300, 1, labels, giveaway=True), _pairs(200, 2, labels, giveaway=True))
    assert found.accuracy.value == 1.0
    fair = audit(_pairs(300, 3, labels, giveaway=False), _pairs(400, 4, labels, giveaway=False))
    low, high = fair.accuracy.row("RTE", "accuracy", {})["ci95"]
    assert low is not None
    assert high is not None
    assert low < 0.5 < high + 0.05
    assert (fair.chance, fair.labels) == (0.5, labels)
    again = audit(_pairs(300, 3, labels, giveaway=False), _pairs(400, 4, labels, giveaway=False))
    assert again.accuracy.value == fair.accuracy.value


def test_three_classes_are_folded_where_the_other_side_has_two() -> None:
    three = ("entailment", "contradiction", "neutral")
    train = _pairs(200, 5, ("entailment", "not_entailment"), giveaway=True)
    evaluated = _pairs(150, 6, three, giveaway=True)
    found = audit(train, evaluated, l2=[1e-4])
    assert found.labels == ("entailment", "not_entailment")
    gold = [example.gold == "entailment" for example in evaluated]
    assert found.majority == pytest.approx(max(np.mean(gold), 1 - np.mean(gold)))
    # Contradictions are given away; neutral hypotheses look like entailed ones.
    right = np.mean([example.gold != "neutral" for example in evaluated])
    assert found.accuracy.value == pytest.approx(right, abs=0.02)
    rows = found.rows("diagnostic", "RTE", "test")
    assert [row["metric"] for row in rows] == ["accuracy", "majority", "chance"]
    assert rows[0]["settings"] == {"split": "test", "audit": "hypothesis-only", "trained_on": "RTE"}


def test_texts_without_known_grams_are_one_kind() -> None:
    known = vocabulary(["old gate", "old clock"])
    assert known == {"old": 1}
    data = bags(["new bridge", "old gate old", ""], known)
    assert (data.grams.tolist(), data.starts.tolist()) == ([0, 1, 1, 0], [0, 1, 3])
    assert list(grams_of("Don't go")) == ["don", "'", "t", "go", "don '", "' t", "t go"]


def test_what_cannot_be_audited_is_refused() -> None:
    pairs = _pairs(30, 7, ("entailment", "not_entailment"), giveaway=False)
    with pytest.raises(EnsueError, match="The evaluated examples of the hypothesis-only audit are none"):
        audit(pairs, [])
    with pytest.raises(EnsueError, match="Example '0': an audit of second texts needs pairs"):
        audit([Example("0", ("One.",), "1")], pairs)
    with pytest.raises(EnsueError, match=r"dev.tsv, line 3: an audit needs labels"):
        audit(pairs, [Example("0", ("A.", "B."), where="dev.tsv, line 3")])
    with pytest.raises(EnsueError, match="trained without the label 'maybe'"):
        audit(pairs, [Example("0", ("A.", "B."), "maybe")])
    same = [example for example in pairs if example.gold == "entailment"]
    with pytest.raises(EnsueError, match="nothing to learn"):
        audit(same, same)
    few = [*same[:2], *[example for example in pairs if example.gold != "entailment"][:2]]
    with pytest.raises(EnsueError, match="at least 10 training examples, not 4"):
        audit(few, few)


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
    found = audit(rte.splits["train"], diagnostic.splits[split])
    low, _ = found.accuracy.row("diagnostic", "accuracy", {})["ci95"]
    assert found.accuracy.n == 1104
    assert found.accuracy.value < found.majority + 0.03
    assert low is not None
    assert low < 0.6
