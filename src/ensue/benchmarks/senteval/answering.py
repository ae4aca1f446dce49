"""What each kind of task is answered with: cosines, relatedness scores, or classes by split or folds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ensue.benchmarks.probing.rules import Data, Graded
from ensue.benchmarks.probing.vectors import SentenceVectors
from ensue.benchmarks.senteval.data import ExampleRows, SentEvalData
from ensue.benchmarks.senteval.judging import PartAnswers

if TYPE_CHECKING:
    from ensue.benchmarks.senteval.protocols import Classifiers

Vectors = NDArray[np.float32]

# The task whose F1 is reported beside its accuracy, and the class it is of.
WITH_F1, POSITIVE = "MRPC", "1"
# The part whose rows the answers of a split are about, where they have different names.
_PART = {("folds", "dev"): "train", ("nested", "test"): "all"}


def parts_of(data: SentEvalData, split: str) -> dict[str, ExampleRows]:
    """Return the rows whose answers are judged on dev or test: the split's, or the sets of an STS year."""
    if data.task.method == "cosine":
        return dict(data.parts) if split == "test" else {}
    # By nested folds every row is answered as test, and dev has no answers of its own.
    part = _PART.get((data.task.method, split), split)
    return {split: data.parts[part]} if part in data.parts else {}


class Given(NamedTuple):
    """The answers to a task by split (by set for STS); nested folds have a dev accuracy without answers."""

    by_split: dict[str, NDArray[np.float64]]
    dev_accuracy: float | None = None

    def as_json(self) -> list[Any]:
        # repr of a float is exact, so answers that are read back are the same to the last bit.
        return [{split: values.tolist() for split, values in self.by_split.items()}, self.dev_accuracy]

    @classmethod
    def from_json(cls, value: list[Any]) -> Self:
        by_split, accuracy = value
        return cls({split: np.array(held, np.float64) for split, held in by_split.items()}, accuracy)


def answer(
    data: SentEvalData, layer: int | None, vectors: SentenceVectors, classifiers: Classifiers
) -> Given:
    """Train what the task needs and answer it, by cosines where it needs nothing."""

    def columns(rows: ExampleRows) -> list[Vectors]:
        return [vectors.take(vectors.rows(column), layer) for column in rows.texts]

    def features(rows: ExampleRows) -> Vectors:
        """Return what a classifier is given of each row: the sentence's vector, or the features of a pair."""
        found = columns(rows)
        return found[0] if len(found) == 1 else pair_features(*found)

    method, parts, classes = data.task.method, data.parts.values(), len(data.classes)
    if method == "cosine":
        return Given({name: cosine(*columns(rows)) for name, rows in data.parts.items()})
    if method == "relatedness":
        scores = classifiers.relatedness(*(Graded(features(rows), rows.scores) for rows in parts))
        return Given(dict(zip(("dev", "test"), scores, strict=True)))
    splits = [Data(features(rows), rows.labels) for rows in parts]
    if method == "nested":
        # Every example is a test example of one fold.
        accuracy, predictions = classifiers.nested(classes, *splits)
        return Given({"test": predictions.astype(np.float64)}, accuracy)
    # By folds the rows of train, each by a classifier that was not trained on it, are answered as dev.
    found = (classifiers.split if method == "split" else classifiers.folds)(classes, *splits)
    return Given({split: one.astype(np.float64) for split, one in zip(("dev", "test"), found, strict=True)})


def answers_of(data: SentEvalData, given: Given, protocol: str, layer: int | None) -> list[PartAnswers]:
    """Put the answers beside the gold, with the settings that distinguish them."""
    at = {} if layer is None else {"layer": layer}
    method = data.task.method
    found = []
    for split, values in given.by_split.items():
        rows = data.parts[_PART.get((method, split), split)]
        settings: dict[str, Any] = {"split": split, "protocol": protocol, **at}
        if method == "cosine":
            settings = {"split": "test", "subset": split, **at}
        found.append(
            PartAnswers(
                data.task.name,
                settings,
                rows.ids,
                list(zip(*rows.texts, strict=True)),
                rows.scores,
                values,
                data.classes,
                "similarity" if method == "cosine" else "predicted",
                data.task.name == WITH_F1,
            )
        )
    return found


def cosine(first: Vectors, second: Vectors) -> NDArray[np.float64]:
    """Return the cosine of each row of one table with the same row of the other; 0 where a vector is all zeros.

    >>> cosine(np.float32([[3, 4], [1, 0]]), np.float32([[6, 8], [0, 0]])).tolist()
    [1.0, 0.0]
    """
    a, b = first.astype(np.float64), second.astype(np.float64)
    product = np.einsum("ij,ij->i", a, b)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return np.asarray(np.divide(product, lengths, out=np.zeros_like(product), where=lengths > 0.0))


def pair_features(first: Vectors, second: Vectors) -> Vectors:
    """Return SentEval's features of a pair: the absolute difference and the product, element by element.

    >>> pair_features(np.float32([[1, 2]]), np.float32([[3, 1]])).tolist()
    [[2.0, 1.0, 3.0, 2.0]]
    """
    return np.concatenate([np.abs(first - second), first * second], axis=1)
