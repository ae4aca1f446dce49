"""Many small classifiers on the same features, trained together as one stack of tensors.

A stack holds *streams* (training sets drawn from one table, such as the folds of a cross-validation) times
*decays* (one classifier a weight decay, on the same batches). Gradients are written out by hand: with
batches of 64 rows most of the time would go into bookkeeping otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor
from torch.optim.adam import adam

from ensue.benchmarks.probing.rules import Rules

# The derivative of a batch's mean loss by its logits, from logits [..., classes] and target probabilities.
Slope = Callable[[Tensor, Tensor], Tensor]


def cross_entropy_slope(logits: Tensor, targets: Tensor) -> Tensor:
    """For the mean cross-entropy over the rows of a batch, rows in dimension 1."""
    return torch.softmax(logits, -1).sub_(targets).div_(logits.shape[1])


def squared_slope(logits: Tensor, targets: Tensor) -> Tensor:
    """For the mean squared difference between softmax and targets, over rows and classes."""
    chances = torch.softmax(logits, -1)
    pull = (chances - targets).mul_(2.0 / (logits.shape[1] * logits.shape[-1])).mul_(chances)
    return pull.sub_(chances * pull.sum(-1, keepdim=True))


class Shape(NamedTuple):
    """What a classifier maps: `inputs` features, through `hidden` units if any, to `classes`."""

    inputs: int
    hidden: int
    classes: int


def initial(shape: Shape, generator: torch.Generator) -> list[Tensor]:
    """Weights and biases drawn as torch.nn.Linear draws them, in the same order."""
    sizes = [shape.inputs, *([shape.hidden] if shape.hidden else []), shape.classes]
    drawn: list[Tensor] = []
    for inputs, outputs in pairwise(sizes):
        weight = torch.empty(outputs, inputs)
        torch.nn.init.kaiming_uniform_(weight, a=math.sqrt(5), generator=generator)
        bound = 1.0 / math.sqrt(inputs)
        drawn += [weight, torch.empty(outputs).uniform_(-bound, bound, generator=generator)]
    return drawn


class Stack:
    """Parameters [streams, decays, …] with Adam's state; `step` trains every classifier on one batch."""

    def __init__(
        self, start: Sequence[Tensor], streams: int, rules: Rules, slope: Slope, device: torch.device
    ) -> None:
        self.decays = list(rules.decays)
        self.hidden, self.slope = rules.hidden, slope
        self.rate, self.dropout = rules.learning_rate, rules.dropout
        # Where dropout draws from; on a GPU the device's own generator, which a recorded pass may use.
        self.noise: torch.Generator | None = None
        if self.hidden and streams > 1:
            raise ValueError("A stack with a hidden layer holds one stream.")
        # Every classifier starts from the same draw, as it does where each one is seeded alike.
        self.weights = [
            part.to(device).expand(streams, len(self.decays), *part.shape).contiguous() for part in start
        ]
        self.first = [torch.zeros_like(part) for part in self.weights]
        self.second = [torch.zeros_like(part) for part in self.weights]
        self.slopes = [torch.empty_like(part) for part in self.weights]
        self._count(torch.zeros((), device=device))

    @property
    def streams(self) -> int:
        """How many training sets there are."""
        return int(self.weights[0].shape[0])

    def keep(self, streams: Sequence[int], decays: Sequence[int]) -> None:
        """Drop all streams and decays but these."""
        for parts in (self.weights, self.first, self.second, self.slopes):
            parts[:] = [part[list(streams)][:, list(decays)].contiguous() for part in parts]
        self.decays = [self.decays[place] for place in decays]
        self._count(self._done[0][0])

    def logits(self, x: Tensor, stream: int) -> Tensor:
        """Logits [rows, decays, classes] of one stream's classifiers, without dropout."""
        weight, bias = self.weights[0][stream], self.weights[1][stream]
        out = torch.addmm(bias.flatten(), x, weight.flatten(0, 1).t())
        out = out.view(len(x), len(self.decays), -1)
        if not self.hidden:
            return out
        return self._second_layer(torch.sigmoid_(out).transpose(0, 1)).transpose(0, 1)

    def step(self, x: Tensor, targets: Tensor) -> None:
        """One step of Adam on the batch x [streams, rows, inputs] with targets [streams, rows, classes]."""
        streams, rows, _ = x.shape
        flat = [part.flatten(1, 2) for part in self.slopes[:2]]
        weight, bias = self.weights[0].flatten(1, 2), self.weights[1].flatten(1, 2)
        if streams == 1:
            out = torch.addmm(bias[0], x[0], weight[0].t()).unsqueeze(0)
        else:
            out = torch.baddbmm(bias.unsqueeze(1), x, weight.transpose(1, 2))
        if self.hidden:
            pull = self._through_hidden(out[0], targets).unsqueeze(0)
        else:
            shaped = out.view(streams, rows, len(self.decays), -1)
            pull = self.slope(shaped, targets.unsqueeze(2)).flatten(2)
        if streams == 1:
            torch.mm(pull[0].t(), x[0], out=flat[0][0])
        else:
            torch.bmm(pull.transpose(1, 2), x, out=flat[0])
        torch.sum(pull, 1, out=flat[1])
        self._descend()

    def _second_layer(self, units: Tensor) -> Tensor:
        """Logits [decays, rows, classes] from units [decays, rows, hidden]."""
        weight, bias = self.weights[2][0], self.weights[3][0]
        return torch.baddbmm(bias.unsqueeze(1), units, weight.transpose(1, 2))

    def _through_hidden(self, out: Tensor, targets: Tensor) -> Tensor:
        """Slopes of the second layer are kept, those by the first layer's outputs [rows, units] returned."""
        rows = len(out)
        kept = None
        if self.dropout:
            kept = torch.empty_like(out).bernoulli_(1.0 - self.dropout, generator=self.noise)
            kept.div_(1.0 - self.dropout)
            out = out.mul_(kept)
        units = torch.sigmoid_(out)
        apart = units.view(rows, len(self.decays), self.hidden).transpose(0, 1)
        pull = self.slope(self._second_layer(apart), targets)
        torch.bmm(pull.transpose(1, 2), apart, out=self.slopes[2][0])
        torch.sum(pull, 1, out=self.slopes[3][0])
        back = torch.bmm(pull, self.weights[2][0]).transpose(0, 1).reshape(rows, -1)
        back = torch.ops.aten.sigmoid_backward(back, units)
        return back if kept is None else back.mul_(kept)

    def _descend(self) -> None:
        """Adam with the decay added to the slope, as torch.optim.Adam's `weight_decay` does."""
        if self.hidden:
            # Large layers: the decay is added inside the one pass over the memory.
            for place, decay in enumerate(self.decays):
                self._adam(place, decay)
            return
        for slope, weight in zip(self.slopes, self.weights, strict=True):
            slope.addcmul_(weight, self._decay.view(1, -1, *[1] * (weight.dim() - 2)))
        self._adam(None, 0.0)

    def _adam(self, place: int | None, decay: float) -> None:
        def chosen(parts: list[Tensor]) -> list[Tensor]:
            return parts if place is None else [part[:, place] for part in parts]

        adam(
            chosen(self.weights),
            chosen(self.slopes),
            chosen(self.first),
            chosen(self.second),
            [],
            self._done[place or 0],
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self.rate,
            weight_decay=decay,
            eps=1e-8,
            maximize=False,
        )

    def _count(self, steps: Tensor) -> None:
        """The decays as a tensor, and the number of steps so far for every group Adam is called with."""
        self._decay = torch.tensor(self.decays, device=steps.device)
        groups = len(self.decays) if self.hidden else 1
        self._done = [[steps.clone() for _ in self.weights] for _ in range(groups)]
