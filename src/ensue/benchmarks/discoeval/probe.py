"""The classifiers of one task at one layer: what they see of vectors (section 3 of the paper) and predict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from ensue.benchmarks.discoeval.data import SPLITS, DiscoEvalData, DiscoEvalExample, Spec
from ensue.benchmarks.probing.rules import (
    COHERENCE,
    DISCOEVAL,
    RELATIONS,
    SECTIONS,
    Data,
    FittedClassifier,
    Rules,
)
from ensue.errors import EnsueError

if TYPE_CHECKING:
    from ensue.benchmarks.probing.vectors import SentenceVectors

JUDGED = ("dev", "test")
Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]
# Vectors by row number: an array of any shape gets one more axis.
Take = Callable[[Rows], Floats]

# Examples are put together so many at a time, so that little is in memory beside the features themselves.
_CHUNK = 512


@dataclass(frozen=True)
class Choices:
    """What a user may choose about the classifiers; those of protocol `converged` are linear, DC's too."""

    protocol: str
    context: bool
    hidden: bool
    seeds: tuple[int, ...]
    device: str

    def ablation(self, group: str) -> dict[str, str]:
        """Return what was taken away from a group, as settings of its rows."""
        without_context = {"context": "no"} if group == "SP" and not self.context else {}
        linear = not self.hidden or self.protocol == "converged"
        without_hidden = {"hidden": "no"} if group == "DC" and linear else {}
        return without_context | without_hidden


@dataclass(frozen=True)
class Probe:
    """The classifiers of one task at one layer: how each fit went, and predictions by split, seeds × examples."""

    layer: int | None
    fits: list[dict[str, Any]]
    predictions: dict[str, npt.NDArray[np.int64]]

    def as_json(self) -> dict[str, Any]:
        return {
            "layer": self.layer,
            "fits": self.fits,
            "predictions": {split: found.tolist() for split, found in self.predictions.items()},
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        predictions = {
            split: np.asarray(found, dtype=np.int64) for split, found in value["predictions"].items()
        }
        return cls(value["layer"], value["fits"], predictions)


def position(x: Floats) -> Floats:
    """Combine for SP: the moved sentence, and its difference from each of the others."""
    return np.concatenate([x[:, 0], *(x[:, 0] - x[:, i] for i in range(1, x.shape[1]))], axis=1)


def alone(x: Floats) -> Floats:
    """Take the first sentence only: SSP, and SP without context (table 6)."""
    return x[:, 0]


def order(x: Floats) -> Floats:
    """Combine for BSO: both sentences and their difference."""
    return np.concatenate([x[:, 0], x[:, 1], x[:, 0] - x[:, 1]], axis=1)


def together(x: Floats) -> Floats:
    """Combine for DC: all sentences, one after the other."""
    return x.reshape(len(x), -1)


def relation(x: Floats) -> Floats:
    """Combine for PDTB and RST: both sides, their product and their absolute difference."""
    left, right = x[:, 0], x[:, 1]
    return np.concatenate([left, right, left * right, np.abs(left - right)], axis=1)


COMBINE: dict[str, Callable[[Floats], Floats]] = {
    "SP": position,
    "BSO": order,
    "DC": together,
    "SSP": alone,
    "PDTB": relation,
    "RST": relation,
}


class SentencePlaces:
    """The row numbers of the sentences of examples that all have equally many parts."""

    def __init__(self, examples: Sequence[DiscoEvalExample], rows: Callable[[Sequence[str]], Rows]) -> None:
        self.parts = len(examples[0].parts)
        sides = [part for example in examples for part in example.parts]
        self._sizes = np.fromiter(map(len, sides), np.int64, len(sides))
        self._begins = np.concatenate([[0], np.cumsum(self._sizes)])
        self._rows = rows([sentence for part in sides for sentence in part])

    def __len__(self) -> int:
        return len(self._sizes) // self.parts

    def means(self, begin: int, end: int, take: Take) -> Floats:
        """Return examples × parts × width: the mean of each part's sentences, which is the vector of a lone one."""
        first, last = begin * self.parts, end * self.parts
        vectors = take(self._rows[self._begins[first] : self._begins[last]])
        sizes = self._sizes[first:last]
        if (sizes > 1).any():
            sums = np.add.reduceat(vectors, self._begins[first:last] - self._begins[first], axis=0)
            vectors = np.divide(sums, sizes[:, None], dtype=np.float32)
        return vectors.reshape(end - begin, self.parts, -1)


def features(places: SentencePlaces, take: Take, combine: Callable[[Floats], Floats]) -> Floats:
    """Return one row per example."""
    out: Floats | None = None
    for begin in range(0, len(places), _CHUNK):
        end = min(begin + _CHUNK, len(places))
        made = combine(places.means(begin, end, take))
        if out is None:
            out = np.empty((len(places), made.shape[1]), dtype=np.float32)
        out[begin:end] = made
    assert out is not None, "a split has at least one example"
    return out


def rules_for(spec: Spec, hidden: bool) -> Rules:
    """Return how protocol `paper` trains a task; every task has its own rules, so DC's hidden layer stays with DC."""
    if spec.group == "DC":
        return COHERENCE if hidden else replace(COHERENCE, hidden=0)
    return {"SSP": SECTIONS, "PDTB": RELATIONS, "RST": RELATIONS}.get(spec.group, DISCOEVAL)


def combine_for(spec: Spec, context: bool) -> Callable[[Floats], Floats]:
    """Return how the vectors of a task's sentences become features."""
    return alone if spec.group == "SP" and not context else COMBINE[spec.group]


def probe(
    task: DiscoEvalData,
    layer: int | None,
    vectors: SentenceVectors,
    places: Mapping[str, SentencePlaces],
    choices: Choices,
) -> Probe:
    """Train and judge the classifiers of a task at a layer."""
    combine = combine_for(task.spec, choices.context)
    data = {
        split: Data(
            features(places[split], lambda rows: vectors.take(rows, layer), combine),
            np.asarray([example.label for example in task.splits[split]], dtype=np.int64),
        )
        for split in SPLITS
    }
    fits, found = [], []
    for seed in choices.seeds:
        try:
            fitted = _fit(task, data, seed, choices)
        except EnsueError as error:
            raise type(error)(f"The classifier of {task.spec.name} cannot be trained: {error}") from None
        fits.append(
            {
                "task": task.spec.name,
                "layer": layer,
                "seed": seed,
                "decay": fitted.decay,
                "epochs": fitted.epochs,
                "dev_accuracy": fitted.dev_accuracy,
                "test_accuracy": float((fitted.test_predictions == data["test"].y).mean()),
                "seconds": round(fitted.seconds, 3),
            }
        )
        found.append((fitted.dev_predictions, fitted.test_predictions))
    stacked = {split: np.stack([pair[i] for pair in found]) for i, split in enumerate(JUDGED)}
    return Probe(layer, fits, stacked)


def _fit(task: DiscoEvalData, data: dict[str, Data], seed: int, choices: Choices) -> FittedClassifier:
    """Train one classifier."""
    splits = (data["train"], data["dev"], data["test"], len(task.labels))
    if choices.protocol == "paper":
        from ensue.benchmarks.probing.fitting import fit

        rules = rules_for(task.spec, choices.hidden)
        return fit(*splits, rules, seed=seed, device=choices.device)
    from ensue.benchmarks.probing.converged import fit_converged

    return fit_converged(*splits, device=choices.device)
