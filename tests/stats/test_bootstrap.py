"""The clustered bootstrap against naive loops, scipy, and what a 95 % interval promises."""

from __future__ import annotations

import math
import random
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ensue.stats.bootstrap import Interval, cluster_sums, clustered_interval, clustered_ratio

items = st.lists(
    st.tuples(st.sampled_from([0.0, 0.5, 1.0, -2.25]), st.sampled_from("abcde")), min_size=1, max_size=30
)


def naive_interval(values, clusters, rounds, seed):
    """The textbook loop: draw cluster names with replacement, pool their values, take the mean."""
    groups: dict = {}
    for value, name in zip(values, clusters, strict=True):
        groups.setdefault(name, []).append(value)
    names = list(groups)
    draw = random.Random(seed)
    means = []
    for _ in range(rounds):
        pooled = [value for name in draw.choices(names, k=len(names)) for value in groups[name]]
        means.append(sum(pooled) / len(pooled))
    return np.quantile(means, [0.025, 0.975])


def test_agrees_with_the_naive_loop_on_clusters_of_unequal_size():
    generator = np.random.default_rng(5)
    values, clusters = [], []
    for document in range(40):
        chance = generator.beta(4, 2)
        for _ in range(generator.integers(1, 21)):
            values.append(float(generator.random() < chance))
            clusters.append(f"document {document}")
    low, high = naive_interval(values, clusters, rounds=8_000, seed=1)
    found = clustered_interval(values, clusters)
    assert found.value == pytest.approx(np.mean(values))
    assert found.low == pytest.approx(low, abs=0.006)
    assert found.high == pytest.approx(high, abs=0.006)


def test_agrees_with_the_naive_loop_on_real_valued_clusters():
    generator = np.random.default_rng(6)
    clusters = [int(code) for code in generator.integers(0, 60, size=500)]
    effects = generator.normal(size=60)
    values = [float(effects[code] + generator.normal()) for code in clusters]
    low, high = naive_interval(values, clusters, rounds=8_000, seed=2)
    found = clustered_interval(values, clusters)
    assert found.low == pytest.approx(low, abs=0.03)
    assert found.high == pytest.approx(high, abs=0.03)


def test_enumerates_like_all_resamples_of_two_clusters():
    # Two clusters have the resamples aa, ab, ba, bb with means 1, 0.75, 0.75, 0.5: the tails are 0.5 and 1.
    assert clustered_interval([1, 1, 0, 1], ["a", "a", "b", "b"]) == Interval(0.75, 0.5, 1.0, 4, 2)


def test_agrees_with_scipy_where_every_item_is_its_own_cluster():
    values = np.random.default_rng(3).gamma(2.0, size=300)
    reference = stats.bootstrap(
        (values,), np.mean, n_resamples=10_000, method="percentile", rng=np.random.default_rng(4)
    ).confidence_interval
    found = clustered_interval(values, range(300))
    assert found.low == pytest.approx(reference.low, abs=0.01)
    assert found.high == pytest.approx(reference.high, abs=0.01)


def test_clusters_widen_the_interval():
    values = [float(document % 2) for document in range(50) for _ in range(20)]
    clusters = [document for document in range(50) for _ in range(20)]
    together = clustered_interval(values, clusters)
    apart = clustered_interval(values, range(len(values)))
    assert together.high - together.low > 3 * (apart.high - apart.low)


def test_covers_the_truth_about_as_often_as_it_says():
    generator = np.random.default_rng(8)
    rounds, covered = 300, 0
    sizes = generator.integers(2, 9, size=60)
    clusters = np.repeat(np.arange(60), sizes)
    for _ in range(rounds):
        chances = np.repeat(generator.beta(6, 2, size=60), sizes)
        values = generator.random(len(clusters)) < chances
        found = clustered_interval(values, clusters.tolist(), rounds=500)
        covered += found.low <= 0.75 <= found.high
    assert 0.90 <= covered / rounds <= 0.98


def test_one_cluster_has_no_interval():
    assert clustered_interval([1, 0, 1], "aaa") == Interval(pytest.approx(2 / 3), None, None, 3, 1)


def test_equal_values_give_exactly_that_value():
    # The plain mean of three 0.1s is 0.10000000000000002.
    assert clustered_interval([0.1] * 3, "abc") == Interval(0.1, 0.1, 0.1, 3, 3)


def test_a_wider_level_contains_a_narrower_one():
    values, clusters = np.random.default_rng(1).random(200), [i // 4 for i in range(200)]
    wide, narrow = (clustered_interval(values, clusters, level=level) for level in (0.99, 0.8))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_chunks_do_not_lose_rounds(monkeypatch):
    values, clusters = np.random.default_rng(1).random(200), [i // 4 for i in range(200)]
    whole = clustered_interval(values, clusters, rounds=1_001)
    monkeypatch.setattr("ensue.stats.bootstrap._CHUNK_NUMBERS", 350)
    assert clustered_interval(values, clusters, rounds=1_001) == whole


def test_a_large_run_takes_well_under_two_seconds():
    generator = np.random.default_rng(0)
    clusters = [f"d{item // 20}" for item in range(20_000)]
    for values in (generator.random(20_000), generator.random(20_000) < 0.8):
        began = time.process_time()
        found = clustered_interval(values, clusters)
        assert time.process_time() - began < 2.0
        assert found.clusters == 1_000


@pytest.mark.parametrize(
    ("values", "clusters", "options"),
    [
        ([], [], {}),
        ([1.0], ["a", "b"], {}),
        ([math.nan, 1.0], ["a", "b"], {}),
        ([[1.0]], ["a"], {}),
        ([1.0, 0.0], ["a", "b"], {"level": 1.0}),
        ([1.0, 0.0], ["a", "b"], {"rounds": 0}),
    ],
)
def test_refuses_what_it_cannot_resample(values, clusters, options):
    with pytest.raises(ValueError, match=r"\w+ .*\."):
        clustered_interval(values, clusters, **options)


@settings(deadline=None)
@given(items)
def test_lies_within_the_values_and_repeats_by_seed(pairs):
    values, clusters = zip(*pairs, strict=True)
    found = clustered_interval(values, clusters, rounds=200, seed=3)
    assert found == clustered_interval(values, clusters, rounds=200, seed=3)
    assert (found.n, found.clusters) == (len(pairs), len(set(clusters)))
    assert found.value == pytest.approx(np.mean(values))
    if found.clusters == 1:
        assert (found.low, found.high) == (None, None)
    else:
        assert min(values) <= found.low <= found.high <= max(values)


@settings(deadline=None)
@given(items, st.randoms(use_true_random=False))
def test_neither_order_nor_names_of_clusters_matter(pairs, shuffler):
    # The values are multiples of a quarter, so their sums are exact in any order.
    renamed = [(value, f"other {name}") for value, name in pairs]
    shuffler.shuffle(renamed)
    first = clustered_interval(*zip(*pairs, strict=True), rounds=200)
    assert clustered_interval(*zip(*renamed, strict=True), rounds=200) == first


@given(items)
def test_cluster_sums_match_a_loop(pairs):
    values, clusters = zip(*pairs, strict=True)
    _, sums, sizes = cluster_sums(values, clusters)
    expected = {name: [v for v, c in pairs if c == name] for name in dict.fromkeys(clusters)}
    assert sums.tolist() == [sum(group) for group in expected.values()]
    assert sizes.tolist() == [len(group) for group in expected.values()]


def naive_ratio(numerators, denominators, clusters, rounds, seed):
    """Draw cluster names with replacement, pool their items, divide the sums."""
    groups: dict = {}
    for top, bottom, name in zip(numerators, denominators, clusters, strict=True):
        groups.setdefault(name, []).append((top, bottom))
    names = list(groups)
    draw = random.Random(seed)
    ratios = []
    for _ in range(rounds):
        pooled = [pair for name in draw.choices(names, k=len(names)) for pair in groups[name]]
        ratios.append(sum(top for top, _ in pooled) / sum(bottom for _, bottom in pooled))
    return np.quantile(ratios, [0.025, 0.975])


def test_a_ratio_of_sums_agrees_with_the_naive_loop():
    generator = np.random.default_rng(9)
    clusters = [int(code) for code in generator.integers(0, 40, size=300)]
    words = generator.uniform(70, 120, size=300)
    effects = generator.normal(4.0, 0.3, size=40)
    nats = [float(w * (effects[c] + generator.normal(0, 0.2))) for w, c in zip(words, clusters, strict=True)]
    low, high = naive_ratio(nats, words, clusters, rounds=8_000, seed=3)
    found = clustered_ratio(nats, words, clusters)
    assert found.value == pytest.approx(sum(nats) / sum(words))
    assert (found.n, found.clusters) == (300, 40)
    assert found.low == pytest.approx(low, abs=0.01)
    assert found.high == pytest.approx(high, abs=0.01)


@given(st.lists(st.tuples(st.floats(-50, 50), st.sampled_from("abcde")), min_size=1, max_size=30))
def test_a_ratio_to_ones_is_the_mean(pairs):
    values, names = [v for v, _ in pairs], [n for _, n in pairs]
    ratio = clustered_ratio(values, [1.0] * len(values), names)
    mean = clustered_interval(values, names)
    assert ratio == (pytest.approx(mean.value, abs=1e-9), *ratio[1:3], mean.n, mean.clusters)
    for one, other in ((ratio.low, mean.low), (ratio.high, mean.high)):
        assert (one is None) == (other is None)
        assert one is None or one == pytest.approx(other, abs=1e-9)


def test_a_ratio_needs_positive_denominators():
    with pytest.raises(ValueError, match="positive denominators"):
        clustered_ratio([1.0, 2.0], [1.0, 0.0], ["a", "b"])
