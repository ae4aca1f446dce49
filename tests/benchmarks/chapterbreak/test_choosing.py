"""People who choose the next chapter: what they are given, and what they are worth beside a model."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import ensue
from ensue.benchmarks.chapterbreak.choosing import FIELD
from ensue.benchmarks.people.kind import WorkItem, kind
from ensue.errors import EnsueError
from ensue.runs.report import write_report
from ensue.runs.tables import metrics_tables
from tests.benchmarks.people.answering import chosen, exported

KIND = kind("chapterbreak")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two books of four chapter breaks each, whose openings say their number."""
    works = {}
    for book in ("ash", "oak"):
        openings = [f"Opening {n} of {book}, and then some more words of it." for n in range(12)]
        works[book] = [
            {"ctx": f"Ending {n} of {book}. " * 40, "pos": openings[n], "negs": openings[n + 1 : n + 6]}
            for n in range(4)
        ]
    path = tmp_path / "breaks.json"
    path.write_text(json.dumps({"ao3": works}))
    return path


def answer(item: WorkItem, person: str) -> dict[str, Any]:
    """p0 is always right, p1 chooses the first, p2 the last."""
    letters = [one["value"] for one in item.form.fields[0].more["options"]]
    if item.control or person == "p0":
        return {FIELD: (item.gold or {})[FIELD]}
    return {FIELD: letters[0] if person == "p1" else letters[-1]}


def write_export(folder: Path, data: Path, **given: Any) -> Path:
    settings = chosen(KIND, **{"controls": 1, "training": 1, "suffix_words": 5, **given})
    built = KIND.build(str(data), settings, 3)
    export = exported(KIND, built, ["p0", "p1", "p2"], answer, settings, seconds=40)
    head = {"ensue": "annotation", "version": 1, "project": "breaks", "kind": KIND.name, "settings": settings}
    path = folder / "people.jsonl"
    lines = [vars(one) for one in export.records]
    path.write_text("".join(json.dumps(line) + "\n" for line in [head | {"source": str(data)}, *lines]))
    return path


def test_what_people_are_given(data: Path) -> None:
    settings = chosen(KIND, controls=2, training=2, context_words=9, suffix_words=5)
    built = KIND.build(str(data), settings, 3)
    assert Counter((one.phase, one.control) for one in built.items) == {
        ("training", False): 2,
        ("work", True): 2,
        ("work", False): 4,
    }
    assert len({one.key["id"].partition("#")[0] for one in built.items}) == 8
    places = set()
    for item in built.items:
        _, book, number = item.key["id"].partition("#")[0].split("/")
        words = (item.form.panel("context").text or "").split()
        assert words == ["…", *(f"Ending {number} of {book}. " * 3).split()[-9:]]
        shown = {one["value"]: one["label"] for one in item.form.fields[0].more["options"]}
        right = (item.gold or {})[FIELD]
        places.add(right)
        assert len(shown) == 6
        assert shown[right] == f"{right.upper()}: Opening {number} of {book}, and …"
        others = [text.partition(": ")[2] for letter, text in shown.items() if letter != right]
        assert all(text.startswith("Opening") != item.control or text.count("Opening") for text in others)
        assert not item.control or not all(text.startswith("Opening") for text in others)
    assert len(places) > 2  # the right one is not always in one place


def test_a_qualification_has_chapter_breaks_of_its_own(data: Path) -> None:
    built = KIND.build(str(data), chosen(KIND, controls=2, training=1, qualification=2), 3)
    assert Counter((one.phase, one.control) for one in built.items) == {
        ("training", False): 1,
        ("qualification", False): 2,
        ("work", True): 2,
        ("work", False): 3,
    }
    assert len({one.key["id"].partition("#")[0] for one in built.items}) == 8


def test_people_are_a_run_that_stands_beside_a_model(tmp_path: Path, data: Path) -> None:
    path = write_export(tmp_path, data)
    people = ensue.run("chapterbreak", model=f"human:{path}", data=str(data), output=tmp_path / "people")
    rows = {row["metric"]: row for row in people.results["metrics"]}
    given = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    given = [one for one in given if one["phase"] == "work" and not one["control"]]
    right = [one["values"] == one["gold"] for one in given]
    assert rows["accuracy"]["value"] == pytest.approx(sum(right) / len(right))
    assert rows["accuracy"]["n"] == 6
    votes: dict[str, list[bool]] = {}
    for one, found in zip(given, right, strict=True):
        votes.setdefault(one["key"]["id"], []).append(found)
    # p1 and p2 never agree, so two votes for the right one are a majority, and one of three is none.
    assert rows["accuracy_majority"]["value"] == pytest.approx(
        sum(sum(one) > 1 for one in votes.values()) / 6
    )
    assert rows["chance"]["value"] == pytest.approx(1 / 6)
    assert rows["seconds"]["value"] == 40
    assert people.results["skipped"] == {"chapter breaks that nobody was asked about": 2}

    model = ensue.run(
        "chapterbreak", model="unigram", data=str(data), prefix_tokens=[16, 32], output=tmp_path / "model"
    )
    found = ensue.compare(people, model).as_dict()
    (row,) = [one for one in found["rows"] if one["metric"] == "accuracy"]
    assert row["value_a"] == pytest.approx(rows["accuracy"]["value"])
    asked = {item["id"] for item in people.items}
    longest = [one for one in model.items if one["settings"]["prefix_tokens"] == 32]
    shared = [one["scores"]["accuracy"] for one in longest if one["outputs"]["example"] in asked]
    assert row["value_b"] == pytest.approx(sum(shared) / 6)
    assert any("context words 500" in note and "prefix tokens 32" in note for note in found["notes"])
    page = write_report(model.folder, beside=[people.folder]).read_text()
    assert f"human-breaks: {rows['accuracy']['value']:.3f}." in page
    assert "a line across the picture" in page
    assert "human-breaks" in write_report(people.folder).read_text()
    (table,) = metrics_tables(people.results, None)
    assert "accuracy of one person" in table.to_csv()


def test_other_chapters_than_people_read_are_refused(tmp_path: Path, data: Path) -> None:
    path = write_export(tmp_path, data)
    data.write_text(data.read_text().replace("Opening 2 of oak", "Opening two of oak"))
    with pytest.raises(EnsueError, match="not the one people read"):
        ensue.run("chapterbreak", model=f"human:{path}", data=str(data), output=tmp_path / "people")
    with pytest.raises(EnsueError, match="all of which practice, qualification and controls take"):
        KIND.build(str(data), chosen(KIND, controls=4, training=4), 3)


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [("values", FIELD, 10**30), ("values", FIELD, "Q"), ("key", "order", 1.5), ("key", "content", None)],
)
def test_an_edited_export_is_one_sentence(
    tmp_path: Path, data: Path, part: str, name: str, value: Any
) -> None:
    path = write_export(tmp_path, data)
    head, *lines = (json.loads(line) for line in path.read_text().splitlines())
    edited = next(line for line in lines if line["phase"] == "work" and not line["control"])
    edited[part] = {**edited[part], name: value}
    path.write_text("".join(json.dumps(line) + "\n" for line in [head, *lines]))
    with pytest.raises(EnsueError, match=r"export the project again|not the one people read"):
        ensue.run("chapterbreak", model=f"human:{path}", data=str(data), output=tmp_path / "people")
