"""Intervals of clustered means and ratios: against scipy's formulas, loops, and what 95 % promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ensue.stats.clustered import (
    MADE_UP,
    Interval,
    cluster_sums,
    clustered_interval,
    clustered_ratio,
    mean_interval,
    wilson,
)
from ensue.stats.ranges import POSITIVE, SHARE, UNBOUNDED, range_holding, range_of

items = st.lists(
    st.tuples(st.sampled_from([0.0, 0.5, 1.0, -2.25]), st.sampled_from("abcde")), min_size=1, max_size=30
)


def jackknife_t(numerators, denominators, clusters, level=0.95):
    """The textbook loop: leave out one cluster after the other, and Student's t of what is left."""
    names = list(dict.fromkeys(clusters))
    table = np.array([numerators, denominators], dtype=float)
    owner = np.array([names.index(name) for name in clusters])
    ratio = table[0].sum() / table[1].sum()
    without = []
    for place in range(len(names)):
        top, bottom = table[:, owner != place].sum(axis=1)
        without.append(top / bottom)
    count = len(names)
    error = math.sqrt((count - 1) / count * sum((one - ratio) ** 2 for one in without))
    weights = np.bincount(owner, weights=table[1])
    df = max(1.0, weights.sum() ** 2 / (weights**2).sum() - 1.0)
    half = stats.t.ppf((1 + level) / 2, df) * error
    return ratio - half, ratio + half


def clustered_answers(generator, sizes, accuracy, alike):
    """Right-or-wrong answers whose clusters have beta-distributed accuracies with that intra-cluster correlation."""
    chances = np.full(len(sizes), float(accuracy))
    if 0.0 < accuracy < 1.0 and alike > 0.0:
        strength = 1.0 / alike - 1.0
        chances = generator.beta(accuracy * strength, (1.0 - accuracy) * strength, size=len(sizes))
    values = (generator.random(sum(sizes)) < np.repeat(chances, sizes)).astype(float)
    return values, np.repeat(np.arange(len(sizes)), sizes).tolist()


@pytest.mark.parametrize("n", [2, 5, 56])
def test_independent_right_or_wrong_answers_have_wilsons_interval(n):
    for right in {0, 1, n // 2, n}:
        reference = stats.binomtest(right, n).proportion_ci(method="wilson")
        found = clustered_interval([1.0] * right + [0.0] * (n - right), range(n), bounds=SHARE)
        assert found[:3] == pytest.approx((right / n, reference.low, reference.high))
    assert clustered_interval([1.0] * n, range(n), bounds=SHARE).high == 1.0
    assert clustered_interval([0.0] * n, range(n), bounds=SHARE).low == 0.0


def test_five_perfect_documents_are_not_certain():
    found = clustered_interval([1.0] * 100, [item // 20 for item in range(100)], bounds=SHARE)
    reference = stats.binomtest(5, 5).proportion_ci(method="wilson")
    assert found == Interval(1.0, pytest.approx(reference.low), 1.0, 100, 5)


def test_clusters_of_a_formula_worked_by_hand():
    # Sums 3, 1 and 2 of four: a mean of 1/2, residuals 1, -1, 0 times 3/2, so that two thirds of 4.5 lie between
    # clusters; three right-or-wrong twelfths have 12 / 4 = 3; a cluster of four is made up in part.
    values = [1, 1, 1, 0, 1, 0, 0, 0, 1, 1, 0, 0]
    found = clustered_interval(values, [item // 4 for item in range(12)], bounds=SHARE)
    effect = (3.0 + MADE_UP * 16) / (3.0 + MADE_UP * 4)
    low, high = wilson(0.5, 12 / effect, stats.t.ppf(0.975, 2))
    assert found == Interval(0.5, pytest.approx(low), pytest.approx(high), 12, 3)


def test_values_between_the_ends_make_up_less():
    # Halves spread a quarter of what right and wrong would: at 3/8, 4 * 1/16 - 4 * 1/64 of 4 * 15/64.
    found = clustered_interval([0.5, 0.5, 0.5, 0.0], range(4), bounds=SHARE)
    between = 0.75 * ((0.125 / 0.75) ** 2 * 3 + (0.375 / 0.75) ** 2)
    made_up = MADE_UP * (3 / 64 + 9 / 64) / (15 / 16)
    effect = (between + made_up) / (15 / 16 + made_up)
    assert found[1:3] == pytest.approx(wilson(0.375, 4 / effect, stats.t.ppf(0.975, 3)))


def test_the_ends_need_not_be_0_and_1():
    values, clusters = np.random.default_rng(1).random(200), [i // 4 for i in range(200)]
    plain = clustered_interval(values, clusters, bounds=SHARE)
    moved = clustered_interval(values * 6.0 - 4.0, clusters, bounds=(-4.0, 2.0))
    assert moved[:3] == pytest.approx([end * 6.0 - 4.0 for end in plain[:3]])


@pytest.mark.parametrize(
    ("clusters", "size", "accuracy", "alike"),
    [(5, 1, 0.8, 0.0), (5, 20, 0.8, 0.3), (5, 20, 0.99, 0.3), (10, 20, 0.5, 0.05), (100, 20, 0.99, 0.3)],
)
def test_covers_the_truth_about_as_often_as_it_says(clusters, size, accuracy, alike):
    # The percentile bootstrap covers 0.67, 0.80, 0.24 and 0.85 of the first three and the last (bench/coverage.py).
    generator = np.random.default_rng(8)
    covered = 0
    for _ in range(300):
        values, names = clustered_answers(generator, [size] * clusters, accuracy, alike)
        found = clustered_interval(values, names, bounds=SHARE)
        covered += found.low <= accuracy <= found.high
    assert covered / 300 >= 0.92


def test_does_not_cover_more_than_it_must_where_clusters_are_many():
    generator = np.random.default_rng(9)
    covered, widths, sizes = 0, [], generator.integers(2, 9, size=60)
    for _ in range(300):
        values, names = clustered_answers(generator, sizes, 0.75, 0.1)
        found = clustered_interval(values, names, bounds=SHARE)
        covered += found.low <= 0.75 <= found.high
        widths.append(found.high - found.low)
    assert 0.92 <= covered / 300 <= 0.98
    assert np.mean(widths) == pytest.approx(2 * 1.96 * math.sqrt(0.75 * 0.25 * 1.5 / 300), rel=0.15)


def test_means_without_ends_have_the_jackknifes_t_interval():
    generator = np.random.default_rng(6)
    clusters = [int(code) for code in generator.integers(0, 12, size=90)]
    values = generator.normal(size=90) + np.array(clusters) / 4
    for level in (0.8, 0.95):
        found = clustered_interval(values, clusters, bounds=UNBOUNDED, level=level)
        assert found[1:3] == pytest.approx(jackknife_t(values, np.ones(90), clusters, level))
    alone = clustered_interval(values, range(90), bounds=UNBOUNDED)
    theirs = stats.ttest_1samp(values, 0.0).confidence_interval()
    assert alone[1:3] == pytest.approx((theirs.low, theirs.high))


def test_clusters_widen_the_interval():
    values = [float(document % 2) for document in range(50) for _ in range(20)]
    clusters = [document for document in range(50) for _ in range(20)]
    together = clustered_interval(values, clusters, bounds=SHARE)
    apart = clustered_interval(values, range(len(values)), bounds=SHARE)
    assert together.high - together.low > 3 * (apart.high - apart.low)


def test_one_cluster_has_no_interval():
    for bounds in (SHARE, UNBOUNDED):
        found = clustered_interval([1, 0, 1], "aaa", bounds=bounds)
        assert found == Interval(pytest.approx(2 / 3), None, None, 3, 1)


def test_equal_values_have_no_interval_without_ends_and_a_wide_one_between_them():
    # The plain mean of three 0.1s is 0.10000000000000002.
    assert clustered_interval([0.1] * 3, "abc", bounds=UNBOUNDED) == Interval(0.1, None, None, 3, 3)
    found = clustered_interval([0.1] * 3, "abc", bounds=SHARE)
    assert found == Interval(0.1, *map(pytest.approx, wilson(0.1, 3, 1.959964)), 3, 3)


def test_a_wider_level_contains_a_narrower_one():
    values, clusters = np.random.default_rng(1).random(200), [i // 4 for i in range(200)]
    for bounds in (SHARE, UNBOUNDED):
        wide, narrow = (clustered_interval(values, clusters, bounds=bounds, level=x) for x in (0.99, 0.8))
        assert wide.low < narrow.low < narrow.high < wide.high


@pytest.mark.parametrize(
    ("values", "clusters", "options"),
    [
        ([], [], {}),
        ([1.0], ["a", "b"], {}),
        ([math.nan, 1.0], ["a", "b"], {}),
        ([[1.0]], ["a"], {}),
        ([1.0, 0.0], ["a", "b"], {"level": 1.0}),
        ([1.0, 0.0], ["a", "b"], {"level": 0.0}),
        ([1.5, 0.0], ["a", "b"], {}),
        ([1.0, -0.5], ["a", "b"], {}),
    ],
)
def test_refuses_what_has_no_interval(values, clusters, options):
    with pytest.raises(ValueError, match=r"\w+ .*\."):
        clustered_interval(values, clusters, bounds=SHARE, **options)


@settings(deadline=None)
@given(items)
def test_holds_the_mean_and_lies_within_the_ends(pairs):
    values, clusters = zip(*pairs, strict=True)
    found = clustered_interval(values, clusters, bounds=(-2.25, 1.0))
    assert (found.n, found.clusters) == (len(pairs), len(set(clusters)))
    assert found.value == pytest.approx(np.mean(values))
    if found.clusters == 1:
        assert (found.low, found.high) == (None, None)
    else:
        assert -2.25 <= found.low <= found.value <= found.high <= 1.0
        assert found.low < found.high


@settings(deadline=None)
@given(items, st.randoms(use_true_random=False))
def test_neither_order_nor_names_of_clusters_matter(pairs, shuffler):
    renamed = [(value, f"other {name}") for value, name in pairs]
    shuffler.shuffle(renamed)
    for bounds in ((-2.25, 1.0), UNBOUNDED):
        first = clustered_interval(*zip(*pairs, strict=True), bounds=bounds)
        again = clustered_interval(*zip(*renamed, strict=True), bounds=bounds)
        assert [one is None for one in again] == [one is None for one in first]
        assert [x for x in again if x is not None] == pytest.approx([x for x in first if x is not None])


@given(items)
def test_cluster_sums_match_a_loop(pairs):
    values, clusters = zip(*pairs, strict=True)
    _, sums, sizes = cluster_sums(values, clusters)
    expected = {name: [v for v, c in pairs if c == name] for name in dict.fromkeys(clusters)}
    assert sums.tolist() == [sum(group) for group in expected.values()]
    assert sizes.tolist() == [len(group) for group in expected.values()]


def test_a_ratio_of_sums_is_the_jackknifes():
    generator = np.random.default_rng(9)
    clusters = [int(code) for code in generator.integers(0, 40, size=300)]
    words = generator.uniform(70, 120, size=300)
    effects = generator.normal(4.0, 0.3, size=40)
    nats = [float(w * (effects[c] + generator.normal(0, 0.2))) for w, c in zip(words, clusters, strict=True)]
    found = clustered_ratio(nats, words, clusters, bounds=POSITIVE)
    assert found.value == pytest.approx(sum(nats) / sum(words))
    assert (found.n, found.clusters) == (300, 40)
    assert found[1:3] == pytest.approx(jackknife_t(nats, words, clusters))
    assert clustered_ratio(nats, words, clusters, bounds=(3.99, 4.01))[1:3] == (3.99, 4.01)


def test_a_ratio_holds_the_truth_about_as_often_as_it_says():
    generator = np.random.default_rng(10)
    covered = 0
    for _ in range(300):
        words = generator.uniform(70, 120, size=(6, 5))
        nats = words * (generator.normal(4.0, 0.3, size=6)[:, None] + generator.normal(0, 0.4, size=(6, 5)))
        names = np.repeat(np.arange(6), 5).tolist()
        found = clustered_ratio(nats.ravel(), words.ravel(), names, bounds=POSITIVE)
        covered += found.low <= 4.0 <= found.high
    assert 0.92 <= covered / 300 <= 0.98


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-50, 50), st.sampled_from("abcde")), min_size=1, max_size=30))
def test_a_ratio_to_ones_is_the_mean(pairs):
    values, names = [v for v, _ in pairs], [n for _, n in pairs]
    ratio = clustered_ratio(values, [1.0] * len(values), names, bounds=UNBOUNDED)
    mean = clustered_interval(values, names, bounds=UNBOUNDED)
    assert ratio == (pytest.approx(mean.value, abs=1e-9), *ratio[1:3], mean.n, mean.clusters)
    for one, other in ((ratio.low, mean.low), (ratio.high, mean.high)):
        assert (one is None) == (other is None)
        assert one is None or one == pytest.approx(other, abs=1e-9)


def test_a_ratio_needs_positive_denominators_a_level_and_more_than_one_cluster():
    with pytest.raises(ValueError, match="positive denominators"):
        clustered_ratio([1.0, 2.0], [1.0, 0.0], ["a", "b"], bounds=POSITIVE)
    with pytest.raises(ValueError, match="between 0 and 1"):
        clustered_ratio([1.0, 2.0], [1.0, 1.0], ["a", "b"], bounds=POSITIVE, level=1.0)
    assert clustered_ratio([1.0, 2.0], [1.0, 3.0], "aa", bounds=POSITIVE) == Interval(0.75, None, None, 2, 1)


def test_the_mean_of_two_means_adds_up_their_squares():
    one, other = Interval(0.5, 0.4, 0.7, 10, 5), Interval(0.9, 0.5, 1.0, 30, 6)
    found = mean_interval([one, other], [0.25, 0.75])
    low, high = 0.8 - math.hypot(0.025, 0.3), 0.8 + math.hypot(0.05, 0.075)
    assert found == (pytest.approx(0.8), pytest.approx(low), pytest.approx(high), 40, 11)
    unknown = mean_interval([one, Interval(0.9, None, None, 3, 1)], [0.25, 0.75])
    assert unknown == (pytest.approx(0.8), None, None, 13, 6)


def test_means_and_weights_belong_together_and_half_an_interval_is_none():
    one = Interval(0.5, 0.4, 0.7, 10, 5)
    for found, weights in (([one], [0.5, 0.5]), ([one, one], [1.0])):
        with pytest.raises(ValueError, match="zip"):
            mean_interval(found, weights)
    for half in (Interval(0.9, 0.5, None, 3, 1), Interval(0.9, None, 0.95, 3, 1)):
        assert mean_interval([half, one], [0.5, 0.5]) == (pytest.approx(0.7), None, None, 13, 6)


def test_narrow_numbers_are_averaged_in_double():
    values = np.array([3000, 3002, 2001, 7, 11, 5])
    for dtype in (np.float16, np.int16):
        for bounds in (UNBOUNDED, (0.0, 5000.0)):
            found = clustered_interval(values.astype(dtype), "aabbcc", bounds=bounds)
            assert found == clustered_interval(values.tolist(), "aabbcc", bounds=bounds)
        ratio = clustered_ratio(values.astype(dtype), values[::-1].astype(dtype), "aabbcc", bounds=POSITIVE)
        assert ratio == clustered_ratio(values.tolist(), values[::-1].tolist(), "aabbcc", bounds=POSITIVE)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_equal_clusters_without_ends_have_no_interval_at_any_scale(scale):
    """Sums of a tenth and two tenths round differently from three tenths."""
    values = [0.1 * scale, 0.2 * scale, 0.2 * scale, 0.1 * scale, 0.15 * scale, 0.15 * scale]
    assert clustered_interval(values, "aabbcc", bounds=UNBOUNDED)[1:3] == (None, None)
    other = clustered_interval([*values[:-1], 0.16 * scale], "aabbcc", bounds=UNBOUNDED)
    assert other[1:3] == pytest.approx(jackknife_t([*values[:-1], 0.16 * scale], [1] * 6, "aabbcc"))
    assert clustered_interval([1.0, -1.0, 1.0, -1.0], "aabb", bounds=UNBOUNDED)[1:3] == (None, None)


def test_levels_are_95_per_cent_unless_said_otherwise():
    values, names = [0.5, 1.0, 0.0, 0.25, 1.0, 0.75], "aabbcd"
    for bounds in (SHARE, UNBOUNDED):
        assert clustered_interval(values, names, bounds=bounds) == clustered_interval(
            values, names, bounds=bounds, level=0.95
        )
    found = clustered_ratio(values, [1, 2, 1, 1, 1, 3], names, bounds=POSITIVE)
    assert found == clustered_ratio(values, [1, 2, 1, 1, 1, 3], names, bounds=POSITIVE, level=0.95)
    assert found != clustered_ratio(values, [1, 2, 1, 1, 1, 3], names, bounds=POSITIVE, level=0.9)
    for level in (0.0, 1.0, -1.0, 2.0):
        for bounds in (SHARE, UNBOUNDED):
            with pytest.raises(ValueError, match="between 0 and 1"):
                clustered_interval(values, names, bounds=bounds, level=level)


def test_unequal_clusters_by_the_formulas_of_the_text():
    """Values of a third, of which clusters of one, two and four are unlike; what is made up is spread alike."""
    values = np.array([0.0, 1 / 3, 1.0, 1.0, 2 / 3, 1 / 3, 1.0])
    names = list("abbcccc")
    found = clustered_interval(values, names, bounds=SHARE, level=0.9)
    share, total, sizes = values.mean(), 7.0, np.array([1.0, 2.0, 4.0])
    sums = np.array([0.0, 4 / 3, 3.0])
    size = (sizes**2).sum() / total
    residuals = (sums - share * sizes) / (1 - sizes / total)
    between = (2 / 3) * (residuals**2).sum()
    most = total * share * (1 - share)
    made_up = MADE_UP * ((values - share) ** 2).sum() / most
    effect = (between + made_up * size**2) / (most + made_up * size)
    quantile = stats.t.ppf(0.95, max(1.0, total / size - 1.0))
    low, high = wilson(share, total / effect, quantile)
    assert found == Interval(pytest.approx(share), pytest.approx(low), pytest.approx(high), 7, 3)
    # Right and wrong of single items spread as their mean says, and equal values weigh by their clusters.
    equal = clustered_interval([0.25] * 7, names, bounds=SHARE, level=0.9)
    assert equal[1:3] == pytest.approx(wilson(0.25, total / size, stats.norm.ppf(0.95)))


def test_two_clusters_of_unequal_weight_have_one_degree_of_freedom_at_least():
    values, names = [0.0, 1.0, 1.0, 1.0, 1.0, 0.5], "abbbbb"
    found = clustered_interval(values, names, bounds=UNBOUNDED)
    assert found[1:3] == pytest.approx(jackknife_t(values, [1] * 6, names))
    weights = [1.0, 9.0]
    ratio = clustered_ratio([1.0, 3.0], weights, "ab", bounds=UNBOUNDED)
    assert ratio[1:3] == pytest.approx(jackknife_t([1.0, 3.0], weights, "ab"))


def test_every_metric_that_is_averaged_has_its_range():
    names = (
        "accuracy",
        "ties_per_token",
        "em",
        "f1a",
        "gender_parity",
        "rougeL_loo",
        "meteor_mean",
        "overall",
    )
    assert {range_of(name) for name in names} == {(0.0, 1.0)}
    assert {range_of(name) for name in ("mcc", "r3", "pearson", "bertscore_mean")} == {(-1.0, 1.0)}
    assert (range_of("rank"), range_of("words")) == ((1.0, math.inf), (0.0, math.inf))
    assert range_of("margin") == range_of("of which nothing is known") == (-math.inf, math.inf)
    assert range_holding("accuracy", [0.0], [1.0]) == SHARE
    assert range_holding("accuracy", [0.0], [1.5]) == range_holding("ties", [-0.5]) == UNBOUNDED
