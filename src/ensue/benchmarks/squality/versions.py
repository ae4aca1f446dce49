"""Which published version and split a folder holds, and the file that was asked for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from ensue.errors import EnsueError

SPLITS = ("train", "dev", "test")
# The version the paper's tables are of.
PAPER_VERSION = "v1"

_ALIASES = {"validation": "dev", "valid": "dev", "val": "dev"}
_VERSION = re.compile(r"v\d+([-.]\d+)*", re.IGNORECASE)
_FORMS = ("txt", "html")
_SUFFIX = ".jsonl"


class Version(NamedTuple):
    """A published version, the form of its documents where it is published in several, and its files by split."""

    name: str
    form: str
    files: dict[str, Path]

    @property
    def label(self) -> str:
        return f"{self.name}/{self.form}" if self.form else self.name


def find_file(data: Path, version: str | None = None, split: str = "test") -> tuple[Path, str]:
    """The file of a version and split in a folder, and the version's label; a file is taken as it is.

    Versions are named as their folders are, with or without the form of the documents: `v1`, `v1-3`, `v1-3/html`.
    Where none is asked for it is the paper's, or else the newest, as plain text where there is such.
    """
    if data.is_file():
        return data, version or _version_of(data)
    wanted = split_name(split)
    found = versions(data)
    if not found:
        raise EnsueError(f"{data} holds no SQuALITY: no folder such as v1 with {wanted}{_SUFFIX} in it.")
    chosen = _choose(found, version, data)
    if wanted not in chosen.files:
        there = ", ".join(chosen.files)
        raise EnsueError(f"{chosen.label} in {data} has no {wanted}{_SUFFIX}; it has {there}.")
    return chosen.files[wanted], chosen.label


def split_name(split: str) -> str:
    """The name a split's file has.

    >>> split_name("validation")
    'dev'
    """
    name = _ALIASES.get(split.lower(), split.lower())
    if name not in SPLITS:
        raise EnsueError(f"There is no split {split!r}; choose one of {', '.join(SPLITS)}.")
    return name


def versions(folder: Path) -> list[Version]:
    """The versions in a folder: the benchmark's own, its `data`, or that of one version; oldest first."""
    if not folder.is_dir():
        raise EnsueError(f"{folder} is not a folder; name SQuALITY's with --data.")
    home = folder.resolve()
    found = []
    for place in (folder, folder / "data"):
        if place.is_dir():
            inside = sorted(path for path in place.iterdir() if path.is_dir())
            found += [v for path in inside if _VERSION.fullmatch(path.name) for v in _forms(path, path.name)]
    if not found and _VERSION.fullmatch(home.name):
        found = _forms(folder, home.name)
    elif not found and home.name.lower() in _FORMS:
        found = _one(folder, _version_of(folder), home.name.lower())
    elif not found:
        found = _one(folder, _version_of(folder), "")
    return sorted(found, key=lambda version: (_numbers(version.name), version.form != _FORMS[0]))


def _forms(folder: Path, name: str) -> list[Version]:
    """A version's files, right in its folder or in one folder for each form."""
    own = _one(folder, name, "")
    return own + [version for form in _FORMS for version in _one(folder / form, name, form)]


def _one(folder: Path, name: str, form: str) -> list[Version]:
    files = {split: path for split in SPLITS if (path := folder / f"{split}{_SUFFIX}").is_file()}
    return [Version(_tidy(name), form, files)] if files else []


def _choose(found: list[Version], version: str | None, data: Path) -> Version:
    if version is None:
        paper = [one for one in found if one.name == PAPER_VERSION]
        newest = [one for one in found if one.name == found[-1].name]
        return (paper or newest)[0]
    name, _, form = version.partition("/")
    for one in found:
        if one.name == _tidy(name) and form.lower() in ("", one.form):
            return one
    listed = ", ".join(one.label for one in found)
    raise EnsueError(f"{data} has no version {version!r}; it has {listed}.")


def _tidy(name: str) -> str:
    """A version as its folder is named: `1.3` is `v1-3`."""
    lowered = name.lower().replace(".", "-")
    return f"v{lowered}" if lowered[:1].isdigit() else lowered


def _version_of(path: Path) -> str:
    """The version that the folders above a path say it is of; nothing where none does."""
    named = [part for part in path.resolve().parts if _VERSION.fullmatch(part)]
    return _tidy(named[-1]) if named else "unnamed"


def _numbers(name: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", name))
