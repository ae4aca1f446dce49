"""People on the Shuffle Test: the pairs they are given, and what they are worth beside a model."""

from __future__ import annotations

import csv
import io
import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ensue
from ensue.benchmarks.people.export import read
from ensue.benchmarks.people.kind import WorkItem, kind
from ensue.benchmarks.people.numbers import overview, scores_table
from ensue.benchmarks.shuffle.people import FIELD
from ensue.errors import EnsueError
from ensue.runs.report import write_report
from ensue.runs.tables import metrics_tables
from tests.benchmarks.people.answering import chosen, exported

KIND = kind("shuffle")


def write_export(folder: Path, answer: Any, people: int = 3, **given: Any) -> Path:
    settings = chosen(KIND, **{"block_size": "1,2", "controls": 1, "training": 1, **given})
    built = KIND.build(None, settings, 5)
    names = [f"p{number}" for number in range(people)]
    export = exported(KIND, built, names, answer, settings, seconds=20)
    path = folder / "people.jsonl"
    head = {"ensue": "annotation", "version": 1, "project": "texts", "kind": "shuffle", "source": "bundled"}
    lines = [vars(one) for one in export.records]
    path.write_text("".join(json.dumps(line) + "\n" for line in [head, *lines]))
    return path


def knowing(item: WorkItem, person: str) -> dict[str, Any]:
    """p2 is always wrong at block size 2."""
    side = (item.gold or {})[FIELD]
    wrong = person == "p2" and item.key.get("block_size") == 2
    return {FIELD: {"left": "right", "right": "left"}[side] if wrong else side}


def test_every_document_is_used_once_and_block_sizes_take_turns() -> None:
    settings = chosen(KIND, block_size="1,2,3", controls=2, training=2)
    built = KIND.build(None, settings, 5)
    work = [one for one in built.items if one.phase == "work" and not one.control]
    used = Counter(one.key.get("document", one.key["id"].partition("#")[0]) for one in built.items)
    assert set(used.values()) == {1}
    sizes = Counter(one.key["block_size"] for one in work)
    assert max(sizes.values()) - min(sizes.values()) <= 1
    assert {one.key["original"] for one in work} == {"left", "right"}
    for one in work:
        texts = {panel.id: panel.text for panel in one.form.panels}
        assert sorted(str(texts["left"]).split()) == sorted(str(texts["right"]).split())
        assert texts["left"] != texts["right"]
    control = next(one for one in built.items if one.control)
    assert KIND.right(control.gold or {}, control.gold or {})


def test_a_qualification_has_documents_of_its_own_and_does_not_count(tmp_path: Path) -> None:
    built = KIND.build(None, chosen(KIND, block_size="1,2", controls=1, training=2, qualification=3), 5)
    assert Counter((one.phase, one.control) for one in built.items) == {
        ("training", False): 2,
        ("qualification", False): 3,
        ("work", True): 1,
        ("work", False): 6,
    }
    documents = {one.key.get("document", one.key["id"].partition("#")[0]) for one in built.items}
    assert len(documents) == 12

    def careless(item: WorkItem, person: str) -> dict[str, Any]:
        side = (item.gold or {})[FIELD]
        counts = item.phase == "work" and not item.control
        return {FIELD: side if counts else {"left": "right", "right": "left"}[side]}

    path = write_export(tmp_path, careless, controls=1, training=2, qualification=3)
    run = ensue.run(
        "shuffle", model=f"human:{path}", block_size=[1, 2], shuffles=1, seed=5, output=tmp_path / "people"
    )
    assert len(run.items) == 6
    assert {row["value"] for row in run.results["metrics"] if row["metric"] == "accuracy"} == {1.0}


def test_what_is_told_is_what_is_asked(tmp_path: Path) -> None:
    texts = ["One came. Two left. Three slept. Four ate."] * 5 + ["Alone."] * 2
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps({"id": str(n), "text": text}) + "\n" for n, text in enumerate(texts)))
    settings = chosen(KIND, block_size="1,2", controls=1, training=1, pairs=2)
    built = KIND.build(str(path), settings, 5)
    assert sum(one.phase == "work" and not one.control for one in built.items) == 2
    assert list(built.notes) == [
        "2 documents, each at one of the block sizes 1, 2",
        "2 documents too short for every block size left out",
    ]


def test_people_are_a_run_that_stands_beside_a_model(tmp_path: Path) -> None:
    path = write_export(tmp_path, knowing)
    settings = {"block_size": [1, 2], "shuffles": 2}
    people = ensue.run("shuffle", model=f"human:{path}", output=tmp_path / "people", seed=5, **settings)
    rows = {(row["metric"], row["settings"]["block_size"]): row for row in people.results["metrics"]}
    assert rows["accuracy", 1]["value"] == 1.0
    assert rows["accuracy", 2]["value"] == pytest.approx(2 / 3)
    assert rows["accuracy_majority", 2]["value"] == 1.0
    assert rows["seconds", 2]["value"] == 20
    asked = {item["id"] for item in people.items}
    model = ensue.run("shuffle", model="random", output=tmp_path / "random", seed=5, **settings)
    same = {item["id"]: item["asked"] for item in model.items}
    assert {item["id"]: item["asked"] for item in people.items} == {id: same[id] for id in asked}
    found = ensue.compare(people, model, shared=True)
    assert any(row["metric"] == "accuracy" for row in found.as_dict()["rows"])
    page = write_report(model.folder, beside=[people.folder]).read_text()
    assert "human-texts" in page
    (table,) = metrics_tables(people.results, None)
    shown = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert [(row["majority"], row["seconds"]) for row in shown] == [("1.0", "20.0"), ("1.0", "20.0")]
    kappas = [rows.get(("kappa", size), {"value": None})["value"] for size in (1, 2)]
    assert [row["κ"] and float(row["κ"]) for row in shown] == ["" if one is None else one for one in kappas]


def test_a_run_of_a_part_has_the_numbers_of_that_part_alone(tmp_path: Path) -> None:
    def at_random(item: WorkItem, person: str) -> dict[str, Any]:
        return {FIELD: random.Random(f"{item.key['id']}/{person}").choice(["left", "right"])}

    human = f"human:{write_export(tmp_path, at_random)}"
    one = ensue.run("shuffle", model=human, output=tmp_path / "one", block_size=[2])
    assert {row["settings"]["block_size"] for row in one.results["metrics"]} == {2}
    assert one.results["skipped"]["pairs of people at block sizes that are not asked for"] > 0
    few = ensue.run("shuffle", model=human, output=tmp_path / "few", block_size=[1, 2], limit=6)
    assert few.results["skipped"]["documents of people that are not here"] > 0
    for run in (one, few):
        pairs = Counter(item["settings"]["block_size"] for item in run.items)
        rows = {(row["metric"], row["settings"]["block_size"]): row["n"] for row in run.results["metrics"]}
        kappas = {size: n for (metric, size), n in rows.items() if metric == "kappa"}
        assert kappas == {size: pairs[size] for size in kappas} != {}
    with pytest.raises(EnsueError, match="People read no pair at block size 4"):
        ensue.run("shuffle", model=human, output=tmp_path / "none", block_size=[4])


def test_an_organiser_is_shown_what_a_run_will_say(tmp_path: Path) -> None:
    path = write_export(tmp_path, knowing)
    run = ensue.run("shuffle", model=f"human:{path}", output=tmp_path / "run", seed=5, block_size=[1, 2])
    found = overview(read(path), KIND)
    assert [row for row in run.results["metrics"] if row in found.scores] == list(found.scores)
    shown = list(csv.DictReader(io.StringIO(scores_table(found.scores).to_csv())))
    # p2 is wrong at block size 2 and outvoted by the two others.
    assert [(row["of"], row["accuracy majority"], row["seconds"]) for row in shown] == [
        ("shuffle, block size 1", "1.0", "20.0"),
        ("shuffle, block size 2", "1.0", "20.0"),
    ]
    assert [float(row["accuracy"]) for row in shown] == pytest.approx([1, 2 / 3])
    sizes = Counter(one.key["block_size"] for one in read(path).answers() if one.annotator == "p2")
    right = {one.annotator: one.accuracy for one in found.people}
    assert right == pytest.approx({"p0": 1, "p1": 1, "p2": sizes[1] / sizes.total()})


def test_nobody_is_said_to_take_less_than_no_time(tmp_path: Path) -> None:
    export = read(write_export(tmp_path, knowing))
    unlike = tuple(
        replace(one, seconds=1000.0 if one.item == export.records[-1].item else 0.1) for one in export.records
    )
    rows = [row for row in KIND.scores(replace(export, records=unlike)) if row["metric"] == "seconds"]
    ends = [row["ci95"][0] for row in rows if row["ci95"][0] is not None]
    assert ends
    assert min(ends) >= 0


def test_an_answer_without_a_side_is_no_wrong_one(tmp_path: Path) -> None:
    path = write_export(tmp_path, knowing)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(line | {"values": {}}) + "\n" for line in lines))
    with pytest.raises(EnsueError, match=r"people\.jsonl has an answer that no project of its kind exports"):
        ensue.run("shuffle", model=f"human:{path}", output=tmp_path / "run", seed=5, block_size=[1, 2])


def test_people_of_other_documents_are_refused(tmp_path: Path) -> None:
    path = write_export(tmp_path, knowing)
    other = tmp_path / "other.txt"
    other.write_text("One thing. Another thing. A third thing happened. And a fourth.")
    with pytest.raises(EnsueError, match="none of these documents"):
        ensue.run("shuffle", model=f"human:{path}", data=other, output=tmp_path / "run")
    with pytest.raises(EnsueError, match="is of the kind shuffle"):
        ensue.run("superglue/COPA", model=f"human:{path}", data=_copa(tmp_path), output=tmp_path / "run")
    with pytest.raises(EnsueError, match="names no export"):
        ensue.run("shuffle", model="human:", output=tmp_path / "run")


def _copa(folder: Path) -> Path:
    row = {
        "premise": "It rained.",
        "choice1": "Wet.",
        "choice2": "Dry.",
        "question": "effect",
        "idx": 0,
        "label": 0,
    }
    (folder / "data" / "COPA").mkdir(parents=True)
    (folder / "data" / "COPA" / "val.jsonl").write_text(json.dumps(row) + "\n")
    return folder / "data"
