"""Chapter-break accuracy on held-out works during training, straight from the corpus."""

from __future__ import annotations

from math import comb
from typing import NamedTuple

import torch
from torch import Tensor

from ensue.backends.suffixlm.model import SuffixLM
from ensue.train.suffixlm.corpus import Corpus

_NEGATIVES = 5
_AT_ONCE = 64


class Break(NamedTuple):
    """A chapter break: the rows of its context, the row of the true opening and those of all later ones."""

    begin: int
    end: int
    later: tuple[int, ...]


def find_breaks(corpus: Corpus, segments: int) -> list[Break]:
    """Every break of every work that has five later chapters, with at most `segments` segments before it."""
    return [
        Break(max(span.begin, opening - segments), opening, span.openings[place + 1 :])
        for span in corpus.spans
        for place, opening in enumerate(span.openings)
        if place and len(span.openings) - place - 1 >= _NEGATIVES
    ]


def break_accuracy(network: SuffixLM, vectors: Tensor, breaks: list[Break]) -> float:
    """The expected accuracy over the breaks if five negatives are drawn from the later openings.

    Where w of m later openings score at least as high as the true one, none of them is among five drawn with
    probability C(m − w, 5) / C(m, 5). `vectors` are those of the corpus's rows.
    """
    total = 0.0
    for begin in range(0, len(breaks), _AT_ONCE):
        some = breaks[begin : begin + _AT_ONCE]
        length = max(b.end - b.begin for b in some)
        table = vectors.new_zeros((len(some), length, vectors.shape[-1]))
        for place, item in enumerate(some):
            table[place, : item.end - item.begin] = vectors[item.begin : item.end]
        last = torch.tensor([b.end - b.begin - 1 for b in some], device=vectors.device)
        predicted = network(table)[torch.arange(len(some), device=vectors.device), last].float()
        for row, item in zip(predicted, some, strict=True):
            scores = vectors[[item.end, *item.later]].float() @ row
            worse = int((scores[1:] >= scores[0]).sum())
            total += comb(len(item.later) - worse, _NEGATIVES) / comb(len(item.later), _NEGATIVES)
    return total / len(breaks) if breaks else float("nan")
