"""Scores put together: fields of named tuples, however nested, over references and segments."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.metrics.overlap import OVER_REFERENCES, Overlap, best, flat, harmonic, mean, overlap, summarise

SHARES = st.floats(0.0, 1.0)
OVERLAPS = st.builds(Overlap, SHARES, SHARES, SHARES)


class Both(NamedTuple):
    rouge: Overlap
    meteor: float


@given(st.lists(st.builds(Both, OVERLAPS, SHARES), min_size=1, max_size=6), st.randoms())
def test_the_order_of_references_does_not_matter(scores: list[Both], chance) -> None:
    mixed = list(scores)
    chance.shuffle(mixed)
    assert best(mixed) == best(scores)
    assert mean(mixed) == mean(scores)
    assert best(scores).rouge.f1 == max(score.rouge.f1 for score in scores)
    assert best(scores).meteor == max(score.meteor for score in scores)
    assert list(mean(scores).rouge) == pytest.approx(
        np.mean([score.rouge for score in scores], axis=0).tolist()
    )
    assert best(scores).rouge in [score.rouge for score in scores]


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))
def test_f1_is_twice_what_is_shared_over_what_either_has(shared: int, more: int, also: int) -> None:
    found = overlap(shared, shared + more, shared + also)
    assert found.f1 == pytest.approx(2 * shared / max(2 * shared + more + also, 1))
    assert harmonic(found.precision, found.recall) == found.f1


def test_figures_have_dotted_names() -> None:
    scores = [Both(Overlap(1.0, 0.5, 0.25), 0.5), Both(Overlap(0.0, 0.5, 0.75), 0.0)]
    assert summarise(scores) == {"rouge.precision": 0.5, "rouge.recall": 0.5, "rouge.f1": 0.5, "meteor": 0.25}
    assert flat(0.5) == {"value": 0.5}
    assert OVER_REFERENCES["max"]([1.0, 2.0]) == 2.0
    assert OVER_REFERENCES["mean"]([1.0, 2.0]) == 1.5


@pytest.mark.parametrize("put_together", [best, mean, summarise])
def test_no_reference_is_refused(put_together) -> None:
    with pytest.raises(ValueError, match="every segment needs a reference"):
        put_together([])
