"""The paired sign-flip test against full enumeration, scipy, and its promised error rate."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ensue.stats.multiple import holm
from ensue.stats.paired import paired_test

rows = st.lists(
    st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 7)),
    min_size=1,
    max_size=40,
)


def naive_exact_p_value(a, b, clusters):
    totals: dict = {}
    for x, y, name in zip(a, b, clusters, strict=True):
        totals[name] = totals.get(name, 0.0) + x - y
    observed = abs(sum(totals.values()))
    patterns = list(itertools.product([-1, 1], repeat=len(totals)))
    reached = sum(
        abs(sum(sign * total for sign, total in zip(pattern, totals.values(), strict=True)))
        >= observed - 1e-12
        for pattern in patterns
    )
    return reached / len(patterns)


@settings(deadline=None, max_examples=60)
@given(rows)
def test_small_tests_are_exact(triples):
    a, b, clusters = zip(*triples, strict=True)
    found = paired_test(a, b, clusters, rounds=50)
    assert found.p_value == pytest.approx(naive_exact_p_value(a, b, clusters), abs=1e-12)
    assert found.difference == pytest.approx(np.mean(a) - np.mean(b))
    assert (found.n, found.clusters) == (len(a), len(set(clusters)))


@settings(deadline=None, max_examples=30)
@given(rows)
def test_swapping_the_models_flips_the_difference_and_keeps_the_p_value(triples):
    a, b, clusters = zip(*triples, strict=True)
    forth, back = paired_test(a, b, clusters, rounds=50), paired_test(b, a, clusters, rounds=50)
    assert forth.difference == pytest.approx(-back.difference)
    assert forth.p_value == back.p_value


def test_agrees_with_scipy_exactly_on_ten_pairs():
    generator = np.random.default_rng(0)
    a, b = generator.normal(0.4, size=10), generator.normal(size=10)
    reference = stats.permutation_test(
        (a, b), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples", vectorized=True
    )
    found = paired_test(a, b, range(10))
    assert found.p_value == pytest.approx(reference.pvalue, abs=1e-12)
    assert found.difference == pytest.approx(reference.statistic)


@pytest.mark.parametrize("binary", [True, False])
def test_agrees_with_scipy_on_sampled_clusters(binary):
    generator = np.random.default_rng(1)
    clusters = np.repeat(np.arange(80), 5)
    if binary:
        a, b = (generator.random(400) < 0.80).astype(float), (generator.random(400) < 0.77).astype(float)
    else:
        a, b = generator.normal(0.12, size=400), generator.normal(size=400)
    totals = (a - b).reshape(80, 5).sum(axis=1)
    reference = stats.permutation_test(
        (totals, np.zeros(80)),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        n_resamples=20_000,
        vectorized=True,
        rng=np.random.default_rng(2),
    )
    assert 0.005 < reference.pvalue < 0.5
    assert paired_test(a, b, clusters.tolist()).p_value == pytest.approx(reference.pvalue, abs=0.02)


def test_a_sampled_p_value_is_never_zero():
    found = paired_test([1.0] * 40, [0.0] * 40, range(40), rounds=999)
    assert found.p_value == 1 / 1000
    assert (found.difference, found.low, found.high) == (1.0, 1.0, 1.0)


def test_equal_models_have_p_value_one():
    found = paired_test([1, 0, 1], [1, 0, 1], "abc")
    assert (found.difference, found.low, found.high, found.p_value) == (0.0, 0.0, 0.0, 1.0)


def test_one_cluster_says_nothing():
    found = paired_test([1, 1, 1], [0, 0, 0], "aaa")
    assert (found.low, found.high, found.p_value) == (None, None, 1.0)


def test_clusters_without_a_difference_do_not_change_the_p_value():
    few = paired_test([1, 1, 1, 0, 1], [0, 0, 1, 1, 0], range(5))
    many = paired_test([1, 1, 1, 0, 1] + [1] * 50, [0, 0, 1, 1, 0] + [1] * 50, range(55))
    assert few.p_value == many.p_value == 0.625


def test_the_error_rate_holds_when_clusters_are_strongly_alike():
    generator = np.random.default_rng(4)
    rejected = 0
    for _ in range(300):
        effect = np.repeat(generator.normal(size=30), 10)
        a = effect + generator.normal(scale=0.1, size=300)
        rejected += paired_test(a, np.zeros(300), np.repeat(np.arange(30), 10), rounds=400).p_value <= 0.05
    # Ignoring the clusters would reject more than half of the time.
    assert rejected / 300 < 0.09


def test_repeats_by_seed_and_moves_with_it():
    generator = np.random.default_rng(9)
    a, b = generator.normal(0.2, size=60), generator.normal(size=60)
    results = [paired_test(a, b, range(60), rounds=500, seed=seed) for seed in (0, 0, 1, 2, 3)]
    assert results[0] == results[1]
    assert len({result.p_value for result in results}) > 1


def test_refuses_unequal_lengths():
    with pytest.raises(ValueError, match="equally many values, not 2 and 1"):
        paired_test([1, 0], [1], "ab")


def test_holm_matches_the_worked_example():
    # By hand: 4 × 0.005, 3 × 0.01, 2 × 0.03, and the last never below the one before it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.7, 0.9]) == [1.0, 1.0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.sampled_from([0.01, 0.05, 0.2]))
def test_holm_rejects_exactly_what_the_step_down_procedure_rejects(p_values, level):
    adjusted = holm(p_values)
    ordered = sorted(range(len(p_values)), key=lambda index: p_values[index])
    rejected = set()
    for rank, index in enumerate(ordered):
        if min(1.0, (len(p_values) - rank) * p_values[index]) > level:
            break
        rejected.add(index)
    assert {index for index, value in enumerate(adjusted) if value <= level} == rejected
    assert all(value >= p_value for value, p_value in zip(adjusted, p_values, strict=True))


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan")])
def test_holm_refuses_what_is_no_probability(wrong):
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([0.5, wrong])
