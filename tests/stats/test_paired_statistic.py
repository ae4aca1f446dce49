"""Paired tests of metrics that are no means of items, and of two correlations, against what they are defined as."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from sklearn.metrics import f1_score, matthews_corrcoef

from ensue.metrics.classification import confusion_cells, f1, macro_f1, matthews
from ensue.stats.correlation import correlation_draws, percentile_interval
from ensue.stats.paired_statistic import (
    Numbers,
    Statistic,
    correlation_of_sums,
    exchange_p_value,
    mean_correlation,
    mean_over,
    paired_correlation_test,
    paired_difference,
    paired_statistic_test,
    products,
    williams_test,
)
from ensue.stats.resampling import one_hot
from ensue.stats.student import normal_quantile, student_quantile, two_sided_t, widened_tail

Codes = NDArray[np.int64]
Metric = Callable[[Sequence[int], Sequence[int]], float]


def macro(gold: Sequence[int], given: Sequence[int]) -> float:
    return float(f1_score(gold, given, average="macro", zero_division=0))


METRICS: dict[str, tuple[int, Callable[[Numbers], Numbers], Metric]] = {
    "mcc": (2, matthews, matthews_corrcoef),
    "f1": (2, f1, lambda gold, given: float(f1_score(gold, given, zero_division=0))),
    "macro f1": (3, macro_f1, macro),
    "r3": (3, matthews, matthews_corrcoef),
}


def in_table(measure: Callable[[Numbers], Numbers], classes: int) -> Statistic:
    return lambda sums: measure(sums.reshape(*sums.shape[:-1], classes, classes))


def table(gold: Codes, given: Codes, classes: int) -> Numbers:
    return one_hot(confusion_cells(gold, given, classes), classes**2)


def answers(generator: np.random.Generator, n: int, classes: int, right: float) -> tuple[Codes, Codes, Codes]:
    gold = generator.integers(0, classes, n)
    given = [
        np.where(generator.random(n) < share, gold, generator.integers(0, classes, n))
        for share in (right, right - 0.3)
    ]
    return gold, given[0], given[1]


@pytest.mark.parametrize("name", METRICS)
def test_all_exchanges_of_few_clusters_by_a_loop_with_scikit_learn(name: str) -> None:
    classes, measure, reference = METRICS[name]
    gold, a, b = answers(np.random.default_rng(3), 28, classes, 0.8)
    clusters = np.arange(28) // 4
    seen = reference(gold, a) - reference(gold, b)
    reached = []
    for pattern in product([False, True], repeat=7):
        exchanged = np.array(pattern)[clusters]
        one, other = np.where(exchanged, b, a), np.where(exchanged, a, b)
        reached.append(abs(reference(gold, one) - reference(gold, other)) >= abs(seen) - 1e-12)
    found = paired_statistic_test(
        table(gold, a, classes),
        table(gold, b, classes),
        clusters.tolist(),
        in_table(measure, classes),
        rounds=50,
    )
    assert found.difference == pytest.approx(seen)
    assert found.p_value == pytest.approx(np.mean(reached))
    assert (found.n, found.clusters) == (28, 7)


def test_random_exchanges_and_the_bootstrap_by_loops() -> None:
    def phi(gold: Codes, given: Codes) -> float:
        """Of two classes, Matthews' correlation is Pearson's."""
        return float(np.corrcoef(gold, given)[0, 1])

    generator = np.random.default_rng(5)
    gold, a, b = answers(generator, 240, 2, 0.7)
    clusters = generator.integers(0, 60, 240)
    statistic = in_table(matthews, 2)
    found = paired_statistic_test(table(gold, a, 2), table(gold, b, 2), clusters.tolist(), statistic)
    seen = phi(gold, a) - phi(gold, b)
    reached, drawn = 0, []
    members = [np.flatnonzero(clusters == cluster) for cluster in np.unique(clusters)]
    for _ in range(1_000):
        exchanged = (generator.random(60) < 0.5)[clusters]
        one, other = np.where(exchanged, b, a), np.where(exchanged, a, b)
        reached += abs(phi(gold, one) - phi(gold, other)) >= abs(seen)
        sample = np.concatenate(
            [members[place] for place in generator.integers(0, len(members), len(members))]
        )
        drawn.append(phi(gold[sample], a[sample]) - phi(gold[sample], b[sample]))
    # Four standard errors of a thousand draws.
    assert found.p_value == pytest.approx(reached / 1_000, abs=0.03)
    assert (found.low, found.high) == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.04)


def test_clusters_that_are_exchanged_whole_are_less_certain_than_their_items() -> None:
    generator = np.random.default_rng(2)
    gold = np.repeat(generator.integers(0, 2, 40), 10)
    a = np.where(np.repeat(generator.random(40) < 0.8, 10), gold, 1 - gold)
    b = np.where(np.repeat(generator.random(40) < 0.5, 10), gold, 1 - gold)
    one, other, statistic = table(gold, a, 2), table(gold, b, 2), in_table(f1, 2)
    alone = paired_statistic_test(one, other, list(range(400)), statistic)
    together = paired_statistic_test(one, other, (np.arange(400) // 10).tolist(), statistic)
    assert alone.difference == together.difference
    assert together.p_value > 2 * alone.p_value
    assert together.high - together.low > 2 * (alone.high - alone.low)  # type: ignore[operator]


def test_equal_answers_and_few_clusters() -> None:
    gold = np.array([0, 1, 0, 1, 1])
    right, wrong, statistic = table(gold, gold, 2), table(gold, 1 - gold, 2), in_table(f1, 2)
    same = paired_statistic_test(right, right, list("abcde"), statistic, rounds=100)
    assert same == (0.0, 0.0, 0.0, 1.0, 5, 5)
    # Five clusters cannot be told apart at 5 %, whatever they say; the interval must not claim it.
    found = paired_statistic_test(right, wrong, list("abcde"), statistic, rounds=100)
    assert found.difference == 1.0
    assert found.p_value == 2 / 32
    assert found.low == 0.0
    assert paired_statistic_test(right, wrong, list("aaaaa"), statistic) == (1.0, None, None, 1.0, 5, 1)
    with pytest.raises(ValueError, match="Two tables of one shape"):
        paired_statistic_test(right, wrong[:3], list("abc"), statistic)


def test_several_answers_count_as_the_mean_of_their_metrics() -> None:
    gold, a, b = answers(np.random.default_rng(8), 80, 2, 0.7)
    one, other = table(gold, a, 2), table(gold, b, 2)
    found = paired_statistic_test(
        np.hstack([one, other]), np.hstack([one, one]), list(range(80)), mean_over(in_table(f1, 2), 4)
    )
    expected = (f1_score(gold, a) + f1_score(gold, b)) / 2 - f1_score(gold, a)
    assert found.difference == pytest.approx(expected)
    assert found.p_value == pytest.approx(
        paired_statistic_test(other, one, list(range(80)), in_table(f1, 2)).p_value, abs=0.05
    )


@pytest.mark.parametrize(("kind", "scipys"), [("pearson", stats.pearsonr), ("spearman", stats.spearmanr)])
def test_correlations_by_a_loop_with_scipy(kind: str, scipys: Callable[..., tuple[float, float]]) -> None:
    generator = np.random.default_rng(4)
    gold = generator.normal(size=9).round(1)
    a = gold + generator.normal(size=9)
    # Another scale, which correlates no less for it.
    b = 100.0 + 7.0 * (gold + 2.0 * generator.normal(size=9))
    found = paired_correlation_test(kind, a, b, gold, list(range(9)), rounds=500)
    seen = scipys(a, gold)[0] - scipys(b, gold)[0]
    assert found.difference == pytest.approx(seen)
    own = [stats.rankdata(one) if kind == "spearman" else stats.zscore(one) for one in (a, b)]
    right = stats.rankdata(gold) if kind == "spearman" else gold
    reached = []
    for pattern in product([False, True], repeat=9):
        exchanged = np.array(pattern)
        one, other = np.where(exchanged, own[1], own[0]), np.where(exchanged, own[0], own[1])
        gap = np.corrcoef(one, right)[0, 1] - np.corrcoef(other, right)[0, 1]
        reached.append(abs(gap) >= abs(seen) - 1e-12)
    assert found.p_value == pytest.approx(np.mean(reached))


def test_the_correlation_of_several_sets_is_their_mean() -> None:
    generator = np.random.default_rng(6)
    gold, noise = generator.normal(size=90), generator.normal(size=(2, 90))
    sets = ["x"] * 50 + ["y"] * 40
    # The sets lie far apart, so that all in one would correlate with anything.
    a, b = gold + noise[0] + 9.0 * (np.arange(90) >= 50), gold + 2.0 * noise[1]
    parts = [slice(0, 50), slice(50, 90)]
    values = [np.mean([stats.pearsonr(given[part], gold[part])[0] for part in parts]) for given in (a, b)]
    assert [mean_correlation("pearson", given, gold, sets) for given in (a, b)] == pytest.approx(values)
    found = paired_correlation_test("pearson", a, b, gold, list(range(90)), sets, rounds=2_000)
    assert found.difference == pytest.approx(values[0] - values[1])
    drawn = []
    for _ in range(500):
        gaps = []
        for part in parts:
            sample = generator.integers(part.start, part.stop, part.stop - part.start)
            one, other = (np.corrcoef(given[sample], gold[sample])[0, 1] for given in (a, b))
            gaps.append(one - other)
        drawn.append(np.mean(gaps))
    assert (found.low, found.high) == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.05)


def test_a_constant_correlates_with_nothing() -> None:
    gold = np.arange(20.0)
    found = paired_correlation_test("pearson", np.full(20, 0.1), gold, gold, list(range(20)), rounds=500)
    assert found.difference == pytest.approx(-1.0)
    assert found.p_value < 0.01
    assert mean_correlation("spearman", np.full(20, 0.1), gold) == 0.0


def test_p_values_of_equal_systems_are_uniform_and_intervals_hold_the_truth() -> None:
    """Two systems that are right equally often, items in clusters of three that share their difficulty."""
    generator = np.random.default_rng(0)
    statistic = in_table(matthews, 2)
    p_values, held = [], 0
    trials = 300
    for trial in range(trials):
        gold = (generator.random(150) < 0.7).astype(np.int64)
        chance = np.repeat(generator.beta(4, 2, 50), 3)
        a, b = (np.where(generator.random(150) < chance, gold, 1 - gold) for _ in range(2))
        clusters = (np.arange(150) // 3).tolist()
        found = paired_statistic_test(
            table(gold, a, 2), table(gold, b, 2), clusters, statistic, rounds=400, seed=trial
        )
        assert found.low is not None
        assert found.high is not None
        p_values.append(found.p_value)
        held += found.low <= 0.0 <= found.high
    # Kolmogorov's distance of 300 uniform numbers exceeds 0.094 once in a hundred.
    assert stats.kstest(p_values, "uniform").statistic < 0.094
    assert 0.02 <= np.mean(np.array(p_values) <= 0.05) <= 0.085
    assert held / trials >= 0.92


def test_ten_thousand_rounds_of_many_items_are_counted_not_looped() -> None:
    """As many exchanges as a loop could never make: the p-value of 3,270 items is that of the normal."""
    gold, a, b = answers(np.random.default_rng(1), 3_270, 2, 0.62)
    b = np.where(np.random.default_rng(2).random(3_270) < 0.9, a, b)
    one, other = table(gold, a, 2), table(gold, b, 2)
    codes = np.arange(3_270)
    right = (gold == a).astype(float) - (gold == b)
    normal = 2.0 * stats.norm.sf(abs(right.sum()) / np.sqrt((right**2).sum()))
    found = exchange_p_value(
        one, other, codes, lambda sums: (sums[..., 0] + sums[..., 3]) / sums.sum(axis=-1)
    )
    assert found == pytest.approx(normal, abs=0.02)


@given(st.floats(-50, 50), st.integers(1, 5_000))
def test_the_tail_of_t_is_scipys(t: float, df: int) -> None:
    expected = 2 * stats.t.sf(abs(t), df)
    assert two_sided_t(t, df) == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_the_tail_of_t_at_its_ends() -> None:
    assert two_sided_t(0.0, 7) == pytest.approx(1.0)
    assert two_sided_t(math.inf, 7) == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(ValueError, match="degree of freedom"):
        two_sided_t(1.0, 0)


def test_williams_test_gives_what_the_r_package_psych_prints() -> None:
    """`r.test(103, .4, .5, .1)` prints t = -0.89 with probability 0.37."""
    found = williams_test(0.4, 0.5, 0.1, 103)
    assert (round(found.t, 2), found.df, round(found.p_value, 2)) == (-0.89, 100, 0.37)
    turned = williams_test(0.5, 0.4, 0.1, 103)
    assert turned.t == -found.t
    assert turned.p_value == found.p_value


def test_williams_p_values_are_even_where_two_metrics_are_alike() -> None:
    generator = np.random.default_rng(0)
    found = []
    for _ in range(1_500):
        human, a, b = generator.normal(size=(3, 40))
        a, b = human + a, human + b
        r = np.corrcoef([a, b, human])
        found.append(williams_test(r[0, 2], r[1, 2], r[0, 1], 40).p_value)
    assert stats.kstest(found, "uniform").pvalue > 0.01


def test_williams_at_its_ends() -> None:
    assert williams_test(0.3, 0.3, 1.0, 20) == (0.0, 17, 1.0)
    assert 0.0 <= williams_test(1.0, 0.2, 0.2, 20).p_value < 1e-6
    with pytest.raises(ValueError, match="four items"):
        williams_test(0.1, 0.2, 0.3, 3)
    with pytest.raises(ValueError, match="between -1 and 1"):
        williams_test(1.1, 0.2, 0.3, 30)


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=2, max_size=40))
def test_the_paired_p_value_is_counted(draws: list[tuple[float, float]]) -> None:
    a, b = ([pair[side] for pair in draws] for side in (0, 1))
    found = paired_difference(0.5, 0.25, a, b, 12)
    gaps = [one - other for one, other in draws]
    rarer = min(sum(gap <= 0 for gap in gaps), sum(gap >= 0 for gap in gaps))
    assert found.difference == 0.25
    assert found.p_value == min(1.0, 2 * (rarer + 1) / (len(gaps) + 1))
    tail = stats.norm.cdf(-math.sqrt(12 / 11) * stats.t.ppf(0.975, 11))
    assert found.low == pytest.approx(np.quantile(gaps, tail))
    assert found.high == pytest.approx(np.quantile(gaps, 1.0 - tail))


def test_rounds_without_a_correlation_are_left_out_and_too_many_leave_nothing() -> None:
    nan = math.nan
    assert paired_difference(0.1, 0.0, [0.2, nan, 0.2, 0.3], [0.0] * 4, 9).p_value == 0.5
    assert paired_difference(0.1, 0.0, [0.2, nan, nan, nan], [0.0] * 4, 9) == (0.1, None, None, None)
    with pytest.raises(ValueError, match="round by round"):
        paired_difference(0.1, 0.0, [0.1], [0.1, 0.2], 9)


def test_equal_seeds_make_draws_that_belong_together() -> None:
    """Two near copies of one metric: their difference hardly varies, though each correlation does."""
    generator = np.random.default_rng(5)
    human = generator.normal(size=120)
    a = human + generator.normal(size=120)
    b = a + 0.01 * generator.normal(size=120)
    first, second = (correlation_draws(metric, human, seed=3).pearson for metric in (a, b))
    assert first.std() > 0.03
    assert (first - second).std() < 0.005


def test_bootstrap_and_williams_agree_where_williams_holds() -> None:
    generator = np.random.default_rng(11)
    human = generator.normal(size=400)
    a, b = human + 1.4 * generator.normal(size=400), human + 2.0 * generator.normal(size=400)
    r = np.corrcoef([a, b, human])
    williams = williams_test(r[0, 2], r[1, 2], r[0, 1], 400)
    draws = [correlation_draws(metric, human, rounds=4_000).pearson for metric in (a, b)]
    paired = paired_difference(r[0, 2], r[1, 2], *draws, 400)
    assert paired.p_value == pytest.approx(williams.p_value, abs=0.02)


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("df", [1, 2.5, 30])
def test_quantiles_are_scipys(level: float, df: float) -> None:
    assert student_quantile(level, df) == pytest.approx(stats.t.ppf((1 + level) / 2, df))
    assert normal_quantile(level) == pytest.approx(stats.norm.ppf((1 + level) / 2))


@pytest.mark.parametrize("units", [2, 6, 40])
def test_draws_of_few_units_lose_less_at_either_end(units: int) -> None:
    expected = stats.norm.cdf(-math.sqrt(units / (units - 1)) * stats.t.ppf(0.975, units - 1))
    assert widened_tail(0.95, units) == pytest.approx(expected)
    assert widened_tail(0.95, units) < 0.025


@pytest.mark.parametrize("kind", ["pearson", "spearman"])
@pytest.mark.parametrize("ways", [1, 2])
def test_intervals_of_correlations_are_those_of_their_draws_by_cluster_and_set(kind: str, ways: int) -> None:
    """Two sets of clusters of three; each set has draws of its own seed, a fifth as many as exchanges."""
    generator = np.random.default_rng(9)
    gold = generator.normal(size=72)
    a, b = (gold[:, None] + noise * generator.normal(size=(72, ways)) for noise in (0.4, 1.0))
    clusters = [f"c{place // 3}" for place in range(72)]
    sets = ["x"] * 42 + ["y"] * 30
    found = paired_correlation_test(kind, a, b, gold, clusters, sets, rounds=455, seed=4)
    draws = []
    for scores in (a, b):
        drawn = [
            getattr(
                correlation_draws(scores[part, way], gold[part], clusters[part], rounds=91, seed=seed), kind
            )
            for part, seed in ((slice(0, 42), 4), (slice(42, 72), 5))
            for way in range(ways)
        ]
        draws.append(np.mean(drawn, axis=0))
    expected = percentile_interval(draws[0] - draws[1], 24)
    assert (found.low, found.high) == pytest.approx(expected)
    assert (found.n, found.clusters) == (72, 24)
    reference = stats.pearsonr if kind == "pearson" else stats.spearmanr
    values = [
        np.mean(
            [
                reference(scores[part, way], gold[part])[0]
                for part in (slice(0, 42), slice(42, 72))
                for way in range(ways)
            ]
        )
        for scores in (a, b)
    ]
    assert found.difference == pytest.approx(values[0] - values[1])
    # So many exchanges, the observed one counted in; the same for the same seed.
    assert round(found.p_value * 456) == pytest.approx(found.p_value * 456)
    again = paired_correlation_test(kind, a, b, gold, clusters, sets, rounds=455, seed=4)
    assert again == found
    assert paired_correlation_test(kind, a, b, gold, clusters, sets, rounds=455, seed=5) != found


def test_exchanges_of_correlations_move_whole_clusters() -> None:
    generator = np.random.default_rng(10)
    gold = generator.normal(size=15)
    a, b = gold + generator.normal(size=15), gold + 1.5 * generator.normal(size=15)
    clusters = np.arange(15) // 3
    found = paired_correlation_test("pearson", a, b, gold, clusters.tolist(), rounds=50)
    own = [stats.zscore(one) for one in (a, b)]
    seen = np.corrcoef(a, gold)[0, 1] - np.corrcoef(b, gold)[0, 1]
    reached = []
    for pattern in product([False, True], repeat=5):
        exchanged = np.array(pattern)[clusters]
        one, other = np.where(exchanged, own[1], own[0]), np.where(exchanged, own[0], own[1])
        gap = np.corrcoef(one, gold)[0, 1] - np.corrcoef(other, gold)[0, 1]
        reached.append(abs(gap) >= abs(seen) - 1e-12)
    assert found.p_value == pytest.approx(np.mean(reached))


def test_ten_thousand_exchanges_with_seed_nought_unless_said_otherwise() -> None:
    generator = np.random.default_rng(12)
    gold, a, b = generator.normal(size=(3, 20))
    names = list(range(20))
    assert paired_correlation_test("pearson", a, b, gold, names) == paired_correlation_test(
        "pearson", a, b, gold, names, None, rounds=10_000, seed=0
    )
    one, other = one_hot(generator.integers(0, 2, 40), 2), one_hot(generator.integers(0, 2, 40), 2)

    def share(sums: Numbers) -> Numbers:
        return np.asarray(sums[..., 0] / sums.sum(axis=-1))

    names = list(range(40))
    assert paired_statistic_test(one, other, names, share) == paired_statistic_test(
        one, other, names, share, rounds=10_000, seed=0
    )
    codes = np.arange(40)
    assert exchange_p_value(one, other, codes, share) == exchange_p_value(
        one, other, codes, share, rounds=10_000, seed=0
    )
    found = exchange_p_value(one, other, codes, share, rounds=99, seed=3)
    assert found == exchange_p_value(one, other, codes, share, rounds=99, seed=3)
    assert round(100 * found) == pytest.approx(100 * found)
    assert paired_correlation_test("pearson", a, b, gold, list(range(20)), rounds=1).p_value in (0.5, 1.0)


def test_narrow_numbers_are_tested_in_double() -> None:
    gold = np.array([3000, 3002, 2001, 7, 11, 5])
    a, b = np.array([1, 4000, 2001, 9, 4002, 6]), np.array([3004, 2002, 100, 7, 50, 2001])
    narrow = [one.astype(np.float16) for one in (a, b, gold)]
    for kind in ("pearson", "spearman"):
        expected = paired_correlation_test(kind, a, b, gold, list(range(6)), rounds=50)
        for place in range(3):
            given = [narrow[place] if place == i else one for i, one in enumerate((a, b, gold))]
            assert paired_correlation_test(kind, *given, list(range(6)), rounds=50) == expected
        assert mean_correlation(kind, narrow[0], narrow[2]) == mean_correlation(kind, a, gold)
    summed = products(narrow[0], narrow[2])
    assert summed.tolist() == products(a, gold).tolist()
    assert summed[1].tolist() == [1, 4000, 3002, 4000**2, 3002**2, 4000 * 3002]
    draws = np.array([2049.0, 2052.0, 2055.0]), np.array([1.0, 2.0, 3.0])
    one = paired_difference(0.5, 0.25, draws[0].astype(np.int16), draws[1].astype(np.int8), 9)
    assert one == paired_difference(0.5, 0.25, *draws, 9)


@pytest.mark.parametrize(
    ("a", "b", "gold"), [([1, 2, 3], [1, 2], [1, 2, 3]), ([1, 2], [1, 2], [1, 2, 3]), ([1], [1, 2], [1])]
)
def test_scores_of_other_shapes_are_refused(a: list[float], b: list[float], gold: list[float]) -> None:
    with pytest.raises(ValueError, match="Scores of one shape are needed"):
        paired_correlation_test("pearson", a, b, gold, list(range(len(gold))))


@pytest.mark.parametrize("wrong", [([1.0], [1.0]), ([[1.0]], [[1.0], [2.0]]), ([[]], [[]])])
def test_tables_that_are_none_are_refused(wrong: tuple[list[float], list[float]]) -> None:
    with pytest.raises(ValueError, match="Two tables of one shape"):
        paired_statistic_test(*wrong, ["a"], lambda sums: sums[..., 0])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e-7, 1.0, 1e7])
def test_the_correlation_of_sums_is_numpys_at_any_scale_and_nought_of_constants(scale: float) -> None:
    generator = np.random.default_rng(13)
    for n in (2, 3, 10):
        x, y = generator.normal(size=(2, n))
        expected = np.corrcoef(x, y)[0, 1]
        for one, other in ((x * scale, y), (x, y * scale), (x * scale, y / scale)):
            found = float(correlation_of_sums(products(one, other).sum(axis=0)))
            assert found == pytest.approx(expected, abs=1e-6)
            for perfect in (one, -one):
                assert abs(float(correlation_of_sums(products(one, perfect).sum(axis=0)))) <= 1.0
        for value in (0.0, 0.1 * scale, scale / 3):
            constant = np.full(n, value)
            for pair in ((constant, y * scale), (y * scale, constant), (constant, constant)):
                assert float(correlation_of_sums(products(*pair).sum(axis=0))) == 0.0
            assert mean_correlation("pearson", constant, y) == 0.0
            assert mean_correlation("pearson", y, constant) == 0.0
    # Of many sums at once each has its own.
    table = np.array([products([1, 2, 3], [2, 4, 7]).sum(axis=0), products([1, 1], [2, 3]).sum(axis=0)])
    assert correlation_of_sums(table).tolist() == pytest.approx([0.9933993, 0.0])


def test_williams_at_its_borders() -> None:
    assert williams_test(0.5, 0.2, 0.3, 4).df == 1
    assert williams_test(-1.0, 0.2, -0.2, 20).p_value < 1e-6
    with pytest.raises(ValueError, match="between -1 and 1"):
        williams_test(-1.1, 0.2, 0.3, 30)
    # Two that say the same and yet correlate differently with people cannot be: no chance at all.
    assert williams_test(0.5, 0.2, 1.0, 20) == (math.inf, 17, 0.0)
    assert williams_test(0.2, 0.5, 1.0, 20) == (-math.inf, 17, 0.0)
    assert williams_test(-0.2, -0.5, 1.0, 20).t == math.inf


def test_a_difference_without_an_interval_is_one_all_the_same() -> None:
    assert paired_difference(0.5, 0.2, [math.nan] * 3, [0.0] * 3, 9) == (0.3, None, None, None)
    assert paired_difference(0.5, 0.2, [0.1, 0.2], [0.0, 0.1], 1) == (0.3, None, None, None)
