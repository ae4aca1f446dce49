"""What a classifier of each group sees of its sentences' vectors, as section 3 of the paper defines it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from ensue.benchmarks.discoeval.data import Example

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]
# Vectors by row number: an array of any shape gets one more axis.
Take = Callable[[Rows], Floats]

# Examples are put together so many at a time, so that little is in memory beside the features themselves.
_CHUNK = 512


def position(x: Floats) -> Floats:
    """SP: the moved sentence, and its difference from each of the others."""
    return np.concatenate([x[:, 0], *(x[:, 0] - x[:, i] for i in range(1, x.shape[1]))], axis=1)


def alone(x: Floats) -> Floats:
    """The first sentence only: SSP, and SP without context (table 6)."""
    return x[:, 0]


def order(x: Floats) -> Floats:
    """BSO: both sentences and their difference."""
    return np.concatenate([x[:, 0], x[:, 1], x[:, 0] - x[:, 1]], axis=1)


def together(x: Floats) -> Floats:
    """DC: all sentences, one after the other."""
    return x.reshape(len(x), -1)


def relation(x: Floats) -> Floats:
    """PDTB and RST: both sides, their product and their absolute difference."""
    left, right = x[:, 0], x[:, 1]
    return np.concatenate([left, right, left * right, np.abs(left - right)], axis=1)


COMBINE: dict[str, Callable[[Floats], Floats]] = {
    "SP": position,
    "BSO": order,
    "DC": together,
    "SSP": alone,
    "PDTB": relation,
    "RST": relation,
}


class Places:
    """The row numbers of the sentences of examples that all have equally many parts."""

    def __init__(self, examples: Sequence[Example], rows: Callable[[Sequence[str]], Rows]) -> None:
        self.parts = len(examples[0].parts)
        sides = [part for example in examples for part in example.parts]
        self._sizes = np.fromiter(map(len, sides), np.int64, len(sides))
        self._begins = np.concatenate([[0], np.cumsum(self._sizes)])
        self._rows = rows([sentence for part in sides for sentence in part])

    def __len__(self) -> int:
        return len(self._sizes) // self.parts

    def means(self, begin: int, end: int, take: Take) -> Floats:
        """Examples × parts × width: the mean of each part's sentences, which is the vector of a lone one."""
        first, last = begin * self.parts, end * self.parts
        vectors = take(self._rows[self._begins[first] : self._begins[last]])
        sizes = self._sizes[first:last]
        if (sizes > 1).any():
            sums = np.add.reduceat(vectors, self._begins[first:last] - self._begins[first], axis=0)
            vectors = np.divide(sums, sizes[:, None], dtype=np.float32)
        return vectors.reshape(end - begin, self.parts, -1)


def features(places: Places, take: Take, combine: Callable[[Floats], Floats]) -> Floats:
    """One row per example."""
    out: Floats | None = None
    for begin in range(0, len(places), _CHUNK):
        end = min(begin + _CHUNK, len(places))
        made = combine(places.means(begin, end, take))
        if out is None:
            out = np.empty((len(places), made.shape[1]), dtype=np.float32)
        out[begin:end] = made
    assert out is not None, "a split has at least one example"
    return out
