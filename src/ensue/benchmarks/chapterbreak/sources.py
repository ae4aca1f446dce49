"""Where ChapterBreak data is kept: a file, a folder of files, or a data set on the hub."""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from pathlib import Path
from typing import Any

from ensue.errors import EnsueError
from ensue.text.io.rows import is_hub_name

HUB_NAME = "simsun131/chapterbreak"

_ENDINGS = (".json", ".json.gz")
# JSON files that lie beside the data: what our builder and the hub say about it.
_NO_DATA = frozenset({"build.json", "dataset_info.json", "dataset_infos.json"})
_CONTEXT_LENGTH = re.compile(r"[_-]?ctx[_-]?(\d+)", re.IGNORECASE)


def find_files(source: str) -> tuple[list[Path], int]:
    """The data files of a source, and how many were left out for holding shorter contexts of the same examples."""
    if not source:
        raise EnsueError("No ChapterBreak data is named: give a file, a folder or a hub data set.")
    path = Path(source).expanduser()
    if not os.path.exists(path):
        if is_hub_name(source):
            return _longest(_in_folder(_from_hub(source)))
        raise EnsueError(f"{source} does not exist.")
    if path.is_dir():
        return _longest(_in_folder(path))
    if not path.is_file():
        raise EnsueError(f"{source} is neither a file nor a folder.")
    if not path.name.lower().endswith(_ENDINGS):
        raise EnsueError(
            f"{source} is no ChapterBreak data: give a .json or .json.gz file, or a folder of them."
        )
    return [path], 0


def _in_folder(folder: Path) -> list[Path]:
    """The data files that lie in a folder or, where there are none, below it."""
    for pattern in ("*", "**/*"):
        found = sorted(
            path
            for path in folder.glob(pattern)
            if path.name.lower().endswith(_ENDINGS) and path.name not in _NO_DATA and path.is_file()
        )
        if found:
            return found
    raise EnsueError(f"{folder} holds no ChapterBreak data: there is no .json or .json.gz file in it.")


def _longest(files: list[Path]) -> tuple[list[Path], int]:
    """The same examples are released once per context length: of those files, the one with the longest."""
    best: dict[str, tuple[int, Path]] = {}
    for path in files:
        match = _CONTEXT_LENGTH.search(path.name)
        key = str(path.with_name(_CONTEXT_LENGTH.sub("", path.name) if match else f"={path.name}"))
        length = int(match[1]) if match else 0
        if key not in best or length > best[key][0]:
            best[key] = length, path
    kept = sorted(path for _, path in best.values())
    return kept, len(files) - len(kept)


def _from_hub(name: str) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise EnsueError(
            f"{name} does not exist here; to read it as a hub data set, install `ensue[hub]`."
        ) from error
    try:
        return Path(snapshot_download(name, repo_type="dataset", allow_patterns=["*.json", "*.json.gz"]))
    except Exception as error:  # the library raises many unrelated types
        said = " ".join(str(error).split())[:300].rstrip(".")
        raise EnsueError(
            f"{name} does not exist here and could not be read from the hub ({type(error).__name__}: {said})."
        ) from error


def read_json(path: Path) -> Any:
    """The JSON of a file, which no key of an object may open twice: the first would be lost without a word."""
    try:
        content = path.read_bytes()
        if path.name.lower().endswith(".gz"):
            content = gzip.decompress(content)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise EnsueError(f"{path} cannot be unpacked: {error}.") from error
    except OSError as error:
        raise EnsueError(f"{path} cannot be read: {error.strerror}.") from error
    if not content.strip():
        raise EnsueError(f"{path} is empty.")
    try:
        return json.loads(content.decode("utf-8-sig"), object_pairs_hook=_once)
    except _Twice as twice:
        raise EnsueError(f"{path} has the key {twice.key!r} twice in one object.") from None
    except UnicodeDecodeError as error:
        raise EnsueError(f"{path} is not UTF-8 (byte {error.start:,}).") from error
    except (ValueError, RecursionError) as error:
        raise EnsueError(f"{path} is not JSON: {error}.") from error


class _Twice(Exception):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _Twice(next(key for key in keys if keys.count(key) > 1))
    return found
