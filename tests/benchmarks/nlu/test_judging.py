"""Every metric of every task against scikit-learn, scipy or a loop; intervals against naive resampling; refusals."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from ensue.benchmarks.base import content_of
from ensue.benchmarks.drawn import Drawn
from ensue.benchmarks.nlu.examples import Example, Prediction
from ensue.benchmarks.nlu.judging import JudgedSplit, items, judge
from ensue.benchmarks.nlu.systems import Answered
from ensue.errors import EnsueError
from ensue.stats.resampling import MadeUp, sum_draws
from tests.benchmarks.nlu.answered import answer, labelled, spec, task

Metric = Callable[[Sequence[str], Sequence[str]], float]


def _macro(gold: Sequence[str], given: Sequence[str]) -> float:
    return float(f1_score(gold, given, average="macro"))


def _positive(gold: Sequence[str], given: Sequence[str]) -> float:
    return float(f1_score(gold, given, pos_label="1"))


LABELLED: list[tuple[str, str, dict[str, Metric]]] = [
    ("glue", "CoLA", {"mcc": matthews_corrcoef}),
    ("glue", "SST-2", {"accuracy": accuracy_score}),
    ("glue", "MRPC", {"accuracy": accuracy_score, "f1": _positive}),
    ("glue", "QQP", {"accuracy": accuracy_score, "f1": _positive}),
    ("glue", "MNLI", {"accuracy": accuracy_score}),
    ("glue", "diagnostic", {"r3": matthews_corrcoef}),
    ("superglue", "BoolQ", {"accuracy": accuracy_score}),
    ("superglue", "CB", {"accuracy": accuracy_score, "f1": _macro}),
    ("superglue", "COPA", {"accuracy": accuracy_score}),
    ("superglue", "WiC", {"accuracy": accuracy_score}),
    ("superglue", "AX-b", {"mcc": matthews_corrcoef}),
]


def _interval(figure: Drawn) -> tuple[float, float]:
    assert figure.draws is not None
    low, high = figure.interval()
    assert low is not None
    assert high is not None
    return low, high


def _judged(*given: object) -> JudgedSplit:
    found = judge(*given)  # type: ignore[arg-type]
    assert found is not None
    return found


@pytest.mark.parametrize(("suite", "name", "metrics"), LABELLED)
def test_labels_are_judged_as_scikit_learn_does(suite: str, name: str, metrics: dict[str, Metric]) -> None:
    data, answered, gold, given = labelled(spec(name, suite), 150)
    found = _judged(data, answered, "dev")
    assert list(found.figures) == list(metrics)
    generator = np.random.default_rng(7)
    places = generator.integers(0, 150, (200, 150))
    for metric, reference in metrics.items():
        figure = found.figures[metric]
        assert figure.value == pytest.approx(reference(gold, given))
        naive = [reference([gold[p] for p in drawn], [given[p] for p in drawn]) for drawn in places]
        assert _interval(figure) == pytest.approx(tuple(np.quantile(naive, [0.025, 0.975])), abs=0.04)
        assert figure.draws is not None
        assert (figure.n, figure.units, len(figure.draws)) == (150, 150, 2000)
    assert found.score.value == pytest.approx(np.mean([one(gold, given) for one in metrics.values()]))


def test_the_score_of_two_metrics_keeps_their_rounds_together() -> None:
    data, answered, gold, given = labelled(spec("MRPC"), 200)
    found = _judged(data, answered, "dev")
    places = np.random.default_rng(1).integers(0, 200, (400, 200))
    naive = []
    for drawn in places:
        some, others = [gold[p] for p in drawn], [given[p] for p in drawn]
        naive.append((accuracy_score(some, others) + _positive(some, others)) / 2)
    assert _interval(found.score) == pytest.approx(tuple(np.quantile(naive, [0.025, 0.975])), abs=0.02)


def test_multirc_by_loops_over_questions_and_passages() -> None:
    generator = np.random.default_rng(3)
    rows = [
        (f"{p}-{q}-{a}", f"{p}-{q}", str(p))
        for p in range(30)
        for q in range(int(generator.integers(1, 5)))
        for a in range(int(generator.integers(2, 5)))
    ]
    gold = generator.integers(0, 2, len(rows))
    given = np.where(generator.random(len(rows)) < 0.8, gold, 1 - gold)
    examples = [
        Example(name, ("P.", "Q?", "A."), str(label), group=group, cluster=cluster)
        for (name, group, cluster), label in zip(rows, gold, strict=True)
    ]
    data = task(spec("MultiRC", "superglue"), examples)
    found = _judged(data, answer(data, [str(one) for one in given]), "dev")

    def by_loops(places: Sequence[int]) -> tuple[float, float]:
        """F1 over answers and the share of whole questions; a passage drawn twice brings its questions twice."""
        wrong = {rows[p][1] for p in places if gold[p] != given[p]}
        questions = [rows[p][1] for p in places if rows[p][0].endswith("-0")]
        right = [question not in wrong for question in questions]
        return float(f1_score(gold[list(places)], given[list(places)])), sum(right) / len(right)

    f1a, em = by_loops(range(len(rows)))
    assert found.figures["f1a"].value == pytest.approx(f1a)
    assert found.figures["em"].value == pytest.approx(em)
    assert found.score.value == pytest.approx((f1a + em) / 2)
    assert found.figures["em"].n == len({group for _, group, _ in rows})
    assert {figure.clusters for figure in found.figures.values()} == {30}
    members = {p: [place for place, row in enumerate(rows) if row[2] == str(p)] for p in range(30)}
    naive = np.array(
        [
            by_loops([place for p in generator.integers(0, 30, 30) for place in members[int(p)]])
            for _ in range(400)
        ]
    )
    for column, metric in enumerate(("f1a", "em")):
        low, high = np.quantile(naive[:, column], [0.025, 0.975])
        assert _interval(found.figures[metric]) == pytest.approx((low, high), abs=0.03)


def test_gender_parity_and_pairs_as_clusters() -> None:
    asked = spec("AX-g", "superglue")
    yes, no = asked.labels
    gold = [yes, yes, no, no, yes, yes, no]
    given = [yes, yes, yes, no, no, no, no]
    groups = ["p", "p", "q", "q", "r", "r", "alone"]
    examples = [
        Example(str(place), ("A.", "B."), label, group=group)
        for place, (label, group) in enumerate(zip(gold, groups, strict=True))
    ]
    data = task(asked, examples, "test")
    found = _judged(data, answer(data, given, "test"), "test")
    assert found.figures["gender_parity"].value == pytest.approx(2 / 3)
    assert found.figures["gender_parity"].n == 3
    assert found.figures["accuracy"].value == pytest.approx(4 / 7)
    assert found.figures["accuracy"].clusters == 4
    alone = task(asked, examples[-1:], "test")
    with pytest.raises(EnsueError, match="raise --limit"):
        judge(alone, answer(alone, [yes], "test"), "test")


def test_record_takes_the_best_of_the_right_names() -> None:
    gold = [("Lake Veren", "Veren"), ("the Duke of Aln",), ("Ostby",)]
    examples = [Example(str(place), ("P.", "@placeholder."), one) for place, one in enumerate(gold)]
    data = task(spec("ReCoRD", "superglue"), examples)
    answered = answer(data, ["veren", "Duke", "Malmen"])
    found = _judged(data, answered, "dev")
    assert found.figures["em"].value == pytest.approx(1 / 3)
    assert found.figures["f1"].value == pytest.approx((1 + 0.5 + 0) / 3)
    scores = [item["scores"] for item in items(data, answered, "dev")]
    assert scores == [{"em": 1.0, "f1": 1.0}, {"em": 0.0, "f1": 0.5}, {"em": 0.0, "f1": 0.0}]


def test_sts_b_by_scipy_and_constant_answers_count_as_0() -> None:
    generator = np.random.default_rng(4)
    gold = generator.uniform(0, 5, 120)
    given = gold + generator.normal(size=120)
    data = task(spec("STS-B"), [Example(str(p), ("A.", "B."), float(one)) for p, one in enumerate(gold)])
    found = _judged(data, answer(data, [float(one) for one in given]), "dev")
    assert found.figures["pearson"].value == pytest.approx(stats.pearsonr(gold, given).statistic)
    assert found.figures["spearman"].value == pytest.approx(stats.spearmanr(gold, given).statistic)
    assert not found.notes
    same = _judged(data, answer(data, [2.5] * 120), "dev")
    assert (same.figures["pearson"].value, same.score.value) == (0.0, 0.0)
    assert same.score.interval() == (None, None)
    assert list(same.notes) == [
        "STS-B dev: all answers are the same, so there is no correlation; counted as 0"
    ]
    (item, *_) = items(data, answer(data, [2.5] * 120), "dev")
    assert item["scores"] == {}
    assert item["outputs"] == {"label": gold[0], "predicted": 2.5}


def test_one_score_has_no_correlation_and_one_cluster_no_interval() -> None:
    data = task(spec("STS-B"), [Example("0", ("A.", "B."), 1.0)])
    with pytest.raises(EnsueError, match="STS-B has 1 example"):
        judge(data, answer(data, [1.0]), "dev")
    examples = [Example(str(place), ("A.", "B."), "1", cluster="c") for place in range(3)]
    data = task(spec("MRPC"), examples)
    found = _judged(data, answer(data, ["1", "1", "0"]), "dev")
    assert found.score.draws is None
    assert found.figures["f1"].row("MRPC", "f1", {})["ci95"] == [None, None]


def test_a_split_without_labels_is_not_judged_but_has_items() -> None:
    examples = [Example(str(place), ("A.", "B."), group="g", cluster="c") for place in range(2)]
    data = task(spec("RTE"), examples, "test")
    answered = Answered(
        "RTE",
        {"test": {"1": "entailment", "0": "not_entailment"}},
        {"template": "question"},
        {"test": {"0": [0.25, 0.75]}},
    )
    assert judge(data, answered, "test") is None
    assert judge(data, answered, "dev") is None
    found = list(items(data, answered, "test"))
    assert [item["id"] for item in found] == ["RTE/test/0", "RTE/test/1"]
    assert found[0]["outputs"] == {"predicted": "not_entailment", "chances": [0.25, 0.75], "group": "g"}
    assert found[1]["outputs"] == {"predicted": "entailment", "group": "g"}
    assert {item["cluster"] for item in found} == {"RTE/test/c"}
    assert found[0]["settings"] == {"split": "test", "template": "question"}
    assert found[0]["scores"] == {}
    json.dumps(found)


def test_means_of_item_scores_are_the_accuracy() -> None:
    data, answered, _, _ = labelled(spec("CB", "superglue"), 60, run=2)
    found = _judged(data, answered, "dev")
    scores = [item["scores"]["accuracy"] for item in items(data, answered, "dev")]
    assert np.mean(scores) == pytest.approx(found.figures["accuracy"].value)
    assert found.settings == {"run": 2}


BAD: list[tuple[str, dict[str, Prediction], str]] = [
    ("RTE", {"0": "entailment"}, r"RTE, dev split, example '1': there is no prediction"),
    (
        "RTE",
        {"0": "entailment", "1": "entailment", "2": "entailment"},
        r"prediction for '2', which is not an example",
    ),
    ("RTE", {"0": "entailment", "1": "Entailment"}, r"example '1': the prediction 'Entailment' is none"),
    ("RTE", {"0": "entailment", "1": 1}, r"example '1': the prediction 1 is none"),
    ("STS-B", {"0": 1.0, "1": math.nan}, r"STS-B, dev split, example '1': the prediction nan"),
    ("STS-B", {"0": 1.0, "1": math.inf}, r"example '1': the prediction inf"),
    ("STS-B", {"0": 1.0, "1": "high"}, r"example '1': the prediction 'high' is not a number"),
]


@pytest.mark.parametrize(("name", "given", "words"), BAD)
def test_predictions_that_do_not_fit_are_refused(name: str, given: dict[str, Prediction], words: str) -> None:
    gold: list[str | float] = ["entailment", "not_entailment"] if name == "RTE" else [1.0, 2.0]
    data = task(spec(name), [Example(str(p), ("A.", "B."), one) for p, one in enumerate(gold)])
    answered = Answered(name, {"dev": given})
    with pytest.raises(EnsueError, match=words):
        judge(data, answered, "dev")
    with pytest.raises(EnsueError, match=words):
        list(items(data, answered, "dev"))


def test_data_that_do_not_fit_are_refused_by_name() -> None:
    data, answered, _, _ = labelled(spec("RTE"), 3)
    with pytest.raises(EnsueError, match="RTE: there are no predictions for the dev split"):
        judge(data, replace(answered, predictions={}), "dev")
    first, second, third = data.splits["dev"]
    twice = task(data.spec, [first, second, replace(third, id="0")])
    with pytest.raises(EnsueError, match="two examples have the id '0'"):
        judge(twice, answered, "dev")
    unlabelled = task(data.spec, [first, second, replace(third, gold=None, where="dev.tsv, line 4")])
    with pytest.raises(EnsueError, match=r"dev.tsv, line 4: None is not a gold answer of RTE"):
        judge(unlabelled, answered, "dev")
    entity = task(spec("ReCoRD", "superglue"), [Example("0", ("P.", "Q."), ("Ostby",))])
    with pytest.raises(EnsueError, match="predict the text of an entity"):
        judge(entity, answer(entity, [3.0]), "dev")


def test_entities_are_judged_by_the_best_surface_form_with_draws_by_the_formula() -> None:
    asked = spec("ReCoRD", "superglue")
    golds = [("The old mill", "mill"), ("Ruth Olsen",), ("Ellery",), ("fog",)]
    given = ["an old mill", "Ruth", "Port Ellery", "sun"]
    examples = [
        Example(str(place), ("P.", "Q."), gold, group=f"p{place // 2}") for place, gold in enumerate(golds)
    ]
    data = task(asked, examples)
    found = _judged(data, answer(data, given), "dev")
    f1s, ems = [1.0, 2 / 3, 2 / 3, 0.0], [1.0, 0.0, 0.0, 0.0]
    assert list(found.figures) == list(asked.metrics)
    assert found.figures["f1"].value == pytest.approx(np.mean(f1s))
    assert found.figures["em"].value == pytest.approx(np.mean(ems))
    table = np.column_stack([f1s, ems, np.ones(4)])
    clusters = [example.resampled_with for example in examples]
    units = len(set(clusters))
    guess = MadeUp(np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 1.0]]) * (4 / units), np.array([0.5, 0.5]))
    drawn = sum_draws(table, clusters, made_up=guess, rounds=2_000)
    for column, metric in enumerate(("f1", "em")):
        figure = found.figures[metric]
        np.testing.assert_allclose(figure.draws, drawn[:, column] / drawn[:, 2])  # type: ignore[arg-type]
        assert (figure.n, figure.units, figure.bounds) == (4, units, (0.0, 1.0))
    items_ = list(items(data, answer(data, given), "dev"))
    assert [item["scores"]["em"] for item in items_] == ems
    assert items_[0]["outputs"]["label"] == ["The old mill", "mill"]


def test_draws_of_labels_and_of_groups_by_the_formula() -> None:
    """MultiRC: two passages, three questions; a made-up answer falls into every cell as chance has it."""
    asked = spec("MultiRC", "superglue")
    gold, given = ["1", "0", "1", "0", "1"], ["1", "1", "1", "0", "1"]
    groups, clusters = ["q1", "q1", "q2", "q3", "q3"], ["p1", "p1", "p1", "p2", "p2"]
    examples = [
        Example(str(place), ("P.", "Q?", "A."), label, group=group, cluster=cluster)
        for place, (label, group, cluster) in enumerate(zip(gold, groups, clusters, strict=True))
    ]
    data = task(asked, examples)
    found = _judged(data, answer(data, given), "dev")
    cells = np.eye(4)[[2 * int(a) + int(b) for a, b in zip(gold, given, strict=True)]]
    # In the row of a question's first answer: whether all of it is right, and a one to count it by.
    whole = np.array([[0, 1], [0, 0], [1, 1], [1, 1], [0, 0]], dtype=float)
    right = np.array([1.0, 0.0, 0.0, 1.0])
    guess = np.column_stack([np.eye(4), right * 0.6, np.full(4, 0.6)])
    chances = np.array([0.2, 0.2, 0.3, 0.3])
    made_up = MadeUp(guess * (5 / 2), chances)
    drawn = sum_draws(np.hstack([cells, whole]), clusters, made_up=made_up, rounds=2_000)
    f1a = 2 * drawn[:, 3] / (2 * drawn[:, 3] + drawn[:, 1] + drawn[:, 2])
    np.testing.assert_allclose(found.figures["f1a"].draws, f1a)  # type: ignore[arg-type]
    np.testing.assert_allclose(found.figures["em"].draws, drawn[:, 4] / drawn[:, 5])  # type: ignore[arg-type]
    assert (found.figures["em"].n, found.figures["f1a"].n, found.rows) == (3, 5, 5)


def test_one_whole_pair_is_a_parity_and_a_round_without_one_is_none() -> None:
    asked = spec("AX-g", "superglue")
    yes, no = asked.labels
    examples = [
        Example(str(place), ("A.", "B."), yes, group=group) for place, group in enumerate(["p", "p", "q"])
    ]
    data = task(asked, examples, "test")
    found = _judged(data, answer(data, [yes, yes, no], "test"), "test")
    assert (found.figures["gender_parity"].value, found.figures["gender_parity"].n) == (1.0, 1)


def test_one_cluster_has_a_value_and_no_draws() -> None:
    asked = spec("MultiRC", "superglue")
    examples = [Example(str(place), ("P.", "Q?", "A."), "1", group="q", cluster="p") for place in range(3)]
    data = task(asked, examples)
    found = _judged(data, answer(data, ["1", "0", "1"]), "dev")
    assert {(figure.draws is None, figure.units) for figure in found.figures.values()} == {(True, 1)}
    scores = task(spec("STS-B"), [Example(str(n), ("A.", "B."), float(n), cluster="p") for n in range(3)])
    judged = _judged(scores, answer(scores, [0.0, 2.0, 1.0]), "dev")
    assert {(figure.draws is None, figure.units, figure.n) for figure in judged.figures.values()} == {
        (True, 1, 3)
    }
    assert judged.figures["pearson"].value == pytest.approx(0.5)


def test_every_field_of_an_item() -> None:
    asked = spec("RTE")
    examples = [
        Example("7", ("A.", "B."), "entailment", group="g", cluster="c"),
        Example("8", ("C.", "D."), "not_entailment"),
    ]
    data = task(asked, examples)
    answered = Answered(
        "RTE",
        {"dev": {"7": "not_entailment", "8": "not_entailment"}},
        {"template": "t"},
        chances={"dev": {"7": [0.25, 0.75]}},
        outputs={"dev": {"8": {"text": "no"}}},
    )
    first, second = items(data, answered, "dev")
    assert first == {
        "id": "RTE/dev/7",
        "cluster": f"RTE/dev/{examples[0].resampled_with}",
        "task": "RTE",
        "settings": {"split": "dev", "template": "t"},
        "scores": {"accuracy": 0.0},
        "outputs": {
            "label": "entailment",
            "predicted": "not_entailment",
            "chances": [0.25, 0.75],
            "group": "g",
        },
        "content": content_of(("A.", "B."), examples[0].choices, examples[0].spans, "entailment"),
    }
    assert second["outputs"] == {
        "label": "not_entailment",
        "predicted": "not_entailment",
        "text": "no",
    }
    assert second["scores"] == {"accuracy": 1.0}
