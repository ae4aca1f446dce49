"""Features against hand computation, written out number by number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ensue.benchmarks.discoeval import probe as f
from ensue.benchmarks.discoeval.data import SPECS, DiscoEvalData, DiscoEvalExample
from ensue.benchmarks.probing.converged import fit_converged
from ensue.benchmarks.probing.rules import COHERENCE, DISCOEVAL, RELATIONS, SECTIONS, Data, Rules

# Vectors of width 2; the sentence "i" is row i.
TABLE = np.asarray([[1, 2], [3, 5], [-1, 4], [0.5, 0], [2, 2], [10, -10]], dtype=np.float32)


def rows(sentences: Sequence[str]) -> NDArray[np.int64]:
    return np.asarray([int(s) for s in sentences], dtype=np.int64)


def take(numbers: NDArray[np.int64]) -> NDArray[np.float32]:
    return TABLE[numbers]


def example(*parts: str) -> DiscoEvalExample:
    """Parts of sentences divided by spaces."""
    return DiscoEvalExample("x", "x", 0, tuple(tuple(part.split()) for part in parts))


def made(group: str, *examples: DiscoEvalExample) -> list[list[float]]:
    found = f.features(f.SentencePlaces(examples, rows), take, f.COMBINE[group])
    assert found.dtype == np.float32
    return [[float(x) for x in row] for row in found]


def test_position_is_the_first_and_its_differences() -> None:
    assert made("SP", example("0", "1", "2", "3", "4")) == [[1, 2, -2, -3, 2, -2, 0.5, 2, -1, 0]]


def test_order_is_both_and_their_difference() -> None:
    assert made("BSO", example("0", "1"), example("1", "0")) == [[1, 2, 3, 5, -2, -3], [3, 5, 1, 2, 2, 3]]


def test_coherence_is_all_six_in_their_order() -> None:
    assert made("DC", example("5", "4", "3", "2", "1", "0")) == [
        [10, -10, 2, 2, 0.5, 0, -1, 4, 3, 5, 1, 2],
    ]


def test_section_is_the_sentence() -> None:
    assert made("SSP", example("2"), example("3")) == [[-1, 4], [0.5, 0]]


def test_a_relation_is_both_sides_their_product_and_distance() -> None:
    assert made("PDTB", example("0", "2")) == [[1, 2, -1, 4, -1, 8, 2, 2]]


def test_a_subtree_is_the_mean_of_its_units() -> None:
    # Left: the mean of rows 0, 1 and 4; right: that of row 2 taken twice and row 5.
    left, right = [2.0, 3.0], [8 / 3, -2 / 3]
    expected = [*left, *right, left[0] * right[0], left[1] * right[1], 2 / 3, 11 / 3]
    found = made("RST", example("0 1 4", "2 2 5"), example("3", "0"))
    assert found[0] == pytest.approx(expected, rel=1e-6)
    assert found[1] == [0.5, 0, 1, 2, 0.5, 0, 0.5, 2]


def test_many_examples_are_the_same_as_one_at_a_time() -> None:
    generator = np.random.default_rng(0)
    many = [
        example(*(" ".join(map(str, generator.integers(0, 6, generator.integers(1, 5)))) for _ in range(2)))
        for _ in range(1300)
    ]
    together = made("RST", *many)
    for place in (0, 511, 512, 513, 1299):
        assert together[place] == pytest.approx(made("RST", many[place])[0], rel=1e-6)


def test_position_without_context_is_the_first_alone() -> None:
    places = f.SentencePlaces([example("2", "1", "0", "3", "4")], rows)
    assert f.features(places, take, f.alone).tolist() == [[-1, 4]]


SPECIES = {spec.name: spec for spec in SPECS}


def task_of(name: str, parts: int) -> DiscoEvalData:
    """Examples whose first sentence tells the label: an even number is the first class."""
    generator = np.random.default_rng(4)
    splits = {}
    for split, count in (("train", 24), ("dev", 8), ("test", 6)):
        sentences = generator.integers(0, 6, size=(count, parts))
        splits[split] = [
            DiscoEvalExample(f"{split}/{n}", f"{n}", int(row[0] % 2), tuple((str(one),) for one in row))
            for n, row in enumerate(sentences)
        ]
    return DiscoEvalData(SPECIES[name], Path("data"), ("even", "odd"), splits, "made", Counter())


class Vectors:
    """The table's rows, times the layer, with the parity of the sentence beside them."""

    def take(self, numbers: NDArray[np.int64], layer: int | None) -> NDArray[np.float32]:
        both = np.concatenate([TABLE[numbers], (numbers % 2)[:, None] * 4.0 - 2.0], axis=1)
        return (both * (1 if layer is None else layer)).astype(np.float32)


@pytest.mark.parametrize(("name", "parts"), [("BSO/wiki", 2), ("SSP/abs", 1)])
def test_every_field_of_a_probe_against_a_fit_by_hand(name: str, parts: int) -> None:
    task, vectors = task_of(name, parts), Vectors()
    places = {split: f.SentencePlaces(examples, rows) for split, examples in task.splits.items()}
    choices = f.Choices("converged", context=True, hidden=True, seeds=(3, 5), device="cpu")
    found = f.probe(task, 2, vectors, places, choices)  # type: ignore[arg-type]
    data = [
        Data(
            f.features(places[split], lambda numbers: vectors.take(numbers, 2), f.COMBINE[task.spec.group]),
            np.array([example.label for example in task.splits[split]]),
        )
        for split in ("train", "dev", "test")
    ]
    expected = fit_converged(*data, 2, device="cpu")
    assert found.layer == 2
    assert [fit["seed"] for fit in found.fits] == [3, 5]
    for fit in found.fits:
        assert fit.pop("seconds") >= 0.0
        fit.pop("seed")
        assert fit == {
            "task": name,
            "layer": 2,
            "decay": expected.decay,
            "epochs": expected.epochs,
            "dev_accuracy": expected.dev_accuracy,
            "test_accuracy": float((expected.test_predictions == data[2].y).mean()),
        }
    assert found.predictions["dev"].tolist() == [expected.dev_predictions.tolist()] * 2
    assert found.predictions["test"].tolist() == [expected.test_predictions.tolist()] * 2
    assert found.predictions["test"].tolist() == [data[2].y.tolist()] * 2
    again = f.Probe.from_json(found.as_json())
    assert (again.layer, again.fits) == (found.layer, found.fits)
    assert {split: one.tolist() for split, one in again.predictions.items()} == {
        split: one.tolist() for split, one in found.predictions.items()
    }
    assert all(one.dtype == np.int64 for one in again.predictions.values())


@pytest.mark.parametrize(
    ("name", "hidden", "rules"),
    [
        ("SP/wiki", True, DISCOEVAL),
        ("BSO/wiki", False, DISCOEVAL),
        ("SSP/abs", True, SECTIONS),
        ("PDTB/explicit", True, RELATIONS),
        ("RST", False, RELATIONS),
        ("DC/chat", True, COHERENCE),
        ("DC/chat", False, replace(COHERENCE, hidden=0)),
    ],
)
def test_every_task_has_its_own_rules(name: str, hidden: bool, rules: Rules) -> None:
    assert f.rules_for(SPECIES[name], hidden) == rules
    assert COHERENCE.hidden > 0


def test_context_is_taken_from_positions_alone() -> None:
    for name in ("SP/wiki", "BSO/wiki", "DC/chat"):
        assert f.combine_for(SPECIES[name], True) is f.COMBINE[name.split("/")[0]]
    assert f.combine_for(SPECIES["SP/wiki"], False) is f.alone
    assert f.combine_for(SPECIES["BSO/wiki"], False) is f.order
