"""What each kind of task is answered with, by classifiers that say what they were given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ensue.benchmarks.probing.rules import Data, Graded
from ensue.benchmarks.senteval.answering import Given, answer, answers_of, cosine, parts_of
from ensue.benchmarks.senteval.data import TASKS, ExampleRows, SentEvalData

SENTENCES = ["a", "b", "c", "d"]
TABLE = np.array([[1, 2], [3, -1], [0, 5], [2, 2]], dtype=np.float32)


class Vectors:
    """Each sentence has a row of the table, times its layer."""

    def rows(self, sentences: Sequence[str]) -> NDArray[np.int64]:
        return np.array([SENTENCES.index(one) for one in sentences])

    def take(self, rows: NDArray[np.int64], layer: int | None) -> NDArray[np.float32]:
        return TABLE[rows] * np.float32(1 if layer is None else layer)


class Classifiers:
    """Remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def split(self, classes: int, *parts: Data) -> tuple[NDArray[np.int64], ...]:
        self.asked.append(("split", classes, *parts))
        return np.array([1, 0]), np.array([0])

    def folds(self, classes: int, *parts: Data) -> tuple[NDArray[np.int64], ...]:
        self.asked.append(("folds", classes, *parts))
        return np.array([1, 1]), np.array([0])

    def nested(self, classes: int, *parts: Data) -> tuple[float, NDArray[np.int64]]:
        self.asked.append(("nested", classes, *parts))
        return 0.75, np.array([1, 0])

    def relatedness(self, *parts: Graded) -> tuple[NDArray[np.float64], ...]:
        self.asked.append(("relatedness", *parts))
        return np.array([1.5, 2.5]), np.array([3.5])


def rows(
    name: str, texts: Sequence[str], gold: Sequence[float], seconds: Sequence[str] | None = None
) -> ExampleRows:
    found = ExampleRows()
    for place, (text, value) in enumerate(zip(texts, gold, strict=True)):
        sentences = (text,) if seconds is None else (text, seconds[place])
        found.add(f"{name}/{place}", sentences, value)
    return found


def data(task: str, parts: dict[str, ExampleRows], classes: tuple[str, ...] = ()) -> SentEvalData:
    return SentEvalData(TASKS[task], parts, classes, Counter(), Counter())


def pair(a: int, b: int, layer: float = 1.0) -> list[float]:
    one, other = TABLE[a] * layer, TABLE[b] * layer
    return [*np.abs(one - other), *(one * other)]


SINGLE = {
    "train": rows("train", "abcd", [0, 1, 0, 1]),
    "dev": rows("dev", "ab", [0, 1]),
    "test": rows("test", "c", [1]),
}
PAIRS = {
    "train": rows("train", "ab", [1.0, 5.0], "cd"),
    "dev": rows("dev", "ac", [2.0, 3.0], "bb"),
    "test": rows("test", "d", [4.0], "a"),
}


def checked(found: Any, x: Any, y: Any) -> None:
    assert found.x.tolist() == np.asarray(x).tolist()
    assert found.y.tolist() == list(y)


def test_a_task_with_splits_is_answered_on_dev_and_test() -> None:
    classifiers = Classifiers()
    sst = data("SST2", SINGLE, ("neg", "pos"))
    given = answer(sst, 3, Vectors(), classifiers)  # type: ignore[arg-type]
    ((kind, classes, train, dev, test),) = classifiers.asked
    assert (kind, classes) == ("split", 2)
    checked(train, 3 * TABLE, [0, 1, 0, 1])
    checked(dev, 3 * TABLE[:2], [0, 1])
    checked(test, 3 * TABLE[2:3], [1])
    assert {split: values.tolist() for split, values in given.by_split.items()} == {
        "dev": [1.0, 0.0],
        "test": [0.0],
    }
    assert given.dev_accuracy is None
    assert all(values.dtype == np.float64 for values in given.by_split.values())
    found = answers_of(sst, given, "paper", 3)
    assert [one.settings for one in found] == [
        {"split": split, "protocol": "paper", "layer": 3} for split in ("dev", "test")
    ]
    first = found[0]
    assert (first.task, first.ids, list(first.texts)) == ("SST2", ["dev/0", "dev/1"], [("a",), ("b",)])
    assert (first.gold.tolist(), first.given.tolist()) == ([0.0, 1.0], [1.0, 0.0])
    assert (first.classes, first.given_name, first.f1) == (("neg", "pos"), "predicted", False)


def test_pairs_are_answered_by_their_features() -> None:
    classifiers = Classifiers()
    related = data("SICKRelatedness", PAIRS)
    given = answer(related, None, Vectors(), classifiers)  # type: ignore[arg-type]
    ((kind, train, dev, test),) = classifiers.asked
    assert kind == "relatedness"
    checked(train, [pair(0, 2), pair(1, 3)], [1.0, 5.0])
    checked(dev, [pair(0, 1), pair(2, 1)], [2.0, 3.0])
    checked(test, [pair(3, 0)], [4.0])
    assert {split: values.tolist() for split, values in given.by_split.items()} == {
        "dev": [1.5, 2.5],
        "test": [3.5],
    }
    on_dev, on_test = answers_of(related, given, "paper", None)
    assert (on_dev.settings, on_test.settings["split"]) == ({"split": "dev", "protocol": "paper"}, "test")
    assert list(on_dev.texts) == [("a", "b"), ("c", "b")]
    assert (on_test.gold.tolist(), on_test.given.tolist(), on_test.classes) == ([4.0], [3.5], ())


def test_folds_answer_the_rows_of_train_as_dev_and_mrpc_has_its_f1() -> None:
    classifiers = Classifiers()
    parts = {"train": PAIRS["train"], "test": PAIRS["test"]}
    mrpc = data(
        "MRPC",
        {name: rows(name, one.texts[0], [0] * len(one), one.texts[1]) for name, one in parts.items()},
        ("0", "1"),
    )
    given = answer(mrpc, None, Vectors(), classifiers)  # type: ignore[arg-type]
    assert classifiers.asked[0][:2] == ("folds", 2)
    on_dev, on_test = answers_of(mrpc, given, "converged", None)
    assert (on_dev.settings, on_dev.ids, on_dev.f1) == (
        {"split": "dev", "protocol": "converged"},
        ["train/0", "train/1"],
        True,
    )
    assert (on_test.ids, on_test.given.tolist()) == (["test/0"], [0.0])
    assert parts_of(mrpc, "dev") == {"dev": mrpc.parts["train"]}
    assert parts_of(mrpc, "test") == {"test": mrpc.parts["test"]}


def test_nested_folds_answer_every_row_as_test() -> None:
    classifiers = Classifiers()
    movie = data("MR", {"all": SINGLE["dev"]}, ("neg", "pos"))
    given = answer(movie, None, Vectors(), classifiers)  # type: ignore[arg-type]
    kind, classes, every = classifiers.asked[0]
    assert (kind, classes) == ("nested", 2)
    checked(every, TABLE[:2], [0, 1])
    assert (given.by_split["test"].tolist(), given.dev_accuracy) == ([1.0, 0.0], 0.75)
    assert given.by_split["test"].dtype == np.float64
    (found,) = answers_of(movie, given, "paper", None)
    assert (found.ids, found.settings["split"]) == (["dev/0", "dev/1"], "test")
    assert parts_of(movie, "test") == {"test": movie.parts["all"]}
    assert parts_of(movie, "dev") == {}


def test_sets_of_a_year_are_answered_by_cosines() -> None:
    year = data("STS13", {"one": PAIRS["train"], "two": PAIRS["test"]})
    given = answer(year, 2, Vectors(), Classifiers())  # type: ignore[arg-type]
    expected = {
        name: [
            float(TABLE[a] @ TABLE[b] / np.linalg.norm(TABLE[a]) / np.linalg.norm(TABLE[b]))
            for a, b in places
        ]
        for name, places in (("one", [(0, 2), (1, 3)]), ("two", [(3, 0)]))
    }
    assert list(given.by_split) == ["one", "two"]
    for name, values in expected.items():
        assert given.by_split[name].tolist() == pytest.approx(values)
    first, second = answers_of(year, given, "paper", 2)
    assert first.settings == {"split": "test", "subset": "one", "layer": 2}
    assert (second.settings["subset"], second.given_name) == ("two", "similarity")
    assert parts_of(year, "test") == year.parts
    assert parts_of(year, "dev") == {}


def test_answers_are_kept_and_read_back_to_the_last_bit() -> None:
    given = Given({"dev": np.array([0.1, 1 / 3]), "test": np.array([1.0])}, 0.7)
    kept = given.as_json()
    assert kept == [{"dev": [0.1, 1 / 3], "test": [1.0]}, 0.7]
    again = Given.from_json(kept)
    assert again.as_json() == kept
    assert all(values.dtype == np.float64 for values in again.by_split.values())
    assert Given.from_json([{"test": [1, 2]}, None]).by_split["test"].dtype == np.float64


@pytest.mark.filterwarnings("error")
def test_cosines_of_many_rows_in_double() -> None:
    generator = np.random.default_rng(2)
    a, b = generator.normal(size=(2, 30, 5)).astype(np.float32)
    a[3], b[7] = 0.0, 0.0
    wide = [np.asarray(table, dtype=np.float64) for table in (a, b)]
    for place, value in enumerate(cosine(a, b).tolist()):
        lengths = np.linalg.norm(wide[0][place]) * np.linalg.norm(wide[1][place])
        expected = wide[0][place] @ wide[1][place] / lengths if lengths else 0.0
        assert value == pytest.approx(expected, abs=1e-14)
