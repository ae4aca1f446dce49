"""Checks that a project has no items for are refused in a sentence, whatever its kind; defaults are not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ensue.benchmarks.people.kind import kind as kind_of
from ensue.benchmarks.people.kind import kinds, settings_of
from ensue.platform.annotation.building import build
from ensue.platform.refusals import Invalid


@pytest.fixture
def breaks(tmp_path: Path) -> str:
    work = [{"ctx": f"End {n}.", "pos": f"Next {n}.", "negs": [f"Not {n}."] * 5} for n in range(4)]
    (tmp_path / "chapterbreak.json").write_text(json.dumps({"ao3": {"1": work}}))
    return str(tmp_path / "chapterbreak.json")


def phases(kind: str, data: str | None, **settings: Any) -> list[tuple[str, bool]]:
    return [(row["phase"], row["is_control"]) for row in build(kind, data, settings, 0)["items"]]


def test_transitions_and_squality_have_checks_of_known_answers_alone(tmp_path: Path, breaks: str) -> None:
    (tmp_path / "story.txt").write_text("It rained. They left.")
    ways = {"transitions": "set controls to how many there are to be, or", "squality": "set"}
    for kind, data in (("transitions", breaks), ("squality", str(tmp_path / "story.txt"))):
        assert set(phases(kind, data)) == {("work", False)}
        none = rf"^control_rate=0.2 mixes .* {kind} project has none; {ways[kind]} control_rate=0\.$"
        with pytest.raises(Invalid, match=none):
            build(kind, data, {"control_rate": 0.2}, 0)
        unqualified = rf"^bar=0.5 says .* {kind} project has no qualification; set qualification to how many"
        with pytest.raises(Invalid, match=unqualified):
            build(kind, data, {"bar": 0.5}, 0)
        with pytest.raises(Invalid, match="of which there are 0; name a file"):
            build(kind, data, {"bar": 0.5, "qualification": 2}, 0)
    pair = {"text": "It rained.", "question": "What fell?", "better": "Rain.", "worse": "Snow."}
    (tmp_path / "pairs.jsonl").write_text(f"{json.dumps(pair)}\n" * 3)
    found = phases(
        "squality",
        str(tmp_path / "story.txt"),
        bar="median",
        qualification=2,
        practice=str(tmp_path / "pairs.jsonl"),
    )
    assert found == [("training", False), *[("qualification", False)] * 2, ("work", False)]


@pytest.mark.parametrize("kind", ["shuffle", "intruder", "insertion", "ordering"])
def test_a_bar_needs_a_qualification_and_a_rate_needs_controls(kind: str) -> None:
    with pytest.raises(Invalid, match="has no qualification; set qualification to how many"):
        build(kind, None, {"bar": "median"}, 0)
    found = phases(kind, None, bar="median", qualification=2)
    assert found.count(("qualification", False)) == 2
    assert ("work", True) in found
    assert ("work", True) not in phases(kind, None, controls=0)
    with pytest.raises(Invalid, match="has none; set controls to how many"):
        build(kind, None, {"controls": 0, "control_rate": 0.3}, 0)
    with pytest.raises(Invalid, match=r"controls=1 .* gives none of them to anybody; set control_rate"):
        build(kind, None, {"controls": 1, "control_rate": 0}, 0)


def test_every_kind_but_two_can_have_both() -> None:
    """`custom` marks them in its lines; SQuALITY's check at work is its reviewing."""
    without = {
        name for name in kinds() if not {"qualification", "controls"} <= settings_of(kind_of(name)).keys()
    }
    assert without == {"squality", "custom"}
    assert all(
        settings_of(kind_of(name))["control_rate"].default == 0 for name in ("transitions", "squality")
    )
