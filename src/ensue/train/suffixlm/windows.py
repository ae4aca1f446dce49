"""Which segments are trained on together: windows of consecutive segments, several of one work in a batch."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.train.suffixlm.corpus import Corpus, Span


class Window(NamedTuple):
    """Rows `[begin, end)` of the corpus, all of one work."""

    begin: int
    end: int


class Batch(NamedTuple):
    """Windows as tables, windows × segments: corpus rows (−1 where a window is shorter), their works, openings."""

    rows: npt.NDArray[np.int64]
    works: npt.NDArray[np.int64]
    openings: npt.NDArray[np.bool_]


def cut_windows(span: Span, size: int, shift: int) -> list[Window]:
    """A work cut into windows of `size` segments, the first of them `shift` long; none of a single segment."""
    edges = [span.begin, *range(span.begin + shift, span.end, size), span.end]
    pairs = itertools.pairwise(edges)
    return [Window(begin, end) for begin, end in pairs if end - begin >= 2]


def epoch_batches(
    corpus: Corpus, size: int, batch: int, in_book: int, seed: int, epoch: int
) -> Iterator[Batch]:
    """All windows of an epoch, cut anew each time, in random order, up to `in_book` of a work side by side."""
    rng = np.random.default_rng([seed, epoch])
    groups: list[list[Window]] = []
    for span in corpus.spans:
        windows = cut_windows(span, size, int(rng.integers(0, size)))
        order = rng.permutation(len(windows))
        chosen = [windows[i] for i in order]
        groups += [chosen[i : i + in_book] for i in range(0, len(chosen), in_book)]
    ready: list[Window] = []
    for place in rng.permutation(len(groups)):
        ready += groups[place]
        while len(ready) >= batch:
            yield make_batch(corpus, ready[:batch])
            ready = ready[batch:]


def fixed_batches(corpus: Corpus, size: int, batch: int) -> Iterator[Batch]:
    """All windows in order, always the same: what a dev loss is measured on."""
    windows = [window for span in corpus.spans for window in cut_windows(span, size, 0)]
    # Spread out, so that a batch holds windows of several works, as in training.
    step = max(len(windows) // batch, 1)
    spread = [windows[i] for first in range(step) for i in range(first, len(windows), step)]
    for begin in range(0, len(spread), batch):
        yield make_batch(corpus, spread[begin : begin + batch])


def make_batch(corpus: Corpus, windows: Sequence[Window]) -> Batch:
    """The table of rows of some windows."""
    width = max(window.end - window.begin for window in windows)
    rows = np.full((len(windows), width), -1, dtype=np.int64)
    for place, window in enumerate(windows):
        rows[place, : window.end - window.begin] = np.arange(window.begin, window.end)
    ends = np.asarray([span.end for span in corpus.spans])
    works = np.where(rows < 0, -1, np.searchsorted(ends, rows, side="right"))
    return Batch(rows, works, np.isin(rows, corpus.openings))
