"""Reading lines: encodings, line ends, and faults that name file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensue.benchmarks.probing.lines import DataLine, read_lines
from ensue.errors import EnsueError


def _file(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "some.txt"
    path.write_bytes(content)
    return path


def test_only_line_feeds_end_lines_and_marks_are_dropped(tmp_path: Path) -> None:
    text = "\ufeffone\x85still one\r\ntwo\u2028still two\n\nfour"
    lines, _ = read_lines(_file(tmp_path, text.encode()))
    assert [line.text for line in lines] == ["one\x85still one", "two\u2028still two", "", "four"]
    assert [line.number for line in lines] == [1, 2, 3, 4]


def test_a_latin_1_file_is_read_where_that_is_allowed(tmp_path: Path) -> None:
    path = _file(tmp_path, "plain\nna\u00efve\n".encode("latin-1"))
    lines, latin = read_lines(path, latin=True)
    assert latin
    assert lines[1].text == "na\u00efve"
    with pytest.raises(EnsueError, match=r"some\.txt, line 2: this is not UTF-8"):
        read_lines(path)


def test_a_utf_8_file_is_not_taken_for_latin_1(tmp_path: Path) -> None:
    lines, latin = read_lines(_file(tmp_path, "na\u00efve\n".encode()), latin=True)
    assert (latin, lines[0].text) == (False, "na\u00efve")


def test_mixed_encodings_are_refused_with_both_lines(tmp_path: Path) -> None:
    content = b"plain\n" + "caf\u00e9\n".encode() + "na\u00efve\n".encode("latin-1")
    with pytest.raises(EnsueError, match="mixes encodings: line 2 is UTF-8, line 3 is not"):
        read_lines(_file(tmp_path, content), latin=True)


def test_an_empty_or_absent_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EnsueError, match=r"some\.txt is empty"):
        read_lines(_file(tmp_path, b""))
    with pytest.raises(EnsueError, match=r"none\.txt cannot be read"):
        read_lines(tmp_path / "none.txt")


def test_faults_within_a_line_name_it() -> None:
    line = DataLine(Path("x.txt"), 7, "a\tb\tc")
    assert line.fields(2, 3) == ["a", "b", "c"]
    assert line.sentence("  so   it\u00a0is ") == "so it is"
    assert line.label("b", ("a", "b")) == 1
    assert line.score("2.5", 0, 5) == 2.5
    for fault, words in [
        (lambda: line.fields(5), "there are 3 columns where 5 were expected"),
        (lambda: line.sentence(" \t"), "a sentence is empty"),
        (lambda: line.label("z", ("a", "b")), "the label 'z' is none of a, b"),
        (lambda: line.score("many", 0, 5), "'many' is not a score"),
        (lambda: line.score("5.1", 0, 5), "the score 5.1 is not between 0 and 5"),
        (lambda: line.score("nan", 0, 5), "the score nan is not between 0 and 5"),
    ]:
        with pytest.raises(EnsueError, match=rf"^x\.txt, line 7: {words}\.$"):
            fault()
