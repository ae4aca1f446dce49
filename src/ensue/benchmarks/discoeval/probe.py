"""Trains the classifiers of one task at one layer and keeps what they predicted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from ensue.benchmarks.discoeval import features as made_of
from ensue.benchmarks.discoeval.data import Task
from ensue.benchmarks.discoeval.suite import SPLITS, Spec
from ensue.benchmarks.probing.rules import COHERENCE, DISCOEVAL, RELATIONS, SECTIONS, Data, Fitted, Rules
from ensue.errors import EnsueError

if TYPE_CHECKING:
    from ensue.benchmarks.probing.vectors import SentenceVectors

JUDGED = ("dev", "test")


@dataclass(frozen=True)
class Choices:
    """What a user may choose about the classifiers; those of protocol `converged` are linear, DC's too."""

    protocol: str
    context: bool
    hidden: bool
    seeds: tuple[int, ...]
    device: str

    def ablation(self, group: str) -> dict[str, str]:
        """What was taken away from a group, as settings of its rows."""
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


def rules_for(spec: Spec, hidden: bool) -> Rules:
    """How protocol `paper` trains a task; every task has its own rules, so DC's hidden layer stays with DC."""
    if spec.group == "DC":
        return COHERENCE if hidden else replace(COHERENCE, hidden=0)
    return {"SSP": SECTIONS, "PDTB": RELATIONS, "RST": RELATIONS}.get(spec.group, DISCOEVAL)


def combine_for(spec: Spec, context: bool) -> Callable[[made_of.Floats], made_of.Floats]:
    """How the vectors of a task's sentences become features."""
    return made_of.alone if spec.group == "SP" and not context else made_of.COMBINE[spec.group]


def probe(
    task: Task,
    vectors: SentenceVectors,
    layers: Sequence[int | None],
    choices: Choices,
    finished: Callable[[Probe], None],
) -> None:
    """Train and judge at each layer, handing over each one's outcome; one layer's features are held at a time."""
    places = {split: made_of.Places(task.splits[split], vectors.rows) for split in SPLITS}
    for layer in layers:
        finished(_at_layer(task, vectors, layer, places, choices))


def _at_layer(
    task: Task,
    vectors: SentenceVectors,
    layer: int | None,
    places: dict[str, made_of.Places],
    choices: Choices,
) -> Probe:
    data = _features(task, vectors, layer, places, choices)
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


def _features(
    task: Task,
    vectors: SentenceVectors,
    layer: int | None,
    places: dict[str, made_of.Places],
    choices: Choices,
) -> dict[str, Data]:
    combine = combine_for(task.spec, choices.context)

    def take(rows: made_of.Rows) -> made_of.Floats:
        return vectors.take(rows, layer)

    return {
        split: Data(
            made_of.features(places[split], take, combine),
            np.asarray([example.label for example in task.splits[split]], dtype=np.int64),
        )
        for split in SPLITS
    }


def _fit(task: Task, data: dict[str, Data], seed: int, choices: Choices) -> Fitted:
    """One classifier."""
    splits = (data["train"], data["dev"], data["test"], len(task.labels))
    if choices.protocol == "paper":
        from ensue.benchmarks.probing.fitting import fit

        rules = rules_for(task.spec, choices.hidden)
        return fit(*splits, rules, seed=seed, device=choices.device)
    from ensue.benchmarks.probing.converged import fit_converged

    return fit_converged(*splits, device=choices.device)
