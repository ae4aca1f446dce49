"""Comparing runs of GLUE and SuperGLUE: each task's own metric, whoever answered it and in how many ways."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import f1_score, matthews_corrcoef

from ensue.benchmarks.nlu.examples import Example, TaskData
from ensue.benchmarks.nlu.judging import items, judge
from ensue.benchmarks.nlu.systems import Answered
from ensue.errors import EnsueError
from ensue.runs.compare import ComparedRow, Comparison, compare_runs
from tests.benchmarks.nlu.answered import answer, labelled, spec, task
from tests.support.run_folders import write_items


def folder(path: Path, suite: str, answers: Iterable[tuple[TaskData, Answered]]) -> Path:
    lines = [
        item for data, given in answers for split in given.predictions for item in items(data, given, split)
    ]
    return write_items(path, suite, lines)


def compared(
    tmp_path: Path, suite: str, a: Sequence[tuple[TaskData, Answered]], b: Sequence[tuple[TaskData, Answered]]
) -> Comparison:
    one, other = folder(tmp_path / "a", suite, a), folder(tmp_path / "b", suite, b)
    return compare_runs(one, other, rounds=500)


def row(found: Comparison, task: str, metric: str) -> ComparedRow:
    (one,) = [one for one in found.rows if (one.task, one.metric) == (task, metric)]
    return one


@pytest.mark.parametrize(
    ("suite", "name"),
    [("glue", "CoLA"), ("glue", "MRPC"), ("glue", "diagnostic"), ("superglue", "CB"), ("superglue", "RTE")],
)
def test_tasks_of_labels_are_tested_on_their_own_metrics(tmp_path: Path, suite: str, name: str) -> None:
    asked = spec(name, suite)
    data, first, gold, given = labelled(asked, 60, 0.8, seed=1)
    second = answer(data, given[::-1])
    found = compared(tmp_path, suite, [(data, first)], [(data, second)])
    assert [(one.metric, one.settings) for one in found.rows] == [
        (metric, {"split": "dev"}) for metric in sorted(asked.metrics)
    ]
    scikit = {
        "mcc": matthews_corrcoef,
        "r3": matthews_corrcoef,
        "accuracy": lambda right, said: np.mean(np.array(right) == said),
        "f1": lambda right, said: (
            f1_score(right, said, pos_label="1")
            if len(asked.labels) == 2
            else f1_score(right, said, average="macro")
        ),
    }
    for one in found.rows:
        values = [scikit[one.metric](gold, said) for said in (given, given[::-1])]
        assert (one.value_a, one.value_b) == pytest.approx(values)
        assert one.test.difference == pytest.approx(values[0] - values[1])
        assert (one.test.n, one.test.clusters) == (60, 60)


def test_a_zero_shot_run_is_compared_with_a_fine_tuned_one(tmp_path: Path) -> None:
    data, first, gold, given = labelled(spec("CoLA"), 80, 0.5, seed=2, template="question", shots=0)
    _, second, _, other = labelled(spec("CoLA"), 80, 0.4, seed=2, template="statement", shots=0)
    tuned = [label if place % 7 else "0" for place, label in enumerate(gold)]
    found = compared(tmp_path, "glue", [(data, first), (data, second)], [(data, answer(data, tuned))])
    (one,) = found.rows
    # As in the run's own score: the mean over its templates.
    mean = (matthews_corrcoef(gold, given) + matthews_corrcoef(gold, other)) / 2
    assert (one.metric, one.value_a) == ("mcc", pytest.approx(mean))
    assert one.value_b == pytest.approx(matthews_corrcoef(gold, tuned))
    assert one.test.p_value < 0.01
    assert (found.shared, found.only_a, found.only_b) == (80, 0, 0)
    assert found.notes == (
        "CoLA (split dev): a is the mean over template question, shots 0; template statement, shots 0, "
        "b is its one answer.",
    )


def test_templates_that_both_have_are_compared_one_by_one(tmp_path: Path) -> None:
    data, _, gold, _ = labelled(spec("CoLA"), 40, 0.5)
    ways = [answer(data, gold, template=name) for name in ("x", "y", "z")]
    found = compared(tmp_path, "glue", [(data, way) for way in ways], [(data, way) for way in ways[:2]])
    assert [one.settings for one in found.rows] == [
        {"split": "dev", "template": "x"},
        {"split": "dev", "template": "y"},
    ]
    assert found.notes == ("CoLA (split dev): answers that only a has are left out (template z).",)


def test_layers_have_no_mean_that_stands_for_them(tmp_path: Path) -> None:
    data, _, gold, _ = labelled(spec("CoLA"), 10)
    layers = [(data, answer(data, gold, layer=layer)) for layer in (1, 2)]
    with pytest.raises(
        EnsueError, match=r"in several ways \(layer 1; layer 2\), none of which the other has"
    ):
        compared(tmp_path, "glue", layers, [(data, answer(data, gold))])


def test_scores_are_tested_on_their_correlations(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    gold = generator.uniform(0, 5, 50).round(1).tolist()
    data = task(spec("STS-B"), [Example(str(n), ("A.", "B."), one) for n, one in enumerate(gold)])
    close, far = (np.array(gold) + generator.normal(0, sd, 50) for sd in (0.5, 4.0))
    found = compared(
        tmp_path, "glue", [(data, answer(data, close.tolist()))], [(data, answer(data, far.tolist()))]
    )
    for metric, scipys in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr)):
        one = row(found, "STS-B", metric)
        assert (one.value_a, one.value_b) == pytest.approx((scipys(close, gold)[0], scipys(far, gold)[0]))
        assert one.test.p_value < 0.01


def test_questions_and_pairs_are_judged_whole_and_passages_resampled(tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    examples = [
        Example(
            f"{p}-{q}-{n}", ("P.", "Q?", f"{n}"), str(int(generator.integers(2))), group=f"{p}-{q}", cluster=p
        )
        for p in ("p1", "p2", "p3")
        for q in ("q1", "q2")
        for n in range(3)
    ]
    data = task(spec("MultiRC", "superglue"), examples)
    gold = [str(example.gold) for example in examples]
    # The first run is wrong about one answer to p1's first question.
    nearly = ["1" if gold[0] == "0" else "0", *gold[1:]]
    pairs = [Example(f"{n}{s}", ("P.", s), "entailment", group=str(n)) for n in range(6) for s in "hs"]
    parity = task(spec("AX-g", "superglue"), pairs, "test")
    alike = ["entailment"] * 12
    apart = ["not_entailment", *alike[1:]]
    found = compared(
        tmp_path,
        "superglue",
        [(data, answer(data, nearly)), (parity, answer(parity, alike, "test"))],
        [(data, answer(data, gold)), (parity, answer(parity, apart, "test"))],
    )
    em, f1a = row(found, "MultiRC", "em"), row(found, "MultiRC", "f1a")
    assert (em.value_a, em.value_b, em.test.n, em.test.clusters) == (pytest.approx(5 / 6), 1.0, 6, 3)
    assert f1a.value_a == pytest.approx(f1_score(gold, nearly, pos_label="1"))
    assert (f1a.test.n, f1a.test.clusters) == (18, 3)
    gender = row(found, "AX-g", "gender_parity")
    assert (gender.value_a, gender.value_b, gender.test.n) == (1.0, pytest.approx(5 / 6), 6)
    judged = judge(parity, answer(parity, apart, "test"), "test")
    assert judged is not None
    assert gender.value_b == judged.figures["gender_parity"].value
    assert row(found, "AX-g", "accuracy").test.clusters == 6


def test_entities_have_the_best_of_the_right_names(tmp_path: Path) -> None:
    examples = [Example(str(n), ("P.", "@placeholder"), ("Anna Berg", "Berg")) for n in range(4)]
    data = task(spec("ReCoRD", "superglue"), examples)
    found = compared(
        tmp_path,
        "superglue",
        [(data, answer(data, ["Berg", "Anna", "Lund", "Lund"]))],
        [(data, answer(data, ["Lund"] * 4))],
    )
    assert (row(found, "ReCoRD", "em").value_a, row(found, "ReCoRD", "em").value_b) == (0.25, 0.0)
    assert row(found, "ReCoRD", "f1").value_a == pytest.approx((1 + 2 / 3) / 4)


def test_what_could_not_be_tested_is_named(tmp_path: Path) -> None:
    data, first, gold, _ = labelled(spec("CoLA"), 20)
    other, alone, *_ = labelled(spec("SST-2"), 20)
    blind = task(spec("MRPC"), [Example(str(n), ("A.", "B.")) for n in range(5)], "test")
    unlabelled = answer(blind, ["1"] * 5, "test")
    found = compared(
        tmp_path,
        "glue",
        [(data, first), (blind, unlabelled)],
        [(data, answer(data, gold)), (other, alone), (blind, unlabelled)],
    )
    told: list[tuple[str, Mapping[str, Any], str]] = [
        (one.task, one.settings, one.reason) for one in found.untested
    ]
    assert told == [
        ("MRPC", {"split": "test"}, "the data hold no labels of it"),
        ("SST-2", {"split": "dev"}, f"it is only in {tmp_path / 'b'}"),
    ]
    assert [one.metric for one in found.rows] == ["mcc"]
    with pytest.raises(EnsueError, match=r"nothing that could be tested .*MRPC.*: the data hold no labels"):
        compared(tmp_path / "c", "glue", [(blind, unlabelled)], [(blind, unlabelled)])
