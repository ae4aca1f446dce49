"""Windows over long texts: what each form covers, and the released code's arithmetic."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.models.request import Mix, Window
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


def test_the_two_scripts_weigh_their_windows_by_what_they_are() -> None:
    """The causal one by the tokens each window advances, the masked one all alike."""
    causal, mix = cut_windows(1200, 1024, "released", RELEASED_CAUSAL)
    assert causal == [(0, 512, 0), (0, 1024, 0), (512, 1200, 512)]
    assert mix == Mix("means", (512 / 1200, 512 / 1200, 176 / 1200))
    masked, mix = cut_windows(700, 512, "released", RELEASED_MASKED)
    assert masked == [(0, 256, 0), (0, 512, 0), (256, 700, 256)]
    assert mix == Mix("means", (1 / 3, 1 / 3, 1 / 3))
    assert RELEASED_CAUSAL == (512, True)
    assert RELEASED_MASKED == (256, False)


def test_windows_by_value() -> None:
    assert cut_windows(10, 4, "average", RELEASED_CAUSAL) == (
        [(0, 4, 0), (2, 6, 2), (4, 8, 4), (6, 10, 6)],
        Mix("average"),
    )
    assert cut_windows(9, 4, "average", RELEASED_CAUSAL)[0] == [(0, 4, 0), (2, 6, 2), (4, 8, 4), (5, 9, 5)]
    assert cut_windows(9, 4, "strided", RELEASED_CAUSAL) == (
        [(0, 4, 0), (2, 6, 4), (4, 8, 6), (5, 9, 8)],
        Mix("sum"),
    )
    # An odd size strides by the smaller half; one token at a time where there is no half.
    assert cut_windows(7, 5, "strided", RELEASED_CAUSAL)[0] == [(0, 5, 0), (2, 7, 5)]
    assert cut_windows(3, 1, "strided", RELEASED_CAUSAL)[0] == [(0, 1, 0), (1, 2, 1), (2, 3, 2)]
    assert cut_windows(3, 1, "average", RELEASED_CAUSAL)[0] == [(0, 1, 0), (1, 2, 1), (2, 3, 2)]
    for policy in ("average", "strided"):
        assert cut_windows(4, 4, policy, RELEASED_CAUSAL) == ([(0, 4, 0)], Mix("sum"))  # type: ignore[arg-type]
        assert len(cut_windows(5, 4, policy, RELEASED_CAUSAL)[0]) == 2  # type: ignore[arg-type]
    # A text that fits is still weighed as the released code weighs it; a short model strides by its own length.
    assert cut_windows(4, 8, "released", RELEASED_CAUSAL) == ([(0, 4, 0)], Mix("means", (1.0,)))
    assert cut_windows(5, 4, "released", RELEASED_MASKED) == (
        [(0, 4, 0), (4, 5, 4)],
        Mix("means", (0.5, 0.5)),
    )
