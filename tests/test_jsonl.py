"""JSON files and lines: what is read, and that every problem names the file and the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensue.errors import EnsueError
from ensue.jsonl import parse_line, read_lines, read_object, read_toml, text_lines


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_lines_are_numbered_blank_ones_skipped_and_a_byte_order_mark_dropped(tmp_path: Path) -> None:
    # U+2028 ends no line.
    path = write(tmp_path / "a.jsonl", b'\xef\xbb\xbf{"a": 1}\r\n \n{"a": "x\xe2\x80\xa8y"}')
    assert list(read_lines(path)) == [(1, {"a": 1}), (3, {"a": "x\u2028y"})]
    assert read_object(write(tmp_path / "b.json", b'\xef\xbb\xbf{\n"a": 1}\n')) == {"a": 1}
    assert list(read_lines(write(tmp_path / "c.jsonl", '{"a": "é"}'.encode("latin-1")), "latin-1")) == [
        (1, {"a": "é"})
    ]


def test_a_carriage_return_ends_a_line_unless_asked_otherwise(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", b"one\rtwo\nthree")
    assert [line for _, line in text_lines(path)] == ["one\n", "two\n", "three"]
    assert [line for _, line in text_lines(path, newline="\n")] == ["one\rtwo\n", "three"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            b'{"a": 1}\n{"a": 1,\n',
            ", line 2 is not JSON (Expecting property name enclosed in double quotes at",
        ),
        (b"{}\n[\n", ", line 2 is not JSON (Expecting value at column 2): write one object a line."),
        (b"{}\n\n[1]\n", ", line 3 is not a JSON object but a list."),
        (
            b'{}\n{"a": "\xe9"}\n',
            " is not UTF-8 (line 2, byte 10): convert it to UTF-8, or name its encoding.",
        ),
        (b'{}\n{"a\0": 1}\n', ", line 2 holds a NUL byte, so it is UTF-16 or no text."),
        (b"\xff\xfe{\0}\0", " is UTF-16 (line 1, byte 0 is its byte-order mark): convert it to UTF-8."),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = write(tmp_path / "a.jsonl", content)
    with pytest.raises(EnsueError) as caught:
        list(read_lines(path))
    assert str(caught.value).startswith(f"{path}{sentence}")


def test_a_file_that_holds_one_object_names_the_line_too(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", b'{"a": 1}\n{"a": 2}\n')
    with pytest.raises(
        EnsueError, match=r"a\.json, line 2 is not JSON \(Extra data.*: name the file \.jsonl if"
    ):
        read_object(path)
    path = write(tmp_path / "a.jsonl", b'{"a": 1}\n{"a": 2}\n')
    with pytest.raises(EnsueError, match=r"a\.jsonl holds an object a line, where one object is expected\.$"):
        read_object(path)
    with pytest.raises(EnsueError, match="cannot be read: No such file"):
        read_object(tmp_path / "nowhere.json")
    with pytest.raises(EnsueError, match=r"^Standard input is not a JSON object but null"):
        parse_line("null", "Standard input")


def test_toml_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    assert read_toml(write(tmp_path / "a.toml", 'a = "é"'.encode())) == {"a": "é"}
    for content, words in [
        (b"a =", r"bad\.toml is not TOML that can be read \(Invalid value \(at end of document\)\)\.$"),
        ('a = "é"'.encode("latin-1"), r"is not TOML that can be read \('utf-8' codec"),
        (b"a = 1" + b"0" * 5000, "is not TOML that can be read"),
        (b"a = " + b"[" * 5000, "nested too deeply"),
    ]:
        with pytest.raises(EnsueError, match=words):
            read_toml(write(tmp_path / "bad.toml", content))
    with pytest.raises(EnsueError, match=r"none\.toml cannot be read: No such file"):
        read_toml(tmp_path / "none.toml")
