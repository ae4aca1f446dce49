"""Fleiss' kappa and Krippendorff's alpha, against their definitions written out and published examples."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import cohen_kappa_score

from ensue.metrics.agreement import Level, agreement_sums, alpha_of_coincidences, coincidences, kappa_of_sums
from tests.support.agreement import cohen_kappa, fleiss_kappa, krippendorff_alpha, votes

NAN = math.nan


def _by_loops(labels: list[list[int]], categories: int) -> float:
    """Observed agreement over all pairs of annotators, expected from how often each category was chosen."""
    observed = []
    for given_ in labels:
        pairs = [(i, j) for i in range(len(given_)) for j in range(len(given_)) if i != j]
        observed.append(sum(given_[i] == given_[j] for i, j in pairs) / len(pairs))
    flat = [label for given_ in labels for label in given_]
    expected = sum((flat.count(category) / len(flat)) ** 2 for category in range(categories))
    return (sum(observed) / len(observed) - expected) / (1 - expected)


@settings(max_examples=150, deadline=None)
@given(st.data(), st.integers(2, 6), st.integers(1, 12))
def test_kappa_is_the_formulas(data: st.DataObject, raters: int, n: int) -> None:
    row = st.lists(st.integers(0, 2), min_size=raters, max_size=raters)
    labels = data.draw(st.lists(row, min_size=n, max_size=n))
    found = fleiss_kappa(votes(labels, 3))
    if len({label for given_ in labels for label in given_}) == 1:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(_by_loops(labels, 3), abs=1e-12)


def test_random_annotators_agree_by_chance_and_like_ones_entirely() -> None:
    generator = np.random.default_rng(0)
    assert fleiss_kappa(votes(generator.integers(0, 3, (4000, 5)), 3)) == pytest.approx(0.0, abs=0.02)
    assert fleiss_kappa(votes(np.repeat([[0], [1], [2]], 5, axis=1), 3)) == pytest.approx(1.0)


def test_sums_of_many_rounds_give_each_its_kappa() -> None:
    tables = [votes(np.random.default_rng(seed).integers(0, 2, (20, 4)), 2) for seed in range(5)]
    sums = np.array([agreement_sums(table).sum(axis=0) for table in tables])
    np.testing.assert_allclose(kappa_of_sums(sums), [fleiss_kappa(table) for table in tables])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=6), min_size=1, max_size=12))
def test_items_with_other_numbers_of_annotators_weigh_alike(labels: list[list[int]]) -> None:
    counts = [[given_.count(category) for category in range(3)] for given_ in labels]
    if len({label for given_ in labels for label in given_}) == 1:
        assert math.isnan(fleiss_kappa(counts))
        return
    pairs = [[a == b for a, b in combinations(given_, 2)] for given_ in labels]
    observed = sum(sum(one) / len(one) for one in pairs) / len(labels)
    shares = [sum(given_.count(c) / len(given_) for given_ in labels) / len(labels) for c in range(3)]
    expected = sum(share**2 for share in shares)
    assert fleiss_kappa(counts) == pytest.approx((observed - expected) / (1 - expected), abs=1e-12)


def test_items_with_one_annotator_are_refused() -> None:
    with pytest.raises(ValueError, match="at least two"):
        fleiss_kappa([[1, 0], [0, 1]])


@pytest.mark.parametrize("wrong", [[[0, 2]], [[-1, 0]], [0, 1], np.empty((0, 2)), [[]]])
def test_labels_that_are_no_table_of_categories_are_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="a table of numbers from 0 to 1"):
        votes(wrong, 2)


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32])
def test_narrow_numbers_are_counted_in_double(dtype: type) -> None:
    counts = np.array([[99, 2], [60, 41], [1, 100], [33, 68]])
    assert fleiss_kappa(counts.astype(dtype)) == fleiss_kappa(counts.tolist())
    for level in LEVELS:
        found = krippendorff_alpha((counts * 20).astype(np.float16), level)
        assert found == krippendorff_alpha((counts * 20).tolist(), level)


def test_labels_by_value() -> None:
    assert votes([[0]], 2).tolist() == [[1, 0]]
    assert votes([[2, 0, 2], [1, 1, 0]], 3).tolist() == [[1, 0, 2], [1, 2, 0]]
    # What is no category would be left out of the votes, so it never makes a kappa.
    with pytest.raises(ValueError, match="at least two"):
        fleiss_kappa(votes([[0, 1], [0, 0.5]], 2))


@pytest.mark.filterwarnings("error")
def test_a_round_without_disagreement_leaves_the_others_theirs() -> None:
    """Of three rounds the second drew one category only; nothing warns of a division by nothing."""
    tables = [[[2, 1], [0, 3]], [[3, 0], [3, 0]], [[1, 2], [2, 1]]]
    sums = np.array([agreement_sums(table).sum(axis=0) for table in tables])
    assert kappa_of_sums(sums) == pytest.approx([0.25, NAN, -1 / 3], nan_ok=True)
    values, pairs = coincidences([[0, 0], [0, 1], [1, 1]])
    drawn = np.array([pairs.sum(axis=0), 3 * pairs[0], pairs[0] + pairs[2]])
    assert alpha_of_coincidences(drawn, values) == pytest.approx([4 / 9, NAN, 1.0], nan_ok=True)


@pytest.mark.parametrize("wrong", [[1, 2, 3], np.empty((0, 2)), 3.0])
def test_what_is_no_table_of_votes_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="votes by item and category"):
        fleiss_kappa(wrong)


# Four observers, twelve units: the example of Krippendorff's own account of the coefficient.
EXAMPLE = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
).T
LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")


def naive(table: np.ndarray, level: Level) -> float:
    """One less the disagreement within items over that of all ratings, each pair taken by itself."""
    items = [[float(one) for one in row if not math.isnan(one)] for row in table]
    items = [row for row in items if len(row) > 1]
    everything = [one for row in items for one in row]
    counts = Counter(everything)

    def squared(c: float, k: float) -> float:
        if level == "nominal":
            return float(c != k)
        if level == "interval":
            return (c - k) ** 2
        low, high = min(c, k), max(c, k)
        between = sum(count for value, count in counts.items() if low <= value <= high)
        return (between - (counts[low] + counts[high]) / 2) ** 2 if low != high else 0.0

    within = 0.0
    for row in items:
        pairs = [(i, j) for i in range(len(row)) for j in range(len(row)) if i != j]
        within += sum(squared(row[i], row[j]) for i, j in pairs) / (len(row) - 1)
    observed = within / len(everything)
    n = len(everything)
    expected = sum(
        squared(a, b) for i, a in enumerate(everything) for j, b in enumerate(everything) if i != j
    )
    return 1 - observed / (expected / (n * (n - 1)))


@pytest.mark.parametrize(("level", "printed"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_the_authors_example(level: Level, printed: float) -> None:
    assert round(krippendorff_alpha(EXAMPLE, level), 3) == printed


ratings = arrays(
    np.float64,
    st.tuples(st.integers(1, 8), st.integers(2, 5)),
    elements=st.one_of(st.just(NAN), st.sampled_from([0.0, 1.0, 2.0, 5.0])),
)


@given(ratings, st.sampled_from(LEVELS))
def test_alpha_is_its_definition(table: np.ndarray, level: Level) -> None:
    paired = table[(~np.isnan(table)).sum(axis=1) > 1]
    if len(paired) == 0:
        with pytest.raises(ValueError, match="two ratings"):
            krippendorff_alpha(table, level)
    elif len(np.unique(paired[~np.isnan(paired)])) == 1:
        assert math.isnan(krippendorff_alpha(table, level))
    else:
        assert krippendorff_alpha(table, level) == pytest.approx(naive(table, level), abs=1e-12)


@given(ratings)
def test_who_gave_a_rating_does_not_matter(table: np.ndarray) -> None:
    if ((~np.isnan(table)).sum(axis=1) > 1).any():
        turned = krippendorff_alpha(table[::-1, ::-1])
        assert krippendorff_alpha(table) == pytest.approx(turned, abs=1e-12, nan_ok=True)


def test_sums_of_many_rounds_at_once_are_each_ones_alpha() -> None:
    values, pairs = coincidences(EXAMPLE)
    generator = np.random.default_rng(1)
    counts = generator.multinomial(len(EXAMPLE), np.full(len(EXAMPLE), 1 / len(EXAMPLE)), size=6)
    for level in LEVELS:
        together = alpha_of_coincidences(np.tensordot(counts, pairs, axes=1), values, level)
        apart = [krippendorff_alpha(np.repeat(EXAMPLE, row, axis=0), level) for row in counts]
        np.testing.assert_allclose(together, apart, atol=1e-12)


@pytest.mark.parametrize("wrong", [[[1.0, math.inf]], [1.0, 2.0], [[]]])
def test_what_is_no_table_of_ratings_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="table of finite ratings"):
        krippendorff_alpha(wrong)


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="nominal, ordinal and interval"):
        krippendorff_alpha(EXAMPLE, "ratio")  # type: ignore[arg-type]


def test_ratings_are_names_unless_said_otherwise() -> None:
    table = [[0.0, 2.0], [1.0, 1.0], [2.0, 0.0], [1.0, 2.0]]
    values, pairs = coincidences(table)
    assert float(alpha_of_coincidences(pairs.sum(axis=0), values)) == krippendorff_alpha(table, "nominal")
    assert krippendorff_alpha(table) == krippendorff_alpha(table, "nominal")
    assert krippendorff_alpha(table) != krippendorff_alpha(table, "interval")


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=20))
def test_cohens_kappa_is_scikit_learns(pairs: list[tuple[str, str]]) -> None:
    one, other = zip(*pairs, strict=True)
    found = cohen_kappa(one, other)
    if len({*one, *other}) == 1:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(cohen_kappa_score(one, other), abs=1e-12)
