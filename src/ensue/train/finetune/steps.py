"""The steps of a training: taken plainly, or on a GPU recorded for a few widths and replayed without Python."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ensue.descent import descend
from ensue.train.finetune.network import ExampleBatch, TaskNetwork
from ensue.train.finetune.recipe import Recipe
from ensue.train.recording import CudaRecord, Record, Recorder

_CLIP = 1.0
# A new head learns faster than the encoder under it.
_HEAD_FASTER = 10.0
# Batches are widened to one of these, or beyond them to a multiple of the last, so that their shapes come again.
_WIDTHS = (16, 32, 48, 64, 96, 128, 192, 256, 384, 512)

# A step's batch in parts, each with its share of the mean loss.
Parts = list[tuple[ExampleBatch, float]]
Losses = Callable[[Parts], Iterator[Tensor]]


class Steps:
    """Takes one step after another and keeps their losses."""

    def __init__(self, network: TaskNetwork, recipe: Recipe, total: int, losses: Losses) -> None:
        self._losses = losses
        self._clip = partial(nn.utils.clip_grad_norm_, list(network.parameters()), _CLIP)
        self._optimiser = optimiser_for(network, recipe)
        self._schedule: Any = torch.optim.lr_scheduler.LambdaLR(self._optimiser, linear(total, recipe.warmup))
        self._found: list[list[Tensor]] = []

    def take(self, parts: Parts) -> None:
        """Take a step on a batch in parts."""
        self._step(parts)

    def mean(self) -> float:
        """Return the mean loss since this was last asked; it waits for the device, so ask seldom."""
        found, self._found = self._found, []
        return float(sum(loss for taken in found for loss in taken)) / len(found)

    def close(self) -> None:
        """Let go of what was kept for further steps."""

    def _step(self, parts: Parts) -> None:
        descend([self._losses(parts)], self._optimiser, clip=self._clip, after=self._after)

    def _after(self, found: list[Tensor]) -> bool:
        self._schedule.step()
        self._found.append(found)
        return False


class RecordedSteps(Steps):
    """Takes steps whose every number stays on the device, so that they can be recorded."""

    def __init__(
        self, network: TaskNetwork, recipe: Recipe, total: int, losses: Losses, record: Record
    ) -> None:
        super().__init__(network, recipe, total, losses)
        device = next(network.parameters()).device
        self._widest = recipe.max_length
        self._optimiser = optimiser_for(network, recipe, recorded=True)
        self._schedule = DeviceRates(self._optimiser, linear(total, recipe.warmup), total, device)
        self._sum = torch.zeros((), device=device)
        self._count = 0
        mend = partial(self._optimiser.zero_grad, set_to_none=True)
        self._recorder: Recorder | None = Recorder(self._work, record, mend)

    def take(self, parts: Parts) -> None:
        wide = [(self._widened(batch), share) for batch, share in parts]
        shape = tuple((batch.most, batch.width, batch.apart_width, share) for batch, share in wide)
        assert self._recorder is not None, "no step is taken after the last"
        self._recorder(shape, [numbers for batch, _ in wide for numbers in _numbers(batch)])
        self._count += 1

    def mean(self) -> float:
        mean = float(self._sum) / self._count
        self._sum.zero_()
        self._count = 0
        return mean

    def close(self) -> None:
        self._recorder = None

    def _work(self, shape: Any, numbers: Any) -> None:
        given = iter(numbers)
        parts = [
            (ExampleBatch(next(given), next(given), next(given), most, width, next(given), apart), share)
            for most, width, apart, share in shape
        ]
        self._step(parts)

    def _after(self, found: list[Tensor]) -> bool:
        self._schedule.step()
        self._sum.add_(torch.stack(found).sum())
        return False

    def _widened(self, batch: ExampleBatch) -> ExampleBatch:
        width, apart = (self._wide(width) for width in (batch.width, batch.apart_width))
        return batch._replace(width=width, apart_width=apart)

    def _wide(self, width: int) -> int:
        """Return the width a batch is run with: no wider than the model takes."""
        return width and min(widened(width), max(width, self._widest))


def steps_for(network: TaskNetwork, recipe: Recipe, total: int, losses: Losses) -> Steps:
    """Return how steps are taken where a network lies."""
    if next(network.parameters()).device.type != "cuda":
        return Steps(network, recipe, total, losses)
    return RecordedSteps(network, recipe, total, losses, CudaRecord())


def widened(width: int) -> int:
    """Return the next of a few widths.

    >>> [widened(width) for width in (1, 16, 17, 500, 513)]
    [16, 16, 32, 512, 1024]
    """
    place = bisect_left(_WIDTHS, width)
    return _WIDTHS[place] if place < len(_WIDTHS) else -(-width // _WIDTHS[-1]) * _WIDTHS[-1]


def _numbers(batch: ExampleBatch) -> tuple[Tensor, ...]:
    return batch.examples, batch.rows, batch.slots, batch.apart


class DeviceRates:
    """Sets the learning rates of an optimiser after each step by numbers that lie on the device."""

    def __init__(
        self, optimiser: Any, factor: Callable[[int], float], total: int, device: torch.device
    ) -> None:
        self._factors = torch.tensor([factor(step) for step in range(total + 1)], device=device)
        self._done = torch.zeros(1, dtype=torch.long, device=device)
        self._rates = [(group["lr"], float(group["lr"])) for group in optimiser.param_groups]
        self._set()

    def step(self) -> None:
        self._done.add_(1)
        self._set()

    def _set(self) -> None:
        factor = self._factors.index_select(0, self._done)[0]
        for rate, highest in self._rates:
            rate.copy_(factor * highest)


def optimiser_for(network: TaskNetwork, recipe: Recipe, *, recorded: bool = False) -> torch.optim.Optimizer:
    """Return AdamW in one kernel a step, with decay for matrices alone; to be recorded, with rates on the device."""
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in network.named_parameters():
        if parameter.requires_grad:
            # Biases, norms and single weights are not drawn towards 0.
            plain = parameter.ndim < 2
            rate = recipe.learning_rate * (1.0 if name.startswith("trunk.") else _HEAD_FASTER)
            groups.setdefault((rate, 0.0 if plain else recipe.weight_decay), []).append(parameter)
    return torch.optim.AdamW(
        [
            {
                "params": held,
                "lr": torch.tensor(rate, device=held[0].device) if recorded else rate,
                "weight_decay": decay,
            }
            for (rate, decay), held in groups.items()
        ],
        fused=True,
        capturable=recorded,
    )


def linear(total: int, warmup: float) -> Callable[[int], float]:
    """Return factors that go up to 1 over the warmup, then down to 0 at the end."""
    rise = max(1, round(total * warmup)) if warmup > 0 else 0

    def factor(step: int) -> float:
        if step < rise:
            return (step + 1) / rise
        return max(0.0, (total - step) / max(1, total - rise))

    return factor
