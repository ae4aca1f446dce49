"""Exports: what is read of them, what counts, and what is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from ensue.benchmarks.people.custom import KIND
from ensue.benchmarks.people.export import Export, read
from ensue.benchmarks.people.human import load_people
from ensue.benchmarks.people.kind import Earned
from ensue.errors import EnsueError

HEADER: dict[str, Any] = {
    "ensue": "annotation",
    "version": 1,
    "project": "mill",
    "kind": "custom",
    "title": "The mill",
    "settings": {"pay": 0.15, "bonus": 0.85},
    "seed": 3,
    "source": "mill.jsonl",
    "state": "open",
    "participants": [
        {"annotator": "p1", "phase": "work", "state": "active", "reason": None},
        {"annotator": "p2", "phase": "work", "state": "stopped", "reason": "Too fast."},
    ],
    "fields": {"which": "choice"},
}


def line(id: str, annotator: str, **more: Any) -> dict[str, Any]:
    return {"key": {"id": id}, "annotator": annotator, "values": {"which": "a"}, "phase": "work", **more}


def written(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return path


def test_an_export_says_who_answered_what_and_what_counts(tmp_path: Path) -> None:
    path = written(
        tmp_path / "e.jsonl",
        HEADER,
        line("1", "p1", stage="one", seconds=2.5),
        line("2", "p2", state="void"),
        line("3", "p3", control=True, gold={"which": "b"}, right=False),
        line("4", "p3", phase="training"),
    )
    found = read(path, "custom")
    assert (found.project, found.seed, found.source, found.fields) == (
        "mill",
        3,
        "mill.jsonl",
        {"which": "choice"},
    )
    assert [one.item for one in found.answers()] == ["1"]
    assert [one.item for one in found.answers("two")] == []
    assert found.annotators == ("p1", "p2", "p3")
    assert found.people[1].state == "stopped"
    assert found.records[2].gold == {"which": "b"}


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ((), "is empty"),
        (({"a": 1},), "no export"),
        (({**HEADER, "version": 2},), "version 2"),
        (({**HEADER, "kind": "shuffle"},), "of kind shuffle, where one of kind custom"),
        (({key: value for key, value in HEADER.items() if key != "project"},), "damaged"),
        ((HEADER, {"key": 1}), "answer 1 has no key"),
        ((HEADER, {"key": {}, "values": {}}), r"damaged; export the project again\.$"),
        (
            ({**HEADER, "answers": 2}, line("1", "p1")),
            "has 1 of the 2 answers that were exported; it was cut off",
        ),
        ((HEADER, line("1", "p1", seconds=1e308)), r"damaged; export the project again\.$"),
        ((HEADER, line("1", "p1", seconds=-1)), r"damaged; export the project again\.$"),
        ((HEADER, {**line("1", "p1"), "annotator": None}), "answer 1 does not say whose it is"),
    ],
)
def test_what_is_no_export_is_refused(tmp_path: Path, lines: tuple[dict[str, Any], ...], words: str) -> None:
    with pytest.raises(EnsueError, match=words):
        read(written(tmp_path / "e.jsonl", *lines), "custom")


def test_pay_is_for_every_answer_and_the_bonus_for_what_passed_every_check() -> None:
    lines = [
        *(line(str(n), "p1", hasty=n == 0) for n in range(4)),
        line("c", "p1", control=True, right=True),
        line("0", "p2"),
        line("0", "p3"),
        line("c", "p3", control=True, right=False),
        line("1", "p3", state="void"),
    ]
    assert KIND.earned(Export.of(HEADER, lines)) == {
        "p1": Earned(Fraction(75, 100), Fraction(340, 100)),
        "p2": Earned(Fraction(15, 100), Fraction()),
        "p3": Earned(Fraction(30, 100), Fraction()),
    }


def test_an_older_export_that_does_not_count_its_answers_says_so(tmp_path: Path) -> None:
    old = written(tmp_path / "old.jsonl", HEADER, line("1", "p1"))
    new = written(tmp_path / "new.jsonl", {**HEADER, "answers": 1}, line("1", "p1"))
    notes = [load_people(f"human:{path}").card.note for path in (old, new)]
    assert "does not say how many answers it has" in notes[0]
    assert notes[1] == "2 people"


def test_why_no_answer_counts_is_said(tmp_path: Path) -> None:
    nobody = read(written(tmp_path / "empty.jsonl", HEADER), "custom")
    with pytest.raises(EnsueError, match="Nobody has answered anything"):
        nobody.refuse_empty()
    void = read(written(tmp_path / "void.jsonl", HEADER, line("one", "a", state="void")), "custom")
    with pytest.raises(EnsueError, match="whoever gave one was stopped"):
        void.refuse_empty()
