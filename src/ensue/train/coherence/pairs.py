"""What a coherence model learns from: documents, each beside shuffled versions of it, and the loss on such pairs."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ensue.benchmarks.nlu.examples import Example
from ensue.text.documents import Document
from ensue.train.batching import alike
from ensue.train.finetune.inputs import Inputs
from ensue.train.finetune.network import ExampleBatch, Packs, TaskNetwork
from ensue.train.shuffling import Shuffling, drawn_orders

# Pairs are sorted by length within pools of so many batches, so that batches are even and still random.
_POOL = 50
# Tokens run at once where nothing is learned.
_BUDGET = {"cpu": 4_096, "cuda": 262_144}


class Pair(NamedTuple):
    """The places of a document and of a shuffled version of it among the texts."""

    original: int
    shuffled: int


class PairTexts(NamedTuple):
    """All texts, each once, and the pairs among them."""

    texts: list[str]
    pairs: list[Pair]
    documents: int


def make_pairs(documents: Sequence[Document], shuffling: Shuffling) -> PairTexts:
    """Return the texts and pairs of documents; two equal sentences make none."""
    texts: list[str] = []
    pairs: list[Pair] = []
    used = 0
    for document in documents:
        sentences = document.sentences[: shuffling.max_sentences]
        made = [
            shuffling.joiner.join(sentences[i] for i in order)
            for order in drawn_orders(sentences, document.id, shuffling)
        ]
        if made:
            first = len(texts)
            texts += [shuffling.joiner.join(sentences), *made]
            pairs += [Pair(first, first + place) for place in range(1, len(made) + 1)]
            used += 1
    return PairTexts(texts, pairs, used)


class PairSet:
    """Pairs on the device: their texts' tokens, laid end to end, and how many of them were cut."""

    def __init__(self, made: PairTexts, inputs: Inputs, device: torch.device, pad: int) -> None:
        examples = [Example(id=str(place), texts=(text,)) for place, text in enumerate(made.texts)]
        sequences = inputs.sequences("single", examples, joint=True, apart=False)
        self.pairs, self.cut = made.pairs, sequences.cut
        self.packs = Packs(sequences, len(examples), device, pad)

    def batches(self, size: int, seed: int, epoch: int) -> Iterator[ExampleBatch]:
        """Yield the pairs in the order of an epoch, `size` texts a batch, each original before its shuffled one."""
        draw = random.Random(f"{seed} {epoch}")
        order = list(self.pairs)
        draw.shuffle(order)
        plan = alike(order, lambda pair: self.packs.tokens[pair.original], size // 2, _POOL)
        draw.shuffle(plan)
        return self.packs.batches([[place for pair in chosen for place in pair] for chosen in plan])


class PairObjective(nn.Module):  # type: ignore[misc]
    """A network with one output, trained on pairs: a text's own order against a shuffled one."""

    def __init__(self, network: TaskNetwork, packs: Packs, loss: str, margin: float) -> None:
        super().__init__()
        self.network, self.loss, self.margin = network, loss, margin
        # No part of the module: what is trained on is not saved with it.
        self._packs = [packs]

    def forward(self, batch: ExampleBatch) -> Tensor:
        """Return the mean loss of a batch whose texts come as pairs."""
        outputs = self.network(self._packs[0], batch)[:, 0]
        return pair_loss(outputs[0::2], outputs[1::2], self.loss, self.margin)

    def scores(self, packs: Packs) -> Tensor:
        """Return the output of every text of a set, in order."""
        budget = _BUDGET.get(packs.device.type, _BUDGET["cpu"])
        return self.network.outputs(packs, budget)[:, 0]

    def figures(self, held: PairSet) -> dict[str, float]:
        """Return the loss on held-out pairs, and how often the original is rated higher; a tie counts half."""
        scores = self.scores(held.packs)
        places = torch.from_numpy(np.asarray(held.pairs)).to(scores.device)
        good, bad = scores[places[:, 0]], scores[places[:, 1]]
        loss = pair_loss(good, bad, self.loss, self.margin)
        right = (good > bad).double().mean() + (good == bad).double().mean() / 2
        return {"dev_loss": float(loss), "dev_accuracy": float(right)}


def pair_loss(good: Tensor, bad: Tensor, loss: str, margin: float) -> Tensor:
    """Return the mean loss of pairs: each text right or wrong for itself, or the good one higher by a margin."""
    functional = nn.functional
    if loss == "ranking":
        return functional.relu(margin - (good - bad)).mean()
    return (functional.softplus(-good).mean() + functional.softplus(bad).mean()) / 2


def network_of(trunk: Any, pool: Any, dropout: float) -> TaskNetwork:
    """Return the network that is trained: the encoder with one output."""
    return TaskNetwork(trunk, "single", 1, pool=pool, joint=True, apart=False, dropout=dropout)
