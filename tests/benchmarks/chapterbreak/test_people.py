"""Chapter transitions annotated by people: what they see, and that reports read what they said."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ensue.benchmarks.chapterbreak.annotation import ASPECTS, read_annotations, run_examples
from ensue.benchmarks.chapterbreak.people import KIND
from ensue.benchmarks.people.kind import WorkItem, kind
from ensue.errors import EnsueError
from ensue.runs.report import write_report
from tests.benchmarks.chapterbreak.report.synthetic import make_chapterbreak_items, write_chapterbreak
from tests.benchmarks.people.answering import chosen, exported, write_files

IDS = sorted(run_examples(make_chapterbreak_items(splits=("ao3",)))[:8])
SAME = {
    "events": "event continues",
    "actors": "no change",
    "location": "no change",
    "continuity": "continuous",
}


def written(folder: Path) -> str:
    """Data whose examples are those of a run."""
    works: dict[str, list[dict[str, Any]]] = {}
    for id in IDS:
        _, work, _ = id.split("/")
        number = len(works.setdefault(work, []))
        ending = f"Chapter {number} of {work} went on\n\nfor one two three four words."
        works[work].append({"ctx": ending, "pos": f"Next to {work}, {number}.", "negs": ["Not this."] * 5})
    (folder / "chapterbreak.json").write_text(json.dumps({"ao3": works, "pg19": {"9": [works[work][0]]}}))
    (folder / "cause_x.json").write_text(json.dumps({"ao3": {"7": [works[work][0]]}}))
    return str(folder)


def answer(item: WorkItem, person: str) -> dict[str, str]:
    """All say the same of events; on time Ben disagrees, and in one story everybody says something else."""
    odd = {"ada": "parallel", "ben": "analepsis", "cid": "discontinuous"}
    split = item.key["id"] == IDS[0]
    time = odd[person] if split else "discontinuous" if person == "ben" else "continuous"
    return {**SAME, "continuity": time}


def test_people_see_the_end_of_a_chapter_and_the_opening_of_the_next(tmp_path: Path) -> None:
    assert kind("transitions") is KIND
    built = KIND.build(written(tmp_path), chosen(KIND, context_words=6, sample="none", split="ao3"), 0)
    assert [item.key["id"] for item in built.items] == IDS
    form = built.items[0].form
    assert form.panel("context").text == "… for one two three four words."
    assert (form.panel("opening").text or "").startswith("Next to ")
    assert {one.id: [option["value"] for option in one.more["options"]] for one in form.fields} == {
        aspect: list(categories) for aspect, categories in ASPECTS.items()
    }
    whole = KIND.build(str(tmp_path), chosen(KIND, sample="none", split="ao3"), 0).items[0]
    assert (whole.form.panel("context").text or "").startswith("Chapter 0")


def test_a_sample_is_of_all_splits_and_the_same_again(tmp_path: Path) -> None:
    built = [KIND.build(written(tmp_path), chosen(KIND, sample=4), seed) for seed in (1, 1, 2, 3)]
    ids = [[item.key["id"] for item in one.items] for one in built]
    assert ids[0] == ids[1]
    assert len({tuple(one) for one in ids}) > 1
    assert all(len(one) == 4 and set(one) <= {*IDS, "pg19/9/0"} for one in ids)


def test_annotated_examples_are_for_training(tmp_path: Path) -> None:
    sheet = tmp_path / "gold.csv"
    row = ",".join((IDS[1], *SAME.values()))
    sheet.write_text(f"example,events,actors,location,continuity\n{row}\n")
    data = written(tmp_path)
    built = KIND.build(data, chosen(KIND, training=str(sheet), split="ao3"), 0)
    assert [(item.key["id"], item.phase, item.gold) for item in built.items][:2] == [
        (IDS[1], "training", SAME),
        (IDS[0], "work", None),
    ]
    assert IDS[1] not in [item.key["id"] for item in built.items[1:]]
    sheet.write_text(f"example,events,actors,location,continuity\n{row.replace(IDS[1], 'ao3/x/0')}\n")
    with pytest.raises(EnsueError, match="'ao3/x/0', which is not a chapter break"):
        KIND.build(data, chosen(KIND, training=str(sheet)), 0)


def test_known_answers_are_practice_qualification_and_controls(tmp_path: Path) -> None:
    data, sheet = written(tmp_path), tmp_path / "gold.csv"
    rows = "\n".join(",".join((id, *SAME.values())) for id in IDS[:3])
    sheet.write_text(f"example,events,actors,location,continuity\n{rows}\n")
    settings = chosen(KIND, training=str(sheet), split="ao3", qualification=1, controls=1)
    items = KIND.build(data, settings, 0).items
    assert [(item.key["id"], item.phase, item.control) for item in items[:3]] == [
        (IDS[0], "training", False),
        (IDS[1], "qualification", False),
        (IDS[2], "work", True),
    ]
    assert all(item.gold == SAME for item in items[:3])
    assert KIND.right(SAME, SAME)
    assert not KIND.right(SAME, SAME | {"location": "change" if SAME["location"] != "change" else "same"})
    assert all(item.gold is None and item.key["id"] not in IDS[:3] for item in items[3:])
    with pytest.raises(EnsueError, match="want 4 examples with known answers, of which there are 3"):
        KIND.build(data, chosen(KIND, training=str(sheet), split="ao3", qualification=4), 0)


def test_what_people_said_is_what_reports_read(tmp_path: Path) -> None:
    settings = chosen(KIND, split="ao3")
    built = KIND.build(written(tmp_path), settings, 0)
    export = exported(KIND, built, ("ada", "ben", "cid"), answer, settings)
    folder = write_files(KIND.files(export, None).texts, tmp_path / "out")
    found = read_annotations(folder / "annotations.csv")
    assert (found.annotators, found.empty, found.ties["continuity"]) == (3, 0, 1)
    assert list(found.transitions) == IDS
    assert found.transitions[IDS[1]] == SAME
    assert Counter(one["continuity"] for one in found.transitions.values()) == {"continuous": 7, None: 1}
    run = write_chapterbreak(tmp_path / "run", splits=("ao3",))
    page = write_report(run, annotations=folder / "annotations.csv").read_text("utf-8")
    assert "8 annotated examples" in page


def test_without_data_or_answers_there_is_nothing(tmp_path: Path) -> None:
    with pytest.raises(EnsueError, match="needs --data"):
        KIND.build(None, chosen(KIND), 0)
    built = KIND.build(written(tmp_path), chosen(KIND), 0)
    with pytest.raises(EnsueError, match="Nobody has annotated"):
        KIND.files(exported(KIND, built, (), answer, chosen(KIND)), None)
