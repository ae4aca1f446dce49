"""Projects made of what an organiser uploads: files, a folder or a zip, laid out as `--data` would name them.

Nothing of it is kept but the items, and of a refused upload nothing at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from ensue.benchmarks import settings as reading
from ensue.benchmarks.people.export import UPLOADED
from ensue.benchmarks.people.kind import Kind, kind, settings_of
from ensue.errors import EnsueError
from ensue.platform.annotation.projects import Project, Projects, Wanted
from ensue.platform.refusals import Invalid
from ensue.platform.service import Platform
from ensue.platform.uploads import GivenFile, laid_out, set_apart

_ZIP = ".zip"
_LONGEST_NAME = 100


@dataclass(frozen=True)
class Upload:
    """What was sent: the data, as files with slashes where a folder was chosen, and the files that settings name."""

    files: Sequence[GivenFile] = ()
    named: Mapping[str, GivenFile] = field(default_factory=dict)


def make(platform: Platform, wanted: Wanted, upload: Upload, *, by: str) -> tuple[Project, list[str]]:
    """Make a project of an upload; return it and what there is to say of its data."""
    try:
        found = kind(wanted.kind)
    except EnsueError as error:
        raise Invalid(str(error)) from None
    _check_files(found, wanted, upload)
    if not upload.files and not found.reads.bundled:
        raise Invalid(f"Choose the data. {found.reads.about}")
    with ExitStack() as stack:
        if upload.files:
            folder = stack.enter_context(laid_out(platform, *_divided(upload.files)))
            source = f"{_called(upload.files)}{UPLOADED}"
            wanted = replace(wanted, data=str(data_in(folder, found)), source=source)
        if upload.named:
            apart = stack.enter_context(set_apart(platform, upload.named))
            names = {key: path.name for key, path in apart.items()}
            files = {key: str(path) for key, path in apart.items()}
            wanted = replace(wanted, settings={**wanted.settings, **names}, files=files)
        return Projects(platform).create(wanted, by=by)


def data_in(folder: Path, found: Kind) -> Path:
    """Return what `--data` would name: the folder, or the one file in it where the kind reads files."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return files[0] if len(files) == 1 and not found.reads.folder else folder


def _check_files(found: Kind, wanted: Wanted, upload: Upload) -> None:
    """Refuse a path where a file is to be sent: none of the server's own is read for anybody."""
    naming = reading.files_among(settings_of(found))
    if said := sorted(naming & wanted.settings.keys()):
        raise Invalid(f"The setting {said[0]} is a file; send the file itself.")
    if strange := sorted(upload.named.keys() - naming):
        raise Invalid(f"The setting {strange[0]} of {found.name} is no file.")


def _divided(files: Sequence[GivenFile]) -> tuple[GivenFile | None, Sequence[GivenFile]]:
    """Return a zip, or else the files."""
    if len(files) == 1 and files[0].name.lower().endswith(_ZIP):
        return files[0], ()
    if any(one.name.lower().endswith(_ZIP) for one in files):
        raise Invalid("Choose one zip alone, or files that are none.")
    return None, files


def _called(files: Sequence[GivenFile]) -> str:
    """Return what an upload is called: its folder, its first file."""
    first = files[0].name
    return first.partition("/")[0][:_LONGEST_NAME] or "data"
