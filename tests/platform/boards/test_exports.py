"""A board as JSON, CSV and Atom, read back with the standard library."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, date, datetime
from xml.etree import ElementTree

from ensue.platform.boards.board import Board
from ensue.platform.boards.exports import as_atom, as_csv, as_json
from ensue.platform.boards.reading import Shown
from ensue.platform.boards.standing import Column, Entry, standing
from ensue.report.figure import Figure

AT = datetime(2026, 11, 16, 12, tzinfo=UTC)
BOARD = Board(
    "id", "superglue", "SuperGLUE", "", "superglue", {}, "test", 3, 2, 6, True, True, 1, None, None, AT
)
ENTRIES = [
    Entry(
        "a",
        "submission",
        '=HYPERLINK("x")',
        AT,
        Figure(0.8, 0.7, 0.9, 40),
        (Figure(0.8, 0.7, 0.9, 40), None),
        team='say "hi", all',
    ),
    Entry("b", "human", "<script>alert(1)</script>\ufffe", AT, None, (None, Figure(-0.5))),
]
SHOWN = Shown(
    BOARD,
    Column("SuperGLUE", "score", covers="7 of 8"),
    [Column("RTE", "accuracy", covers="half"), Column("AX-b", "mcc")],
    standing(ENTRIES),
    (),
    date(2026, 11, 16),
)


def test_json_has_every_row_with_its_rank_and_figures() -> None:
    found = json.loads(json.dumps(as_json(SHOWN)))
    assert (found["board"], found["date"], found["covers"]) == (
        "superglue",
        "2026-11-16",
        {"SuperGLUE": "7 of 8", "RTE": "half"},
    )
    first, second = found["rows"]
    assert (first["rank"], first["score"]) == (1, {"value": 0.8, "ci95": [0.7, 0.9], "n": 40})
    assert first["metrics"]["AX-b.mcc"] is None
    assert (second["rank"], second["kind"], second["score"]) == (None, "human", None)
    assert second["metrics"]["AX-b.mcc"]["value"] == -0.5


def test_csv_leaves_missing_values_empty_and_starts_no_formula() -> None:
    first, second = csv.DictReader(io.StringIO(as_csv(SHOWN), newline=""))
    assert (first["rank"], first["score"], first["RTE.accuracy"], first["AX-b.mcc"]) == (
        "1",
        "0.8",
        "0.8",
        "",
    )
    assert (first["system"], first["team"]) == ('\'=HYPERLINK("x")', 'say "hi", all')
    assert (second["rank"], second["score"], second["AX-b.mcc"]) == ("", "", "-0.5")


def test_atom_is_well_formed_whatever_a_system_is_called() -> None:
    feed = ElementTree.fromstring(as_atom(SHOWN, "https://ensue.example", AT))
    name = {"a": "http://www.w3.org/2005/Atom"}
    assert feed.findtext("a:id", namespaces=name) == "https://ensue.example/boards/superglue"
    assert feed.findtext("a:updated", namespaces=name) == "2026-11-16T12:00:00+00:00"
    entries = feed.findall("a:entry", name)
    assert [entry.findtext("a:title", namespaces=name) for entry in entries] == [
        "<script>alert(1)</script>: partial",
        '=HYPERLINK("x"): 0.800',
    ]
    assert {entry.findtext("a:id", namespaces=name) for entry in entries} == {
        "https://ensue.example/submissions/a",
        "https://ensue.example/submissions/b",
    }
