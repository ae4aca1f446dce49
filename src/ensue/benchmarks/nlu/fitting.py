"""Trains classifiers of one task or several at once, as appendix A.1.2.2 of the paper says."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ensue.benchmarks.nlu.examples import Form, TaskSpec
from ensue.benchmarks.nlu.framing import Framed, Ints, PredictedAnswers, answers
from ensue.benchmarks.nlu.training import Schedule, Stopping, dev_score
from ensue.descent import descend
from ensue.errors import RunFailed
from ensue.progress import Progress, ignore

# So many batches are sorted by length together: enough that little is padded, few enough to stay mixed.
_POOLED = 50
_PREDICTED_ROWS = 512

# Outputs [rows, outputs] for the rows of these numbers.
Forward = Callable[[Ints], Tensor]


@dataclass(frozen=True)
class TrainingSplit:
    """Rows with a way to put them through the network, and the length of each row, by which they are grouped."""

    framed: Framed
    forward: Forward
    lengths: Ints

    def starts(self) -> Ints:
        """Return the first row of every example, and the end of the last."""
        return np.searchsorted(self.framed.owners, np.arange(len(self.framed.examples) + 1))


class Learner:
    """One task in training: losses of batches of its training examples, and its score on what it is chosen by."""

    def __init__(self, spec: TaskSpec, train: TrainingSplit, chosen_on: TrainingSplit) -> None:
        assert train.framed.targets is not None, "a task is trained on labelled examples"
        self.spec, self.train, self.chosen_on = spec, train, chosen_on
        self.examples = len(train.framed.examples)
        self._starts = train.starts()
        # Scores are learnt as deviations from their mean, so that a squared error weighs like the other losses.
        self.mean, self.deviation = 0.0, 1.0
        if spec.form == "score":
            self.mean = float(train.framed.targets.mean())
            self.deviation = float(train.framed.targets.std()) or 1.0
        self._targets = ((train.framed.targets - self.mean) / self.deviation).astype(np.float32)
        self.lengths = np.maximum.reduceat(train.lengths, self._starts[:-1])

    def loss(self, examples: Ints) -> Tensor:
        """Return the mean loss of these training examples."""
        starts, ends = self._starts[examples], self._starts[examples + 1]
        rows = np.concatenate([np.arange(a, b) for a, b in zip(starts, ends, strict=True)])
        outputs = self.train.forward(rows)
        owners = torch.from_numpy(np.repeat(np.arange(len(examples)), ends - starts)).to(outputs.device)
        targets = torch.from_numpy(self._targets[rows]).to(outputs.device)
        return loss_of(self.spec.form, outputs, targets, owners)

    def answer(self, split: TrainingSplit) -> PredictedAnswers:
        """Return what the network says about a split's examples."""
        outputs = predicted(split) * self.deviation + self.mean
        return answers(self.spec, split.framed, outputs)

    def score(self) -> float:
        """Return the mean of the task's metrics on what is chosen on."""
        found = self.answer(self.chosen_on).predictions
        return dev_score(self.spec, self.chosen_on.framed.examples, found)


@dataclass(frozen=True)
class Fit:
    """How a training went; `scores` are those of every validation check, by task."""

    steps: int
    best_step: int
    best: float
    by_task: dict[str, float]
    rate: float
    stopped: bool
    scores: list[float]
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return {
            "updates": self.steps,
            "best_update": self.best_step,
            "dev_score": self.best,
            "last_learning_rate": self.rate,
            "stopped": self.stopped,
            "checks": self.scores,
            "seconds": round(self.seconds, 3),
        }


def fit(
    network: nn.Module,
    learners: Sequence[Learner],
    schedule: Schedule,
    seed: int,
    progress: Progress = ignore,
) -> Fit:
    """Train until the rule of `stopping.py` says so, and leave the network at its best validation check.

    Each update trains one task, drawn in proportion to the size of its training set; its loss counts in inverse
    proportion to that size (1 on average, so that a task alone has its own loss). What is validated is the
    unweighted mean of the tasks' scores.
    """
    began = time.perf_counter()
    rng = np.random.default_rng(seed)
    sizes = np.array([learner.examples for learner in learners], dtype=np.float64)
    weights = loss_weights(sizes)
    streams = [like_length(learner.lengths, schedule.batch, rng) for learner in learners]
    parameters = [part for part in network.parameters() if part.requires_grad]
    optimiser = torch.optim.Adam(parameters, lr=schedule.rate)
    rule = Stopping(rate=schedule.rate)
    every = schedule.checks(int(sizes.sum()))
    kept: list[Tensor] = []
    by_task: dict[str, float] = {}
    scores: list[float] = []
    step = best_step = 0
    trained = ", ".join(learner.spec.name for learner in learners)

    def steps() -> Iterator[list[Tensor]]:
        while True:
            drawn = draw(sizes, rng)
            yield [learners[drawn].loss(next(streams[drawn])) * weights[drawn]]

    def after(_: list[Tensor]) -> bool:
        nonlocal step, best_step, by_task, kept
        step += 1
        progress(step, schedule.max_steps, f"updates of {trained} at most")
        if step % every and step < schedule.max_steps:
            return False
        network.eval()
        found = {learner.spec.name: learner.score() for learner in learners}
        scores.append(float(np.mean(list(found.values()))))
        if rule.improved(scores[-1]):
            best_step, by_task, kept = step, found, [part.detach().clone() for part in parameters]
        for group in optimiser.param_groups:
            group["lr"] = rule.rate
        network.train()
        return rule.over or step >= schedule.max_steps

    network.train()
    clip = partial(nn.utils.clip_grad_norm_, parameters, schedule.clip)
    descend(steps(), optimiser, clip=clip, after=after)
    network.eval()
    if not kept:
        raise RunFailed(f"Training {trained} gave no score on dev.")
    with torch.no_grad():
        for part, best in zip(parameters, kept, strict=True):
            part.copy_(best)
    return Fit(step, best_step, rule.best, by_task, rule.rate, rule.over, scores, time.perf_counter() - began)


def loss_weights(sizes: np.ndarray[Any, Any]) -> list[float]:
    """Return what the loss of each task is multiplied by: 1/size, scaled to 1 in the mean over drawn updates."""
    return [float(weight) for weight in sizes.mean() / sizes]


def draw(sizes: np.ndarray[Any, Any], rng: np.random.Generator) -> int:
    """Return a task, drawn in proportion to its size."""
    return 0 if len(sizes) == 1 else int(rng.choice(len(sizes), p=sizes / sizes.sum()))


def like_length(lengths: Ints, batch: int, rng: np.random.Generator) -> Iterator[Ints]:
    """Return batches of example numbers of like length, pass after pass without end; each example once a pass."""
    while True:
        order = rng.permutation(len(lengths))
        for begin in range(0, len(order), batch * _POOLED):
            pool = order[begin : begin + batch * _POOLED]
            pool = pool[np.argsort(lengths[pool], kind="stable")]
            for place in rng.permutation(-(-len(pool) // batch)):
                yield pool[place * batch : (place + 1) * batch]


def predicted(split: TrainingSplit) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return outputs [rows, outputs] of all rows, put through the network in batches of like length."""
    order = np.argsort(split.lengths, kind="stable")
    parts = [order[begin : begin + _PREDICTED_ROWS] for begin in range(0, len(order), _PREDICTED_ROWS)]
    with torch.no_grad():
        stacked = np.concatenate([split.forward(part).double().cpu().numpy() for part in parts])
    outputs = np.empty_like(stacked)
    outputs[order] = stacked
    return outputs


HIDDEN = 512


def pair_features(u: Tensor, v: Tensor) -> Tensor:
    """[u; v; |u−v|; u*v]."""
    return torch.cat([u, v, (u - v).abs(), u * v], -1)


def row_features(texts: list[Tensor], marked: list[Tensor]) -> Tensor:
    """Return the features of rows of one text or two, followed by those of the pair of marked stretches, if any."""
    parts = [texts[0] if len(texts) == 1 else pair_features(*texts)]
    if marked:
        parts.append(pair_features(*marked))
    return torch.cat(parts, -1)


def features_in(texts: int, marks: int, width: int) -> int:
    """Return how many numbers `row_features` gives for vectors of a width."""
    return width * ((1 if texts == 1 else 4) + (4 if marks else 0))


class Classifier(nn.Sequential):  # type: ignore[misc]
    """One hidden layer with tanh; the paper gives its width alone."""

    def __init__(self, inputs: int, outputs: int, hidden: int = HIDDEN) -> None:
        super().__init__(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, outputs))


def loss_of(form: Form, outputs: Tensor, targets: Tensor, owners: Tensor) -> Tensor:
    """Return the mean loss of rows [rows, outputs]; `owners` rises and tells the rows of one example from the next.

    Classes: cross-entropy; scores: squared error; choices: cross-entropy over the choices of an example; entities:
    each for itself, right or wrong.
    """
    if form == "score":
        return functional.mse_loss(outputs[:, 0], targets)
    if form == "entity":
        return functional.binary_cross_entropy_with_logits(outputs[:, 0], targets)
    if form == "choice":
        return _choice_loss(outputs[:, 0], targets, owners)
    return functional.cross_entropy(outputs, targets.long())


def _choice_loss(values: Tensor, targets: Tensor, owners: Tensor) -> Tensor:
    places = torch.unique_consecutive(owners, return_inverse=True)[1]
    examples = int(places[-1]) + 1
    highest = values.new_full((examples,), -torch.inf).scatter_reduce(0, places, values, "amax").detach()
    powers = (values - highest[places]).exp()
    totals = values.new_zeros(examples).index_add(0, places, powers)
    logs = values - highest[places] - totals[places].log()
    return -(logs * targets).sum() / examples
