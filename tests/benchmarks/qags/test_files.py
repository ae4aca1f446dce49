"""JSON files read entry by entry, each entry and each fault with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.nlu.files import Row
from ensue.benchmarks.qags.files import json_entries, number, texts
from ensue.errors import EnsueError

values = st.dictionaries(
    st.text(max_size=5), st.one_of(st.integers(), st.text(), st.lists(st.text())), max_size=3
)


@given(
    st.one_of(st.lists(values, min_size=1), st.dictionaries(st.text(), values, min_size=1)),
    st.sampled_from([None, 0, 2]),
    st.booleans(),
)
def test_entries_are_what_json_has_on_the_line_where_they_begin(
    tmp_path_factory: pytest.TempPathFactory, held: object, indent: int | None, ascii_only: bool
) -> None:
    path = tmp_path_factory.mktemp("entries") / "held.json"
    text = json.dumps(held, indent=indent, ensure_ascii=ascii_only)
    path.write_bytes(text.encode("utf-8"))
    found = json_entries(path)
    keyed = held.items() if isinstance(held, dict) else ((str(n), one) for n, one in enumerate(held))
    assert [(entry.key, dict(entry.row.fields)) for entry in found] == [(key, one) for key, one in keyed]
    lines = [int(entry.row.where.rpartition(" ")[2]) for entry in found]
    assert lines == sorted(lines)
    for line in lines:
        assert "{" in text.split("\n")[line - 1]


def test_the_line_is_that_of_the_entry(tmp_path: Path) -> None:
    path = tmp_path / "two.json"
    path.write_text('\ufeff{\n "p": {"x": 1},\n\n "q":\n  {"x": 2}\n}\n', "utf-8")
    assert [entry.row.where for entry in json_entries(path)] == [f"{path}, line 2", f"{path}, line 5"]


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ('{\n "p": {"x": }\n}', 2, "not JSON"),
        ('[\n {"x": 1}\n {"x": 2}\n]', 3, "',' is missing"),
        ('[\n {"x": 1},\n 7\n]', 3, "'1' is not a JSON object"),
        ('{"p": {},\n "p": {}}', 2, "'p' is there twice"),
        ('{"p" {}}', 1, "':' is missing"),
        ("{1: {}}", 1, "no name"),
        ('[{"x": 1}]\n\n[]', 3, "follows the end"),
        ('"words"', 1, "neither a JSON object nor a JSON list"),
        ('[{"x": 1},\n', 2, "not JSON"),
        ("", 1, "neither"),
        ("[" + '{"x":' * 100_000, 1, "nested too deeply"),
    ],
)
def test_faults_name_file_and_line(tmp_path: Path, text: str, line: int, what: str) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(text, "utf-8")
    with pytest.raises(EnsueError, match=f"line {line}: .*{what}") as error:
        json_entries(path)
    assert str(error.value).startswith(str(path))


def test_bytes_that_are_no_text_and_files_that_are_not_there(tmp_path: Path) -> None:
    path = tmp_path / "latin.json"
    path.write_bytes(b'[\n {"x": "caf\xe9"}]')
    with pytest.raises(EnsueError, match=r"line 2: byte 14 of the file is not UTF-8; convert"):
        json_entries(path)
    with pytest.raises(EnsueError, match="cannot be read"):
        json_entries(tmp_path / "nowhere.json")
    path.write_text("[]")
    with pytest.raises(EnsueError, match="has no entries; download it again"):
        json_entries(path)


def test_numbers_and_lists_of_texts_are_checked() -> None:
    row = Row("here", {"a": 1, "b": float("nan"), "c": ["one", " "], "d": ["one", 2], "e": "x"})
    assert number(row, "a") == 1.0
    assert texts(Row("here", {"c": ["one", "two"]}), "c") == ("one", "two")
    for check, name in ((number, "b"), (number, "e"), (texts, "c"), (texts, "d"), (texts, "e")):
        with pytest.raises(EnsueError, match=r"^here: "):
            check(row, name)
