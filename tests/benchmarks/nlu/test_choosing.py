"""The score a training is chosen by is the mean of the task's metrics, as scikit-learn and scipy have them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics

from ensue.benchmarks.nlu.choosing import dev_score, positive_class
from ensue.benchmarks.nlu.examples import Example
from ensue.errors import EnsueError
from tests.support.small_tasks import spec

RNG = np.random.default_rng(3)


@pytest.mark.parametrize(
    ("labels", "metrics"),
    [
        (("0", "1"), ("accuracy", "f1")),
        (("true", "false"), ("f1",)),
        (("a", "b", "c"), ("accuracy", "f1", "mcc")),
    ],
)
def test_classes(labels: tuple[str, ...], metrics: tuple[str, ...]) -> None:
    gold, given = RNG.choice(labels, 50).tolist(), RNG.choice(labels, 50).tolist()
    made = spec("pair", labels=labels, metrics=metrics)
    positive = labels[positive_class(made)]
    if len(labels) == 2:
        f1 = sklearn.metrics.f1_score(gold, given, pos_label=positive)
    else:
        f1 = sklearn.metrics.f1_score(gold, given, average="macro")
    references = {
        "accuracy": sklearn.metrics.accuracy_score(gold, given),
        "f1": f1,
        "mcc": sklearn.metrics.matthews_corrcoef(gold, given),
    }
    examples = [Example(str(i), ("a", "b"), label) for i, label in enumerate(gold)]
    found = dev_score(made, examples, {str(i): label for i, label in enumerate(given)})
    assert found == pytest.approx(np.mean([references[metric] for metric in metrics]))


def test_scores() -> None:
    gold, given = RNG.normal(size=30), RNG.normal(size=30)
    examples = [Example(str(i), ("a", "b"), float(x)) for i, x in enumerate(gold)]
    found = dev_score(spec("score"), examples, {str(i): float(x) for i, x in enumerate(given)})
    expected = (scipy.stats.pearsonr(gold, given)[0] + scipy.stats.spearmanr(gold, given)[0]) / 2
    assert found == pytest.approx(expected)
    assert dev_score(spec("score"), examples, {str(i): 2.5 for i in range(30)}) == 0.0


def test_answers_and_entities() -> None:
    golds, given = ["1", "0", "1", "1"], ["1", "1", "1", "1"]
    examples = [Example(str(i), ("p", "q", "a"), gold, group=f"q{i // 2}") for i, gold in enumerate(golds)]
    found = dev_score(spec("answers"), examples, {str(i): label for i, label in enumerate(given)})
    assert found == pytest.approx((sklearn.metrics.f1_score(golds, given, pos_label="1") + 0.5) / 2)
    entity = [Example("1", ("p", "q"), ("New York", "NYC"))]
    assert dev_score(spec("entity"), entity, {"1": "the York"}) == pytest.approx((2 / 3 + 0.0) / 2)


def test_a_metric_no_training_is_chosen_by_is_named() -> None:
    with pytest.raises(EnsueError, match="gender_parity"):
        dev_score(
            spec("pair", metrics=("gender_parity",)),
            [Example("1", ("a", "b"), "entailment")],
            {"1": "entailment"},
        )
