"""People on the intruder: the texts they are given, and what they are worth beside a model."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import ensue
from ensue.benchmarks.intruder.people import FIELD, NONE
from ensue.benchmarks.intruder.task import IntruderRun
from ensue.benchmarks.people.kind import WorkItem, kind
from ensue.benchmarks.settings import documents_of
from ensue.errors import EnsueError
from ensue.runs.report import write_report
from ensue.runs.tables import metrics_tables
from tests.benchmarks.people.answering import chosen, exported

KIND = kind("intruder")
KINDS = ["random", "swapped"]


def write_export(folder: Path, answer: Any, **given: Any) -> Path:
    settings = chosen(KIND, **{"kinds": KINDS, "controls": 1, "training": 1, **given})
    export = exported(KIND, KIND.build(None, settings, 5), ["p0", "p1", "p2"], answer, settings, seconds=30)
    path = folder / "people.jsonl"
    head = {"ensue": "annotation", "version": 1, "project": "texts", "kind": "intruder", "source": "bundled"}
    head |= {"settings": settings, "seed": 5}
    lines = [vars(one) for one in export.records]
    path.write_text("".join(json.dumps(line) + "\n" for line in [head, *lines]))
    return path


def answer(item: WorkItem, person: str) -> dict[str, Any]:
    """p0 is always right, p1 marks the second of two, p2 sees something in every text: its last sentence."""
    gold = (item.gold or {})[FIELD]
    if person == "p2" and not item.control:
        return {FIELD: item.form.fields[0].more["options"][-2]["value"]}
    return {FIELD: gold[-1] if person == "p1" else gold[0]}


def test_every_document_is_read_in_one_version_and_kinds_take_turns() -> None:
    settings = chosen(KIND, kinds=KINDS, controls=2, training=2)
    built = KIND.build(None, settings, 5)
    work = [one for one in built.items if one.phase == "work" and not one.control]
    assert max(Counter(one.key["id"].partition("#")[0] for one in built.items).values()) == 1
    assert Counter(one.key["kind"] for one in work) == {"random": 3, "swapped": 3, "untouched": 2}
    originals = {one.id: one.sentences for one in documents_of("intruder", "", None, None, settings)}
    for item in built.items:
        field = item.form.fields[0]
        shown = {one["value"]: one["label"] for one in field.more["options"]}
        original = originals[item.key["id"].partition("#")[0]][:20]
        assert (item.form.panel("text").text or "").startswith(original[0])
        changed = [value for value, text in shown.items() if value != NONE and text != original[int(value)]]
        assert (item.gold or {})[FIELD] == (changed or [NONE])
        assert KIND.right(item.gold or {}, {FIELD: (changed or [NONE])[-1]})
        assert not KIND.right(item.gold or {}, {FIELD: "1" if changed != ["1"] else NONE}) or "1" in changed
        if item.control:
            (place,) = changed
            assert sorted(shown[place].split()) == sorted(original[int(place)].split())


def test_a_qualification_has_texts_of_its_own_some_untouched() -> None:
    built = KIND.build(None, chosen(KIND, kinds=KINDS, controls=2, training=2, qualification=3), 5)
    assert Counter((one.phase, one.control) for one in built.items) == {
        ("training", False): 2,
        ("qualification", False): 3,
        ("work", True): 2,
        ("work", False): 5,
    }
    assert len({one.key["id"].partition("#")[0] for one in built.items}) == 12
    asked = [one.key["kind"] for one in built.items if one.phase == "qualification"]
    assert asked == ["random", "swapped", "untouched"]


def test_people_are_a_run_that_stands_beside_a_model(tmp_path: Path) -> None:
    path = write_export(tmp_path, answer)
    settings: dict[str, Any] = {"kinds": KINDS, "seed": 5}
    people = ensue.run("intruder", model=f"human:{path}", output=tmp_path / "people", **settings)
    rows = {
        (row["metric"], row["settings"].get("kind")): row["value"]
        for row in people.results["metrics"]
        if row["task"] == "intruder" and "position" not in row["settings"]
    }
    given = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    given = [one for one in given if one["phase"] == "work" and not one["control"]]
    for edit in KINDS:
        # One answer at a time, by a loop.
        found = [
            float(one["values"][FIELD] in one["gold"][FIELD]) for one in given if one["key"]["kind"] == edit
        ]
        assert rows["hit_rate_at", edit] == pytest.approx(sum(found) / len(found))
        assert rows["seconds", edit] == 30
    assert rows["hit_rate_at", "random"] == pytest.approx(2 / 3, abs=0.15)
    assert rows["hit_rate", "random"] == 1.0  # two of three
    assert rows["false_alarms", "untouched"] == pytest.approx(1 / 3)
    assert people.results["skipped"]["texts that nobody was asked about"] > 0

    model = ensue.run(
        "intruder", model="random", encoder=None, rules="surprisal", output=tmp_path / "model", **settings
    )
    same = {item["id"]: item["asked"] for item in model.items}
    assert {item["id"]: item["asked"] for item in people.items}.items() <= same.items()
    for pair in ((people, model), (model, people)):
        found = {
            (row["metric"], row["settings"]["kind"]): row
            for row in ensue.compare(*pair, shared=True).as_dict()["rows"]
        }
        assert {row["settings"]["rule"] for row in found.values()} == {"surprisal"}
        assert ("false_alarms", "untouched") in found
        side = "value_a" if pair[0] is people else "value_b"
        assert found["hit_rate_at", "random"][side] == pytest.approx(rows["hit_rate_at", "random"])
    page = write_report(model.folder, beside=[people.folder]).read_text()
    assert page.count("human-texts") > 3
    assert f"random, human-texts: {rows['hit_rate_at', 'random']:.2f} at 0.33" in page
    alone = write_report(people.folder).read_text()
    assert "marked the sentence that does not belong" in alone
    (table,) = metrics_tables(people.results, None)
    assert "one person" in table.to_csv()


def test_other_texts_than_people_read_are_refused(tmp_path: Path) -> None:
    path = write_export(tmp_path, answer)
    with pytest.raises(EnsueError, match=r"not the one people read; .* with --seed 5 and max_sentences=20"):
        ensue.run("intruder", model=f"human:{path}", kinds=KINDS, seed=6, output=tmp_path / "other")
    with pytest.raises(EnsueError, match="of the kind intruder"):
        ensue.run("shuffle", model=f"human:{path}", output=tmp_path / "shuffle")
    settings = chosen(KIND, kinds=KINDS, controls=6, training=6)
    with pytest.raises(EnsueError, match="all of which practice, qualification and controls take"):
        KIND.build(None, settings, 5)
    documents = documents_of("intruder", "", None, None, settings)
    assert len(IntruderRun(documents, 5, settings).usable()[0]) == 12
