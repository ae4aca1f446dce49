"""The paired sign-flip test against full enumeration, scipy, and its promised error rate."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ensue.stats.clustered import effective_share, wilson
from ensue.stats.paired import _count_extreme, all_bits, holm, paired_test, reaching_zero
from ensue.stats.ranges import SHARE, UNBOUNDED

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
    found = paired_test(a, b, clusters, bounds=SHARE, rounds=50)
    assert found.p_value == pytest.approx(naive_exact_p_value(a, b, clusters), abs=1e-12)
    assert found.difference == pytest.approx(np.mean(a) - np.mean(b))
    assert (found.n, found.clusters) == (len(a), len(set(clusters)))


@settings(deadline=None, max_examples=30)
@given(rows)
def test_swapping_the_models_flips_the_difference_and_keeps_the_p_value(triples):
    a, b, clusters = zip(*triples, strict=True)
    forth = paired_test(a, b, clusters, bounds=SHARE, rounds=50)
    back = paired_test(b, a, clusters, bounds=SHARE, rounds=50)
    if forth.low is not None:
        assert (forth.low, forth.high) == pytest.approx((-back.high, -back.low))
    assert forth.difference == pytest.approx(-back.difference)
    assert forth.p_value == back.p_value


def test_agrees_with_scipy_exactly_on_ten_pairs():
    generator = np.random.default_rng(0)
    a, b = generator.normal(0.4, size=10), generator.normal(size=10)
    reference = stats.permutation_test(
        (a, b), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples", vectorized=True
    )
    found = paired_test(a, b, range(10), bounds=UNBOUNDED)
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
    assert paired_test(a, b, clusters.tolist(), bounds=UNBOUNDED).p_value == pytest.approx(
        reference.pvalue, abs=0.02
    )


def test_a_sampled_p_value_is_never_zero():
    found = paired_test([1.0] * 40, [0.0] * 40, range(40), bounds=SHARE, rounds=999)
    assert found.p_value == 1 / 1000


def test_equal_models_have_p_value_one():
    found = paired_test([1, 0, 1], [1, 0, 1], "abc", bounds=SHARE)
    assert (found.difference, found.p_value) == (0.0, 1.0)
    # Neither gain nor loss was seen: each may be as large as Wilson's interval for none of three has it.
    most = wilson(0.0, 3, 1.959964)[1]
    assert (found.low, found.high) == pytest.approx((-most, most))
    assert paired_test([1, 0, 1], [1, 0, 1], "abc", bounds=UNBOUNDED)[:4] == (0.0, None, None, 1.0)


def test_one_cluster_says_nothing():
    found = paired_test([1, 1, 1], [0, 0, 0], "aaa", bounds=SHARE)
    assert (found.low, found.high, found.p_value) == (None, None, 1.0)


def test_clusters_without_a_difference_do_not_change_the_p_value():
    few = paired_test([1, 1, 1, 0, 1], [0, 0, 1, 1, 0], range(5), bounds=SHARE)
    many = paired_test([1, 1, 1, 0, 1] + [1] * 50, [0, 0, 1, 1, 0] + [1] * 50, range(55), bounds=SHARE)
    assert few.p_value == many.p_value == 0.625


def test_the_error_rate_holds_when_clusters_are_strongly_alike():
    generator = np.random.default_rng(4)
    rejected = 0
    for _ in range(300):
        effect = np.repeat(generator.normal(size=30), 10)
        a = effect + generator.normal(scale=0.1, size=300)
        clusters = np.repeat(np.arange(30), 10)
        found = paired_test(a, np.zeros(300), clusters, bounds=UNBOUNDED, rounds=400)
        rejected += found.p_value <= 0.05
    # Ignoring the clusters would reject more than half of the time.
    assert rejected / 300 < 0.09


def test_repeats_by_seed_and_moves_with_it():
    generator = np.random.default_rng(9)
    a, b = generator.normal(0.2, size=60), generator.normal(size=60)
    results = [
        paired_test(a, b, range(60), bounds=UNBOUNDED, rounds=500, seed=seed) for seed in (0, 0, 1, 2, 3)
    ]
    assert results[0] == results[1]
    assert len({result.p_value for result in results}) > 1


def test_five_perfect_documents_do_not_contradict_their_p_value():
    found = paired_test([1.0] * 5, [0.0] * 5, range(5), bounds=SHARE)
    assert found[:4] == (1.0, 0.0, 1.0, 0.0625)
    assert paired_test([0.0] * 5, [1.0] * 5, range(5), bounds=SHARE)[:4] == (-1.0, -1.0, 0.0, 0.0625)
    # Of forty, what is gained is at least Wilson's end of forty of forty, and what is lost at most that of none.
    many = paired_test([1.0] * 40, [0.0] * 40, range(40), bounds=SHARE)
    low, _ = wilson(1.0, 40, 1.959964)
    assert many[:3] == (1.0, pytest.approx(1.0 - np.hypot(1.0 - low, wilson(0.0, 40, 1.959964)[1])), 1.0)


def test_gains_and_losses_are_put_together_as_zou_does():
    # Of 60 independent pairs 12 are gained and 6 lost: both are shares of 60 that exclude each other.
    a, b = [1.0] * 12 + [0.0] * 6 + [1.0] * 42, [0.0] * 12 + [1.0] * 6 + [1.0] * 42
    found = paired_test(a, b, range(60), bounds=SHARE)
    (low, high), (lower, upper) = wilson(0.2, 60, 1.959964), wilson(0.1, 60, 1.959964)
    together = -math.sqrt(0.2 * 0.1 / (0.8 * 0.9))
    below = math.sqrt((0.2 - low) ** 2 + (upper - 0.1) ** 2 - 2 * together * (0.2 - low) * (upper - 0.1))
    above = math.sqrt((high - 0.2) ** 2 + (0.1 - lower) ** 2 - 2 * together * (high - 0.2) * (0.1 - lower))
    assert found[:3] == pytest.approx((0.1, 0.1 - below, 0.1 + above))
    scaled = paired_test(np.array(a) * 4 - 1, np.array(b) * 4 - 1, range(60), bounds=(-1.0, 3.0))
    assert scaled[:3] == pytest.approx([4 * end for end in found[:3]])


def test_without_ends_the_interval_is_students():
    generator = np.random.default_rng(3)
    a, b = generator.normal(1.5, size=30), generator.normal(size=30)
    theirs = stats.ttest_rel(a, b).confidence_interval()
    assert paired_test(a, b, range(30), bounds=UNBOUNDED)[1:3] == pytest.approx((theirs.low, theirs.high))


@settings(deadline=None, max_examples=60)
@given(rows)
def test_the_interval_never_says_more_than_the_p_value(triples):
    a, b, clusters = zip(*triples, strict=True)
    found = paired_test(a, b, clusters, bounds=SHARE)
    if found.low is not None:
        assert -1.0 <= found.low <= found.difference <= found.high <= 1.0
        assert found.low <= 0.0 <= found.high or found.p_value <= 0.05


@pytest.mark.parametrize(("count", "gained", "lost"), [(10, 0.2, 0.1), (30, 0.05, 0.0), (100, 0.02, 0.01)])
def test_intervals_hold_the_true_difference_about_as_often_as_they_say(count, gained, lost):
    generator = np.random.default_rng(12)
    covered = 0
    for _ in range(300):
        drawn = generator.random(count)
        a, b = (drawn < gained).astype(float), (drawn > 1.0 - lost).astype(float)
        found = paired_test(a, b, range(count), bounds=SHARE, rounds=100)
        covered += found.low <= gained - lost <= found.high
    assert covered / 300 >= 0.92


def test_refuses_unequal_lengths():
    with pytest.raises(ValueError, match="equally many values, not 2 and 1"):
        paired_test([1, 0], [1], "ab", bounds=SHARE)
    with pytest.raises(ValueError, match=r"larger than values from 0\.0 to 1\.0"):
        paired_test([1.5, 0], [0, 0], "ab", bounds=SHARE)
    with pytest.raises(ValueError, match="at least one round, not 0"):
        paired_test([1, 0], [1, 0], "ab", bounds=SHARE, rounds=0)


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


def test_ten_thousand_rounds_with_seed_nought_unless_said_otherwise():
    generator = np.random.default_rng(21)
    a, b = generator.normal(size=(2, 30))
    found = paired_test(a, b, range(30), bounds=UNBOUNDED)
    assert found == paired_test(a, b, range(30), bounds=UNBOUNDED, rounds=10_000, seed=0)
    assert found != paired_test(a, b, range(30), bounds=UNBOUNDED, rounds=10_000, seed=1)
    for rounds in (1, 2, 99):
        p_value = paired_test(a, b, range(30), bounds=UNBOUNDED, rounds=rounds).p_value
        assert round(p_value * (rounds + 1)) == pytest.approx(p_value * (rounds + 1))


@pytest.mark.parametrize(("count", "exact"), [(14, True), (15, False)])
def test_up_to_fourteen_clusters_every_pattern_is_counted(count, exact):
    """One round says nothing of a share that all patterns say exactly."""
    a = np.arange(1.0, count + 1.0)
    found = paired_test(a, np.zeros(count), range(count), bounds=UNBOUNDED, rounds=1)
    assert found.p_value == (2 / 2**count if exact else 0.5)


def test_random_patterns_are_drawn_in_chunks_and_none_is_lost(monkeypatch):
    generator = np.random.default_rng(22)
    totals = np.round(generator.normal(0.3, size=40), 1)
    whole = paired_test(totals, np.zeros(40), range(40), bounds=UNBOUNDED, rounds=4_001).p_value
    monkeypatch.setattr("ensue.stats.paired._CHUNK_NUMBERS", 300)
    parts = paired_test(totals, np.zeros(40), range(40), bounds=UNBOUNDED, rounds=4_001).p_value
    assert parts == pytest.approx(whole, abs=0.03)
    # A bar that every pattern reaches counts every round once.
    magnitudes = np.abs(totals[totals != 0.0])
    for rounds in (1, 7, 300, 4_001):
        assert _count_extreme(magnitudes, 0.0, rounds, generator) == rounds
        assert _count_extreme(magnitudes, 1e9, rounds, generator) == 0


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_what_was_only_gained_or_only_lost_borrows_the_clusters_likeness(sign):
    """Pairs of alike items: a gain in two of six clusters, no loss; none of twelve items says as much as six."""
    gains = np.repeat([1.0, 1.0, 0.0, 0.0, 0.0, 0.0], 2)
    names = np.repeat(np.arange(6), 2).tolist()
    a, b = (gains, np.zeros(12)) if sign > 0 else (np.zeros(12), gains)
    found = paired_test(a, b, names, bounds=SHARE)
    effective = effective_share(gains, names, 0.95)
    low, high = effective.ends()
    _, most = wilson(0.0, effective.n, effective.quantile)
    near, far = 1 / 3 - math.hypot(1 / 3 - low, most), 1 / 3 + (high - 1 / 3)
    expected = (min(near, 0.0), far) if sign > 0 else (-far, max(-near, 0.0))
    assert found.difference == pytest.approx(sign / 3)
    assert (found.low, found.high) == pytest.approx(expected)


def test_clusters_that_gain_more_and_lose_more_are_put_together_by_their_correlation():
    generator = np.random.default_rng(23)
    names = np.repeat(np.arange(12), 4).tolist()
    a, b = (generator.random(48) < 0.6).astype(float), (generator.random(48) < 0.5).astype(float)
    found = paired_test(a, b, names, bounds=SHARE)
    gains, losses = np.maximum(a - b, 0.0), np.maximum(b - a, 0.0)
    gain, loss = (effective_share(part, names, 0.95) for part in (gains, losses))
    sums = [part.reshape(12, 4).sum(axis=1) - 4 * part.mean() for part in (gains, losses)]
    together = np.corrcoef(*sums)[0, 1]
    (least, most), (fewest, all_) = gain.ends(), loss.ends()

    def apart(one, other):
        return math.sqrt(one**2 + other**2 - 2 * together * one * other)

    middle = gain.share - loss.share
    low = middle - apart(gain.share - least, all_ - loss.share)
    high = middle + apart(most - gain.share, loss.share - fewest)
    assert found.p_value > 0.05
    assert (found.low, found.high) == pytest.approx((min(low, 0.0), max(high, 0.0)))


def test_narrow_numbers_are_tested_in_double():
    a, b = np.array([3000, 3002, 2001, 7, 11, 5]), np.array([1, 2002, 2001, 9, 42, 6])
    for bounds in (UNBOUNDED, (0.0, 5000.0)):
        expected = paired_test(a, b, range(6), bounds=bounds)
        assert paired_test(a.astype(np.float16), b, range(6), bounds=bounds) == expected
        assert paired_test(a, b.astype(np.float16), range(6), bounds=bounds) == expected


def test_differences_as_large_as_the_range_are_taken():
    assert paired_test([1.0, -1.0], [-1.0, 1.0], "ab", bounds=(-1.0, 1.0)).difference == 0.0
    with pytest.raises(ValueError, match=r"from -1\.0 to 1\.0"):
        paired_test([1.5, -1.0], [-1.0, 1.0], "ab", bounds=(-1.0, 1.0))
    with pytest.raises(ValueError, match="flat, non-empty"):
        paired_test([], [], [], bounds=SHARE)


@pytest.mark.parametrize(
    ("ends", "p_value", "expected"),
    [
        ((0.1, 0.3), 0.2, (0.0, 0.3)),
        ((-0.3, -0.1), 0.2, (-0.3, 0.0)),
        ((-0.1, 0.3), 0.2, (-0.1, 0.3)),
        ((0.1, 0.3), 0.05, (0.1, 0.3)),
        ((0.1, 0.3), 0.0501, (0.0, 0.3)),
        ((None, None), 0.2, (None, None)),
        ((None, 0.3), 0.2, (None, 0.3)),
        ((0.1, None), 0.2, (0.1, None)),
    ],
)
def test_an_interval_reaches_zero_where_the_test_says_nothing(ends, p_value, expected):
    assert reaching_zero(ends, p_value) == expected


def test_all_patterns_of_bits():
    assert all_bits(0).tolist() == [[]]
    assert {tuple(row) for row in all_bits(3).tolist()} == set(itertools.product([0, 1], repeat=3))
    assert all_bits(3).shape == (8, 3)
