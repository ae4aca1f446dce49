"""The training loop: optimiser, schedule, mixed precision, evaluation, early stopping, and checkpoints to go on from.

A checkpoint is one safetensors file: nothing is pickled, nothing of two steps is mixed.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from ensue.atomic import replacing, write_atomic
from ensue.backends.hf.loading import CHECKPOINT
from ensue.descent import descend
from ensue.errors import EnsueError, RunFailed
from ensue.progress import Progress, ignore
from ensue.train.options import LoopSettings

LOG = "training.jsonl"


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


def make_accelerator(settings: LoopSettings) -> Accelerator:
    """Return accelerate's view of the machine: devices, processes and precision."""
    cpu = settings.device == "cpu" or (settings.device == "auto" and not torch.cuda.is_available())
    if settings.device.startswith("cuda") and not torch.cuda.is_available():
        raise EnsueError(f"There is no {settings.device} here; train with --device cpu or auto.")
    precision = settings.precision
    if precision == "auto":
        precision = "no" if cpu else "bf16"
    return Accelerator(cpu=cpu, mixed_precision=precision, gradient_accumulation_steps=settings.accumulate)


def learning_rate(settings: LoopSettings, step: int) -> float:
    """Return the learning rate at a step (from 1): linear warm-up, then as the schedule says."""
    warm = min(1.0, step / settings.warmup) if settings.warmup else 1.0
    if settings.schedule == "inverse-sqrt":
        later = math.sqrt(max(settings.warmup, 1) / max(step, settings.warmup, 1))
    elif settings.schedule == "linear":
        # Whole in the first step after the warm-up, and never nothing: the last step learns too.
        later = min(1.0, (settings.steps + 1 - step) / max(settings.steps - settings.warmup, 1))
    else:
        later = 1.0
    return settings.learning_rate * warm * later


@dataclass
class TrainingState:
    """Where a training stands: steps, the epoch and the batches of it that are done, the best so far."""

    step: int = 0
    epoch: int = 0
    batches: int = 0
    best_loss: float = float("inf")
    best_step: int = 0
    best: dict[str, float] = field(default_factory=dict)
    bad: int = 0
    seconds: float = 0.0


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
        progress: Progress = ignore,
        question: str = "",
    ) -> None:
        """`question` is a digest of the data; a checkpoint of another one is not continued."""
        self.settings, self.folder, self.accelerator = settings, folder, accelerator
        self.save_best, self.progress, self.question = save_best, progress, question
        self.plain = objective
        self.parameters = [p for p in objective.parameters() if p.requires_grad]
        if not self.parameters:
            raise EnsueError("Nothing is to be trained: every parameter is frozen.")
        optimiser = torch.optim.AdamW(
            _groups(self.parameters, settings.weight_decay), lr=settings.learning_rate, betas=(0.9, 0.98)
        )
        self.objective, self.optimiser = accelerator.prepare(objective, optimiser)

    def run(self, batches: Batches, evaluate: Evaluate, *, resume: bool) -> Fitted:
        """Train until the steps are done or the dev loss has not improved `patience` evaluations long."""
        began, settings = time.monotonic(), self.settings
        state = TrainingState()
        if resume:
            state = load_checkpoint(self.folder, self.plain, self.optimiser, self.question)
        if self.main:
            _cut_log(self.folder / LOG, state.step)
        earlier = state.seconds
        losses: list[Tensor] = []
        stopped = state.bad >= settings.patience

        def after(found: list[Tensor]) -> bool:
            """Count the step, log and evaluate where it is time to; return whether it was the last."""
            nonlocal stopped
            mean = torch.zeros((), device=self.accelerator.device)
            for loss in found:
                mean += loss / len(found)
            losses.append(mean)
            state.step += 1
            state.batches += 1
            state.seconds = earlier + time.monotonic() - began
            due = state.step % settings.evaluate_every == 0 or state.step == settings.steps
            # Before a checkpoint too, so that no mean reaches across one.
            if due or state.step % settings.log_every == 0:
                self._log_loss(state, losses)
            if due:
                stopped = self._evaluate(evaluate, state)
            self.progress(state.step, settings.steps, "steps")
            return stopped or state.step >= settings.steps

        if state.step < settings.steps and not stopped:
            descend(
                self._steps(batches, state),
                self.optimiser,
                clip=lambda: self.accelerator.clip_grad_norm_(self.parameters, settings.clip),
                after=after,
                backward=self.accelerator.backward,
            )
        if state.best_step == 0:
            self._evaluate(evaluate, state)
        seconds = earlier + time.monotonic() - began
        return Fitted(state.step, state.best_step, state.best_loss, state.best, stopped, seconds)

    @property
    def main(self) -> bool:
        """Whether this is the process that writes."""
        return bool(self.accelerator.is_main_process)

    def _steps(self, batches: Batches, state: TrainingState) -> Iterator[Iterator[Tensor]]:
        """Yield the losses of step after step, epoch after epoch without end."""
        while True:
            for group in self._epoch(batches, state):
                yield self._losses(group, state.step + 1)
            state.epoch += 1
            state.batches = 0

    def _epoch(self, batches: Batches, state: TrainingState) -> Iterator[list[Any]]:
        """Yield groups of `accumulate` batches of this process, those already trained on left out.

        What does not fill a group of every process is dropped, so that all take the same number of steps.
        """
        world, rank = self.accelerator.num_processes, self.accelerator.process_index
        group: list[Any] = []
        count = 0
        for batch in batches(state.epoch):
            group.append(batch)
            if len(group) == world * self.settings.accumulate:
                count += 1
                if count > state.batches:
                    yield group[rank::world]
                group = []
        if count == 0:
            raise EnsueError("The training data is too small for one batch; use a smaller --batch.")

    def _losses(self, group: list[Any], step: int) -> Iterator[Tensor]:
        """Yield the loss of each batch; dropout depends on the step alone, so that resuming repeats it."""
        torch.manual_seed(self.settings.seed * 1_000_003 + step)
        self.objective.train()
        rate = learning_rate(self.settings, step)
        for parameters in self.optimiser.param_groups:
            parameters["lr"] = rate
        for place, batch in enumerate(group):
            with self.accelerator.autocast():
                loss = self.objective(batch)
            # Gradients go backward while this waits; the processes exchange them after the last batch.
            last = place == len(group) - 1
            with nullcontext() if last else self.accelerator.no_sync(self.objective):
                yield loss

    def _log_loss(self, state: TrainingState, losses: list[Tensor]) -> None:
        loss = float(torch.stack(losses).mean())
        losses.clear()
        _refuse_no_number(loss, state)
        self._log(state, loss=loss, lr=learning_rate(self.settings, state.step))

    def _evaluate(self, evaluate: Evaluate, state: TrainingState) -> bool:
        """Compute held-out figures, keep the best model and a checkpoint; return whether to stop."""
        self.objective.eval()
        with torch.inference_mode(), self.accelerator.autocast():
            found = {name: float(value) for name, value in evaluate().items()}
        _refuse_no_number(found["dev_loss"], state)
        better = found["dev_loss"] < state.best_loss
        if better:
            state.best_loss, state.best_step, state.best = found["dev_loss"], state.step, found
            state.bad = 0
        else:
            state.bad += 1
        if self.main:
            self._log(state, **found, best=better)
            if better:
                self.save_best()
            save_checkpoint(self.folder, self.plain, self.optimiser, state, self.question)
        self.accelerator.wait_for_everyone()
        return state.bad >= self.settings.patience

    def _log(self, state: TrainingState, **facts: Any) -> None:
        if not self.main:
            return
        row = {"step": state.step, "epoch": state.epoch, "seconds": round(state.seconds, 2), **facts}
        with (self.folder / LOG).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def _refuse_no_number(loss: float, state: TrainingState) -> None:
    if not math.isfinite(loss):
        raise RunFailed(f"The loss is {loss} at step {state.step}: lower --learning-rate and start again.")


def _groups(trained: list[nn.Parameter], weight_decay: float) -> list[dict[str, Any]]:
    """Let matrices decay; biases, norms and other vectors do not."""
    return [
        {"params": [p for p in trained if p.dim() > 1], "weight_decay": weight_decay},
        {"params": [p for p in trained if p.dim() <= 1], "weight_decay": 0.0},
    ]


def _cut_log(path: Path, step: int) -> None:
    """Keep the log up to the checkpoint that training goes on from."""
    rows = path.read_text("utf-8").splitlines() if path.exists() else []
    kept = [row for row in rows if _step_of(row) <= step]
    write_atomic(path, (row + "\n" for row in kept))


def _step_of(row: str) -> float:
    try:
        return float(json.loads(row)["step"])
    except (ValueError, KeyError, TypeError):
        return math.inf


def save_checkpoint(
    folder: Path, module: nn.Module, optimiser: Any, state: TrainingState, question: str = ""
) -> None:
    """Write what is needed to go on as one file, put in place whole: tensors, where they stand, and in what training.

    `question` is a digest of what else decides the steps to come, the data above all.
    """
    named = _trained(module)
    tensors = {f"model.{name}": value.detach().cpu().contiguous() for name, value in named.items()}
    states = _plain(optimiser).state
    for name, value in named.items():
        for key, moment in states.get(value, {}).items():
            tensors[f"optimiser.{key}.{name}"] = moment.detach().cpu().contiguous()
    with replacing(folder / CHECKPOINT) as part:
        save_file(tensors, part, metadata={"progress": json.dumps(asdict(state)), "question": question})


def load_checkpoint(folder: Path, module: nn.Module, optimiser: Any, question: str = "") -> TrainingState:
    """Put module and optimiser back to the last checkpoint; a fresh start where there is none."""
    if not (folder / CHECKPOINT).exists():
        return TrainingState()
    try:
        facts, tensors = _read(folder / CHECKPOINT)
        state = TrainingState(**json.loads(facts["progress"]))
        named = _trained(module)
        shapes = {name: tensors[f"model.{name}"].shape for name in named}
        other = [name for name, value in named.items() if value.shape != shapes[name]]
        if other:
            raise ValueError(f"{other[0]} is {tuple(shapes[other[0]])}")
    except Exception as error:
        reason = " ".join(str(error).split())[:150]
        raise EnsueError(
            f"The checkpoint in {folder} does not fit this training ({reason}); start again in another folder."
        ) from error
    if facts["question"] != question:
        raise EnsueError(
            f"The checkpoint in {folder} is of a training on other data; put that data back, or start again in "
            f"another folder."
        )
    with torch.no_grad():
        for name, value in named.items():
            value.copy_(tensors[f"model.{name}"])
    states = _plain(optimiser).state
    for name, value in named.items():
        found = {
            key.split(".")[1]: tensor
            for key, tensor in tensors.items()
            if key.startswith("optimiser.") and key.split(".", 2)[2] == name
        }
        if found:
            # The step counter stays where torch keeps it, the moments beside their parameter.
            states[value] = {
                key: tensor if key == "step" else tensor.to(value.device) for key, tensor in found.items()
            }
    return state


def _read(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    with safe_open(path, framework="pt") as file:
        return dict(file.metadata()), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def _trained(module: nn.Module) -> dict[str, Tensor]:
    return {name: value for name, value in module.named_parameters() if value.requires_grad}


def _plain(optimiser: Any) -> torch.optim.Optimizer:
    """Return the optimiser itself, without accelerate's wrapping."""
    inner: torch.optim.Optimizer = getattr(optimiser, "optimizer", optimiser)
    return inner
