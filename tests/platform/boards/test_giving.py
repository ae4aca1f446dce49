"""What an organiser uploads is laid out as a folder, or refused whole with one sentence; nothing is left behind."""

from __future__ import annotations

import io
import stat
import zipfile
from pathlib import Path

import pytest

from ensue.errors import EnsueError
from ensue.platform import uploads
from ensue.platform.boards.labels import take_definition
from ensue.platform.refusals import Invalid
from ensue.platform.service import Platform, Settings, opened
from ensue.platform.uploads import GivenFile, laid_out, unpack


@pytest.fixture
def platform(tmp_path: Path) -> Platform:
    with opened(Settings(home=tmp_path / "home")) as found:
        yield found


def zipped(*entries: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return buffer.getvalue()


def given(content: bytes, name: str = "labels.zip") -> GivenFile:
    return GivenFile(name, io.BytesIO(content))


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


PLAIN = {"test/fate.tsv": b"id\tlabel\n", "board.toml": b"name = 'x'\n"}


@pytest.mark.parametrize("top", ["", "harbour/"])
def test_a_zip_and_a_folder_are_the_same_folder(platform: Platform, top: str) -> None:
    entries = [(f"{top}{name}", content) for name, content in PLAIN.items()]
    stray = [(f"{top}.git/config", b"x"), ("__MACOSX/._x", b"x"), (f"{top}test/.DS_Store", b"x")]
    with laid_out(platform, given(zipped(*entries, (f"{top}empty/", b""), *stray)), ()) as folder:
        assert files_of(folder) == PLAIN
    with laid_out(platform, None, [given(content, name) for name, content in entries]) as folder:
        assert files_of(folder) == PLAIN
        assert take_definition(folder) == "name = 'x'\n"
        assert take_definition(folder) is None
        assert list(files_of(folder)) == ["test/fate.tsv"]
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list(platform.home.work.iterdir()) == []


def link() -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo("link")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    return entry


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([("../out", b"")], "leads out of the zip"),
        ([("/etc/passwd", b"")], "absolute path"),
        ([(link(), b"/etc/passwd")], "a link"),
        ([("a\\b", b"")], "name that is not taken"),
        ([("a\nb", b"")], "name that is not taken"),
        ([("a", b""), ("a/b", b"")], "as a file and as a folder"),
        ([("x" * 300, b"")], "name that is not taken"),
        ([("/".join("x" * 30), b"")], "name that is not taken"),
    ],
)
def test_a_zip_with_a_bad_entry_is_refused_whole(
    platform: Platform, entries: list[tuple[str, bytes]], words: str
) -> None:
    before = set(platform.home.path.parent.rglob("*"))
    with (
        pytest.raises(Invalid, match=words),
        laid_out(platform, given(zipped(("good", b"1"), *entries)), ()),
    ):
        raise AssertionError
    assert set(platform.home.path.parent.rglob("*")) == before


@pytest.mark.parametrize("name", ["../out", "top/../../out", "/etc/passwd", "a\\b", "a//b", "."])
def test_a_folder_with_a_bad_name_is_refused(platform: Platform, name: str) -> None:
    with (
        pytest.raises(Invalid, match="name that is not taken"),
        laid_out(platform, None, [given(b"", name), given(b"", "top/good")]),
    ):
        raise AssertionError


def test_what_is_no_zip_or_no_upload_is_refused(platform: Platform) -> None:
    for wrong, words in (
        (b"hello", "not a zip file"),
        (b"", "the file is empty"),
        (zipped(("a", b"1"))[:-30], "zip"),
    ):
        with pytest.raises(EnsueError, match=words), laid_out(platform, given(wrong), ()):
            raise AssertionError
    with pytest.raises(Invalid, match="Choose a zip or a folder"), laid_out(platform, None, ()):
        raise AssertionError
    both = given(zipped(("a", b"1")))
    with pytest.raises(Invalid, match="Choose one"), laid_out(platform, both, [given(b"", "a")]):
        raise AssertionError


def test_what_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "_MOST_UNPACKED", 5_000_000)
    (tmp_path / "bomb.zip").write_bytes(zipped(*((f"{n}", b"0" * 2_000_000) for n in range(4))))
    (tmp_path / "to").mkdir()
    with pytest.raises(Invalid, match="unpacks to more than"):
        unpack(str(tmp_path / "bomb.zip"), str(tmp_path / "to"))


def test_a_refusal_names_the_upload_and_not_a_path_of_the_server(platform: Platform) -> None:
    with (
        pytest.raises(Invalid, match=r"^The upload has no labels\.$"),
        laid_out(platform, None, [given(b"", "a")]) as folder,
    ):
        raise EnsueError(f"{folder} has no labels.")
    with (
        pytest.raises(Invalid, match="not text in UTF-8"),
        laid_out(platform, None, [given(b"\xff", "board.toml")]) as folder,
    ):
        take_definition(folder)
