"""Records: whatever happens to the file, nothing wrong is read and no line is lost but the one that was hit."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.errors import EnsueError
from ensue.records import Codec, Records, digest_of, plain

THINGS = plain("things")
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
several = st.dictionaries(st.text(max_size=12), values, min_size=1, max_size=6)


def write(path: Path, things: dict[str, Any]) -> bytes:
    with Records(path) as records:
        records.add(THINGS, things.items())
    return path.read_bytes()


def lines_touched(content: bytes, place: int, changed: bytes) -> set[int]:
    """Which lines a change of the byte at a place can reach: a lost line end joins two."""
    line = content[:place].count(b"\n")
    joined = content[place : place + 1] == b"\n" != changed
    return {line, line + 1} if joined else {line}


@given(several, several)
def test_what_was_put_in_comes_out(first: dict[str, Any], second: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new" / "kept.jsonl"
        write(path, first)
        with Records(path) as records:
            assert {key: records.get(THINGS, key) for key in first} == first
            records.add(THINGS, second.items())
            assert all(records.get(THINGS, key) == value for key, value in second.items())
        with Records(path) as records:
            both = {**first, **second}
            assert {key: records.get(THINGS, key) for key in both} == both
            assert (len(records), records.count(THINGS), records.damaged) == (len(both), len(both), 0)


@given(several, st.data())
def test_a_flipped_byte_loses_its_line_alone_and_never_gives_a_wrong_value(
    things: dict[str, Any], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kept.jsonl"
        content = write(path, things)
        place = data.draw(st.integers(0, len(content) - 1))
        changed = bytes([content[place] ^ data.draw(st.integers(1, 255))])
        path.write_bytes(content[:place] + changed + content[place + 1 :])
        hit = lines_touched(content, place, changed)
        kept = {key: value for number, (key, value) in enumerate(things.items()) if number not in hit}
        with Records(path) as records:
            assert {key: records.get(THINGS, key) for key in things if records.has(THINGS, key)} == kept
            # The last line without its end is what a kill leaves, which is nothing to speak of.
            torn = place == len(content) - 1
            assert (records.damaged > 0) == (not torn)
            records.add(THINGS, things.items())
        with Records(path) as records:
            assert {key: records.get(THINGS, key) for key in things} == things


@given(several, st.data())
def test_a_torn_file_loses_its_last_line_alone(things: dict[str, Any], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kept.jsonl"
        content = write(path, things)
        left = content[: data.draw(st.integers(0, len(content)))]
        path.write_bytes(left)
        whole = left.count(b"\n")
        with Records(path) as records:
            assert (len(records), records.damaged) == (whole, 0)
            assert [records.has(THINGS, key) for key in things] == [n < whole for n in range(len(things))]
            records.add(THINGS, things.items())
        with Records(path) as records:
            assert {key: records.get(THINGS, key) for key in things} == things


def test_damaged_lines_are_said_and_counted(tmp_path, capfd):
    path = tmp_path / "kept.jsonl"
    content = write(path, {str(n): n for n in range(10)})
    assert capfd.readouterr().err == ""
    lines = content.splitlines(keepends=True)
    lines[2] = lines[2].replace(b"2]", b"3]")
    lines[7] = b"\0" * len(lines[7])
    path.write_bytes(b"".join(lines) + b'["ensue","12')
    with Records(path) as records:
        # The row of zeros has no line end, so the line after it went with it.
        assert (len(records), records.damaged) == (7, 2)
        assert [records.get(THINGS, str(n)) for n in range(10)] == [0, 1, None, 3, 4, 5, 6, None, None, 9]
    assert capfd.readouterr().err == f"{path}: 2 lines were damaged and dropped; 7 are kept.\n"
    assert path.read_bytes() == b"".join(lines)


def test_uses_are_kept_apart_and_each_has_its_codec(tmp_path):
    pairs = Codec("pairs", list, tuple)
    with Records(tmp_path / "kept.jsonl") as records:
        records.add(pairs, [("k", (1, 2))])
        records.add(THINGS, [("k", "other"), ("l", None)])
    with Records(tmp_path / "kept.jsonl") as records:
        assert (records.get(pairs, "k"), records.get(THINGS, "k")) == ((1, 2), "other")
        assert (records.count(pairs), records.count(THINGS), len(records)) == (1, 2, 3)
        assert records.has(THINGS, "l")
        assert not records.has(pairs, "l")


def test_without_a_path_nothing_is_left():
    records = Records()
    records.add(THINGS, [("k", (1, "é"))])
    # As it would be read from a file.
    assert records.get(THINGS, "k") == [1, "é"]
    records.close()


@pytest.mark.parametrize(
    "content",
    [b"A text of mine, without an end", b'{"text": "mine"}\n', b'[1,"key",-1.5,3,-0.5]\n', b"\n", b"x"],
)
def test_a_file_that_is_something_else_is_left_as_it_is(tmp_path, content):
    path = tmp_path / "mine.txt"
    path.write_bytes(content)
    with pytest.raises(EnsueError, match=r"mine\.txt holds no finished work .* left as it is"):
        Records(path)
    assert path.read_bytes() == content
    with pytest.raises(EnsueError, match="is not a file"):
        Records(tmp_path)


def test_a_second_process_is_refused(tmp_path):
    path = tmp_path / "kept.jsonl"
    opens = f"from pathlib import Path; from ensue.records import Records; Records(Path({str(path)!r}))"
    with Records(path) as records:
        records.add(THINGS, [("k", 1)])
        other = subprocess.run([sys.executable, "-c", opens], capture_output=True, text=True)
        assert f"Another process is writing to {path}." in other.stderr
    assert subprocess.run([sys.executable, "-c", opens]).returncode == 0


FILLS_UP = """
import resource, signal, sys
from pathlib import Path
from ensue.errors import EnsueError
from ensue.records import Records, plain
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
records = Records(Path(sys.argv[1]))
records.add(plain("things"), [("0", "x" * 50)])
resource.setrlimit(resource.RLIMIT_FSIZE, (400, 400))
for _ in range(2):
    try:
        records.add(plain("things"), [(str(n), "x" * 50) for n in range(1, 10)])
    except EnsueError as error:
        print(error)
records.close()
"""


def test_a_full_disk_keeps_what_is_whole(tmp_path):
    path = tmp_path / "kept.jsonl"
    done = subprocess.run([sys.executable, "-c", FILLS_UP, path], capture_output=True, text=True, check=True)
    assert done.stdout.count(f"{path} cannot be written: File too large; finished work is kept") == 2
    assert path.read_bytes().endswith(b"\n")
    assert len(path.read_bytes()) > 300
    with Records(path) as records:
        assert (len(records), records.damaged) == (path.read_bytes().count(b"\n"), 0)
        assert records.get(THINGS, "0") == records.get(THINGS, "1") == "x" * 50


def test_nothing_put_in_leaves_nothing_behind(tmp_path):
    with Records(tmp_path / "new" / "folder" / "kept.jsonl"):
        assert (tmp_path / "new" / "folder" / "kept.jsonl").exists()
    assert list(tmp_path.iterdir()) == []


def test_a_digest_is_that_of_the_facts_whatever_their_order():
    assert digest_of("a", {"x": 1, "y": 2}) == digest_of("a", {"y": 2, "x": 1})
    assert len({digest_of("a"), digest_of("b"), digest_of("a", "b"), digest_of(["a"])}) == 4


def test_two_keys_of_one_hash_never_get_each_others_value(tmp_path, monkeypatch):
    monkeypatch.setattr("ensue.records.hash", lambda key: 1, raising=False)
    with Records(tmp_path / "records") as records:
        records.add(THINGS, [("one", 1)])
        assert records.get(THINGS, "one") == 1
        assert records.get(THINGS, "two") is None
        assert not records.has(THINGS, "two")
        records.add(THINGS, [("two", 2)])
        # The first one's work is done again.
        assert (records.get(THINGS, "one"), records.get(THINGS, "two")) == (None, 2)


@pytest.mark.parametrize("length", [0, 900, 1024, 5000, 100_000])
def test_lines_of_any_length_are_read_where_they_lie(tmp_path, length):
    path = tmp_path / "records"
    values = {f"key {n}": "x" * (length + n) for n in range(3)}
    with Records(path) as records:
        records.add(THINGS, values.items())
        records.add(THINGS, [("last", 7)])
        assert {key: records.get(THINGS, key) for key in values} == values
    # Finished work may be asked for until it is thrown away.
    assert records.get(THINGS, "last") == 7
    with pytest.raises(ValueError, match="closed"):
        records.add(THINGS, [("more", 8)])
    with Records(path) as records:
        assert {key: records.get(THINGS, key) for key in values} == values


def test_memory_holds_no_values(tmp_path):
    import tracemalloc

    with Records(tmp_path / "records") as records:
        tracemalloc.start()
        for begin in range(0, 2000, 100):
            records.add(THINGS, [(digest_of(n), "x" * 5000) for n in range(begin, begin + 100)])
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert held / 2000 < 300
