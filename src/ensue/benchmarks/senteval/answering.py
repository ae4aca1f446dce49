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


class Bench(NamedTuple):
    """What answering takes: the vectors, the layer, and the classifiers of a protocol."""

    vectors: SentenceVectors
    layer: int | None
    classifiers: Classifiers


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


def answer(data: SentEvalData, bench: Bench) -> Given:
    """Train what the task needs and answer it."""
    return _METHODS[data.task.method](data, bench)


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


def _cosine(data: SentEvalData, bench: Bench) -> Given:
    return Given({name: similarities(rows, bench.vectors, bench.layer) for name, rows in data.parts.items()})


def _relatedness(data: SentEvalData, bench: Bench) -> Given:
    train, dev, test = (
        Graded(features(rows, bench.vectors, bench.layer), rows.scores)
        for rows in (data.parts[name] for name in ("train", "dev", "test"))
    )
    on_dev, on_test = bench.classifiers.relatedness(train, dev, test)
    return Given({"dev": on_dev, "test": on_test})


def _split(data: SentEvalData, bench: Bench) -> Given:
    train, dev, test = (_data(data.parts[name], bench) for name in ("train", "dev", "test"))
    return _classes(*bench.classifiers.split(train, dev, test, len(data.classes)))


def _folds(data: SentEvalData, bench: Bench) -> Given:
    """Answer train as dev and test, each of train by a classifier that was not trained on it."""
    train, test = (_data(data.parts[name], bench) for name in ("train", "test"))
    return _classes(*bench.classifiers.folds(train, test, len(data.classes)))


def _nested(data: SentEvalData, bench: Bench) -> Given:
    """Every example is a test example of one fold."""
    accuracy, predictions = bench.classifiers.nested(_data(data.parts["all"], bench), len(data.classes))
    return Given({"test": predictions.astype(np.float64)}, accuracy)


def _data(rows: ExampleRows, bench: Bench) -> Data:
    return Data(features(rows, bench.vectors, bench.layer), rows.labels)


def _classes(on_dev: NDArray[np.int64], on_test: NDArray[np.int64]) -> Given:
    return Given({"dev": on_dev.astype(np.float64), "test": on_test.astype(np.float64)})


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


def similarities(rows: ExampleRows, vectors: SentenceVectors, layer: int | None) -> NDArray[np.float64]:
    """Return the cosine of each pair."""
    return cosine(*_columns(rows, vectors, layer))


def features(rows: ExampleRows, vectors: SentenceVectors, layer: int | None) -> Vectors:
    """Return what a classifier is given of each row: the sentence's vector, or the features of a pair."""
    columns = _columns(rows, vectors, layer)
    return columns[0] if len(columns) == 1 else pair_features(*columns)


def _columns(rows: ExampleRows, vectors: SentenceVectors, layer: int | None) -> list[Vectors]:
    return [vectors.take(vectors.rows(column), layer) for column in rows.texts]


_METHODS = {
    "cosine": _cosine,
    "relatedness": _relatedness,
    "split": _split,
    "folds": _folds,
    "nested": _nested,
}
