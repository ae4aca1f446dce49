"""Batches of sentences of like length with what is to be predicted from them, gathered from a corpus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.train.encoder.corpus import Corpus, Ints

# So many batches are sorted by length together: enough that little is padded, few enough to stay mixed.
_POOLED = 50


class Ragged(NamedTuple):
    """Rows of different lengths as a table padded with 0; a row of length 0 stands for something missing."""

    table: Ints
    lengths: Ints


class Batch(NamedTuple):
    """Sentences and all that may be predicted from them."""

    words: Ragged
    before: Ragged
    after: Ragged
    section: Ragged
    document: Ragged
    level: Ints
    sentence: Ints
    sentences: Ints
    paragraph: Ints
    paragraphs: Ints


def epoch_batches(corpus: Corpus, rows: Ints, batch: int, seed: int, epoch: int) -> Iterator[Batch]:
    """All whole batches of an epoch in random order, each of sentences of like length."""
    rng = np.random.default_rng([seed, epoch])
    order = rows[rng.permutation(len(rows))]
    for begin in range(0, len(order), batch * _POOLED):
        pool = order[begin : begin + batch * _POOLED]
        pool = pool[np.argsort(_lengths(corpus, pool), kind="stable")]
        for place in rng.permutation(len(pool) // batch):
            # What is left over is the pool's longest sentences; they come into other batches next time.
            yield make_batch(corpus, pool[place * batch : (place + 1) * batch])


def batches_in(rows: int, batch: int) -> int:
    """How many batches `epoch_batches` makes of so many rows."""
    pools, left = divmod(rows, batch * _POOLED)
    return pools * _POOLED + left // batch


def fixed_batches(corpus: Corpus, rows: Ints, batch: int) -> Iterator[Batch]:
    """All sentences, always in the same batches: what a dev loss is measured on."""
    order = rows[np.argsort(_lengths(corpus, rows), kind="stable")]
    for begin in range(0, len(order), batch):
        yield make_batch(corpus, order[begin : begin + batch])


def make_batch(corpus: Corpus, rows: Ints) -> Batch:
    """The batch of some rows of a corpus; neighbours are those in the same document, across its sections."""
    labels = np.asarray(corpus.labels[rows], dtype=np.int64)
    document, level, sentence, sentences, paragraph, paragraphs, section_title, document_title = labels.T
    owners = corpus.label("document")
    before, after = rows - 1, rows + 1
    before = np.where((before >= 0) & (owners[np.maximum(before, 0)] == document), before, -1)
    last = corpus.sentences - 1
    after = np.where((after <= last) & (owners[np.minimum(after, last)] == document), after, -1)
    return Batch(
        words=gather(corpus.words, corpus.offsets, rows),
        before=gather(corpus.words, corpus.offsets, before),
        after=gather(corpus.words, corpus.offsets, after),
        section=gather(corpus.title_words, corpus.title_offsets, section_title),
        document=gather(corpus.title_words, corpus.title_offsets, document_title),
        level=level,
        sentence=sentence,
        sentences=sentences,
        paragraph=paragraph,
        paragraphs=paragraphs,
    )


def gather(words: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64], rows: Ints) -> Ragged:
    """The words of some rows; row −1 has none."""
    present = rows >= 0
    safe = np.where(present, rows, 0)
    if len(offsets) < 2:
        return Ragged(np.zeros((len(rows), 1), dtype=np.int64), np.zeros(len(rows), dtype=np.int64))
    starts = offsets[safe]
    lengths = np.where(present, offsets[safe + 1] - starts, 0)
    columns = np.arange(max(int(lengths.max()), 1))
    inside = columns < lengths[:, None]
    places = np.where(inside, starts[:, None] + columns, 0)
    return Ragged(np.where(inside, words[places], 0).astype(np.int64), lengths.astype(np.int64))


def _lengths(corpus: Corpus, rows: Ints) -> Ints:
    return np.asarray(corpus.offsets[rows + 1] - corpus.offsets[rows], dtype=np.int64)
