"""Figures against scikit-learn and scipy, their intervals, and averages that say what they cover."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import f1_score
from sklearn.metrics.pairwise import cosine_similarity

from ensue.benchmarks.base import content_of
from ensue.benchmarks.drawn import Drawn, mean_of_samples
from ensue.benchmarks.senteval.answering import cosine, pair_features
from ensue.benchmarks.senteval.data import TASKS, chosen
from ensue.benchmarks.senteval.judging import (
    PartAnswers,
    TaskFigures,
    accuracy_figure,
    f1_figure,
    figures_of,
    group_rows,
    has_correlation,
    items_of,
    over_sets,
    task_rows,
)
from ensue.errors import EnsueError
from ensue.metrics.classification import confusion_cells, f1
from ensue.stats.clustered import clustered_interval
from ensue.stats.correlation import correlation_draws
from ensue.stats.resampling import confusion_draws


def _answers(n: int, seed: int = 0) -> PartAnswers:
    generator = np.random.default_rng(seed)
    gold = np.round(generator.uniform(0, 5, n), 1)
    given = gold + generator.normal(scale=2, size=n)
    ids = [f"set/{i}" for i in range(n)]
    texts = [("One.", "Another.")] * n
    return PartAnswers(
        "STS12", {"split": "test", "subset": "set"}, ids, texts, gold, given, given_name="similarity"
    )


def test_cosine_is_scikit_learns_and_zero_vectors_have_none() -> None:
    generator = np.random.default_rng(0)
    a, b = generator.normal(size=(2, 50, 8)).astype(np.float32)
    np.testing.assert_allclose(cosine(a, b), np.diag(cosine_similarity(a, b)), atol=1e-6)
    assert cosine(a[:2] * 0, b[:2]).tolist() == [0.0, 0.0]


def test_pair_features_do_not_depend_on_the_order_of_the_pair() -> None:
    a, b = np.random.default_rng(1).normal(size=(2, 5, 4)).astype(np.float32)
    assert pair_features(a, b).tolist() == pair_features(b, a).tolist()
    assert pair_features(a, b).shape == (5, 8)
    assert pair_features(a, b)[2, 5] == a[2, 1] * b[2, 1]


def test_correlations_and_their_intervals() -> None:
    answers = _answers(300)
    figures = figures_of(answers)
    assert figures["pearson"].value == pytest.approx(stats.pearsonr(answers.given, answers.gold).statistic)
    assert figures["spearman"].value == pytest.approx(stats.spearmanr(answers.given, answers.gold).statistic)
    for metric, figure in figures.items():
        row = figure.row("STS12", metric, answers.settings)
        low, high = row["ci95"]
        assert low is not None
        assert high is not None
        assert low < row["value"] < high
        assert (row["n"], row["settings"]) == (300, {"split": "test", "subset": "set"})


def test_one_pair_has_no_correlation_and_constant_answers_count_as_0() -> None:
    with pytest.raises(EnsueError, match="STS12 has 1 example"):
        figures_of(_answers(1))
    answers = _answers(20)
    constant = PartAnswers("STS12", {}, answers.ids, answers.texts, answers.gold, np.full(20, 0.3))
    assert figures_of(constant)["pearson"].row("STS12", "pearson", {})["ci95"] == [None, None]
    assert figures_of(constant)["spearman"].value == 0.0


def test_accuracy_and_its_interval_are_those_of_the_bootstrap() -> None:
    generator = np.random.default_rng(2)
    gold, given = generator.integers(0, 3, size=(2, 400)).astype(float)
    found = accuracy_figure(gold, given)
    reference = clustered_interval(gold == given, range(400), bounds=(0, 1))
    assert found.value == reference.value
    assert found.draws is not None
    assert found.interval() == pytest.approx((reference.low, reference.high), abs=0.01)


def test_f1_is_scikit_learns_in_every_draw_of_the_bootstrap() -> None:
    generator = np.random.default_rng(3)
    gold = generator.integers(0, 2, 300).astype(float)
    given = np.where(generator.random(300) < 0.75, gold, 1 - gold)
    found = f1_figure(gold, given)
    assert found.value == pytest.approx(f1_score(gold, given))
    places = generator.integers(0, 300, size=(600, 300))
    reference = [f1_score(gold[drawn], given[drawn]) for drawn in places]
    assert found.draws is not None
    assert found.interval() == pytest.approx(tuple(np.quantile(reference, [0.025, 0.975])), abs=0.015)
    assert f1_figure(np.zeros(4), np.zeros(4)).value == 0.0


def test_items_hold_what_is_needed_to_score_again() -> None:
    ids, gold, given = ["dev/1", "dev/2"], np.array([0.0, 1.0]), np.array([1.0, 1.0])
    answers = PartAnswers(
        "TREC", {"split": "dev"}, ids, [("Why?",), ("Who?",)], gold, given, ("ABBR", "DESC")
    )
    first, second = items_of(answers)
    assert (first["id"], first["task"], first["settings"]) == ("TREC/dev/1", "TREC", {"split": "dev"})
    assert first["outputs"] == {"label": "ABBR", "predicted": "DESC"}
    assert (first["scores"], second["scores"]) == ({"accuracy": 0.0}, {"accuracy": 1.0})
    (item, *_) = items_of(_answers(3))
    assert set(item["outputs"]) == {"gold", "similarity"}
    assert item["scores"] == {}


def test_the_interval_of_a_mean_is_narrower_than_those_of_its_parts() -> None:
    figures = [figures_of(_answers(200, seed))["pearson"] for seed in range(4)]
    mean = mean_of_samples(figures)
    assert mean.value == pytest.approx(np.mean([figure.value for figure in figures]))
    assert mean.n == 800

    def width(figure: Drawn) -> float:
        assert figure.draws is not None
        low, high = figure.interval()
        assert low is not None
        assert high is not None
        return high - low

    assert width(mean) == pytest.approx(np.mean([width(figure) for figure in figures]) / 2, rel=0.2)
    assert mean_of_samples([figures[0], Drawn(0.5, None, 10)]).draws is None


def test_sets_of_a_year_are_averaged_plainly_and_by_size() -> None:
    sets = [figures_of(_answers(n, n)) for n in (50, 150)]
    found = over_sets(TASKS["STS12"], sets, {"layer": 2})
    values = [one["pearson"].value for one in sets]
    rows = list(task_rows(found))
    assert {row["task"] for row in rows} == {"STS12"}
    assert [(row["metric"], row["settings"]) for row in rows] == [
        ("pearson", {"split": "test", "layer": 2}),
        ("spearman", {"split": "test", "layer": 2}),
        ("pearson", {"split": "test", "layer": 2, "average": "weighted"}),
        ("spearman", {"split": "test", "layer": 2, "average": "weighted"}),
    ]
    assert rows[0]["value"] == pytest.approx(np.mean(values))
    assert rows[2]["value"] == pytest.approx(np.average(values, weights=[50, 150]))


def test_groups_are_averaged_over_what_is_there_and_say_what_is_not() -> None:
    def figures(name: str, split: str, value: float) -> TaskFigures:
        task = TASKS[name]
        one = {task.metric: Drawn(value, None, 10)}
        return TaskFigures(task, {"split": split, "protocol": "paper"}, one, {})

    found = [
        figures("STSBenchmark", "test", 0.6),
        figures("SICKEntailment", "test", 0.8),
        figures("MR", "dev", 0.7),
        figures("MR", "test", 0.5),
    ]
    rows = list(group_rows(found, chosen("")))
    assert [(row["task"], row["metric"], row["value"]) for row in rows] == [
        ("SSS", "average", pytest.approx(0.7)),
        ("SC", "accuracy", 0.7),
        ("SC", "accuracy", 0.5),
    ]
    assert rows[0]["settings"] == {
        "split": "test",
        "protocol": "paper",
        "covers": "2 of 3 tasks",
        "tasks": "STSBenchmark,SICKEntailment",
        "missing": "SICKRelatedness",
    }
    limited = list(group_rows(found, chosen(""), 20))
    assert limited[0]["settings"]["covers"] == "2 of 3 tasks, the first 20 lines of each file"
    assert list(group_rows(found, chosen("MR"))) == []


def test_uss_is_the_plain_mean_over_years_of_the_plain_mean_over_sets() -> None:
    years = {"STS12": {"a": (0.2, 10), "b": (0.6, 30)}, "STS13": {"c": (0.9, 100)}}
    found = []
    for year, sets in years.items():
        figures = [
            {"pearson": Drawn(value, None, n), "spearman": Drawn(value + 0.05, None, n)}
            for value, n in sets.values()
        ]
        found.append(over_sets(TASKS[year], figures, {}))
    rows = list(group_rows(found, chosen("USS")))
    values = {(row["metric"], row["settings"].get("average")): row["value"] for row in rows}
    # 0.4 and 0.9 by set; 0.5 and 0.9 by pairs: the years themselves are never weighted.
    assert values == {
        ("pearson", None): pytest.approx(0.65),
        ("spearman", None): pytest.approx(0.7),
        ("pearson", "weighted"): pytest.approx(0.7),
        ("spearman", "weighted"): pytest.approx(0.75),
    }


def test_the_years_of_sts_have_four_averages() -> None:
    """Plain and weighted by size, of both correlations."""

    def year(name: str, *values: float) -> TaskFigures:
        pearson, spearman, heavy_pearson, heavy_spearman = (Drawn(value, None, 10) for value in values)
        settings = {"split": "test"}
        plain = {"pearson": pearson, "spearman": spearman}
        return TaskFigures(
            TASKS[name], settings, plain, {"pearson": heavy_pearson, "spearman": heavy_spearman}
        )

    found = [year("STS12", 0.1, 0.2, 0.3, 0.4), year("STS13", 0.5, 0.6, 0.7, 1.0)]
    rows = list(group_rows(found, [TASKS["STS12"], TASKS["STS13"]]))
    place = {"split": "test", "tasks": "STS12,STS13", "covers": "2 of 2 tasks"}
    assert [(row["task"], row["metric"], row["settings"]) for row in rows] == [
        ("USS", "pearson", place),
        ("USS", "spearman", place),
        ("USS", "pearson", {**place, "average": "weighted"}),
        ("USS", "spearman", {**place, "average": "weighted"}),
    ]
    assert [row["value"] for row in rows] == pytest.approx([0.3, 0.4, 0.5, 0.7])


def test_items_of_scores_hold_both_numbers_and_stand_alone() -> None:
    answers = _answers(2)
    for item, name, gold, given in zip(
        items_of(answers), answers.ids, answers.gold, answers.given, strict=True
    ):
        assert item["id"] == item["cluster"] == f"STS12/{name}"
        assert item["outputs"] == {"gold": gold, "similarity": given}
        assert item["settings"] == {"split": "test", "subset": "set"}


def test_f1_is_reported_where_it_is_asked_for() -> None:
    gold, given = np.array([1.0, 1.0, 0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0, 1.0, 1.0])
    texts = [("One.", "Another.")] * 5
    asked = PartAnswers("MRPC", {}, [*"abcde"], texts, gold, given, ("0", "1"), f1=True)
    figures = figures_of(asked)
    assert (figures["accuracy"].value, figures["f1"].value) == (pytest.approx(3 / 5), pytest.approx(4 / 6))
    assert (figures["accuracy"].n, figures["f1"].n) == (5, 5)
    assert set(figures_of(PartAnswers("MR", {}, [*"abcde"], texts, gold, given, ("0", "1")))) == {"accuracy"}


def test_a_correlation_needs_both_to_vary() -> None:
    answers = _answers(5)
    flat = np.full(5, 2.0)
    assert has_correlation(answers)
    # Cosines lie close together and correlate all the same.
    close = PartAnswers("STS12", {}, answers.ids, answers.texts, answers.gold / 100, answers.given / 100)
    assert has_correlation(close)
    for gold, given in ((flat, answers.given), (answers.gold, flat)):
        assert not has_correlation(PartAnswers("STS12", {}, answers.ids, answers.texts, gold, given))


def test_draws_by_the_formula() -> None:
    """Accuracy's are beta draws, F1's those of confusion tables, all of one seed."""
    gold, given = np.array([1.0, 1.0, 0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0, 1.0, 1.0])
    expected = np.random.default_rng(0).beta(3.5, 2.5, size=2_000)
    found = accuracy_figure(gold, given)
    np.testing.assert_array_equal(found.draws, expected)  # type: ignore[arg-type]
    assert (found.value, found.n, found.bounds) == (0.6, 5, (0.0, 1.0))
    tables = confusion_draws(confusion_cells(gold, given, 2), 2, rounds=2_000)
    np.testing.assert_array_equal(f1_figure(gold, given).draws, f1(tables))  # type: ignore[arg-type]
    scores = _answers(9)
    both = correlation_draws(scores.given, scores.gold, rounds=2_000)
    for metric, drawn in zip(("pearson", "spearman"), both, strict=True):
        figure = figures_of(scores)[metric]
        np.testing.assert_array_equal(figure.draws, drawn)  # type: ignore[arg-type]
        assert (figure.n, figure.bounds) == (9, (-1.0, 1.0))


def test_every_field_of_an_item() -> None:
    texts = [("Why?", "So."), ("Who?", "We.")]
    answers = PartAnswers(
        "TREC",
        {"split": "dev"},
        ["dev/1", "dev/2"],
        texts,
        np.array([0.0, 1.0]),
        np.array([1.0, 1.0]),
        ("A", "D"),
    )
    first, second = items_of(answers)
    assert first == {
        "id": "TREC/dev/1",
        "cluster": "TREC/dev/1",
        "task": "TREC",
        "settings": {"split": "dev"},
        "scores": {"accuracy": 0.0},
        "outputs": {"label": "A", "predicted": "D"},
        "content": content_of(texts[0], "A"),
        "asked": content_of(texts[0]),
    }
    assert second["content"] == content_of(texts[1], "D")
    scores = PartAnswers(
        "STS12", {}, ["1"], texts[:1], np.array([2.5]), np.array([0.5]), given_name="similarity"
    )
    (item,) = items_of(scores)
    assert item["content"] == content_of(texts[0], 2.5)
    for short in (answers.ids[:1], [*answers.ids, "x"]):
        with pytest.raises(ValueError, match="zip"):
            list(items_of(replace(answers, ids=short)))


def test_one_example_has_no_correlation() -> None:
    with pytest.raises(EnsueError, match=r"STS12 has 1 example where a correlation needs two; raise --limit"):
        figures_of(_answers(1))
    assert set(figures_of(_answers(2))) == {"pearson", "spearman"}


def test_groups_are_those_of_every_split_in_the_order_of_the_suite() -> None:
    def figures(name: str, split: str, value: float) -> TaskFigures:
        task = TASKS[name]
        return TaskFigures(task, {"split": split, "layer": 1}, {task.metric: Drawn(value, None, 10)}, {})

    found = [
        figures(name, split, value)
        for name, value in (("MR", 0.5), ("CR", 0.75))
        for split in ("dev", "test")
    ]
    found += [figures("Length", "test", 0.25), figures("Depth", "test", 0.75)]
    rows = list(group_rows(found, [one.task for one in found]))
    assert [(row["task"], row["settings"]["split"], row["value"], row["n"]) for row in rows] == [
        ("SC", "dev", 0.625, 20),
        ("SC", "test", 0.625, 20),
        ("Probing", "test", 0.5, 20),
    ]
    assert {row["metric"] for row in rows} == {"accuracy"}
    assert rows[0]["settings"] == {
        "split": "dev",
        "layer": 1,
        "covers": "2 of 2 tasks",
        "tasks": "MR,CR",
    }
