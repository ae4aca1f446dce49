"""Features against hand computation, written out number by number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from ensue.benchmarks.discoeval import probe as f
from ensue.benchmarks.discoeval.data import DiscoEvalExample

# Vectors of width 2; the sentence "i" is row i.
TABLE = np.asarray([[1, 2], [3, 5], [-1, 4], [0.5, 0], [2, 2], [10, -10]], dtype=np.float32)


def rows(sentences: Sequence[str]) -> NDArray[np.int64]:
    return np.asarray([int(s) for s in sentences], dtype=np.int64)


def take(numbers: NDArray[np.int64]) -> NDArray[np.float32]:
    return TABLE[numbers]


def example(*parts: str) -> DiscoEvalExample:
    """Parts of sentences divided by spaces."""
    return DiscoEvalExample("x", "x", 0, tuple(tuple(part.split()) for part in parts))


def made(group: str, *examples: DiscoEvalExample) -> list[list[float]]:
    found = f.features(f.SentencePlaces(examples, rows), take, f.COMBINE[group])
    assert found.dtype == np.float32
    return [[float(x) for x in row] for row in found]


def test_position_is_the_first_and_its_differences() -> None:
    assert made("SP", example("0", "1", "2", "3", "4")) == [[1, 2, -2, -3, 2, -2, 0.5, 2, -1, 0]]


def test_order_is_both_and_their_difference() -> None:
    assert made("BSO", example("0", "1"), example("1", "0")) == [[1, 2, 3, 5, -2, -3], [3, 5, 1, 2, 2, 3]]


def test_coherence_is_all_six_in_their_order() -> None:
    assert made("DC", example("5", "4", "3", "2", "1", "0")) == [
        [10, -10, 2, 2, 0.5, 0, -1, 4, 3, 5, 1, 2],
    ]


def test_section_is_the_sentence() -> None:
    assert made("SSP", example("2"), example("3")) == [[-1, 4], [0.5, 0]]


def test_a_relation_is_both_sides_their_product_and_distance() -> None:
    assert made("PDTB", example("0", "2")) == [[1, 2, -1, 4, -1, 8, 2, 2]]


def test_a_subtree_is_the_mean_of_its_units() -> None:
    # Left: the mean of rows 0, 1 and 4; right: that of row 2 taken twice and row 5.
    left, right = [2.0, 3.0], [8 / 3, -2 / 3]
    expected = [*left, *right, left[0] * right[0], left[1] * right[1], 2 / 3, 11 / 3]
    found = made("RST", example("0 1 4", "2 2 5"), example("3", "0"))
    assert found[0] == pytest.approx(expected, rel=1e-6)
    assert found[1] == [0.5, 0, 1, 2, 0.5, 0, 0.5, 2]


def test_many_examples_are_the_same_as_one_at_a_time() -> None:
    generator = np.random.default_rng(0)
    many = [
        example(*(" ".join(map(str, generator.integers(0, 6, generator.integers(1, 5)))) for _ in range(2)))
        for _ in range(1300)
    ]
    together = made("RST", *many)
    for place in (0, 511, 512, 513, 1299):
        assert together[place] == pytest.approx(made("RST", many[place])[0], rel=1e-6)


def test_position_without_context_is_the_first_alone() -> None:
    places = f.SentencePlaces([example("2", "1", "0", "3", "4")], rows)
    assert f.features(places, take, f.alone).tolist() == [[-1, 4]]
