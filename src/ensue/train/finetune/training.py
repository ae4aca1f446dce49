"""Fine-tunes one copy of an encoder on one task with one seed, and keeps the weights that did best on dev."""

from __future__ import annotations

import contextlib
import copy
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from ensue.benchmarks.nlu.examples import Example, Form, TaskSpec
from ensue.benchmarks.nlu.framing import PredictedAnswers, answers, ask, frame, outputs_of
from ensue.benchmarks.nlu.training import metrics_of
from ensue.errors import RunFailed
from ensue.progress import Progress
from ensue.scoring.kernels import without_cudnn
from ensue.train.finetune.inputs import Inputs
from ensue.train.finetune.network import ExampleBatch, Packs, Pool, TaskNetwork, freeze_pooler
from ensue.train.finetune.recipe import Recipe
from ensue.train.finetune.steps import Losses, Parts, Steps, steps_for

# Tokens run at once: what is more is divided, which bounds memory; a CPU's caches hold less anyway.
_BUDGET = {"cpu": 4_096, "cuda": 65_536}
TakeSteps = Callable[[TaskNetwork, Recipe, int, Losses], Steps]


@dataclass(frozen=True)
class Split:
    """Examples with their sequences on the device, and targets (by row) where they have gold answers."""

    spec: TaskSpec
    examples: list[Example]
    packs: Packs
    cut: int


@dataclass(frozen=True)
class Trained:
    """A fine-tuned network, the scale its scores are in, how the training went, and what it says about dev."""

    network: TaskNetwork
    spec: TaskSpec
    scale: tuple[float, float]
    precision: str
    record: dict[str, Any] = field(default_factory=dict)
    dev: Split | None = None
    dev_answers: PredictedAnswers | None = None


def lay_out(
    spec: TaskSpec, examples: list[Example], inputs: Inputs, recipe: Recipe, device: Any, pad: int
) -> Split:
    """Examples as sequences on the device."""
    sequences = inputs.sequences(spec.form, examples, joint=recipe.joint, apart=recipe.apart)
    return Split(spec, examples, Packs(sequences, len(examples), device, pad), sequences.cut)


def steps_of(recipe: Recipe, examples: int) -> int:
    """Return how many steps a training takes at most."""
    return recipe.epochs * math.ceil(examples / recipe.batch)


def fit(
    start: Any,
    train: Split,
    dev: Split | None,
    recipe: Recipe,
    seed: int,
    progress: Progress,
    take_steps: TakeSteps = steps_for,
) -> Trained:
    """Train a fresh copy of `start`; the same seed gives the same outcome on a CPU."""
    device = train.packs.device
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else [], enabled=True):
        torch.manual_seed(seed)
        return _fit(start, train, dev, recipe, seed, progress, take_steps)


def _fit(
    start: Any,
    train: Split,
    dev: Split | None,
    recipe: Recipe,
    seed: int,
    progress: Progress,
    take_steps: TakeSteps,
) -> Trained:
    began = time.monotonic()
    spec, device = train.spec, train.packs.device
    network = _network(start, spec, recipe).to(device)
    targets, scale = _targets(train)
    total = steps_of(recipe, len(train.examples))
    trained = Trained(network, spec, scale, recipe.precision)
    watch = _Watch(recipe, trained, dev)
    per_epoch = math.ceil(len(train.examples) / recipe.batch)
    per_check = math.ceil(per_epoch / recipe.checks)
    done = 0

    def losses(parts: Parts) -> Iterator[Tensor]:
        for batch, share in parts:
            with autocast(device, recipe.precision):
                outputs = network(train.packs, batch)
            yield share * loss_of(spec.form, outputs, targets[batch.rows], batch)

    def after() -> bool:
        nonlocal done
        done += 1
        progress(done, total, "steps")
        in_epoch = (done - 1) % per_epoch + 1
        if in_epoch % per_check and in_epoch < per_epoch:
            return False
        # Read only here: reading it every step would make the GPU wait for Python and back.
        watch.look((done - in_epoch) // per_epoch + in_epoch / per_epoch, steps.mean())
        network.train()
        return watch.over

    steps = take_steps(network, recipe, total, losses)
    network.train()
    with without_cudnn(device), contextlib.closing(steps):
        for parts in _batches(train, recipe, seed):
            steps.take(parts)
            if after():
                break
    watch.restore()
    network.eval().requires_grad_(False)
    record = {
        **asdict(recipe),
        "seed": seed,
        "train_examples": len(train.examples),
        "cut": train.cut,
        **watch.record(),
        "seconds": round(time.monotonic() - began, 2),
    }
    return replace(trained, record=record, dev=dev, dev_answers=watch.answers)


def _batches(train: Split, recipe: Recipe, seed: int) -> Iterator[Parts]:
    """Yield the batches of all epochs, each in parts that fit."""
    draw = random.Random(seed)
    for _ in range(recipe.epochs):
        yield from _in_parts(train, train.packs.shuffled(recipe.batch, draw))


class _Watch:
    """Looks at dev now and then and remembers the best weights (the last ones where there is no dev set)."""

    def __init__(self, recipe: Recipe, trained: Trained, dev: Split | None) -> None:
        self._recipe, self._trained, self._dev = recipe, trained, dev
        self._best, self._best_epoch, self._bad = -math.inf, 0.0, 0
        self._metrics: dict[str, float] = {}
        self.answers: PredictedAnswers | None = None
        self._held: dict[str, Tensor] | None = None
        self._scores: list[float] = []
        self._losses: list[float] = []

    def look(self, epoch: float, loss: float) -> None:
        """Score the network as it stands."""
        if not math.isfinite(loss):
            raise RunFailed(
                f"{self._trained.spec.name} left the numbers at epoch {epoch:.1f} (its loss is {loss}); try a lower "
                f"learning_rate than {self._recipe.learning_rate:g}."
            )
        self._losses.append(round(loss, 4))
        if self._dev is None:
            self._best_epoch = epoch
            return
        given = answer(self._trained, self._dev)
        found = metrics_of(self._trained.spec, self._dev.examples, given.predictions)
        score = sum(found.values()) / len(found)
        self._scores.append(round(score, 6))
        if score > self._best:
            self._best, self._metrics, self._best_epoch, self._bad = score, found, epoch, 0
            state = self._trained.network.state_dict()
            self.answers, self._held = given, {name: value.detach().clone() for name, value in state.items()}
        else:
            self._bad += 1

    @property
    def over(self) -> bool:
        return self._recipe.patience is not None and self._bad >= self._recipe.patience

    def restore(self) -> None:
        if self._held is not None:
            self._trained.network.load_state_dict(self._held)

    def record(self) -> dict[str, Any]:
        dev = (
            {}
            if self._dev is None
            else {"dev_score": self._best, "dev": self._metrics, "dev_scores": self._scores}
        )
        return {**dev, "best_epoch": round(self._best_epoch, 2), "losses": self._losses}


def answer(trained: Trained, split: Split) -> PredictedAnswers:
    """Return what a network says about a split; scores stay within those of its training set."""
    network, packs, scale = trained.network.eval(), split.packs, trained.scale
    with torch.inference_mode(), autocast(packs.device, trained.precision), without_cudnn(packs.device):
        found = network.outputs(packs, _budget(packs.device))
    outputs = found.cpu().numpy().astype(np.float64)
    if split.spec.form == "score":
        outputs = outputs.clip(0.0, 1.0) * scale[1] + scale[0]
    return answers(split.spec, ask(split.spec.form, split.examples), outputs)


def _targets(train: Split) -> tuple[Tensor, tuple[float, float]]:
    """Return what each row should give, and the scale: scores are parts of the way from lowest to highest."""
    values = frame(train.spec, train.examples).targets
    assert values is not None, "a training set has gold answers"
    scale = (0.0, 1.0)
    if train.spec.form == "score":
        scale = (float(values.min()), max(float(values.max() - values.min()), 1e-6))
        values = (values - scale[0]) / scale[1]
    found = torch.tensor(values).to(train.packs.device)
    return found.float() if train.spec.form in ("score", "choice", "entity") else found.long(), scale


def _network(start: Any, spec: TaskSpec, recipe: Recipe) -> TaskNetwork:
    """Return a copy of the encoder in full precision with a new head; what the head does not use is not trained."""
    trunk = copy.deepcopy(start).float().requires_grad_(True)
    freeze_pooler(trunk)
    return TaskNetwork(
        trunk,
        spec.form,
        outputs_of(spec),
        pool=cast(Pool, recipe.pool),
        joint=recipe.joint,
        apart=recipe.apart,
        dropout=recipe.dropout,
    )


def _budget(device: torch.device) -> int:
    return _BUDGET.get(device.type, _BUDGET["cpu"])


def _in_parts(train: Split, plan: Sequence[Sequence[int]]) -> Iterator[list[tuple[ExampleBatch, float]]]:
    """Yield the batches of a plan, each in parts that fit, with the share of the batch's mean loss a part has."""
    packs = train.packs
    # Entities are judged each for itself, so a mean over them counts rows; other losses are means over examples.
    size: Callable[[Sequence[int]], int] = packs.rows_in if train.spec.form == "entity" else len
    divided = [packs.divided(chosen, _budget(packs.device)) for chosen in plan]
    batches = packs.batches([part for parts in divided for part in parts])
    for chosen, parts in zip(plan, divided, strict=True):
        yield [(next(batches), size(part) / size(chosen)) for part in parts]


def loss_of(form: Form, outputs: Tensor, targets: Tensor, batch: ExampleBatch) -> Tensor:
    """Return the mean loss of a batch from outputs [rows, …] and the rows' targets.

    Classes: cross-entropy; scores: squared error; choices: cross-entropy over an example's choices; entities: each
    for itself, right or wrong.
    """
    functional = nn.functional
    if form == "score":
        return functional.mse_loss(outputs[:, 0], targets)
    if form == "entity":
        return functional.binary_cross_entropy_with_logits(outputs[:, 0], targets)
    if form == "choice":
        table = outputs.new_full((len(batch.examples) * batch.most,), -torch.inf)
        logs = table.scatter(0, batch.slots, outputs[:, 0]).view(-1, batch.most).log_softmax(1)
        return -(logs.view(-1)[batch.slots] * targets).sum() / len(batch.examples)
    return functional.cross_entropy(outputs, targets)


def autocast(device: torch.device, precision: str) -> Any:
    """Return a context of bf16 where asked for or, with `auto`, on a GPU; otherwise nothing."""
    if precision == "bf16" or (precision == "auto" and device.type == "cuda"):
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return contextlib.nullcontext()
