"""What an organiser uploads, laid out as a folder: a zip, unpacked by a process of its own, or files and folders."""

from __future__ import annotations

import re
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple

from ensue.errors import EnsueError
from ensue.platform.boards.handed import Problems, receive
from ensue.platform.database.schema import new_id
from ensue.platform.limits import Limits
from ensue.platform.refusals import Invalid, Refusal
from ensue.platform.service import Platform

# The most files of a folder that a browser sends one by one (and that a form of ours takes); a zip may have more.
MOST_FILES = 1000
UNPACKING = Limits(seconds=120, megabytes=600)
_MOST_UNPACKED, _MOST_OF_ONE, _MOST_ENTRIES = 1 << 30, 400 << 20, 20_000
_PIECE = 1 << 20
_CALLED, _UNNAMED = "The upload", "upload"
_NAMED = 5


class GivenFile(NamedTuple):
    """A file as a browser sends it; in a folder its name has slashes."""

    name: str
    file: BinaryIO


@contextmanager
def laid_out(
    platform: Platform,
    zipped: GivenFile | None,
    files: Sequence[GivenFile],
) -> Iterator[Path]:
    """Give a folder that holds what was uploaded; it is removed at the end of the block.

    One folder that everything lies in is that folder, by its name; otherwise it has the zip's. Refusals in the block
    that name the folder, which only the server knows, name the upload instead.
    """
    if (zipped is None) == (not files):
        raise Invalid("Choose a zip or a folder with the labels." if zipped is None else "Choose one upload.")
    work = platform.home.work_folder(f"given-{new_id()}")
    folder = work / (_stem(zipped.name) if zipped is not None else _UNNAMED)
    try:
        folder.mkdir(mode=0o700)
        if zipped is None:
            _lay_out(files, folder)
        else:
            handed = receive(zipped.file, work, zipped.name, platform.settings.largest_upload)
            _unpack_apart(platform, handed.path, folder)
        inside = list(folder.iterdir())
        if len(inside) == 1 and inside[0].is_dir():
            folder = inside[0]
            folder.chmod(0o700)
        yield folder
    except Problems as found:
        raise Invalid(f"The zip cannot be used: {found.problems[0]['problem']}") from None
    except EnsueError as error:
        if str(work) not in str(error):
            raise
        words = str(error).replace(f"{folder}/", "").replace(str(folder), _CALLED)
        raise Invalid(words.replace(f"{work}/", "")) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextmanager
def set_apart(platform: Platform, files: Mapping[str, GivenFile]) -> Iterator[dict[str, Path]]:
    """Give where single files lie, by what they are for; they are removed at the end of the block."""
    work = platform.home.work_folder(f"given-{new_id()}")
    try:
        found = {}
        for use, one in files.items():
            place = _place(one.name)
            if place is None or len(place.parts) > 1:
                raise Invalid(f"The file {one.name[:80]!r} has a name that is not taken; rename it.")
            with _opened(work, PurePosixPath(use) / place) as copy:
                shutil.copyfileobj(one.file, copy, _PIECE)
            found[use] = work / use / place
        yield found
    except EnsueError as error:
        if str(work) not in str(error):
            raise
        raise Invalid(re.sub(f"{re.escape(str(work))}/[^/]+/", "", str(error))) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _stem(name: str) -> str:
    """Return what the folder of a zip is called.

    >>> _stem("RTE.zip"), _stem("../x.zip"), _stem(".zip"), _stem("file.zip")
    ('RTE', 'upload', 'upload', 'upload')
    """
    stem = name.rpartition("/")[2].rpartition(".")[0]
    place = _place(stem)
    # `file` is what the zip itself is called meanwhile.
    return _UNNAMED if place is None or "/" in name or _is_hidden(place) or stem == "file" else stem


def _lay_out(files: Sequence[GivenFile], folder: Path) -> None:
    """Write files where their names say."""
    if len(files) > MOST_FILES:
        raise Invalid(
            f"The folder has {len(files):,} files; at most {MOST_FILES:,} are taken, and more as a zip."
        )
    for one in files:
        place = _place(one.name)
        if place is None:
            raise Invalid(f"The file {one.name[:80]!r} has a name that is not taken; rename it.")
        if not _is_hidden(place):
            with _opened(folder, place) as copy:
                shutil.copyfileobj(one.file, copy, _PIECE)


def _unpack_apart(platform: Platform, file: Path, folder: Path) -> None:
    arguments = {"file": str(file), "folder": str(folder)}
    outcome = platform.run_limited("ensue.platform.uploads:unpack", arguments, UNPACKING)
    if outcome.kind in {"refused", "memory", "time"}:
        raise Invalid(str(outcome.value))
    if outcome.kind != "done":
        raise Refusal(f"The zip cannot be unpacked ({outcome.value}).")


def unpack(file: str, folder: str) -> int:
    """Unpack a zip into an empty folder and return how many files it had; refuse it whole for one bad entry."""
    from ensue.benchmarks.grading.problems import Limits as ZipLimits
    from ensue.benchmarks.grading.problems import Problems, Refused
    from ensue.benchmarks.grading.zips import check_overlaps, entry_fault, open_zip, path_fault, printable

    problems = Problems()
    limits = ZipLimits(
        archive_bytes=_MOST_UNPACKED,
        directory_bytes=8 << 20,
        entries=_MOST_ENTRIES,
        file_bytes=_MOST_OF_ONE,
        total_bytes=_MOST_UNPACKED,
    )
    try:
        zipped = open_zip(Path(file), problems, limits)
    except Refused as refused:
        raise Invalid(_sentence(refused)) from None
    with zipped:
        entries = zipped.infolist()
        check_overlaps(entries, problems)
        found: dict[PurePosixPath, zipfile.ZipInfo] = {}
        for entry in entries:
            fault, name = path_fault(entry), entry.orig_filename
            if fault is None and (not name or name.endswith("/")):
                continue
            place = _place(name)
            if fault is None and (place is None or entry.orig_filename != entry.filename):
                fault = "a name that is not taken; rename it."
            fault = fault or entry_fault(entry, limits)
            if fault is None and place in found:
                fault = "the zip has this file twice."
            if fault is not None:
                problems.add(printable(entry.orig_filename), 0, fault)
            elif place is not None and not _is_hidden(place):
                found[place] = entry
        if problems.count():
            raise Invalid(_sentence(Refused(Path(file), problems)))
        _write(zipped, found, Path(folder))
    return len(found)


def _write(zipped: zipfile.ZipFile, found: dict[PurePosixPath, zipfile.ZipInfo], folder: Path) -> None:
    left = _MOST_UNPACKED
    for place, entry in found.items():
        try:
            with zipped.open(entry) as packed, _opened(folder, place) as copy:
                # What is unpacked is counted, whatever the zip says of itself.
                while piece := packed.read(_PIECE):
                    left -= len(piece)
                    if left < 0:
                        raise Invalid(f"The zip unpacks to more than {_MOST_UNPACKED >> 20:,} MB.")
                    copy.write(piece)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
            raise Invalid(f"The zip is damaged at {place} ({error}).") from None


def _opened(folder: Path, place: PurePosixPath) -> BinaryIO:
    path = folder / place
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path.open("xb")
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        raise Invalid(f"The upload has {place} as a file and as a folder, or twice.") from None


def _place(name: str) -> PurePosixPath | None:
    """Return where a file lies in the folder; None for a name that leads elsewhere or that no file should have.

    >>> str(_place("test/fate.tsv")), _place("../x"), _place("/x"), _place("a//b"), _place("a\\\\b"), _place("a\\x00")
    ('test/fate.tsv', None, None, None, None, None)
    """
    parts = name.split("/")
    odd = any(part in ("", ".", "..") or len(part.encode("utf-8", "replace")) > 200 for part in parts)
    return None if odd or "\\" in name or not name.isprintable() or len(parts) > 12 else PurePosixPath(name)


def _is_hidden(place: PurePosixPath) -> bool:
    return any(part.startswith(".") or part == "__MACOSX" for part in place.parts)


def _sentence(refused: Exception) -> str:
    problems = getattr(refused, "problems", [])
    told = " ".join(str(one) for one in problems[:_NAMED])
    more = f" And {len(problems) - _NAMED} more." if len(problems) > _NAMED else ""
    return f"The zip cannot be used: {told}{more}"
