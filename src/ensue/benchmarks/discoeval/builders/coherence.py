"""Discourse Coherence: six sentences in a row, or the same with one of them from another document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ensue.benchmarks.discoeval.builders.common import Made, Reservoir, Sizes, Split, balanced, generator
from ensue.benchmarks.discoeval.builders.corpus import Text
from ensue.benchmarks.discoeval.builders.donors import Donors
from ensue.errors import EnsueError

SENTENCES = 6
# The second to the fifth sentence may be replaced.
_REPLACED = (1, 2, 3, 4)
COHERENT, BROKEN = 1, 0


class Candidate(NamedTuple):
    """A document, and where in it the chosen runs of six sentences begin."""

    text: Text
    begins: tuple[int, ...]


class Run(NamedTuple):
    """Six sentences in a row."""

    text: Text
    sentences: tuple[str, ...]


def build_coherence(
    texts: Iterator[Text],
    source: str,
    sizes: Sizes,
    seed: int,
    per_document: int | None,
    paired: bool,
    made: Made,
) -> None:
    """Lines of every split, as many of them coherent (1) as not (0), replacements from the split's own documents.

    Of a document `per_document` runs are taken, or all. `paired` puts the two forms of each run one after the
    other, as the published chat and Wikipedia validation files do; without it a run comes in one form only.
    """
    if per_document is not None and per_document < 1:
        raise EnsueError(f"The number of runs a document is {per_document}, but must be at least 1.")
    wanted = sizes.halved() if paired else sizes
    sample: Reservoir[Candidate] = Reservoir(wanted.total, generator(seed, "DC", "documents"))
    for text in texts:
        if len(text.sentences) < SENTENCES:
            made.skipped["documents of fewer than six sentences"] += 1
        else:
            sample.offer(Candidate(text, _begins(text, per_document, seed)))
    items = [(candidate, len(candidate.begins)) for candidate in sample.shuffled()]
    allotted = wanted.allot(items, source)
    made.notes["runs of six sentences that were not needed"] += sum(count for _, count in items) - sum(
        count for chosen in allotted.values() for _, count in chosen
    )
    for split, chosen in allotted.items():
        if len(chosen) < 2:
            raise EnsueError(
                f"{source} leaves one document for {split}, so there is none to take a sentence from; ask for "
                f"more, or give more documents."
            )
        runs = [
            Run(text, text.sentences[begin : begin + SENTENCES])
            for (text, begins), count in chosen
            for begin in begins[:count]
        ]
        _write(split, runs, [candidate.text for candidate, _ in chosen], seed, paired, made)


def _begins(text: Text, per_document: int | None, seed: int) -> tuple[int, ...]:
    last = len(text.sentences) - SENTENCES + 1
    if per_document is None or per_document >= last:
        return tuple(range(last))
    drawn = generator(seed, "DC", "runs", text.id).choice(last, per_document, replace=False)
    return tuple(sorted(map(int, drawn)))


def _write(
    split: Split, runs: Sequence[Run], texts: Sequence[Text], seed: int, paired: bool, made: Made
) -> None:
    random = generator(seed, "DC", "replacements", split)
    donors = Donors(texts, made.notes)
    places = [_REPLACED[one] for one in balanced(len(runs), len(_REPLACED), random)]
    labels = balanced(len(runs), 2, random)
    lines = made.lines[split]
    for (text, sentences), place, label in zip(runs, places, labels, strict=True):
        if paired or label == BROKEN:
            broken = _broken(text, sentences, place, donors, random)
            lines.add_row(text.id, BROKEN, broken)
        if paired or label == COHERENT:
            lines.add_row(text.id, COHERENT, sentences)


def _broken(
    text: Text, sentences: Sequence[str], place: int, donors: Donors, random: np.random.Generator
) -> list[str]:
    return [*sentences[:place], donors.sentence(text, sentences, random), *sentences[place + 1 :]]
