"""Zips from strangers: every trick is named, nothing is believed, and memory stays bounded."""

from __future__ import annotations

import contextlib
import struct
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.grading import Limits, Refused
from ensue.benchmarks.grading.problems import Problems
from ensue.benchmarks.nlu.submissions.archive import Archive, open_archive

EXPECTED = ("A.tsv", "B.tsv")


def zipped(path: Path, files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def opened(path: Path, limits: Limits | None = None) -> tuple[Archive, Problems]:
    problems = Problems()
    return open_archive(path, EXPECTED, problems, limits), problems


def words_of(problems: Problems) -> list[str]:
    return [str(problem) for problem in problems.listed()]


@given(st.lists(st.binary(max_size=300).map(lambda raw: raw.replace(b"\n", b"")), max_size=50), st.booleans())
def test_lines_are_those_of_the_file(lines, last):
    raw = b"\n".join(lines) + b"\n" * last
    expected = [line.rstrip(b"\n") for line in BytesIO(raw)]
    # A mark of the byte order is none of the first line.
    expected[:1] = [line.removeprefix(b"\xef\xbb\xbf") for line in expected[:1]]
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as zipped:
        zipped.writestr("A.tsv", raw)
    with zipfile.ZipFile(buffer) as zipped:
        archive = Archive(zipped, {"A.tsv": zipped.getinfo("A.tsv")}, Limits())
        assert [line for _, line in archive.lines("A.tsv", Problems())] == expected


def test_a_long_file_comes_in_whole_lines(tmp_path):
    content = b"".join(b"%d\t1\n" % n for n in range(100_000))
    archive, problems = opened(zipped(tmp_path / "s.zip", {"A.tsv": content}))
    found = list(archive.lines("A.tsv", problems))
    assert (list(archive.files), words_of(problems)) == (["A.tsv"], [])
    assert found[-1] == (100_000, b"99999\t1")
    assert b"".join(line + b"\n" for _, line in found) == content


NAMES = {
    "../A.tsv": "leads out of the zip",
    "..\\A.tsv": "leads out of the zip",
    "sub/../../A.tsv": "leads out of the zip",
    "/etc/A.tsv": "absolute path",
    "C:\\A.tsv": "absolute path",
    "\\\\host\\A.tsv": "absolute path",
    "__MACOSX/../A.tsv": "leads out of the zip",
    "/.DS_Store": "absolute path",
    "sub/A.tsv": "in a folder",
    "sub/": "in a folder",
    "sub\\A.tsv": "in a folder",
    "C.tsv": "not a file of this submission; there is A.tsv, B.tsv",
    "a.tsv": "not a file of this submission",
    "_MACOSX": "not a file of this submission",
    "A.tsv ": "not a file of this submission",
}


def test_every_bad_name_is_listed_and_none_is_read(tmp_path):
    path = zipped(tmp_path / "s.zip", {**dict.fromkeys(NAMES, b"x"), "B.tsv": b"y"})
    archive, problems = opened(path)
    found = words_of(problems)
    assert list(archive.files) == ["B.tsv"]
    assert len(found) == len(NAMES)
    for (name, words), said in zip(NAMES.items(), found, strict=True):
        assert said.startswith(f"{name}: ")
        assert words in said


STRAY = {
    "__MACOSX/": b"",
    "__MACOSX/._A.tsv": b"\0\5\x16\7",
    "__MACOSX/sub/._A.tsv": b"\0\5\x16\7",
    ".DS_Store": b"\0",
    "._B.tsv": b"\0",
    "Thumbs.db": b"\0",
}


@pytest.mark.parametrize("folder", ["", "my system/"])
def test_what_file_managers_add_is_passed_over_and_one_folder_may_hold_all(tmp_path, folder):
    files = {f"{folder}A.tsv": b"x\ny", f"{folder}B.tsv": b"z", f"{folder}.DS_Store": b"\0", **STRAY}
    archive, problems = opened(zipped(tmp_path / "s.zip", {**({folder: b""} if folder else {}), **files}))
    assert words_of(problems) == []
    assert list(archive.files) == ["A.tsv", "B.tsv"]
    assert {"A.tsv", "B.tsv"} <= set(archive.names)
    assert [line for _, line in archive.lines("A.tsv", problems)] == [b"x", b"y"]
    assert [line for _, line in archive.lines("B.tsv", problems)] == [b"z"]


@pytest.mark.parametrize(
    "files",
    [("one/A.tsv", "two/B.tsv"), ("one/A.tsv", "B.tsv"), ("one/two/A.tsv",), ("one/A.tsv", "one\\B.tsv")],
)
def test_files_in_several_places_are_refused(tmp_path, files):
    archive, problems = opened(zipped(tmp_path / "s.zip", dict.fromkeys(files, b"x")))
    assert any("in a folder; put the files themselves at the top" in said for said in words_of(problems))
    assert len(archive.files) == len(files) - len(words_of(problems))


def test_a_stray_file_that_is_a_link_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "s.zip", "w") as archive:
        entry = zipfile.ZipInfo("__MACOSX/._A.tsv")
        entry.create_system, entry.external_attr = 3, 0o120777 << 16
        archive.writestr(entry, "/etc/passwd")
    assert words_of(opened(tmp_path / "s.zip")[1]) == ["__MACOSX/._A.tsv: a link, not a file."]


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path):
    mark = b"\xef\xbb\xbf"
    archive, problems = opened(zipped(tmp_path / "s.zip", {"A.tsv": mark + b"x\n" + mark + b"y\n"}))
    assert [line for _, line in archive.lines("A.tsv", problems)] == [b"x", mark + b"y"]


def test_a_name_that_goes_on_behind_a_nul_is_not_the_expected_one(tmp_path):
    path = zipped(tmp_path / "s.zip", {"A.tsvXX.exe": b"x"})
    path.write_bytes(path.read_bytes().replace(b"A.tsvXX.exe", b"A.tsv\0\0.exe"))
    archive, problems = opened(path)
    assert list(archive.files) == []
    assert words_of(problems) == [
        "A.tsv\\x00\\x00.exe: not a file of this submission; there is A.tsv, B.tsv."
    ]


def test_links_passwords_and_strange_methods_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "link.zip", "w") as archive:
        entry = zipfile.ZipInfo("A.tsv")
        entry.create_system, entry.external_attr = 3, 0o120777 << 16
        archive.writestr(entry, "/etc/passwd")
    assert words_of(opened(tmp_path / "link.zip")[1]) == ["A.tsv: a link, not a file."]
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        path = zipped(tmp_path / "method.zip", {"A.tsv": b"x"}, method)
        assert f"packed by method {method}" in words_of(opened(path)[1])[0]
    path = zipped(tmp_path / "secret.zip", {"A.tsv": b"x"})
    raw = bytearray(path.read_bytes())
    for signature, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        raw[raw.index(signature) + place] |= 1
    path.write_bytes(raw)
    assert "encrypted" in words_of(opened(path)[1])[0]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_file_twice_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "s.zip", "w") as archive:
        archive.writestr("A.tsv", "1")
        archive.writestr("A.tsv", "2")
    assert words_of(opened(tmp_path / "s.zip")[1]) == ["A.tsv: the zip has this file twice."]


def directory(names: list[str], offset: int, size: int, crc: int, unpacked: int) -> bytes:
    """A central directory whose entries all lie at the same place."""
    numbers = (20, 3, 20, 0, 0, 8, 0, 33, crc, size, unpacked)
    return b"".join(
        struct.pack("<4s4B4HL2L5H2L", b"PK\x01\x02", *numbers, len(name), 0, 0, 0, 0, 0, offset)
        + name.encode()
        for name in names
    )


def test_entries_that_share_their_bytes_are_refused(tmp_path):
    path = zipped(tmp_path / "s.zip", {"A.tsv": b"0" * 1000})
    entry = zipfile.ZipFile(path).getinfo("A.tsv")
    body = path.read_bytes()[: 30 + 5 + entry.compress_size]
    listed = directory(["A.tsv", "B.tsv"], 0, entry.compress_size, entry.CRC, 1000)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 2, 2, len(listed), len(body), 0)
    path.write_bytes(body + listed + end)
    assert words_of(opened(path)[1]) == ["B.tsv: lies in the same bytes of the zip as another file."]


def test_too_many_entries_are_refused_before_they_are_read(tmp_path):
    path = zipped(tmp_path / "s.zip", {f"{n}.tsv": b"" for n in range(1000)})
    with pytest.raises(Refused, match="1,000 entries; at most 64 are taken"):
        opened(path)
    raw = path.read_bytes()
    at = raw.rindex(b"PK\x05\x06")
    path.write_bytes(raw[: at + 8] + struct.pack("<HH", 2, 2) + raw[at + 12 :])
    with pytest.raises(Refused, match="directory has"):
        opened(path, Limits(directory_bytes=1000))


def test_a_64_bit_directory_is_refused(tmp_path):
    path = zipped(tmp_path / "s.zip", {"A.tsv": b"1"})
    raw = path.read_bytes()
    at = raw.rindex(b"PK\x05\x06")
    path.write_bytes(raw[:at] + b"PK\x06\x07" + bytes(16) + raw[at:])
    with pytest.raises(Refused, match="64-bit"):
        opened(path)


@pytest.mark.parametrize("content", [b"", b"PK", b"index\tprediction\n" * 50, b"PK\x05\x06" + bytes(10)])
def test_what_is_no_zip_is_refused(tmp_path, content):
    (tmp_path / "s.zip").write_bytes(content)
    with pytest.raises(Refused, match="zip"):
        opened(tmp_path / "s.zip")


def test_a_zip_that_is_not_there_or_too_big(tmp_path):
    with pytest.raises(Refused, match="No such file"):
        opened(tmp_path / "none.zip")
    with pytest.raises(Refused, match="more than 100"):
        opened(zipped(tmp_path / "s.zip", {"A.tsv": b"1"}), Limits(archive_bytes=100))


@given(st.data())
def test_no_damage_is_an_exception(tmp_path_factory, data):
    path = zipped(
        tmp_path_factory.mktemp("zips") / "s.zip", {"A.tsv": b"index\tprediction\n" * 9, "B.tsv": b"x\n"}
    )
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(raw[: data.draw(st.integers(0, len(raw)))] if data.draw(st.booleans()) else raw)
    said = Problems()
    with contextlib.suppress(Refused):
        archive = open_archive(path, EXPECTED, said)
        for name in archive.files:
            list(archive.lines(name, said))
        assert set(archive.files) <= set(EXPECTED)
        return
    assert said.count() > 0


def test_limits_end_the_reading_and_are_named(tmp_path):
    path = zipped(tmp_path / "s.zip", {"A.tsv": b"ab\n" * 100_000, "B.tsv": b"a" * 300_000})
    archive, problems = opened(path, Limits(file_bytes=310_000, total_bytes=320_000, line_bytes=100_000))
    assert sum(1 for _ in archive.lines("A.tsv", problems)) == 100_000
    assert list(archive.lines("B.tsv", problems)) == []
    assert "files together are longer than 320,000 bytes" in words_of(problems)[0]
    archive, problems = opened(path, Limits(line_bytes=100_000))
    assert list(archive.lines("B.tsv", problems)) == []
    assert words_of(problems)[0].startswith("B.tsv, line 1: the line is longer than 100,000 bytes")
    assert "300,000 bytes, more than 1,000" in words_of(opened(path, Limits(file_bytes=1000))[1])[0]


def lying(path: Path, size: int) -> Path:
    """The zip, whose headers now say that the file unpacks to so many bytes."""
    raw = bytearray(path.read_bytes())
    for signature, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = raw.index(signature) + place
        raw[at : at + 4] = struct.pack("<L", size)
    path.write_bytes(raw)
    return path


def test_a_size_that_is_a_lie_is_damage(tmp_path):
    path = lying(zipped(tmp_path / "s.zip", {"A.tsv": b"0\t1\n" * 50_000}), 40)
    archive, problems = opened(path)
    assert sum(1 for _ in archive.lines("A.tsv", problems)) <= 10
    assert "damaged" in words_of(problems)[0]


# Two gigabytes of one byte, as a zip of two megabytes; reading it must take neither the memory nor the time.
BOMB = """
import re, sys, time, zipfile
from pathlib import Path
from ensue.benchmarks.nlu.submissions.archive import open_archive
from ensue.benchmarks.grading.problems import Problems

def peak():
    # Not ru_maxrss, which begins with that of the process that started this one.
    return int(re.search("VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text()).group(1))

before, started = peak(), time.process_time()
problems = Problems()
archive = open_archive(Path(sys.argv[1]), ("CoLA.tsv",), problems)
lines = sum(1 for name in archive.files for _ in archive.lines(name, problems))
print(lines, *problems.listed(), sep="\\n")
grown = peak() - before
assert grown < 40_000, f"{grown} kB"
assert time.process_time() - started < 20
"""


def survived(path: Path) -> list[str]:
    done = subprocess.run([sys.executable, "-c", BOMB, str(path)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_two_gigabytes_of_zeros_are_refused_unread(zeros):
    assert zeros.stat().st_size < 20 << 20
    lines, problem = survived(zeros)
    assert lines == "0"
    assert problem == "CoLA.tsv: the file has 2,146,435,072 bytes, more than 67,108,864; it was not read."


def test_two_gigabytes_of_zeros_that_claim_to_be_few(zeros, tmp_path):
    path = tmp_path / "lie.zip"
    path.write_bytes(zeros.read_bytes())
    lines, problem = survived(lying(path, 60 << 20))
    assert lines == "0"
    assert problem.startswith("CoLA.tsv, line 1: the line is longer than 1,048,576 bytes")
