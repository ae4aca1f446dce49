"""Insertion and ordering by people: the documents are the gold answers, and scores are as counted by hand."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import kendalltau

import ensue
from ensue.benchmarks.coherence.people import INSERTION, ORDERING
from ensue.benchmarks.people.export import Export
from ensue.benchmarks.people.kind import Kind, WorkItem, kind
from ensue.benchmarks.people.numbers import overview
from ensue.errors import EnsueError
from ensue.runs.tables import metrics_tables
from tests.benchmarks.people.answering import chosen, exported

TEXTS = {f"d{n}": [f"Sentence {place} of text {n}." for place in range(4 + n)] for n in range(6)}


def written(folder: Path, texts: dict[str, list[str]] = TEXTS) -> str:
    rows = [json.dumps({"id": id, "sentences": sentences}) for id, sentences in texts.items()]
    (folder / "texts.jsonl").write_text("\n".join(rows))
    return str(folder / "texts.jsonl")


def measured(name: str, export: Export, folder: Path, **settings: Any) -> Any:
    """People as a model on the documents that they read."""
    path = folder / "export.jsonl"
    head = {
        "ensue": "annotation",
        "version": 1,
        "project": "p",
        "kind": name,
        "settings": dict(export.settings),
    }
    lines = [{**asdict(one)} for one in export.records]
    path.write_text("".join(json.dumps(line) + "\n" for line in (head, *lines)))
    data = str(folder / "texts.jsonl")
    return ensue.run(
        name, model=f"human:{path}", data=data, output=folder / f"run-{len(settings)}", **settings
    )


def order_of(item: WorkItem) -> dict[str, str]:
    """What stands in each entry."""
    return {entry["id"]: entry["text"] for entry in item.form.fields[0].more["entries"]}


@pytest.mark.parametrize(("name", "one"), [("insertion", INSERTION), ("ordering", ORDERING)])
def test_documents_are_cut_sampled_and_partly_for_training(tmp_path: Path, name: str, one: Kind) -> None:
    assert kind(name) is one
    built = one.build(written(tmp_path), chosen(one, max_sentences=5, training=1, controls=0), 4)
    assert [item.phase for item in built.items] == ["training"] + ["work"] * 5
    assert [item.key["id"] for item in built.items] == list(TEXTS)
    assert {item.key["sentences"] for item in built.items} == {4, 5}
    again = one.build(str(tmp_path / "texts.jsonl"), chosen(one, max_sentences=5, training=1, controls=0), 4)
    assert [item.form for item in again.items] == [item.form for item in built.items]
    few = one.build(str(tmp_path / "texts.jsonl"), chosen(one, sample=2, training=5), 4)
    assert [item.phase for item in few.items] == ["training", "work"]
    odd = {"short": ["A.", "B."], "twice": ["A.", "B.", "A."], "fine": ["A.", "B.", "C."]}
    left = one.build(written(tmp_path, odd), chosen(one), 0)
    assert [item.key["id"] for item in left.items] == ["fine"]
    assert len(left.notes) == 2
    with pytest.raises(EnsueError, match="no document of 3 different sentences"):
        one.build(written(tmp_path, {"short": ["A."]}), chosen(one), 0)


def test_a_sentence_put_back_where_it_was_makes_the_document(tmp_path: Path) -> None:
    places = set()
    for item in INSERTION.build(written(tmp_path), chosen(INSERTION, controls=0), 0).items:
        assert item.gold is not None
        sentences = list(item.form.panels[0].sentences or ())
        sentences.insert(item.gold["place"], item.form.fields[0].more["sentence"])
        assert sentences == TEXTS[item.key["id"]]
        places.add(item.gold["place"])
    assert len(places) > 2


def test_gold_orders_make_the_document_and_ids_say_nothing_of_it(tmp_path: Path) -> None:
    for item in ORDERING.build(written(tmp_path), chosen(ORDERING, controls=0), 0).items:
        shown = order_of(item)
        assert item.gold is not None
        assert [shown[id] for id in item.gold["order"]] == TEXTS[item.key["id"]]
        assert list(shown) == [f"s{place}" for place in range(1, len(shown) + 1)]
        assert list(shown.values()) != TEXTS[item.key["id"]]


def test_places_off_are_counted(tmp_path: Path) -> None:
    settings = chosen(INSERTION, training=0, controls=0)
    built = INSERTION.build(written(tmp_path), settings, 0)
    off = {"ada": 0, "ben": 1, "cid": 2}

    def answer(item: WorkItem, person: str) -> dict[str, Any]:
        assert item.gold is not None
        right = item.gold["place"]
        return {"place": right - off[person] if right >= off[person] else right + off[person]}

    export = exported(INSERTION, built, tuple(off), answer, settings)
    run = measured("insertion", export, tmp_path)
    figures = {row["metric"]: row["value"] for row in run.results["metrics"]}
    assert (figures["accuracy"], figures["distance"]) == (pytest.approx(1 / 3), pytest.approx(1.0))
    assert 0 < figures["chance"] < 1 / 3
    assert {item["cluster"] for item in run.items} == set(TEXTS)
    with pytest.raises(EnsueError, match=r"not the one people read.*max_sentences=10"):
        measured("insertion", export, tmp_path, max_sentences=4)
    accuracy, distance = INSERTION.scores(export)
    assert (accuracy["metric"], accuracy["value"], accuracy["n"], accuracy["clusters"]) == (
        "accuracy",
        pytest.approx(1 / 3),
        18,
        6,
    )
    assert (distance["metric"], distance["value"]) == ("distance", pytest.approx(1.0))
    assert overview(export, INSERTION).scores == (accuracy, distance)


def test_orders_are_scored_by_kendalls_tau(tmp_path: Path) -> None:
    settings = chosen(ORDERING, training=0, controls=0)
    built = ORDERING.build(written(tmp_path), settings, 0)

    def answer(item: WorkItem, person: str) -> dict[str, Any]:
        assert item.gold is not None
        right = list(item.gold["order"])
        return {"order": {"ada": right, "ben": right[1:] + right[:1], "cid": right[::-1]}[person]}

    export = exported(ORDERING, built, ("ada", "ben", "cid"), answer, settings)
    accuracy, tau = ORDERING.scores(export)
    run = measured("ordering", export, tmp_path)
    figures = {row["metric"]: row["value"] for row in run.results["metrics"]}
    assert figures["kendall_tau"] == pytest.approx(tau["value"])
    assert figures["perfect"] == pytest.approx(1 / 3)
    assert "accuracy_search" not in figures
    assert metrics_tables(run.results, None)
    assert accuracy["value"] == pytest.approx(1 / 3)
    expected = []
    for one in export.answers():
        assert one.gold is not None
        places = [one.gold["order"].index(id) for id in one.values["order"]]
        expected.append(kendalltau(range(len(places)), places).statistic)
    assert tau["metric"] == "kendall_tau"
    assert tau["value"] == pytest.approx(sum(expected) / len(expected))
    assert ORDERING.scores(exported(ORDERING, built, (), answer, settings)) == []


@pytest.mark.parametrize(
    ("name", "one", "label"),
    [
        ("insertion", INSERTION, "Sentences put back."),
        ("ordering", ORDERING, "Sentences in their own place."),
    ],
)
def test_people_are_paired_with_a_model_and_a_line_in_its_picture(
    tmp_path: Path, name: str, one: Kind, label: str
) -> None:
    """A run of the project's seed asks the model about the same sentences, whatever else it asks about."""
    settings = chosen(one, training=0, controls=0)
    built = one.build(written(tmp_path), settings, 0)

    def answer(item: WorkItem, person: str) -> dict[str, Any]:
        assert item.gold is not None
        right = dict(item.gold)
        if person == "ben":
            return {"place": 0} if name == "insertion" else {"order": right["order"][::-1]}
        return right

    export = exported(one, built, ("ada", "ben"), answer, settings)
    people = measured(name, export, tmp_path)
    model = ensue.run(
        name, model="random", data=str(tmp_path / "texts.jsonl"), max_sentences=10, output=tmp_path / "model"
    )
    asked = {item["id"]: item["asked"] for item in model.items}
    assert {item["id"]: asked.get(item["id"]) for item in people.items} == {
        item["id"]: item["asked"] for item in people.items
    }
    found = ensue.compare(tmp_path / "run-0", tmp_path / "model")
    assert found.shared == len(TEXTS)
    page = ensue.report(tmp_path / "model", beside=[tmp_path / "run-0"]).read_text("utf-8")
    assert f'aria-label="{label} random: ' in page
    assert "human-p: " in page
    if name == "insertion":
        first = 0.5 + 0.5 * sum(item.gold == {"place": 0} for item in built.items) / len(TEXTS)
        assert f"human-p: {first:.2f} within 0" in page
    else:
        assert "human-p: 0.50 at 1" in page  # reversed, no text begins as it should
    alone = ensue.report(tmp_path / "run-0").read_text("utf-8")
    assert ("people who put it back" if name == "insertion" else "people think best") in alone


@pytest.mark.parametrize(("name", "one"), [("insertion", INSERTION), ("ordering", ORDERING)])
def test_controls_are_numbered_and_neither_they_nor_the_qualification_count(
    tmp_path: Path, name: str, one: Kind
) -> None:
    settings = chosen(one, training=1, qualification=2, controls=1)
    built = one.build(written(tmp_path), settings, 0)
    assert [(item.phase, item.control) for item in built.items] == [
        ("training", False),
        ("qualification", False),
        ("qualification", False),
        ("work", True),
        ("work", False),
        ("work", False),
    ]
    control = built.items[3]
    assert control.gold is not None
    if name == "insertion":
        whole = list(control.form.panels[0].sentences or ())
        whole.insert(control.gold["place"], control.form.fields[0].more["sentence"])
    else:
        whole = [order_of(control)[id] for id in control.gold["order"]]
    assert whole == [f"({number}) {text}" for number, text in enumerate(TEXTS["d3"], 1)]
    assert control.key == {"id": "d3#control"}

    def answer(item: WorkItem, person: str) -> dict[str, Any]:
        """Whatever is known beforehand is missed, the work is not."""
        right = dict(item.gold or {})
        if item.phase == "work" and not item.control:
            return right
        return {"place": int(right["place"] == 0)} if name == "insertion" else {"order": right["order"][::-1]}

    export = exported(one, built, ("ada", "ben"), answer, settings)
    assert sum(record.right is False for record in export.records) == 2 * 4
    accuracy = one.scores(export)[0]
    assert (accuracy["value"], accuracy["n"]) == (1.0, 2 * 2)
    run = measured(name, export, tmp_path)
    assert {item["cluster"] for item in run.items} == {"d4", "d5"}
    few = one.build(written(tmp_path), chosen(one, sample=3, training=1, controls=5), 0)
    assert [(item.phase, item.control) for item in few.items][1:] == [("work", True), ("work", False)]
