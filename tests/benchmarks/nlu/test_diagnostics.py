"""Diagnostics by phenomenon against scikit-learn on the examples picked by hand."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, matthews_corrcoef

from ensue.benchmarks.nlu.diagnostics import TAXONOMY, parts_of, phenomena_rows
from ensue.benchmarks.nlu.examples import Example
from ensue.errors import EnsueError
from tests.benchmarks.nlu.answered import answer, labelled, spec, tagged, task

THREE = ("entailment", "neutral", "contradiction")


def test_the_taxonomy_is_that_of_the_table() -> None:
    assert {category: len(tags) for category, tags in TAXONOMY.items()} == {
        "Lexical Semantics": 7,
        "Predicate-Argument Structure": 12,
        "Logic": 12,
        "Knowledge": 2,
    }
    tags = [tag for fine in TAXONOMY.values() for tag in fine]
    assert len(set(tags)) == 33


def test_each_part_is_judged_alone_and_tags_overlap() -> None:
    generator = np.random.default_rng(0)
    kinds = [
        {"Logic": ("Negation", "Double negation")},
        {"Logic": ("Negation",), "Knowledge": ("Common sense",)},
        {"Predicate-Argument Structure": ("Core args",)},
        {},
    ]
    rows = [
        (THREE[generator.integers(0, 3)], THREE[generator.integers(0, 3)], kinds[place % 4])
        for place in range(200)
    ]
    data, answered = tagged(spec("diagnostic"), rows)
    found = {
        (row["settings"].get("category"), row["settings"].get("tag"), row["metric"]): row
        for row in phenomena_rows(data, answered, "test")
    }
    # Over all examples the metric of the set is a row of every run already.
    assert (None, None, "r3") not in found
    assert found[None, None, "accuracy"]["n"] == 200
    del found[None, None, "accuracy"]
    picked = {
        ("Predicate-Argument Structure", None): [2],
        ("Logic", None): [0, 1],
        ("Knowledge", None): [1],
        ("Predicate-Argument Structure", "Core Arguments"): [2],
        ("Logic", "Negation"): [0, 1],
        ("Logic", "Double Negation"): [0],
        ("Knowledge", "Common Sense"): [1],
    }
    assert list(dict.fromkeys((category, tag) for category, tag, _ in found)) == list(picked)
    for (category, tag), members in picked.items():
        some = [row for place, row in enumerate(rows) if place % 4 in members]
        gold, given = [row[0] for row in some], [row[1] for row in some]
        r3, accuracy = found[category, tag, "r3"], found[category, tag, "accuracy"]
        assert r3["value"] == pytest.approx(matthews_corrcoef(gold, given))
        assert accuracy["value"] == pytest.approx(accuracy_score(gold, given))
        assert r3["n"] == len(some)
        low, high = r3["ci95"]
        assert low is not None
        assert high is not None
        assert low < r3["value"] < high
        assert r3["settings"]["split"] == "test"


def test_the_two_class_set_is_judged_by_mcc() -> None:
    asked = spec("AX-b", "superglue")
    yes, no = asked.labels
    rows = [(yes, yes, {"lexical-semantics": ("Factivity",)}), (no, yes, {"logic": ("Non-monotone",)})] * 3
    data, answered = tagged(asked, rows)
    found = phenomena_rows(data, answered, "test")
    assert {row["metric"] for row in found} == {"mcc", "accuracy"}
    assert [row["settings"].get("tag") for row in found][-4:] == ["Factivity"] * 2 + ["Non-Monotone"] * 2
    # All gold labels within a tag are one class here: there is no correlation.
    assert {row["value"] for row in found if row["metric"] == "mcc"} == {0.0}


def test_unknown_phenomena_are_refused_with_their_line() -> None:
    for tags, words in (
        ({"Logics": ("Negation",)}, "the category 'Logics' is none of Lexical Semantics"),
        ({"Logic": ("Irony",)}, "the tag 'Irony' of Logic is none of Negation, Double Negation, "),
    ):
        example = Example("7", ("A.", "B."), "neutral", tags=tags, where="diagnostic.tsv, line 9")
        data = task(spec("diagnostic"), [example], "test")
        with pytest.raises(EnsueError, match=f"diagnostic.tsv, line 9: {words}"):
            phenomena_rows(data, answer(data, ["neutral"], "test"), "test")


def test_a_set_without_tags_has_no_rows_of_phenomena() -> None:
    data, answered, _, _ = labelled(spec("diagnostic"), 5, split="test")
    assert phenomena_rows(data, answered, "test") == []


@pytest.mark.data
@pytest.mark.parametrize(("suite", "name"), [("glue", "diagnostic"), ("superglue", "AX-b")])
def test_the_real_sets_have_every_phenomenon_of_the_table(suite: str, name: str) -> None:
    root = os.environ.get("ENSUE_DATA")
    if not root or not (Path(root) / suite / name).is_dir():
        pytest.skip(f"set ENSUE_DATA to the folder that holds {suite}")
    if suite == "glue":
        from ensue.benchmarks.glue.data import read_task
    else:
        from ensue.benchmarks.superglue.data import read_task
    data = read_task(Path(root) / suite, spec(name, suite))
    assert data is not None
    (split,) = data.judged_splits
    found = list(parts_of(data.splits[split]))
    assert [part.settings["tag"] for part in found if "tag" in part.settings] == [
        tag for fine in TAXONOMY.values() for tag in fine
    ]
    sizes = {
        part.settings["category"]: len(part.places) for part in found if list(part.settings) == ["category"]
    }
    assert sizes == {
        "Lexical Semantics": 368,
        "Predicate-Argument Structure": 424,
        "Logic": 364,
        "Knowledge": 284,
    }
