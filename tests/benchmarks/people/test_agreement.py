"""Agreement with intervals: against scikit-learn, definitions written out, and tables worked by hand."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from ensue.benchmarks.people.agreement import (
    LEAST_SHARED,
    Judgment,
    agreement_of,
    by_annotator,
    by_item,
    drawn_alpha,
    drawn_cohen,
    drawn_fleiss,
    ratings_of,
)
from tests.support.agreement import fleiss_kappa, krippendorff_alpha

NAN = math.nan
rows = st.lists(
    st.lists(st.sampled_from([0.0, 1.0, 2.0, NAN]), min_size=3, max_size=3), min_size=1, max_size=25
)


@settings(max_examples=60, deadline=None)
@given(rows)
def test_cohens_kappa_of_many_is_the_weighted_mean_of_scikit_learns(table: list[list[float]]) -> None:
    array = np.array(table)
    kappas, weights, units = [], [], set()
    for a, b in combinations(range(3), 2):
        shared = ~np.isnan(array[:, a]) & ~np.isnan(array[:, b])
        if shared.sum() < LEAST_SHARED:
            continue
        one, other = array[shared, a].astype(int), array[shared, b].astype(int)
        if len(set(one) | set(other)) == 1:
            continue
        kappas.append(cohen_kappa_score(one, other))
        weights.append(shared.sum())
        units |= set(np.flatnonzero(shared).tolist())
    found = drawn_cohen(array, range(len(array)), rounds=20)
    if not kappas:
        assert found is None
    else:
        assert found is not None
        assert found.value == pytest.approx(np.average(kappas, weights=weights), abs=1e-12)
        assert (found.n, found.units) == (len(units), len(units))  # those of the pairs, not all there are


def test_intervals_hold_the_value_and_shrink_with_more_items() -> None:
    def width(items: int) -> float:
        generator = np.random.default_rng(1)
        truth = generator.integers(0, 2, items)
        wrong = generator.random((items, 3)) < 0.15
        table = np.where(wrong, 1 - truth[:, None], truth[:, None]).astype(float)
        judgments = [
            Judgment(item, "", str(who), str(table[item, who])) for item in range(items) for who in range(3)
        ]
        found = agreement_of(ratings_of(judgments))
        widths = []
        for figure in (found.cohen, found.fleiss, found.alpha):
            assert figure is not None
            low, high = figure.interval()
            assert low is not None
            assert high is not None
            assert low <= figure.value <= high
            # Two annotators who are each wrong at random 15 % of the time: (1 - 2 * 0.15) ** 2.
            assert figure.value == pytest.approx(0.49, abs=0.2)
            widths.append(high - low)
        return max(widths)

    assert width(800) < width(100)


def test_fleiss_is_of_all_units_that_several_labelled() -> None:
    table = np.array([[0, 0, 1], [1, 1, 1], [0, 0, NAN], [0, 1, 1], [NAN, NAN, 1]])
    found = drawn_fleiss(table, range(5))
    assert found is not None
    assert found.value == pytest.approx(fleiss_kappa([[2, 1], [0, 3], [2, 0], [1, 2]]))
    assert found.n == 4


def test_numbers_of_a_scale_have_alpha_alone() -> None:
    given_ = {"a": [10, 50, 90, 70], "b": [20, 50, 80, 60]}
    judgments = [
        Judgment(n, "", who, value) for who, values in given_.items() for n, value in enumerate(values)
    ]
    found = agreement_of(ratings_of(judgments), "interval")
    assert found.cohen is None
    assert found.fleiss is None
    assert found.alpha is not None
    expected = krippendorff_alpha(np.array(list(given_.values())).T, "interval")
    assert found.alpha.value == pytest.approx(expected)


def test_alpha_is_of_the_units_that_several_judged() -> None:
    nan = float("nan")
    both = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    alone = np.array([[1.0, nan], [nan, 0.0], [nan, nan]])
    found = drawn_alpha(np.concatenate([both, alone]), range(8), seed=3)
    wanted = drawn_alpha(both, range(5), seed=3)
    assert found is not None
    assert wanted is not None
    assert (found.n, found.units) == (5, 5)
    assert found.value == pytest.approx(wanted.value)
    assert np.array_equal(found.draws, wanted.draws)


def test_one_annotator_alone_agrees_with_nobody() -> None:
    found = agreement_of(ratings_of([Judgment(n, "", "a", "yes") for n in range(9)]))
    assert found == (None, None, None, None)
    assert by_item(ratings_of([Judgment(1, "", "a", "yes")])) == []


def test_items_they_disagree_on_come_first() -> None:
    # Item 1: yes yes no (1 of 3 pairs), item 2: all yes (3 of 3), item 3 has two units of two: 1 of 2.
    judgments = [Judgment(1, "", who, value) for who, value in zip("abc", ["yes", "yes", "no"], strict=True)]
    judgments += [Judgment(2, "", who, "yes") for who in "abc"]
    judgments += [Judgment(3, 1, "a", "yes"), Judgment(3, 1, "b", "no")]
    judgments += [Judgment(3, 2, "a", "yes"), Judgment(3, 2, "b", "yes")]
    found = by_item(ratings_of(judgments))
    assert [(one.item, one.agreeing, one.pairs) for one in found] == [(1, 1 / 3, 3), (3, 0.5, 2), (2, 1.0, 3)]


def test_who_answers_at_random_stands_out() -> None:
    generator = np.random.default_rng(0)
    judgments = []
    for item in range(60):
        truth = "yes" if generator.random() < 0.5 else "no"
        judgments += [Judgment(item, "", who, truth) for who in "ab"]
        judgments.append(Judgment(item, "", "guesser", "yes" if generator.random() < 0.5 else "no"))
    found = {one.annotator: one for one in by_annotator(ratings_of(judgments))}
    assert found["a"].agreeing == pytest.approx((60 + found["guesser"].agreeing * 60) / 120)
    assert found["guesser"].kappa is not None
    assert abs(found["guesser"].kappa.value) < 0.3
    low, high = found["guesser"].kappa.interval()
    assert low is not None
    assert high is not None
    assert low < 0 < high < 0.6
    assert found["a"].kappa is not None
    assert found["a"].kappa.value > 0.4
    assert found["a"].judgments == 60


def test_an_annotators_kappa_has_the_interval_of_a_bootstrap_over_items() -> None:
    generator = np.random.default_rng(3)
    truth = generator.integers(0, 2, 50)
    wrong = generator.random((50, 3)) < np.array([0.1, 0.2, 0.3])
    table = np.where(wrong, 1 - truth[:, None], truth[:, None])
    judgments = [Judgment(n, "", who, str(table[n, k])) for n in range(50) for k, who in enumerate("abc")]
    found = by_annotator(ratings_of(judgments))[0].kappa
    assert found is not None
    draws = []
    for _ in range(500):
        weights = generator.standard_exponential(50)
        pairs = [cohen_kappa_score(table[:, 0], table[:, other], sample_weight=weights) for other in (1, 2)]
        draws.append(np.mean(pairs))
    assert found.interval() == pytest.approx(np.quantile(draws, [0.025, 0.975]), abs=0.06)
    assert (found.n, found.units) == (50, 50)
