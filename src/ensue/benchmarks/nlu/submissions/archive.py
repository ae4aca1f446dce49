"""A submission's zip, read from a stranger: nothing it says of itself is believed, and memory stays bounded.

Every name is checked before anything is unpacked; nothing is ever written to disk. A file's lines are streamed and
cut off at hard limits, whatever sizes the zip's directory gives.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path

from ensue.benchmarks.grading.problems import Limits, LineCutter, Problems
from ensue.benchmarks.grading.zips import (
    check_overlaps,
    entry_fault,
    is_stray,
    open_zip,
    path_fault,
    printable,
    top_folder,
)


class Archive:
    """An open zip of which only the files with an expected name are ever unpacked."""

    def __init__(self, zipped: zipfile.ZipFile, files: dict[str, zipfile.ZipInfo], limits: Limits) -> None:
        self._zipped, self.files, self._cutter = zipped, files, LineCutter(limits)

    @property
    def names(self) -> list[str]:
        """What the zip calls its entries, those that are not read among them."""
        entries = self._zipped.infolist()
        top = top_folder(entries)
        return [entry.orig_filename.removeprefix(top) for entry in entries]

    def lines(self, name: str, problems: Problems) -> Iterator[tuple[int, bytes]]:
        """Return the lines of a file with their numbers, up to the first that cannot be had."""
        try:
            with self._zipped.open(self.files[name]) as file:
                yield from self._cutter.lines(name, file, problems)
        # NotImplementedError, of a method the library does not know, is a RuntimeError.
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError) as error:
            problems.add(name, 0, f"the zip is damaged here ({error}).")

    def close(self) -> None:
        self._zipped.close()


def open_archive(
    path: Path, expected: Collection[str], problems: Problems, limits: Limits | None = None
) -> Archive:
    """Return the zip with its expected files; what is wrong with its entries is noted, and those are not read.

    The files may all lie in one folder, as in a zip made of that folder; what a file manager adds is passed over.
    A file that is no zip at all, or one with so many entries that its directory is not read, is refused here.
    """
    limits = limits or Limits()
    zipped = open_zip(path, problems, limits)
    entries = zipped.infolist()
    check_overlaps(entries, problems)
    top = top_folder(entries)
    files: dict[str, zipfile.ZipInfo] = {}
    for entry in entries:
        name = entry.orig_filename.removeprefix(top)
        fault = path_fault(entry)
        if fault is None:
            if is_stray(entry.orig_filename) or not name:
                continue
            fault = _file_fault(entry, name, expected, limits)
        if fault is None and name in files:
            fault = "the zip has this file twice."
        if fault:
            problems.add(printable(entry.orig_filename), 0, fault)
        else:
            files[name] = entry
    return Archive(zipped, files, limits)


def _file_fault(entry: zipfile.ZipInfo, name: str, expected: Collection[str], limits: Limits) -> str | None:
    """Return why a file is not read, by what the directory says of it; `name` is without a folder that holds all."""
    if "/" in name or "\\" in name:
        return "in a folder; put the files themselves at the top of the zip."
    if name not in expected or entry.orig_filename != entry.filename:
        return f"not a file of this submission; there is {', '.join(expected)}."
    return entry_fault(entry, limits)
