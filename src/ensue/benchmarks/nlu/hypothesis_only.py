"""How far the second text alone gives the label away: a linear bag-of-n-grams classifier that sees nothing else.

As the fastText classifiers of the paper's audit do, it averages a weight vector a class over the words and pairs of
neighbouring words of a text. The weights are those of the optimum (mean cross-entropy with an L2 penalty), so there
is no draw and no seed; the penalty is chosen on every tenth training example, held out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.benchmarks.drawn import ROUNDS, Drawn
from ensue.benchmarks.nlu.examples import Example
from ensue.errors import EnsueError, RunFailed
from ensue.metrics.classification import accuracy, confusion_cells
from ensue.report.results import MetricRow
from ensue.stats.resampling import confusion_draws

L2 = (1e-2, 1e-3, 1e-4, 1e-5)
ENTAILMENT, NOT_ENTAILMENT = "entailment", "not_entailment"
_THREE = {ENTAILMENT, "neutral", "contradiction"}
_HELD_OUT = 10
# An n-gram seen in one training text only says nothing of others.
_MIN_TEXTS = 2
_WORD = re.compile(r"\w+|[^\w\s]")
Ints = NDArray[np.int64]


class Audit(NamedTuple):
    """What the classifier reaches; `majority` is the best constant answer's accuracy, `chance` one over classes."""

    accuracy: Drawn
    majority: float
    chance: float
    labels: tuple[str, ...]
    l2: float

    def rows(self, task: str, trained_on: str, split: str) -> list[MetricRow]:
        """Rows of the audit and of what it is to be compared with."""
        settings = {"split": split, "audit": "hypothesis-only", "trained_on": trained_on}
        n = self.accuracy.n
        return [
            self.accuracy.row(task, "accuracy", settings),
            Drawn(self.majority, None, n, self.accuracy.clusters).row(task, "majority", settings),
            Drawn(self.chance, None, n, self.accuracy.clusters).row(task, "chance", settings),
        ]


class Bags(NamedTuple):
    """Texts as runs of n-gram numbers: those of text i are `grams[starts[i]:starts[i + 1]]`."""

    grams: Ints
    starts: Ints


def audit(train: Sequence[Example], evaluated: Sequence[Example], *, l2: Sequence[float] = L2) -> Audit:
    """Train on the second texts of one set of pairs, judge on those of another.

    Where one side has two classes and the other three, neutral and contradiction become not_entailment on both.
    """
    gold_train, gold, labels = _aligned(_labels(train, "training"), _labels(evaluated, "evaluated"))
    predict, best = classifier([example.texts[1] for example in train], gold_train, len(labels), l2)
    given = predict([example.texts[1] for example in evaluated])
    cells = confusion_cells(gold, given, len(labels))
    clusters = [example.resampled_with for example in evaluated]
    draws = accuracy(confusion_draws(cells, len(labels), clusters, rounds=ROUNDS))
    right = Drawn(float(np.mean(given == gold)), draws, len(gold), len(set(clusters)))
    return Audit(right, float(np.bincount(gold).max() / len(gold)), 1.0 / len(labels), labels, best)


def classifier(
    texts: Sequence[str], gold: Ints, classes: int, l2: Sequence[float] = L2
) -> tuple[Callable[[Sequence[str]], Ints], float]:
    """A classifier of texts trained on these, and the L2 strength that was best on those held out."""
    held = np.arange(len(texts)) % _HELD_OUT == _HELD_OUT - 1
    best = l2[0] if len(l2) == 1 else _best_strength(texts, gold, held, classes, l2)
    return fit(texts, gold, classes, best), best


def grams_of(text: str) -> Iterator[str]:
    """Lower-cased words and marks, and pairs of neighbours.

    >>> list(grams_of("It rained."))
    ['it', 'rained', '.', 'it rained', 'rained .']
    """
    words = _WORD.findall(text.lower())
    yield from words
    yield from (f"{first} {second}" for first, second in pairwise(words))


def vocabulary(texts: Sequence[str]) -> dict[str, int]:
    """A number from 1 for every n-gram that is in several texts; 0 stands in for a text that has none of them."""
    counts = Counter(gram for text in texts for gram in set(grams_of(text)))
    return {
        gram: 1 + place for place, gram in enumerate(sorted(g for g, n in counts.items() if n >= _MIN_TEXTS))
    }


def bags(texts: Sequence[str], known: dict[str, int]) -> Bags:
    """The known n-grams of each text; memory grows with the words, not with texts times n-grams."""
    found = [[known[gram] for gram in grams_of(text) if gram in known] or [0] for text in texts]
    starts = np.cumsum([0, *(len(one) for one in found)][:-1])
    return Bags(np.array([gram for one in found for gram in one], dtype=np.int64), starts.astype(np.int64))


def fit(texts: Sequence[str], gold: Ints, classes: int, l2: float) -> Callable[[Sequence[str]], Ints]:
    """A classifier of texts, at the minimum of mean cross-entropy + l2/2 · |weights|² (biases not penalised)."""
    known = vocabulary(texts)
    weights, bias = solve(bags(texts, known), gold, len(known) + 1, classes, l2)

    def predict(asked: Sequence[str]) -> Ints:
        import torch

        with torch.no_grad():
            return np.asarray(_logits(bags(asked, known), weights, bias).argmax(-1).numpy(), dtype=np.int64)

    return predict


def solve(
    data: Bags, gold: Ints, grams: int, classes: int, l2: float, tolerance: float = 1e-6
) -> tuple[Any, Any]:
    """Weights [n-grams, classes] and biases at the optimum, found by L-BFGS in double precision."""
    import torch

    with torch.enable_grad():
        weights = torch.zeros(grams, classes, dtype=torch.float64, requires_grad=True)
        bias = torch.zeros(classes, dtype=torch.float64, requires_grad=True)
        targets = torch.from_numpy(gold)
        optimizer = torch.optim.LBFGS(
            [weights, bias],
            max_iter=2000,
            max_eval=4000,
            tolerance_grad=tolerance,
            tolerance_change=0.0,
            history_size=20,
            line_search_fn="strong_wolfe",
        )

        def loss() -> Any:
            optimizer.zero_grad()
            fitted = torch.nn.functional.cross_entropy(_logits(data, weights, bias), targets)
            value = fitted + 0.5 * l2 * weights.square().sum()
            value.backward()
            return value

        optimizer.step(loss)
        loss()
    left = max(float(part.grad.abs().max()) for part in (weights, bias))
    if not left <= tolerance:
        raise RunFailed(
            f"The hypothesis-only classifier is still at a gradient of {left:.1e}; give a larger L2."
        )
    return weights.detach(), bias.detach()


def _logits(data: Bags, weights: Any, bias: Any) -> Any:
    import torch

    grams, starts = torch.from_numpy(data.grams), torch.from_numpy(data.starts)
    return torch.nn.functional.embedding_bag(grams, weights, starts, mode="mean") + bias


def _best_strength(
    texts: Sequence[str], gold: Ints, held: NDArray[np.bool_], classes: int, l2: Sequence[float]
) -> float:
    """The strength that is best on what is held out, the strongest of equally good ones."""
    kept = [text for text, out in zip(texts, held, strict=True) if not out]
    asked = [text for text, out in zip(texts, held, strict=True) if out]
    if not asked:
        raise EnsueError(f"An audit needs at least {_HELD_OUT} training examples, not {len(texts)}.")
    scores = {
        strength: float(np.mean(fit(kept, gold[~held], classes, strength)(asked) == gold[held]))
        for strength in sorted(l2, reverse=True)
    }
    return max(scores, key=lambda strength: scores[strength])


def _labels(examples: Sequence[Example], name: str) -> list[str]:
    if not examples:
        raise EnsueError(
            f"The {name} examples of the hypothesis-only audit are none; give a split that has some."
        )
    for example in examples:
        place = example.where or f"Example {example.id!r}"
        if len(example.texts) < 2:
            raise EnsueError(f"{place}: an audit of second texts needs pairs; this has one text.")
        if not isinstance(example.gold, str):
            raise EnsueError(f"{place}: an audit needs labels; this example has {example.gold!r}.")
    return [str(example.gold) for example in examples]


def _aligned(train: list[str], evaluated: list[str]) -> tuple[Ints, Ints, tuple[str, ...]]:
    """Both as class numbers of the same labels."""
    sides = [train, evaluated]
    found = set(train) | set(evaluated)
    if NOT_ENTAILMENT in found and found & (_THREE - {ENTAILMENT}):
        sides = [[ENTAILMENT if one == ENTAILMENT else NOT_ENTAILMENT for one in side] for side in sides]
    if unknown := set(sides[1]) - set(sides[0]):
        raise EnsueError(
            f"The audit was trained without the label {sorted(unknown)[0]!r}; train on a task with the same labels."
        )
    labels = tuple(sorted(set(sides[0])))
    if len(labels) < 2:
        raise EnsueError(f"All training examples of the audit are {labels[0]!r}: there is nothing to learn.")
    first, second = (np.array([labels.index(one) for one in side], dtype=np.int64) for side in sides)
    return first, second, labels
