"""A stranger's zip: what is wrong with it is found before anything of it is unpacked.

Nothing that a zip says of itself is believed where it matters: its directory is measured before it is read, names may
not lead elsewhere, and two files may not lie in the same bytes.
"""

from __future__ import annotations

import stat
import struct
import zipfile
from pathlib import Path
from typing import IO

from ensue.benchmarks.grading.problems import Limits, Problems, Refused

_END = b"PK\x05\x06"
_END_SIZE = 22
_LONGEST_COMMENT = 0xFFFF
_LOCATOR_64 = b"PK\x06\x07"
_LOCATOR_SIZE = 20
_ENCRYPTED = 0x1 | 0x40
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# What a local header takes before its name; the data begin behind name and extra field.
_LOCAL_SIZE = 30
# What file managers put into a zip unasked. It is never unpacked, and passed over in silence.
_STRAY_FOLDER, _STRAY_BEGINNING = "__MACOSX", "._"
_STRAY_FILES = (".DS_Store", "Thumbs.db", "desktop.ini")


def open_zip(path: Path, problems: Problems, limits: Limits) -> zipfile.ZipFile:
    """Open a zip; refuse what is none, and one with so many entries that its directory is not read."""
    try:
        with path.open("rb") as file:
            fault = _fault(file, limits)
        zipped = None if fault else zipfile.ZipFile(path)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error) as error:
        zipped, fault = None, f"not a zip file that can be read ({error})."
    except OSError as error:
        zipped, fault = None, f"the file cannot be read: {error.strerror or error}."
    if zipped is None:
        problems.add("", 0, str(fault))
        raise Refused(path, problems)
    return zipped


def is_stray(name: str) -> bool:
    """Return whether an entry is a file manager's own."""
    first, last = name.partition("/")[0], name.rpartition("/")[2]
    return first == _STRAY_FOLDER or last in _STRAY_FILES or last.startswith(_STRAY_BEGINNING)


def top_folder(entries: list[zipfile.ZipInfo]) -> str:
    """Return the one folder that all files lie in, with its slash; empty where some lie elsewhere."""
    names = [entry.orig_filename for entry in entries if not is_stray(entry.orig_filename)]
    tops = {name.partition("/")[:2] for name in names}
    return "".join(tops.pop()) if len(tops) == 1 and all("/" in name for name in names) else ""


def path_fault(entry: zipfile.ZipInfo) -> str | None:
    """Return why an entry is refused whatever it holds: a name that leads elsewhere, or a link."""
    # The name as it stands in the zip: the library cuts it at a NUL and turns separators round.
    name = entry.orig_filename
    if name.startswith(("/", "\\")) or name[1:2] == ":":
        return "an absolute path; put the files themselves at the top of the zip."
    if ".." in name.replace("\\", "/").split("/"):
        return "a path that leads out of the zip; put the files themselves at its top."
    return "a link, not a file." if stat.S_ISLNK(entry.external_attr >> 16) else None


def entry_fault(entry: zipfile.ZipInfo, limits: Limits) -> str | None:
    """Return why a file is not unpacked, by what the directory says of it."""
    if entry.flag_bits & _ENCRYPTED:
        return "encrypted; make the zip without a password."
    if entry.compress_type not in _METHODS:
        return f"packed by method {entry.compress_type}; use deflate, which every zip tool does by default."
    if entry.file_size > limits.file_bytes:
        return f"the file has {entry.file_size:,} bytes, more than {limits.file_bytes:,}; it was not read."
    return None


def check_overlaps(entries: list[zipfile.ZipInfo], problems: Problems) -> None:
    """Two entries in the same bytes are how a small zip unpacks to a huge one without any nesting."""
    end = 0
    for entry in sorted(entries, key=lambda entry: entry.header_offset):
        if entry.header_offset < end:
            problems.add(
                printable(entry.orig_filename), 0, "lies in the same bytes of the zip as another file."
            )
        end = max(end, entry.header_offset + _LOCAL_SIZE + len(entry.orig_filename) + entry.compress_size)


def printable(name: str) -> str:
    shown = name.encode("unicode_escape").decode() if not name.isprintable() else name
    return shown if len(shown) <= 80 else f"{shown[:79]}…"


def _fault(file: IO[bytes], limits: Limits) -> str | None:
    """Return why the zip's directory is not even read: that alone may be made to fill the memory."""
    size = file.seek(0, 2)
    if size > limits.archive_bytes:
        return f"the zip has {size:,} bytes, more than {limits.archive_bytes:,}."
    begin = max(0, size - _END_SIZE - _LONGEST_COMMENT)
    file.seek(begin)
    tail = file.read()
    # The same two places, in the same order, that the standard library looks at.
    at = len(tail) - _END_SIZE
    if at < 0 or tail[at : at + 4] != _END or tail[-2:] != b"\0\0":
        at = tail.rfind(_END)
    if at < 0 or len(tail) - at < _END_SIZE:
        return "not a zip file, or one that was cut off."
    entries, directory = struct.unpack("<HL", tail[at + 10 : at + 16])
    if tail[max(0, at - _LOCATOR_SIZE) :][:4] == _LOCATOR_64:
        return "the zip is of the 64-bit kind, which is needed for more than is taken here; make it again."
    if entries > limits.entries:
        return f"the zip has {entries:,} entries; at most {limits.entries:,} are taken."
    if directory > limits.directory_bytes:
        return f"the zip's directory has {directory:,} bytes; none needs that."
    return None
