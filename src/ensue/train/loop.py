"""The training loop: optimiser, schedule, mixed precision, evaluation, checkpoints, early stopping."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from accelerate import Accelerator
from torch import nn

from ensue.errors import EnsueError, RunFailed
from ensue.train.checkpoint import Progress, load_checkpoint, save_checkpoint

LOG = "training.jsonl"
Schedule = Literal["inverse-sqrt", "linear", "constant"]
Precision = Literal["auto", "no", "bf16", "fp16"]


@dataclass(frozen=True)
class LoopSettings:
    """How anything is trained; steps are optimiser steps."""

    steps: int
    learning_rate: float = 1e-4
    warmup: int = 4000
    schedule: Schedule = "inverse-sqrt"
    weight_decay: float = 0.01
    clip: float = 1.0
    accumulate: int = 1
    evaluate_every: int = 500
    patience: int = 5
    log_every: int = 20
    seed: int = 0
    precision: Precision = "auto"
    device: str = "auto"


@dataclass(frozen=True)
class Fitted:
    """How a training ended."""

    steps: int
    best_step: int
    best_loss: float
    best: dict[str, float]
    stopped_early: bool
    seconds: float


# Batches of an epoch, endlessly many epochs; the loss of a batch; figures on held-out data, `dev_loss` among them.
Batches = Callable[[int], Iterator[Any]]
Evaluate = Callable[[], Mapping[str, float]]
Told = Callable[[int, int, str], None]


def make_accelerator(settings: LoopSettings) -> Accelerator:
    """Accelerate's view of the machine: devices, processes and precision."""
    cpu = settings.device == "cpu" or (settings.device == "auto" and not torch.cuda.is_available())
    if settings.device.startswith("cuda") and not torch.cuda.is_available():
        raise EnsueError(f"There is no {settings.device} here; train with --device cpu or auto.")
    precision = settings.precision
    if precision == "auto":
        precision = "no" if cpu else "bf16"
    return Accelerator(cpu=cpu, mixed_precision=precision, gradient_accumulation_steps=settings.accumulate)


def learning_rate(settings: LoopSettings, step: int) -> float:
    """The learning rate at a step (from 1): linear warm-up, then as the schedule says."""
    warm = min(1.0, step / settings.warmup) if settings.warmup else 1.0
    if settings.schedule == "inverse-sqrt":
        later = math.sqrt(max(settings.warmup, 1) / max(step, settings.warmup, 1))
    elif settings.schedule == "linear":
        later = (
            max(0.0, (settings.steps - step) / max(settings.steps - settings.warmup, 1)) if warm == 1 else 1.0
        )
    else:
        later = 1.0
    return settings.learning_rate * warm * later


class Loop:
    """One training in a folder; `run` goes from the last checkpoint, if any, to the end."""

    def __init__(
        self,
        objective: nn.Module,
        settings: LoopSettings,
        folder: Path,
        accelerator: Accelerator,
        *,
        save_best: Callable[[], None],
        told: Told | None = None,
        question: str = "",
    ) -> None:
        """`question` is a digest of the data; a checkpoint of another one is not gone on with."""
        self.settings, self.folder, self.accelerator = settings, folder, accelerator
        self.save_best, self.told, self.question = save_best, told, question
        self.plain = objective
        parameters = [p for p in objective.parameters() if p.requires_grad]
        if not parameters:
            raise EnsueError("Nothing is to be trained: every parameter is frozen.")
        optimiser = torch.optim.AdamW(
            _groups(objective, settings.weight_decay), lr=settings.learning_rate, betas=(0.9, 0.98)
        )
        self.parameters = parameters
        self.objective, self.optimiser = accelerator.prepare(objective, optimiser)

    def run(self, batches: Batches, evaluate: Evaluate, *, resume: bool) -> Fitted:
        """Train until the steps are done or the dev loss has not improved `patience` evaluations long."""
        began = time.monotonic()
        progress = Progress()
        if resume:
            progress = load_checkpoint(self.folder, self.plain, self.optimiser, self.question)
        if self.main:
            _cut_log(self.folder / LOG, progress.step)
        earlier = progress.seconds
        settings, losses = self.settings, []
        stopped = progress.bad >= settings.patience
        while progress.step < settings.steps and not stopped:
            for batch in self._epoch(batches, progress):
                losses.append(self._step(batch, progress.step + 1))
                progress.step += 1
                progress.batches += 1
                progress.seconds = earlier + time.monotonic() - began
                due = progress.step % settings.evaluate_every == 0 or progress.step == settings.steps
                # Before a checkpoint too, so that no mean reaches across one.
                if due or progress.step % settings.log_every == 0:
                    self._log_loss(progress, losses)
                if due:
                    stopped = self._evaluate(evaluate, progress)
                if self.told is not None:
                    self.told(progress.step, settings.steps, "steps")
                if stopped or progress.step >= settings.steps:
                    break
            else:
                progress.epoch += 1
                progress.batches = 0
        if progress.best_step == 0:
            self._evaluate(evaluate, progress)
        return Fitted(
            progress.step,
            progress.best_step,
            progress.best_loss,
            progress.best,
            stopped,
            earlier + time.monotonic() - began,
        )

    @property
    def main(self) -> bool:
        return bool(self.accelerator.is_main_process)

    def _epoch(self, batches: Batches, progress: Progress) -> Iterator[list[Any]]:
        """Groups of `accumulate` batches of this process, those already trained on left out.

        What does not fill a group of every process is dropped, so that all take the same number of steps.
        """
        world, rank = self.accelerator.num_processes, self.accelerator.process_index
        group: list[Any] = []
        count = 0
        for batch in batches(progress.epoch):
            group.append(batch)
            if len(group) == world * self.settings.accumulate:
                count += 1
                if count > progress.batches:
                    yield group[rank::world]
                group = []
        if count == 0:
            raise EnsueError("The training data is too small for one batch; use a smaller --batch.")

    def _step(self, group: list[Any], step: int) -> torch.Tensor:
        """One optimiser step; dropout depends on the step alone, so that a resumed training repeats itself."""
        torch.manual_seed(self.settings.seed * 1_000_003 + step)
        self.objective.train()
        rate = learning_rate(self.settings, step)
        for parameters in self.optimiser.param_groups:
            parameters["lr"] = rate
        total = torch.zeros((), device=self.accelerator.device)
        for place, batch in enumerate(group):
            last = place == len(group) - 1
            with self.accelerator.autocast():
                loss = self.objective(batch)
            if last:
                self.accelerator.backward(loss)
            else:
                with self.accelerator.no_sync(self.objective):
                    self.accelerator.backward(loss)
            total += loss.detach() / len(group)
        self.accelerator.clip_grad_norm_(self.parameters, self.settings.clip)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        return total

    def _log_loss(self, progress: Progress, losses: list[torch.Tensor]) -> None:
        loss = float(torch.stack(losses).mean())
        losses.clear()
        if not math.isfinite(loss):
            raise RunFailed(
                f"The loss is {loss} at step {progress.step}: lower --learning-rate and start again."
            )
        self._log(progress, loss=loss, lr=learning_rate(self.settings, progress.step))

    def _evaluate(self, evaluate: Evaluate, progress: Progress) -> bool:
        """Held-out figures, the best model kept, a checkpoint; whether to stop."""
        self.objective.eval()
        with torch.inference_mode(), self.accelerator.autocast():
            found = {name: float(value) for name, value in evaluate().items()}
        better = found["dev_loss"] < progress.best_loss
        if better:
            progress.best_loss, progress.best_step, progress.best, progress.bad = (
                found["dev_loss"],
                progress.step,
                found,
                0,
            )
        else:
            progress.bad += 1
        if self.main:
            self._log(progress, **found, best=better)
            if better:
                self.save_best()
            save_checkpoint(self.folder, self.plain, self.optimiser, progress, self.question)
        self.accelerator.wait_for_everyone()
        return progress.bad >= self.settings.patience

    def _log(self, progress: Progress, **facts: Any) -> None:
        if not self.main:
            return
        row = {"step": progress.step, "epoch": progress.epoch, "seconds": round(progress.seconds, 2), **facts}
        with (self.folder / LOG).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def _groups(module: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Matrices decay; biases, norms and other vectors do not."""
    trained = [p for p in module.parameters() if p.requires_grad]
    return [
        {"params": [p for p in trained if p.dim() > 1], "weight_decay": weight_decay},
        {"params": [p for p in trained if p.dim() <= 1], "weight_decay": 0.0},
    ]


def _cut_log(path: Path, step: int) -> None:
    """Keep the log up to the checkpoint that training goes on from."""
    rows = path.read_text("utf-8").splitlines() if path.exists() else []
    kept = [row for row in rows if _step_of(row) <= step]
    path.write_text("".join(row + "\n" for row in kept), "utf-8")


def _step_of(row: str) -> float:
    try:
        return float(json.loads(row)["step"])
    except (ValueError, KeyError, TypeError):
        return math.inf
