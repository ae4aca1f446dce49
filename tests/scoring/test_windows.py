"""Windows over long texts: what each form covers, and the released code's arithmetic."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.scoring.request import Window
from ensue.scoring.windows import RELEASED_CAUSAL, RELEASED_MASKED, Released, cut_windows

lengths = st.integers(1, 4000)
sizes = st.integers(2, 1500)
policies = st.sampled_from(["average", "strided", "released"])


@given(lengths, sizes, policies)
def test_windows_fit_the_model_and_cover_the_text(length: int, size: int, policy: Window) -> None:
    cuts, _ = cut_windows(length, size, policy, RELEASED_CAUSAL)
    assert all(0 <= c.begin <= c.scored_from < c.end <= length and c.end - c.begin <= size for c in cuts)
    assert {i for c in cuts for i in range(c.scored_from, c.end)} == set(range(length))


@given(lengths, sizes)
def test_strided_scores_every_token_once_with_half_a_window_before_it(length: int, size: int) -> None:
    cuts, mix = cut_windows(length, size, "strided", RELEASED_CAUSAL)
    scored = [i for c in cuts for i in range(c.scored_from, c.end)]
    assert scored == list(range(length))
    assert mix.rule == "sum"
    assert all(c.scored_from - c.begin >= size - max(size // 2, 1) for c in cuts[1:])


@given(lengths, sizes)
def test_average_windows_overlap_by_half(length: int, size: int) -> None:
    cuts, mix = cut_windows(length, size, "average", RELEASED_CAUSAL)
    if length <= size:
        assert len(cuts) == 1
        return
    assert mix.rule == "average"
    assert all(c.end - c.begin == size for c in cuts)
    steps = [b.begin - a.begin for a, b in pairwise(cuts)]
    assert all(step == max(size // 2, 1) for step in steps[:-1])
    assert 0 < steps[-1] <= max(size // 2, 1)


@pytest.mark.parametrize(("released", "stride"), [(RELEASED_CAUSAL, 512), (RELEASED_MASKED, 256)])
@given(length=st.integers(1, 4000), size=st.integers(512, 2048))
def test_released_windows_are_those_of_the_authors_code(
    released: Released, stride: int, length: int, size: int
) -> None:
    cuts, mix = cut_windows(length, size, "released", released)
    # Their loop, written out.
    expected = [(max(i + stride - size, 0), min(i + stride, length)) for i in range(0, length, stride)]
    assert [(c.begin, c.end) for c in cuts] == expected
    assert sum(mix.shares) == pytest.approx(1)
    if released.by_advance:
        advances = [end - i for i, (_, end) in zip(range(0, length, stride), expected, strict=True)]
        assert mix.shares == pytest.approx([a / length for a in advances])
