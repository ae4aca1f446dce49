"""The learning rate falls and training stops where appendix A.1.2.2 says, on invented scores."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as reference

from ensue.benchmarks.nlu.examples import Example, TaskSpec
from ensue.benchmarks.nlu.judging import measure
from ensue.benchmarks.nlu.training import Stopping, dev_score, metrics_of, positive_class
from ensue.errors import EnsueError
from tests.support.small_tasks import spec


def told(rule: Stopping, scores: list[float]) -> int:
    """How many scores the rule takes before it is over."""
    for number, score in enumerate(scores, 1):
        rule.improved(score)
        if rule.over:
            return number
    return len(scores)


def test_the_third_failure_in_all_drops_the_rate_below_the_lowest() -> None:
    rule = Stopping()
    assert told(rule, [0.5, 0.6, 0.6, 0.7, 0.1, 0.8, 0.2, 0.9]) == 7
    assert rule.rate == pytest.approx(8e-6)
    assert rule.best == 0.8


def test_the_rate_is_divided_by_five_at_each_failure() -> None:
    rule = Stopping()
    rates = []
    for score in (0.1, 0.1, 0.3, 0.2):
        rule.improved(score)
        rates.append(rule.rate)
    assert rates == pytest.approx([1e-3, 2e-4, 2e-4, 4e-5])
    assert not rule.over


def test_five_checks_in_a_row_without_improvement_stop_where_the_rate_still_would_not() -> None:
    rule = Stopping(rate=1.0)
    assert told(rule, [0.4, 0.3, 0.5, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]) == 8
    assert rule.rate > 1e-5


def test_no_number_is_no_improvement() -> None:
    rule = Stopping()
    assert not rule.improved(math.nan)
    assert rule.failures == 1


@given(st.lists(st.floats(0, 1), max_size=40))
def test_it_is_over_exactly_after_three_scores_that_beat_nothing(scores: list[float]) -> None:
    failures = sum(score <= max(scores[:place], default=-1.0) for place, score in enumerate(scores))
    rule = Stopping()
    for score in scores:
        rule.improved(score)
    assert rule.over == (failures >= 3)


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


def spec_of_metrics_of(form, labels, metrics):
    return TaskSpec("Invented", "superglue", form, labels, metrics, {}, "")


def drawn(labels, n=60, seed=0):
    draw = random.Random(seed)
    examples = [Example(str(i), ("x",), draw.choice(labels), group=f"g{i // 3}") for i in range(n)]
    return examples, {e.id: draw.choice([e.gold, draw.choice(labels)]) for e in examples}


@pytest.mark.parametrize("labels", [("0", "1"), ("entailment", "contradiction", "neutral")])
def test_classes_of_metrics_of(labels):
    examples, given = drawn(labels)
    task = spec_of_metrics_of("pair", labels, ("accuracy", "f1", "mcc", "em"))
    found = metrics_of(task, examples, given)
    gold, said = [e.gold for e in examples], [given[e.id] for e in examples]
    average = {"average": "macro"} if len(labels) > 2 else {"pos_label": "1"}
    assert found["accuracy"] == pytest.approx(reference.accuracy_score(gold, said))
    assert found["f1"] == pytest.approx(reference.f1_score(gold, said, **average))
    assert found["mcc"] == pytest.approx(reference.matthews_corrcoef(gold, said))
    right = [all(given[e.id] == e.gold for e in examples[i : i + 3]) for i in range(0, 60, 3)]
    assert found["em"] == pytest.approx(sum(right) / 20)


def test_scores_of_metrics_of():
    draw = random.Random(0)
    examples = [Example(str(i), ("x", "y"), draw.random() * 5) for i in range(40)]
    given = {e.id: e.gold + draw.random() * 3 for e in examples}
    found = metrics_of(spec_of_metrics_of("score", (), ("pearson", "spearman")), examples, given)
    pair = [given[e.id] for e in examples], [e.gold for e in examples]
    assert found["pearson"] == pytest.approx(stats.pearsonr(*pair)[0])
    assert found["spearman"] == pytest.approx(stats.spearmanr(*pair)[0])
    assert metrics_of(spec_of_metrics_of("score", (), ("pearson",)), examples, dict.fromkeys(given, 1.0)) == {
        "pearson": 0.0
    }


def test_they_are_the_figures_of_judging():
    examples, given = drawn(("0", "1"))
    multirc = spec_of_metrics_of("answers", ("0", "1"), ("f1a", "em"))
    entities = [Example(str(i), ("x", "y"), ("the old town", "town"), ("town", "cat")) for i in range(9)]
    record = spec_of_metrics_of("entity", (), ("f1", "em"))
    filled = {e.id: ("Town", "old cat", "cat")[int(e.id) % 3] for e in entities}
    for task, asked, said in ((multirc, examples, given), (record, entities, filled)):
        judged = measure(task, asked, [said[e.id] for e in asked])
        assert metrics_of(task, asked, said) == pytest.approx({key: one.value for key, one in judged.items()})
