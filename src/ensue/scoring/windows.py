"""How a text longer than the model is cut into windows, and how their scores add up to one."""

from __future__ import annotations

from typing import NamedTuple

from ensue.models.request import Mix, Window


class Released(NamedTuple):
    """The constants of the authors' released code, which differ between its two scripts."""

    stride: int
    by_advance: bool


RELEASED_CAUSAL = Released(stride=512, by_advance=True)
RELEASED_MASKED = Released(stride=256, by_advance=False)


class Cut(NamedTuple):
    """Tokens `[begin, end)` of a text, of which those from `scored_from` on are scored."""

    begin: int
    end: int
    scored_from: int


def cut_windows(length: int, size: int, policy: Window, released: Released) -> tuple[list[Cut], Mix]:
    """Windows of at most `size` tokens over a text of `length` tokens, and how their scores mix.

    Positions count the text's own tokens; a scorer that puts a BOS first passes a smaller size. Whether a
    window's first token can be scored is the scorer's BOS policy, not the window's.
    """
    if policy == "released":
        return _released(length, size, released)
    if length <= size:
        return [Cut(0, length, 0)], Mix("sum")
    if policy == "average":
        return _average(length, size), Mix("average")
    return _strided(length, size), Mix("sum")


def _average(length: int, size: int) -> list[Cut]:
    """Half-overlapping windows, each scored whole; the last one ends with the text."""
    stride = max(size // 2, 1)
    starts = [*range(0, length - size, stride), length - size]
    return [Cut(start, start + size, start) for start in starts]


def _strided(length: int, size: int) -> list[Cut]:
    """Windows that each score only what the last one did not reach; every token is scored once."""
    stride = max(size // 2, 1)
    cuts = [Cut(0, size, 0)]
    while (reached := cuts[-1].end) < length:
        end = min(reached + stride, length)
        cuts.append(Cut(end - size, end, reached))
    return cuts


def _released(length: int, size: int, released: Released) -> tuple[list[Cut], Mix]:
    """Windows that end at each multiple of the stride; each one's mean counts over all of its tokens,
    weighted by the tokens it advances (causal script) or equally (masked script)."""
    stride = min(released.stride, size)
    ends = [min(start + stride, length) for start in range(0, length, stride)]
    cuts = [Cut(max(i * stride + stride - size, 0), end, 0) for i, end in enumerate(ends)]
    cuts = [cut._replace(scored_from=cut.begin) for cut in cuts]
    if released.by_advance:
        shares = tuple((end - i * stride) / length for i, end in enumerate(ends))
    else:
        shares = (1 / len(ends),) * len(ends)
    return cuts, Mix("means", shares)
