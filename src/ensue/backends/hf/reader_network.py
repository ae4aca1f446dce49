"""The network of a reader: a model's states, their mean over each sentence, and sentences that see each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ensue.backends.hf.headed import Headed, HeadedNetwork

# What no sentence has: the token that opens a text, and padding.
NOBODY = -1
# In so many layers sentences see each other, each with so many heads.
_AMONG, _HEADS = 2, 4
# How strong a sentence's place shows beside what it says, and over how many sentences places differ.
_PLACE, _PLACES = 0.1, 512


@dataclass(frozen=True)
class ReaderReading:
    """How a reader reads: so many tokens of a text at once, and of one sentence at most so many.

    `layers` of its model are run, all where it is 0. In a model that reads from left to right the last `both_ways` of
    them see what comes after, too. Sentences see each other in layers of width `among`; where it is 0, in none.
    """

    max_length: int = 512
    max_sentence: int = 128
    layers: int = 0
    both_ways: int = 0
    among: int = 0

    def __post_init__(self) -> None:
        numbers = (self.max_length, self.max_sentence, self.layers, self.both_ways, self.among)
        if not all(type(one) is int and one >= 0 for one in numbers) or not (
            8 <= self.max_sentence + 2 <= self.max_length
        ):
            raise ValueError(
                f"windows of {self.max_length!r} tokens with sentences of {self.max_sentence!r} cannot be read"
            )
        if self.among % (2 * _HEADS) or (self.layers and self.both_ways > self.layers):
            raise ValueError(
                f"{self.layers!r} layers, {self.both_ways!r} of them both ways, and sentences of width "
                f"{self.among!r} cannot be read"
            )


class ReaderNetwork(HeadedNetwork):
    """A model, and a logit from the mean of each sentence's states, seen beside those of the others."""

    def __init__(self, trunk: Any, reading: ReaderReading | None = None) -> None:
        self.reading = reading or ReaderReading()
        cut_layers(trunk, self.reading.layers)
        width = int(trunk.config.hidden_size)
        super().__init__(trunk, self.reading.among or width)
        if self.reading.among:
            self.inner = nn.Linear(width, self.reading.among)
            self.among = nn.ModuleList(_layer(self.reading.among) for _ in range(_AMONG))
            self.norm = nn.LayerNorm(self.reading.among)

    def forward(self, ids: Tensor, mask: Tensor, owners: Tensor, sentences: int) -> Tensor:
        """Return the logit of each of so many sentences, numbered across the rows."""
        states = self.states(ids, mask)
        # The head is narrow: it costs nothing in full precision and is steadier there.
        with torch.autocast(states.device.type, enabled=False):
            means = sentence_means(states.float(), owners, sentences)
            found: Tensor = self.classifier(self._seen(means, owners) if self.reading.among else means)
            return found[:, 0]

    def states(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the last states of a batch of tokens whose padding stands at the end."""
        trunk = self.trunk
        if not self.reading.both_ways:
            found: Tensor = trunk(input_ids=ids, attention_mask=mask)[0]
            return found
        hidden = trunk.embed_tokens(ids)
        places = torch.arange(ids.shape[1], device=ids.device)[None]
        turned = trunk.rotary_emb(hidden, places)
        seen = mask.bool()[:, None, None, :].expand(-1, 1, ids.shape[1], -1)
        last = len(trunk.layers) - self.reading.both_ways
        for number, layer in enumerate(trunk.layers):
            # From left to right nothing that counts looks at the padding.
            hidden = layer(
                hidden,
                attention_mask=seen if number >= last else None,
                position_ids=places,
                position_embeddings=turned,
            )
        normed: Tensor = trunk.norm(hidden)
        return normed

    def _seen(self, means: Tensor, owners: Tensor) -> Tensor:
        """Let the sentences of each row see each other."""
        most = owners.amax(1)
        counts = most - torch.cat([most.new_full((1,), NOBODY), most.cummax(0).values[:-1]])
        counts = counts.clamp(min=0)
        longest = int(counts.max())
        present = torch.arange(longest, device=means.device) < counts[:, None]
        rows = means.new_zeros((*present.shape, means.shape[-1]))
        rows[present] = means
        hidden = self.inner(rows) + _PLACE * _places(longest, self.reading.among).to(means)
        for layer in self.among:
            hidden = layer(hidden, src_key_padding_mask=~present)
        found: Tensor = self.norm(hidden)[present]
        return found


def cut_layers(trunk: Any, layers: int) -> None:
    """Leave of a model its first layers; all where the number is 0."""
    if layers:
        found = trunk.layers if hasattr(trunk, "layers") else trunk.encoder.layer
        if layers > len(found):
            raise ValueError(f"{layers} layers of {len(found)} cannot be read")
        del found[layers:]
        trunk.config.num_hidden_layers = layers


def _layer(width: int) -> nn.Module:
    return nn.TransformerEncoderLayer(
        width, _HEADS, 2 * width, 0.1, "gelu", batch_first=True, norm_first=True
    )


def _places(count: int, width: int) -> Tensor:
    """Return a vector for the place of each of so many sentences; beyond the last known place they are alike."""
    places = torch.arange(count).clamp(max=_PLACES - 1)
    angles = places[:, None] * torch.exp(torch.arange(0, width, 2) * (-6.0 / width))
    return torch.cat([angles.sin(), angles.cos()], 1)


def sentence_means(states: Tensor, owners: Tensor, sentences: int) -> Tensor:
    """Return the mean state of each sentence's tokens."""
    theirs = torch.where(owners == NOBODY, sentences, owners).flatten()
    sums = states.new_zeros((sentences + 1, states.shape[-1])).index_add_(0, theirs, states.flatten(0, 1))
    counts = torch.bincount(theirs, minlength=sentences + 1).clamp(min=1)
    return (sums / counts[:, None])[:sentences]


def _network(trunk: Any, config: Mapping[str, Any]) -> ReaderNetwork:
    return ReaderNetwork(trunk, ReaderReading(**config["reader"]))


READER = Headed("SentenceReader", "reader", "a reader", _network)
