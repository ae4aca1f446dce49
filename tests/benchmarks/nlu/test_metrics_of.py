"""The score a training is steered by, against scikit-learn and scipy, and against the figures of judging."""

import random

import pytest
from scipy import stats
from sklearn import metrics as reference

from ensue.benchmarks.nlu.choosing import metrics_of
from ensue.benchmarks.nlu.examples import Example, TaskSpec
from ensue.benchmarks.nlu.measuring import measure


def spec(form, labels, metrics):
    return TaskSpec("Invented", "superglue", form, labels, metrics, {}, "")


def drawn(labels, n=60, seed=0):
    draw = random.Random(seed)
    examples = [Example(str(i), ("x",), draw.choice(labels), group=f"g{i // 3}") for i in range(n)]
    return examples, {e.id: draw.choice([e.gold, draw.choice(labels)]) for e in examples}


@pytest.mark.parametrize("labels", [("0", "1"), ("entailment", "contradiction", "neutral")])
def test_classes(labels):
    examples, given = drawn(labels)
    task = spec("pair", labels, ("accuracy", "f1", "mcc", "em"))
    found = metrics_of(task, examples, given)
    gold, said = [e.gold for e in examples], [given[e.id] for e in examples]
    average = {"average": "macro"} if len(labels) > 2 else {"pos_label": "1"}
    assert found["accuracy"] == pytest.approx(reference.accuracy_score(gold, said))
    assert found["f1"] == pytest.approx(reference.f1_score(gold, said, **average))
    assert found["mcc"] == pytest.approx(reference.matthews_corrcoef(gold, said))
    right = [all(given[e.id] == e.gold for e in examples[i : i + 3]) for i in range(0, 60, 3)]
    assert found["em"] == pytest.approx(sum(right) / 20)


def test_scores():
    draw = random.Random(0)
    examples = [Example(str(i), ("x", "y"), draw.random() * 5) for i in range(40)]
    given = {e.id: e.gold + draw.random() * 3 for e in examples}
    found = metrics_of(spec("score", (), ("pearson", "spearman")), examples, given)
    pair = [given[e.id] for e in examples], [e.gold for e in examples]
    assert found["pearson"] == pytest.approx(stats.pearsonr(*pair)[0])
    assert found["spearman"] == pytest.approx(stats.spearmanr(*pair)[0])
    assert metrics_of(spec("score", (), ("pearson",)), examples, dict.fromkeys(given, 1.0)) == {
        "pearson": 0.0
    }


def test_they_are_the_figures_of_judging():
    examples, given = drawn(("0", "1"))
    multirc = spec("answers", ("0", "1"), ("f1a", "em"))
    entities = [Example(str(i), ("x", "y"), ("the old town", "town"), ("town", "cat")) for i in range(9)]
    record = spec("entity", (), ("f1", "em"))
    filled = {e.id: ("Town", "old cat", "cat")[int(e.id) % 3] for e in entities}
    for task, asked, said in ((multirc, examples, given), (record, entities, filled)):
        judged = measure(task, asked, [said[e.id] for e in asked])
        assert metrics_of(task, asked, said) == pytest.approx({key: one.value for key, one in judged.items()})
