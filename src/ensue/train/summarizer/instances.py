"""What a summariser learns from: what it reads and what it is to write, one instance a reference, and the loss."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import exp
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ensue.benchmarks.squality.data import StoryQuestion
from ensue.benchmarks.squality.inputs import Room, layout_for, token_counter
from ensue.benchmarks.squality.systems import prompts_of
from ensue.benchmarks.summaries.extractive import Retriever
from ensue.errors import EnsueError
from ensue.scoring.network import Network
from ensue.scoring.tokens import own_bos
from ensue.train.batching import alike

# Instances are sorted by length within so many batches: little padding, and still a different order each epoch.
_SORTED_TOGETHER = 16
_IGNORED = -100
# Above this a perplexity is only a number that cannot be written down.
_LARGEST = 80.0


class Instance(NamedTuple):
    """Token ids of the input and of the summary, whose last is the end token; `cut` where the summary was longer."""

    read: tuple[int, ...]
    write: tuple[int, ...]
    cut: bool = False

    @property
    def size(self) -> int:
        return len(self.read) + len(self.write)


def make_instances(
    examples: Sequence[StoryQuestion],
    tokenizer: Any,
    retriever: Retriever | None = None,
    *,
    causal: bool,
    max_input: int,
    max_output: int,
) -> list[Instance]:
    """Return every example once with each of its references; inputs are cut as in the benchmark."""
    room = Room(max_input, token_counter(tokenizer))
    given = prompts_of(examples, layout_for(causal, tokenizer), room, retriever)
    found: list[Instance] = []
    for example, each in zip(examples, given, strict=True):
        read = tuple(_read(tokenizer, each.text, causal))
        for reference in example.question.references:
            written = _write(tokenizer, reference.strip(), causal)
            found.append(Instance(read, tuple(written[:max_output]), len(written) > max_output))
    if not found:
        raise EnsueError("There is nothing to train on: no story has a question with a reference.")
    return found


def epoch_batches(
    instances: Sequence[Instance], batch: int, seed: int, epoch: int
) -> Iterator[list[Instance]]:
    """Yield all instances in batches of like-long ones, in an order of the epoch's own; the last may be smaller."""
    draw = random.Random(f"{seed}/{epoch}")
    order = list(instances)
    draw.shuffle(order)
    batches = alike(order, lambda one: one.size, batch, _SORTED_TOGETHER)
    draw.shuffle(batches)
    yield from batches


def fixed_batches(instances: Sequence[Instance], batch: int) -> Iterator[list[Instance]]:
    """Return all instances, the longest first."""
    order = sorted(instances, key=lambda one: -one.size)
    return (order[begin : begin + batch] for begin in range(0, len(order), batch))


def _read(tokenizer: Any, text: str, causal: bool) -> list[int]:
    if not causal:
        return list(tokenizer(text, verbose=False)["input_ids"])
    bos = own_bos(tokenizer)
    ids = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
    return [*([] if bos is None else [bos]), *ids]


def _write(tokenizer: Any, text: str, causal: bool) -> list[int]:
    """Return a summary's tokens with the end token."""
    if not causal:
        return list(tokenizer(text_target=text, verbose=False)["input_ids"])
    # After "Answer:" comes a space, which belongs to the first word's token.
    ids = tokenizer(f" {text}", add_special_tokens=False, verbose=False)["input_ids"]
    return [*ids, *([] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id])]


class SummaryObjective(nn.Module):  # type: ignore[misc]
    """A network of either kind, as the training loop calls it."""

    def __init__(self, network: Any, *, causal: bool, pad: int, smoothing: float) -> None:
        super().__init__()
        self.network = network
        self.causal, self.pad, self.smoothing = causal, pad, smoothing

    def forward(self, batch: Sequence[Instance]) -> Tensor:
        """Return the mean smoothed loss a token."""
        logits, labels = self.predict(batch)
        return nn.functional.cross_entropy(
            logits.float(), labels, ignore_index=_IGNORED, label_smoothing=self.smoothing
        )

    def total(self, batch: Sequence[Instance]) -> tuple[float, int]:
        """Return the summed plain loss of a batch and its tokens: unlike the smoothed one, it can be compared."""
        logits, labels = self.predict(batch)
        loss = nn.functional.cross_entropy(logits.float(), labels, ignore_index=_IGNORED, reduction="sum")
        return float(loss), int((labels != _IGNORED).sum())

    def predict(self, batch: Sequence[Instance]) -> tuple[Tensor, Tensor]:
        """Return logits [places, vocabulary] and the tokens that should stand there; -100 where nothing is asked."""
        return self._continued(batch) if self.causal else self._translated(batch)

    def _translated(self, batch: Sequence[Instance]) -> tuple[Tensor, Tensor]:
        device = next(self.network.parameters()).device
        ids, mask = _padded([one.read for one in batch], self.pad)
        labels = _padded([one.write for one in batch], _IGNORED)[0].to(device)
        logits = self.network(
            input_ids=ids.to(device), attention_mask=mask.to(device), labels=labels, use_cache=False
        ).logits
        return logits.flatten(0, 1), labels.flatten()

    def _continued(self, batch: Sequence[Instance]) -> tuple[Tensor, Tensor]:
        """Padded on the right, where a left-to-right model never looks, so that no mask is needed; the head runs only
        where a summary's token is next."""
        trunk = Network(self.network)
        ids, _ = _padded([(*one.read, *one.write) for one in batch], self.pad)
        hidden = trunk.hidden(ids.to(trunk.device))
        states = [
            hidden[row, len(one.read) - 1 : one.size - 1]  # a token is predicted at the place before it
            for row, one in enumerate(batch)
        ]
        labels = torch.tensor([token for one in batch for token in one.write], device=hidden.device)
        return trunk.logits(torch.cat(states)), labels


def held_out_figures(
    objective: SummaryObjective, batches: Iterable[Sequence[Instance]]
) -> Mapping[str, float]:
    """Loss and perplexity a token."""
    loss, tokens = 0.0, 0
    for batch in batches:
        found, count = objective.total(batch)
        loss, tokens = loss + found, tokens + count
    mean = loss / max(tokens, 1)
    return {"dev_loss": mean, "dev_perplexity": exp(min(mean, _LARGEST))}


def _padded(rows: Sequence[Sequence[int]], fill: int) -> tuple[Tensor, Tensor]:
    """Rows of one width, and 1 where they were not padded."""
    width = max(map(len, rows))
    ids = torch.full((len(rows), width), fill, dtype=torch.long)
    mask = torch.zeros((len(rows), width), dtype=torch.long)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = torch.tensor(row, dtype=torch.long)
        mask[number, : len(row)] = 1
    return ids, mask
