"""What the encoder learns from: batches of sentences of like length, and the losses on each sentence's vector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from ensue.backends.discourse.model import DiscourseNetwork
from ensue.train.encoder.corpus import LABELS, Ints, SentenceCorpus
from ensue.train.encoder.options import LEVELS, TERMS, EncoderOptions

_BAGS = ("before", "after", "section", "document")
# So many batches are sorted by length together: enough that little is padded, few enough to stay mixed.
_POOLED = 50


class Ragged(NamedTuple):
    """Rows of different lengths as a table padded with 0; a row of length 0 stands for something missing."""

    table: Ints
    lengths: Ints


class SentenceBatch(NamedTuple):
    """Sentences and what may be predicted from them: `bags` of words by term, `places` by the names of `LABELS`."""

    words: Ragged
    bags: dict[str, Ragged]
    places: dict[str, Ints]


def epoch_batches(
    corpus: SentenceCorpus, rows: Ints, batch: int, seed: int, epoch: int
) -> Iterator[SentenceBatch]:
    """Yield all whole batches of an epoch in random order, each of sentences of like length."""
    rng = np.random.default_rng([seed, epoch])
    order = rows[rng.permutation(len(rows))]
    for begin in range(0, len(order), batch * _POOLED):
        pool = order[begin : begin + batch * _POOLED]
        pool = pool[np.argsort(_lengths(corpus, pool), kind="stable")]
        for place in rng.permutation(len(pool) // batch):
            # What is left over is the pool's longest sentences; they come into other batches next time.
            yield make_batch(corpus, pool[place * batch : (place + 1) * batch])


def batches_in(rows: int, batch: int) -> int:
    """Return how many batches `epoch_batches` makes of so many rows."""
    pools, left = divmod(rows, batch * _POOLED)
    return pools * _POOLED + left // batch


def fixed_batches(corpus: SentenceCorpus, rows: Ints, batch: int) -> Iterator[SentenceBatch]:
    """Yield all sentences, always in the same batches: what a dev loss is measured on."""
    order = rows[np.argsort(_lengths(corpus, rows), kind="stable")]
    for begin in range(0, len(order), batch):
        yield make_batch(corpus, order[begin : begin + batch])


def make_batch(corpus: SentenceCorpus, rows: Ints) -> SentenceBatch:
    """Return the batch of some rows of a corpus; neighbours are those in the same document, across its sections."""
    places = dict(zip(LABELS, np.asarray(corpus.labels[rows], dtype=np.int64).T, strict=True))
    owners, last = corpus.label("document"), corpus.sentences - 1

    def neighbours(step: int) -> Ints:
        near = (rows + step).clip(0, last)
        return np.where((near != rows) & (owners[near] == places["document"]), near, -1)

    sentences = partial(gather, corpus.words, corpus.offsets)
    titles = partial(gather, corpus.title_words, corpus.title_offsets)
    bags = {
        "before": sentences(neighbours(-1)),
        "after": sentences(neighbours(1)),
        "section": titles(places["section_title"]),
        "document": titles(places["document_title"]),
    }
    return SentenceBatch(sentences(rows), bags, places)


def gather(words: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64], rows: Ints) -> Ragged:
    """Return the words of some rows; row −1 has none."""
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


def _lengths(corpus: SentenceCorpus, rows: Ints) -> Ints:
    return np.asarray(corpus.offsets[rows + 1] - corpus.offsets[rows], dtype=np.int64)


def bag_losses(logits: Tensor, targets: Tensor, lengths: Tensor) -> Tensor:
    """Return for each row minus the mean log-probability of its target words under one softmax over the vocabulary.

    A word that occurs twice counts twice. Rows without targets give 0. Only the scores of target words are
    gathered; the rest of the vocabulary enters by one log-sum-exp a row.
    """
    logits = logits.float()
    inside = torch.arange(targets.shape[1], device=targets.device) < lengths[:, None]
    hits = (logits.gather(1, targets) * inside).sum(1) / lengths.clamp(min=1)
    return torch.where(lengths > 0, logits.logsumexp(1) - hits, 0.0)


def class_losses(logits: Tensor, targets: Tensor, allowed: Tensor | None = None) -> Tensor:
    """Cross-entropy of each row; where `allowed` is given, only that many first classes of a row can be right."""
    logits = logits.float()
    if allowed is not None:
        beyond = torch.arange(logits.shape[1], device=logits.device) >= allowed[:, None]
        logits = logits.masked_fill(beyond, float("-inf"))
    return nn.functional.cross_entropy(logits, targets, reduction="none")


def share_class(position: Tensor, total: Tensor, classes: int) -> Tensor:
    """Return which of `classes` equal parts of the whole a position lies in: the first of 40 in the first of 20."""
    return torch.div(position * classes, total, rounding_mode="floor")


def feed_forward(inputs: int, hidden: int, outputs: int, dropout: float) -> nn.Sequential:
    """Return a decoder's network: two hidden layers with ReLU."""
    return nn.Sequential(
        nn.Linear(inputs, hidden),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(hidden, outputs),
    )


class EncoderObjective(nn.Module):  # type: ignore[misc]
    """The encoder with one decoder for each term of the losses asked for."""

    def __init__(self, network: DiscourseNetwork, options: EncoderOptions) -> None:
        super().__init__()
        self.network, self.options = network, options
        shape, hidden, dropout = network.shape, options.hidden, options.dropout
        self.decoders = nn.ModuleDict()
        for term in options.terms:
            if term in _BAGS:
                bag = feed_forward(shape.width, hidden, hidden, dropout)
                self.decoders[term] = nn.Sequential(*bag, nn.Linear(hidden, shape.vocabulary))
            else:
                classes = LEVELS if term == "level" else options.position_classes
                self.decoders[term] = feed_forward(shape.width, hidden, classes, dropout)

    def forward(self, batch: SentenceBatch) -> Tensor:
        """Return the weighted sum of the losses; each term is the mean over the sentences that have its target."""
        terms = self.term_losses(batch)
        means = {name: losses.sum() / present.sum().clamp(min=1) for name, (losses, present) in terms.items()}
        return torch.stack(
            [
                w * torch.stack([means[term] for term in TERMS[loss]]).sum()
                for loss, w in self.options.weights.items()
            ]
        ).sum()

    def term_losses(self, batch: SentenceBatch) -> dict[str, tuple[Tensor, Tensor]]:
        """Return for each term the loss of each sentence and whether the sentence has its target."""
        device = self.network.embedding.weight.device
        vectors = self.network(_on(batch.words.table, device), torch.from_numpy(batch.words.lengths))
        found = {}
        for term in self.options.terms:
            logits = self.decoders[term](vectors)
            if term in _BAGS:
                bag = batch.bags[term]
                lengths = _on(bag.lengths, device)
                found[term] = (bag_losses(logits, _on(bag.table, device), lengths), lengths > 0)
            else:
                found[term] = self._placed(term, logits, batch)
        return found

    def _placed(self, term: str, logits: Tensor, batch: SentenceBatch) -> tuple[Tensor, Tensor]:
        """Return the losses of a term that predicts a class, which every sentence has."""
        position = _on(batch.places[term], logits.device)
        classes = logits.shape[1]
        if term == "level":
            losses = class_losses(logits, position.clamp(max=classes - 1))
        else:
            total = _on(batch.places[f"{term}s"], logits.device)
            if self.options.positions == "share":
                losses = class_losses(logits, share_class(position, total, classes))
            else:
                losses = class_losses(logits, position.clamp(max=classes - 1), total)
        return losses, torch.ones_like(losses, dtype=torch.bool)


def dev_figures(objective: EncoderObjective, batches: Iterable[SentenceBatch]) -> dict[str, float]:
    """Return `dev_loss` and each loss alone, unweighted, as means over all sentences, however they are batched."""
    sums: dict[str, Tensor] = {}
    for batch in batches:
        for name, (losses, present) in objective.term_losses(batch).items():
            both = torch.stack([losses.detach().double().sum(), present.double().sum()])
            sums[name] = sums[name] + both if name in sums else both
    means = {name: float(both[0]) / max(float(both[1]), 1.0) for name, both in sums.items()}
    weights = objective.options.weights
    found = {loss: sum(means[term] for term in TERMS[loss]) for loss in weights}
    total = sum(weight * found[loss] for loss, weight in weights.items())
    return {"dev_loss": total, **{f"dev_{loss}": value for loss, value in found.items()}}


def _on(array: np.ndarray[tuple[int, ...], np.dtype[np.int64]], device: torch.device) -> Tensor:
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor
