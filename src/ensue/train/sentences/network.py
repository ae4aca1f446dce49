"""The networks of GLUE's baselines: word vectors, their mean or a BiLSTM, attention across a pair, classifiers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ensue.benchmarks.nlu.fitting import Classifier, features_in, row_features
from ensue.train.sentences import ATTENTION, CBOW
from ensue.train.sentences.rows import TextBatch, TextVocabulary

_LAYERS = 2


class HeadSize(NamedTuple):
    """What the classifier of a task takes and gives: texts and marks of a row, and how many outputs."""

    texts: int
    marks: int
    outputs: int


@dataclass(frozen=True)
class SentenceShape:
    """An architecture, the BiLSTM's width in each direction, and the classifiers' hidden units."""

    architecture: str
    width: int
    hidden: int


class BiLSTM(nn.Module):  # type: ignore[misc]
    """States of both directions at every word."""

    def __init__(self, inputs: int, width: int, layers: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, width, layers, batch_first=True, bidirectional=True)

    def forward(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """States [texts, words, 2 × width], zeros after a text's end; `lengths` stays on the CPU."""
        packed = nn.utils.rnn.pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
        states: Tensor = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0]
        return states


class SentenceNetwork(nn.Module):  # type: ignore[misc]
    """An encoder that all tasks share, and a classifier for each."""

    def __init__(
        self, vocabulary: TextVocabulary, shape: SentenceShape, tasks: Mapping[str, HeadSize]
    ) -> None:
        super().__init__()
        self.shape = shape
        if vocabulary.vectors is None:
            self.words = nn.Embedding(len(vocabulary), vocabulary.width)
        else:
            # Nothing is drawn for these, so that the start of the rest does not depend on how many words there are.
            self.words = nn.Embedding.from_pretrained(torch.from_numpy(vocabulary.vectors), freeze=True)
        states = vocabulary.width
        if shape.architecture != CBOW:
            self.encoder = BiLSTM(vocabulary.width, shape.width, _LAYERS)
            states = 2 * shape.width
        if shape.architecture == ATTENTION:
            self.after_attention = BiLSTM(2 * states, shape.width, 1)
        self.heads = nn.ModuleDict(
            {
                name: Classifier(features_in(task.texts, task.marks, states), task.outputs, shape.hidden)
                for name, task in tasks.items()
            }
        )

    def forward(self, task: str, batch: TextBatch) -> Tensor:
        """Outputs [rows, outputs] of a task's classifier."""
        states = self.words(batch.words)
        if self.shape.architecture != CBOW:
            states = self.encoder(states, batch.lengths)
        lengths = batch.lengths.to(states.device)
        if self.shape.architecture == ATTENTION and batch.sides.shape[1] == 2:
            texts = self._attended(states, batch)
        else:
            pool = mean_pool if self.shape.architecture == CBOW else max_pool
            vectors = pool(states, lengths)
            texts = [vectors[side] for side in batch.sides.unbind(1)]
        marked = [mean_between(states, *mark.unbind(1)) for mark in batch.marks.unbind(1)]
        outputs: Tensor = self.heads[task](row_features(texts, marked))
        return outputs

    def _attended(self, states: Tensor, batch: TextBatch) -> list[Tensor]:
        """Vectors of both sentences of every row after each has looked at the other."""
        first, second = batch.sides.cpu().unbind(1)
        long_first, long_second = batch.lengths[first], batch.lengths[second]
        u = states[batch.sides[:, 0], : int(long_first.max())]
        v = states[batch.sides[:, 1], : int(long_second.max())]
        on_device = long_first.to(states.device), long_second.to(states.device)
        seen_by_u, seen_by_v = attend(u, v, *on_device)
        pairs = ((u, seen_by_u, long_first), (v, seen_by_v, long_second))
        return [
            max_pool(self.after_attention(torch.cat([own, seen], -1), lengths), lengths.to(states.device))
            for own, seen, lengths in pairs
        ]


def within(lengths: Tensor, size: int) -> Tensor:
    """Return which of `size` places [texts, size] are words of the text."""
    return torch.arange(size, device=lengths.device) < lengths[:, None]


def mean_pool(states: Tensor, lengths: Tensor) -> Tensor:
    """Return the mean over a text's words."""
    kept = states * within(lengths, states.shape[1])[..., None]
    return kept.sum(1) / lengths[:, None]


def max_pool(states: Tensor, lengths: Tensor) -> Tensor:
    """Return the largest value of each number over a text's words."""
    beyond = ~within(lengths, states.shape[1])
    return states.masked_fill(beyond[..., None], -torch.inf).amax(1)


def mean_between(states: Tensor, text: Tensor, begin: Tensor, end: Tensor) -> Tensor:
    """Return for every row the mean over the words `begin` to `end` of a text; zeros where there are none."""
    places = torch.arange(states.shape[1], device=states.device)
    inside = (places >= begin[:, None]) & (places < end[:, None])
    return (states[text] * inside[..., None]).sum(1) / inside.sum(1, keepdim=True).clamp(min=1)


def attend(u: Tensor, v: Tensor, u_lengths: Tensor, v_lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return for each state of u the states of v weighted by a softmax over their products, and vice versa."""
    products = u @ v.transpose(1, 2)
    in_u, in_v = within(u_lengths, u.shape[1]), within(v_lengths, v.shape[1])
    by_u = products.masked_fill(~in_v[:, None, :], -torch.inf).softmax(2)
    by_v = products.masked_fill(~in_u[:, :, None], -torch.inf).softmax(1)
    return by_u @ v, by_v.transpose(1, 2) @ u
