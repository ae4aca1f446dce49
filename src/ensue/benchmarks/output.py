"""The folder of a build: written beside its place, and put there when it is complete."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ensue.errors import EnsueError, os_errors
from ensue.records import Records, plain
from ensue.version import __version__

BUILD = "build.json"
_FINISHED = "finished.jsonl"
_QUESTION = plain("question")


@dataclass(frozen=True)
class BuildReport:
    """What was built; all but the folder is what build.json says."""

    folder: Path
    settings: dict[str, Any]
    statistics: dict[str, Any]
    skipped: dict[str, int]
    notes: dict[str, int]
    fingerprint: dict[str, str]
    version: str = __version__

    def as_dict(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "folder"}


def check_output(output: Path, source: str, *, overwrite: bool) -> None:
    """Refuse a place where something would be lost, or where the next build would read this one."""
    if Path(source).expanduser().resolve() in (output.resolve(), *output.resolve().parents):
        raise EnsueError(f"{output} lies in the source {source}; choose another --output.")
    if output.exists() and not output.is_dir():
        raise EnsueError(f"{output} is a file, not a folder; choose another --output.")
    if not output.is_dir() or not any(output.iterdir()):
        return
    if not (output / BUILD).is_file():
        raise EnsueError(f"{output} is not empty and holds no build; choose another --output.")
    if not overwrite:
        raise EnsueError(f"{output} holds a build already; add --overwrite, or choose another --output.")


@contextmanager
def new_build(output: Path) -> Iterator[Path]:
    """Open a folder to write into, which becomes `output` at the end of the block, or vanishes by an exception."""
    made = [parent for parent in output.parents if not parent.exists()]
    part: Path | None = None
    try:
        with os_errors(output, "written"):
            output.parent.mkdir(parents=True, exist_ok=True)
            part = Path(tempfile.mkdtemp(prefix=f".{output.name}.", dir=output.parent))
            part.chmod(0o755)
            yield part
            _put(part, output)
    except BaseException:
        if part is not None:
            shutil.rmtree(part, ignore_errors=True)
        for folder in made:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


@contextmanager
def build_in_shards(
    output: Path, asked: Mapping[str, Any], *, resume: bool
) -> Iterator[tuple[Path, Records]]:
    """Open a folder to write shards into, and the records of what is finished; it becomes `output` at the end.

    What an exception or a kill leaves is continued where `resume` says so. The records hold the question, so that
    another build does not.
    """
    part = output.parent / f".{output.name}.part"
    if part.exists() and not resume:
        raise EnsueError(
            f"{part} holds an unfinished build; add --resume to go on with it, or delete it to begin anew."
        )
    with os_errors(output, "written"):
        part.mkdir(parents=True, exist_ok=True)
    question = json.loads(json.dumps(dict(asked) | {"version": __version__}))
    with Records(part / _FINISHED) as records:
        known = records.get(_QUESTION, "asked")
        if known is None:
            records.add(_QUESTION, [("asked", question)])
        elif known != question:
            odd = next(key for key in (*known, *question) if known.get(key) != question.get(key))
            raise EnsueError(
                f"{part} is a build of another question ({odd} was {known.get(odd)!r}, not {question.get(odd)!r}); "
                f"give what was given then, or delete it to begin anew."
            )
        yield part, records
    (part / _FINISHED).unlink()
    _put(part, output)


def _put(part: Path, output: Path) -> None:
    if not output.exists() or not any(output.iterdir()):
        part.replace(output)
        return
    before = _files_of(output)
    # What says that the folder holds a build goes first and comes last.
    for name in (BUILD, *before):
        (output / name).unlink(missing_ok=True)
    for path in sorted(part.iterdir(), key=lambda path: path.name == BUILD):
        path.replace(output / path.name)
    part.rmdir()


def _files_of(output: Path) -> list[str]:
    """Return the files of the build a folder holds, by its own account; names with a path in them are not ours."""
    try:
        names = json.loads((output / BUILD).read_text("utf-8"))["fingerprint"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [str(name) for name in names if Path(str(name)).name == str(name)]


def write_build(folder: Path, content: Mapping[str, Any]) -> None:
    """Write the file that says what was built and how."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / BUILD).write_bytes(text.encode("utf-8", "backslashreplace") + b"\n")
