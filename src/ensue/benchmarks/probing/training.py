"""Many small classifiers on the same features, trained together as one stack of tensors until each has stopped.

A stack holds *streams* (training sets drawn from one table, such as the folds of a cross-validation) times
*decays* (one classifier a weight decay, on the same batches). Each classifier's best checkpoint on dev is kept.
Gradients are written out by hand: with batches of 64 rows most of the time would go into bookkeeping otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim.adam import adam

from ensue.benchmarks.probing.rules import Data, Rules
from ensue.errors import EnsueError
from ensue.scoring.network import keep_buffers

# Weights in a stack's first layer below which a second thread costs more than it gives.
_WORTH_A_THREAD = 1_000_000
# Rows predicted at once times the width of the widest layer: 64 MB of float32.
_PREDICTED_NUMBERS = 16_000_000

# A dev score for each of a stream's classifiers, from the stream's place and dev logits [rows, decays, classes].
Judge = Callable[[int, Tensor], Sequence[float]]
# The derivative of a batch's mean loss by its logits, from logits [..., classes] and target probabilities.
Slope = Callable[[Tensor, Tensor], Tensor]


def cross_entropy_slope(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the slope of the mean cross-entropy over the rows of a batch, rows in dimension 1."""
    return torch.softmax(logits, -1).sub_(targets).div_(logits.shape[1])


def squared_slope(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the slope of the mean squared difference between softmax and targets, over rows and classes."""
    chances = torch.softmax(logits, -1)
    pull = (chances - targets).mul_(2.0 / (logits.shape[1] * logits.shape[-1])).mul_(chances)
    return pull.sub_(chances * pull.sum(-1, keepdim=True))


def initial(sizes: Sequence[int], generator: torch.Generator) -> list[Tensor]:
    """Draw weights and biases of layers from each size to the next as torch.nn.Linear does, in the same order."""
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
        self.rate = rules.learning_rate
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

    def keep(self, streams: Sequence[int], decays: Sequence[int]) -> None:
        """Drop all streams and decays but these."""
        for parts in (self.weights, self.first, self.second, self.slopes):
            parts[:] = [part[list(streams)][:, list(decays)].contiguous() for part in parts]
        self.decays = [self.decays[place] for place in decays]
        self._count(self._done[0][0])

    def logits(self, x: Tensor, stream: int) -> Tensor:
        """Return logits [rows, decays, classes] of one stream's classifiers."""
        weight, bias = self.weights[0][stream], self.weights[1][stream]
        out = torch.addmm(bias.flatten(), x, weight.flatten(0, 1).t())
        out = out.view(len(x), len(self.decays), -1)
        if not self.hidden:
            return out
        return self._second_layer(torch.sigmoid_(out).transpose(0, 1)).transpose(0, 1)

    def step(self, x: Tensor, targets: Tensor) -> None:
        """Take one step of Adam on the batch x [streams, rows, inputs] with targets [streams, rows, classes]."""
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
        """Return logits [decays, rows, classes] from units [decays, rows, hidden]."""
        weight, bias = self.weights[2][0], self.weights[3][0]
        return torch.baddbmm(bias.unsqueeze(1), units, weight.transpose(1, 2))

    def _through_hidden(self, out: Tensor, targets: Tensor) -> Tensor:
        """Keep the slopes of the second layer; return those by the first layer's outputs [rows, units]."""
        rows = len(out)
        units = torch.sigmoid_(out)
        apart = units.view(rows, len(self.decays), self.hidden).transpose(0, 1)
        pull = self.slope(self._second_layer(apart), targets)
        torch.bmm(pull.transpose(1, 2), apart, out=self.slopes[2][0])
        torch.sum(pull, 1, out=self.slopes[3][0])
        back = torch.bmm(pull, self.weights[2][0]).transpose(0, 1).reshape(rows, -1)
        slopes: Tensor = torch.ops.aten.sigmoid_backward(back, units)
        return slopes

    def _descend(self) -> None:
        """Step as Adam does with the decay added to the slope, as torch.optim.Adam's `weight_decay` does."""
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
        """Set the decays as a tensor, and the number of steps so far for every group Adam is called with."""
        self._decay = torch.tensor(self.decays, device=steps.device)
        groups = len(self.decays) if self.hidden else 1
        self._done = [[steps.clone() for _ in self.weights] for _ in range(groups)]


@dataclass
class StackMember:
    """One classifier of a stack: its best dev score, the epochs it then had, and its weights."""

    score: float = -1.0
    epochs: int = 0
    failures: int = 0
    weights: list[Tensor] = field(default_factory=list)


@dataclass(frozen=True)
class FeatureTable:
    """Features and target probabilities on a device; streams and dev sets are rows of it."""

    x: Tensor
    targets: Tensor


def device_of(name: str) -> Any:
    """Return the device of that name; `auto` is a GPU where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise EnsueError(f"There is no device {name!r}: {str(error).splitlines()[0]}") from None
    return device


@contextmanager
def training_on(name: str, inputs: int, outputs: int) -> Generator[Any]:
    """Yield the device of that name, with as many threads as a first layer of this size can use."""
    device = device_of(name)
    threads = torch.get_num_threads()
    if device.type == "cpu":
        keep_buffers()
        if inputs * outputs < _WORTH_A_THREAD:
            torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            yield device
    finally:
        torch.set_num_threads(threads)


def train(
    table: FeatureTable,
    streams: NDArray[np.int64],
    devs: Sequence[Tensor],
    judge: Judge,
    rules: Rules,
    slope: Slope,
    seed: int,
    order: np.random.RandomState | None = None,
) -> list[list[StackMember]]:
    """Train one classifier a stream and decay; return the members by stream and decay, each at its best.

    `streams` holds the rows of each training set, equally many; `devs` the dev features of each. The draws
    repeat those of the original: all classifiers of one seed start alike and see the same permutations of
    their rows, from numpy's generator of that seed (`order`, where it has been drawn from already).
    """
    order = order or np.random.RandomState(seed)
    sizes = [table.x.shape[1], *([rules.hidden] if rules.hidden else []), table.targets.shape[1]]
    start = initial(sizes, torch.Generator().manual_seed(seed))
    stack = Stack(start, len(streams), rules, slope, table.x.device)
    members = [[StackMember() for _ in rules.decays] for _ in streams]
    # Where in `members` each stream and decay still in the stack belongs.
    alive, decays = list(range(len(streams))), list(range(len(rules.decays)))
    epoch = _Epoch(stack, table, streams, rules.batch)
    epochs = 0
    while epochs < rules.max_epochs:
        block = min(rules.check_every, rules.max_epochs - epochs)
        for _ in range(block):
            epoch.run(order.permutation(streams.shape[1]))
        epochs += block
        for place, stream in enumerate(alive):
            scores = judge(stream, _dev_logits(stack, devs[stream], place))
            for column, decay in enumerate(decays):
                member = members[stream][decay]
                if member.failures >= rules.failures:
                    continue
                if scores[column] > member.score:
                    member.score, member.epochs = float(scores[column]), epochs
                    member.weights = [part[place, column].clone() for part in stack.weights]
                else:
                    member.failures += 1
        going = [[members[s][d].failures < rules.failures for d in decays] for s in alive]
        kept_streams = [place for place, row in enumerate(going) if any(row)]
        kept_decays = [column for column in range(len(decays)) if any(row[column] for row in going)]
        if not kept_streams:
            break
        if len(kept_streams) < len(alive) or len(kept_decays) < len(decays):
            stack.keep(kept_streams, kept_decays)
            alive = [alive[place] for place in kept_streams]
            decays = [decays[column] for column in kept_decays]
            epoch = _Epoch(stack, table, streams[alive], rules.batch)
    return members


def train_decays(
    table: FeatureTable, dev: Tensor, judge: Judge, rules: Rules, slope: Slope, seed: int
) -> list[StackMember]:
    """Train on all rows of the table; one member a decay.

    With a hidden layer on a processor every decay is trained on a thread of its own, which from one seed gives
    the same as training them stacked: layers that large fill a core, and threads need not wait for each other.
    """
    rows = np.arange(len(table.x))[None]
    workers = min(len(rules.decays), torch.get_num_threads())
    if not rules.hidden or table.x.is_cuda or workers == 1:
        return train(table, rows, [dev], judge, rules, slope, seed)[0]

    def alone(decay: float) -> StackMember:
        torch.set_num_threads(1)
        with torch.inference_mode():
            ((member,),) = train(table, rows, [dev], judge, replace(rules, decays=(decay,)), slope, seed)
        return member

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(alone, rules.decays))


def predict(member: StackMember, x: Tensor) -> Tensor:
    """Return logits [rows, classes] of one trained classifier."""
    weights = member.weights

    def forward(x: Tensor) -> Tensor:
        out = torch.addmm(weights[1], x, weights[0].t())
        return out if len(weights) == 2 else torch.addmm(weights[3], torch.sigmoid_(out), weights[2].t())

    return torch.cat([forward(part) for part in _parts(x, weights[0].shape[0])])


def predicted_classes(member: StackMember, x: Tensor) -> NDArray[np.int64]:
    """Return the most probable class of every row under one trained classifier."""
    classes: NDArray[np.int64] = predict(member, x).argmax(-1).cpu().numpy()
    return classes


def class_table(data: Data, classes: int, device: Any) -> FeatureTable:
    """Put features and labels on a device."""
    targets = torch.nn.functional.one_hot(torch.from_numpy(data.y.astype(np.int64)), classes)
    return FeatureTable(upload(data.x, device), targets.to(device, torch.float32))


def upload(x: NDArray[np.float32], device: Any) -> Tensor:
    """Put features on a device, read into memory where they were mapped from a file."""
    return torch.tensor(np.asarray(x), dtype=torch.float32, device=device)


def accuracy_judge(golds: Sequence[NDArray[np.int64]], device: Any) -> Judge:
    """Return a judge by the share of rows whose most probable class is the gold one, `golds` by stream."""
    labels = [torch.from_numpy(gold.astype(np.int64)).to(device) for gold in golds]

    def judge(stream: int, logits: Tensor) -> Sequence[float]:
        right = (logits.argmax(-1) == labels[stream].unsqueeze(1)).sum(0).tolist()
        return [count / len(labels[stream]) for count in right]

    return judge


def _dev_logits(stack: Stack, x: Tensor, stream: int) -> Tensor:
    width = stack.weights[0].shape[1] * stack.weights[0].shape[2]
    return torch.cat([stack.logits(part, stream) for part in _parts(x, width)])


def _parts(x: Tensor, width: int) -> Sequence[Tensor]:
    parts: Sequence[Tensor] = x.split(max(1, _PREDICTED_NUMBERS // width))
    return parts


class _Epoch:
    """One pass over the rows of every stream; on a GPU the whole pass is recorded once and replayed."""

    def __init__(self, stack: Stack, table: FeatureTable, streams: NDArray[np.int64], batch: int) -> None:
        self._stack, self._table, self._batch = stack, table, batch
        device = table.x.device
        self._rows = torch.from_numpy(streams).to(device)
        self._order = torch.empty(streams.shape[1], dtype=torch.int64, device=device)
        self._recorded: Any = None
        self._passes = 0

    def run(self, permutation: NDArray[np.int64]) -> None:
        """Train on every row once, in the order of `permutation`."""
        self._order.copy_(torch.from_numpy(permutation))
        if self._order.device.type != "cuda":
            self._steps()
            return
        if self._passes == 1:
            self._recorded = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._recorded):
                self._steps()
        self._passes += 1
        if self._recorded is None:
            self._steps()
        else:
            self._recorded.replay()

    def _steps(self) -> None:
        rows = self._rows[:, self._order]
        x, targets = self._table.x, self._table.targets
        for start in range(0, rows.shape[1], self._batch):
            picked = rows[:, start : start + self._batch]
            flat = picked.reshape(-1)
            self._stack.step(
                x.index_select(0, flat).view(*picked.shape, -1),
                targets.index_select(0, flat).view(*picked.shape, -1),
            )
