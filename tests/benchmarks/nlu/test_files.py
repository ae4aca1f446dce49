"""Rows of files: quotation marks and line ends mean nothing, faults name file and line."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.nlu.files import Found, Row, find, jsonl_rows, task_folder, tsv_rows
from ensue.errors import EnsueError


def _file(folder: Path, content: str | bytes, name: str = "some.tsv") -> Found:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return Found(path)


# Anything but what divides columns and rows; the csv module, the reference, also ends rows at carriage returns
# and cannot read NUL.
_cells = st.text(st.characters(exclude_characters="\t\n\r\0", exclude_categories=["Cs"]), min_size=1)


@given(rows=st.lists(st.tuples(_cells, _cells), min_size=1))
def test_rows_are_those_of_the_csv_module_without_quoting(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    found = _file(tmp_path_factory.mktemp("tsv"), "".join(f"{a}\t{b}\n" for a, b in [("one", "two"), *rows]))
    with found.path.open(encoding="utf-8", newline="\n") as file:
        expected = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert [dict(row.fields) for row in tsv_rows(found)] == expected


def test_byte_order_marks_and_carriage_returns_are_dropped(tmp_path: Path) -> None:
    found = _file(tmp_path, '\ufeffname\tsaid\r\nAnn\t"so it\x85is\r\n')
    (row,) = tsv_rows(found)
    assert row.fields == {"name": "Ann", "said": '"so it\x85is'}
    assert row.where == f"{found.path}, line 2"


def test_short_rows_are_refused_or_handed_over(tmp_path: Path) -> None:
    found = _file(tmp_path, "a\tb\n1\t2\nonly\n3\t4\n")
    with pytest.raises(EnsueError, match=r"some\.tsv, line 3: there are 1 columns where 2 were expected"):
        list(tsv_rows(found))
    short: list[int] = []
    assert [row.fields["a"] for row in tsv_rows(found, None, short)] == ["1", "3"]
    assert short == [3]
    with pytest.raises(EnsueError, match="line 2: there are 3 columns"):
        list(tsv_rows(_file(tmp_path, "a\tb\n1\t2\t3\n"), None, []))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a\tb\n", r"some\.tsv has no rows"),
        (b"", r"some\.tsv has no rows"),
        (b"a\ta\n1\t2\n", "line 1: a column is named twice"),
        (b"a\tb\n1\t\xff2\n", r"is not UTF-8 \(line 2, byte 6\)"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(EnsueError, match=words):
        list(tsv_rows(_file(tmp_path, content)))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "line 2 is not JSON"),
        ("", "line 2 is not JSON"),
        ("[1]", "line 2 is not a JSON object but a list"),
        ("[" * 100_000, "line 2 is not JSON"),
        ("9" * 5_000, "line 2 is not JSON"),
    ],
)
def test_what_is_no_json_object_is_refused(tmp_path: Path, line: str, words: str) -> None:
    with pytest.raises(EnsueError, match=words):
        list(jsonl_rows(_file(tmp_path, f'{{"idx": 0}}\n{line}\n')))


_ROW = Row(
    "x.jsonl, line 7", {"n": 3, "t": "word", "blank": " ", "b": True, "none": None, "l": [1], "o": {"n": 1}}
)


def test_fields_of_the_right_kind_are_given() -> None:
    assert (_ROW.text("t"), _ROW.any_text("blank"), _ROW.whole("n")) == ("word", " ", 3)
    assert Row("", {"n": "12"}).whole("n") == 12
    assert (_ROW.label("b", ("false", "true")), _ROW.label("n", ("3", "4"))) == ("true", "3")
    assert _ROW.score("n", 0, 5) == 3.0
    assert _ROW.inner("o").whole("n") == 1


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda row: row.text("missing"), "there is no 'missing', only n, t, blank, b, none, l, o"),
        (lambda row: row.text("n"), r"'n' is a number \(3\) where a text was expected"),
        (lambda row: row.text("none"), "'none' is null where a text was expected"),
        (lambda row: row.text("blank"), "'blank' is empty"),
        (
            lambda row: row.whole("b"),
            r"'b' is true or false \(True\) where a whole number from 0 was expected",
        ),
        (lambda row: row.label("t", ("0", "1")), "the label 'word' is none of 0, 1"),
        (lambda row: row.label("b", ("0", "1")), "the label True is none of 0, 1"),
        (lambda row: row.label("l", ("0", "1")), r"the label \[1\] is none of 0, 1"),
        (lambda row: row.score("t", 0, 5), "'word' is not a score"),
        (lambda row: row.score("b", 0, 5), "True is not a score"),
        (
            lambda row: Row(row.where, {"s": "5.01"}).score("s", 0, 5),
            "the score '5.01' is not between 0 and 5",
        ),
        (lambda row: Row(row.where, {"s": "nan"}).score("s", 0, 5), "the score 'nan' is not between 0 and 5"),
        (
            lambda row: Row(row.where, {"s": 10**400}).score("s", 0, 5),
            r"the score 10{56}\.{3} is not between 0 and 5",
        ),
        (lambda row: row.inner("t"), r"'t' is a text \('word'\) where an object was expected"),
        (lambda row: row.rows("l"), r"'l' is a list \(\[1\]\) where a list of objects was expected"),
    ],
)
def test_fields_of_another_kind_are_refused(ask: Callable[[Row], object], words: str) -> None:
    with pytest.raises(EnsueError, match=rf"^x\.jsonl, line 7: {words}\.$"):
        ask(_ROW)


def test_a_partial_file_stands_in_for_a_missing_one(tmp_path: Path) -> None:
    part = _file(tmp_path, "a\n1\n2\n", "train.partial2.tsv")
    _file(tmp_path, "a\n1\n", "train.partialx.tsv")
    found = find(tmp_path, "train.tsv")
    assert found == Found(part.path, 2)
    assert len(list(tsv_rows(found))) == 2
    whole = _file(tmp_path, "a\n1\n", "train.tsv")
    assert find(tmp_path, "train.tsv") == whole
    assert find(tmp_path, "dev.tsv") is None


def test_a_partial_file_says_how_many_rows_it_has(tmp_path: Path) -> None:
    _file(tmp_path, json.dumps({"idx": 0}) + "\n", "val.partial2.jsonl")
    found = find(tmp_path, "val.jsonl")
    assert found is not None
    with pytest.raises(EnsueError, match="has 1 rows where its name says 2"):
        list(jsonl_rows(found))
    _file(tmp_path, "", "val.partial3.jsonl")
    with pytest.raises(EnsueError, match=r"val\.partial2\.jsonl and val\.partial3\.jsonl; leave one of them"):
        find(tmp_path, "val.jsonl")


def test_the_folder_is_the_suites_or_the_tasks_own(tmp_path: Path) -> None:
    (tmp_path / "rte").mkdir()
    assert task_folder(tmp_path, "RTE") == tmp_path / "rte"
    assert task_folder(tmp_path / "rte", "RTE") == tmp_path / "rte"
    assert task_folder(tmp_path, "CB") is None
    with pytest.raises(EnsueError, match=r"nowhere is not a folder; name the data folder with --data"):
        task_folder(tmp_path / "nowhere", "CB")
