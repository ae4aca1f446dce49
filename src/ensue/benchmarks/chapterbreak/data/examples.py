"""ChapterBreak in its published format: files of splits, works and examples, found, read and written."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from ensue.errors import EnsueError
from ensue.jsonl import in_words
from ensue.lazy import from_extra
from ensue.shelf import Shelf
from ensue.text.io.rows import from_hub, path_of

Boundary = Literal["chapter", "cause", "dialogue"]
BOUNDARIES: tuple[Boundary, ...] = get_args(Boundary)

# The task as published has five negatives.
NEGATIVES = 5
_ENDINGS = (".json", ".json.gz")
# JSON files that lie beside the data: what our builder and the hub say about it.
_NO_DATA = frozenset({"build.json", "dataset_info.json", "dataset_infos.json"})
_CONTEXT_LENGTH = re.compile(r"[_-]?ctx[_-]?(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Example:
    """One suffix identification example; `id` is split/work/number within the work's list."""

    id: str
    split: str
    work: str
    boundary: Boundary
    context: str
    gold: str
    negatives: tuple[str, ...]


@dataclass(frozen=True)
class Examples:
    """All examples of a source, a digest of what was read, and what was left out by reason. Many lie on disk."""

    items: Sequence[Example]
    source: str
    fingerprint: str
    skipped: dict[str, int]
    notes: dict[str, int] = field(default_factory=dict)


def example_id(boundary: Boundary, split: str, work: str, number: int) -> str:
    """Return the id of the example with this number (from 0) in its work's list; chapter breaks have no prefix.

    >>> example_id("chapter", "pg19", "1023", 0), example_id("cause", "pg19", "1023", 4)
    ('pg19/1023/0', 'cause:pg19/1023/4')
    """
    return f"{'' if boundary == 'chapter' else boundary + ':'}{split}/{work}/{number}"


def read_examples(source: str, *, split: str | None = None, limit: int | None = None) -> Examples:
    """Read the examples of a source, or those of one split; with `limit` the first so many per split and boundary.

    A source is a file (.json or .json.gz), a folder of them, or, where no such path exists, a hub data set. What
    a file's name says decides the boundary: cause, dialogue, or else chapter.
    """
    if limit is not None and limit < 1:
        raise EnsueError(f"The limit of examples is {limit}, but must be at least 1.")
    files, left_out = _find_files(source)
    reading = _Reading(split, limit)
    for path in files:
        reading.read(path)
    if split is not None and split not in reading.splits:
        there = ", ".join(reading.splits) or "none"
        raise EnsueError(f"{source} has no split {split!r}; it has {there}.")
    if not reading.items:
        why = "; ".join(f"{reason}: {count}" for reason, count in reading.skipped.items())
        raise EnsueError(f"{source} has no example that can be used{f' ({why})' if why else ''}.")
    notes = Counter({"files of shorter contexts not read": left_out}) + reading.notes
    return Examples(reading.items, source, fingerprint(reading.items), dict(reading.skipped), dict(notes))


def fingerprint(examples: Iterable[Example]) -> str:
    """Return a digest of the examples: their ids and all their texts."""
    digest = hashlib.sha256()
    for example in examples:
        row = [example.id, example.context, example.gold, example.negatives]
        digest.update(json.dumps(row).encode() + b"\n")
    return digest.hexdigest()


def boundary_of(path: Path) -> Boundary:
    """Return the kind of boundary a file's name states.

    >>> boundary_of(Path("chapterbreak_ctx_512.json")), boundary_of(Path("cause/dialog_ctx_512.json"))
    ('chapter', 'dialogue')
    """
    stem = path.name.lower()
    return "cause" if "cause" in stem else "dialogue" if "dialog" in stem else "chapter"


class _Reading:
    """What was found so far, file by file."""

    def __init__(self, split: str | None, limit: int | None) -> None:
        self.wanted = split
        self.limit = limit
        self.items: Shelf[Example] = Shelf()
        self.splits: dict[str, None] = {}
        self.skipped: Counter[str] = Counter()
        self.notes: Counter[str] = Counter()
        self._places: dict[str, Path] = {}
        self._taken: Counter[tuple[str, Boundary]] = Counter()

    def read(self, path: Path) -> None:
        boundary = boundary_of(path)
        data = _read_json(path)
        if not isinstance(data, dict):
            raise EnsueError(f"{path} is not ChapterBreak data: its top level must be an object of splits.")
        if not any(data.values()):
            raise EnsueError(f"{path} has no example.")
        for split, works in data.items():
            self.splits.setdefault(split)
            if self.wanted is None or split == self.wanted:
                self._read_split(path, boundary, split, works)

    def _read_split(self, path: Path, boundary: Boundary, split: str, works: object) -> None:
        for work, number, row in _rows(path, split, works):
            if self.limit is not None and self._taken[split, boundary] >= self.limit:
                return
            place = f"{path}, split {split!r}, work {work!r}, number {number}"
            context, gold, negatives = _fields(row, place)
            if reason := _unusable(context, gold, negatives):
                self.skipped[reason] += 1
                continue
            example = Example(
                example_id(boundary, split, work, number), split, work, boundary, context, gold, negatives
            )
            if example.id in self._places:
                other = self._places[example.id]
                raise EnsueError(
                    f"{path} has the example {example.id}, which {other} has already; name one of the files."
                )
            self._places[example.id] = path
            self._taken[split, boundary] += 1
            self.items.append(example)
            if len(negatives) < NEGATIVES:
                self.notes["examples with fewer than five negatives"] += 1


def _rows(path: Path, split: str, works: object) -> Iterator[tuple[str, int, object]]:
    if not isinstance(works, dict):
        raise EnsueError(
            f"{path}, split {split!r} is not ChapterBreak data: it must be an object that maps works to lists "
            f"of examples."
        )
    for work, rows in works.items():
        if not isinstance(rows, list):
            raise EnsueError(f"{path}, split {split!r}, work {work!r} must be a list of examples.")
        for number, row in enumerate(rows):
            yield work, number, row


def _fields(row: object, place: str) -> tuple[str, str, tuple[str, ...]]:
    """Return the three fields of an example, or refuse the one that is wrong."""
    if not isinstance(row, dict):
        raise EnsueError(f"{place} must be an object with ctx, pos and negs.")
    for key in ("ctx", "pos", "negs"):
        if key not in row:
            raise EnsueError(f"{place} has no {key!r}; an example has ctx, pos and negs.")
    for key in ("ctx", "pos"):
        if not isinstance(row[key], str):
            raise EnsueError(f"{place} has {in_words(row[key])} as {key!r}, where a string is expected.")
    negatives = row["negs"]
    if not isinstance(negatives, list) or not all(isinstance(text, str) for text in negatives):
        raise EnsueError(f"{place} must have a list of strings as 'negs'.")
    return row["ctx"], row["pos"], tuple(negatives)


def _unusable(context: str, gold: str, negatives: tuple[str, ...]) -> str | None:
    """Say why an example that is well formed cannot be scored."""
    sound = {
        "with an empty context": context.strip(),
        "with an empty gold suffix": gold.strip(),
        "without negatives": negatives,
        "with an empty negative": all(text.strip() for text in negatives),
    }
    return next((f"examples {fault}" for fault, right in sound.items() if not right), None)


def _find_files(source: str) -> tuple[list[Path], int]:
    """Find the data files of a source, and how many were left out: those of shorter contexts of the same examples."""
    path = path_of(source, "ChapterBreak data is")
    if path is None:
        path = _from_hub(source)
    if path.is_dir():
        return _longest(_in_folder(path))
    if not path.name.lower().endswith(_ENDINGS):
        raise EnsueError(
            f"{source} is not ChapterBreak data: give a .json or .json.gz file, or a folder of them."
        )
    return [path], 0


def _in_folder(folder: Path) -> list[Path]:
    """Find the data files that lie in a folder or, where there are none, below it."""
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
    """Choose the file of the longest contexts: the same examples are released once per context length."""
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
    what = f"{name} does not exist here; reading it as a hub data set"
    snapshot_download = from_extra("huggingface_hub:snapshot_download", what, "huggingface_hub", "hub")
    names = [f"*{ending}" for ending in _ENDINGS]
    return Path(from_hub(name, lambda: snapshot_download(name, repo_type="dataset", allow_patterns=names)))


def _read_json(path: Path) -> Any:
    """Read the JSON of a file; refuse a key that comes twice in an object, since the first would be lost silently."""
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
        return json.loads(content.decode("utf-8-sig"), object_pairs_hook=partial(_once, path))
    except UnicodeDecodeError as error:
        raise EnsueError(f"{path} is not UTF-8 (byte {error.start:,}).") from error
    except (ValueError, RecursionError) as error:
        raise EnsueError(f"{path} is not JSON: {error}.") from error


def _once(path: Path, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        key = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise EnsueError(f"{path} has the key {key!r} twice in one object.")
    return found


class DataWriter:
    """A data file of one split in the folder of a build; works are added one at a time, the first makes the file."""

    def __init__(self, path: Path, split: str) -> None:
        self.path, self.split = path, split
        self.works = 0
        self._digest = hashlib.sha256()

    def add(self, work: str, examples: Sequence[Example]) -> None:
        """Write all examples of one work."""
        rows = [{"ctx": e.context, "pos": e.gold, "negs": list(e.negatives)} for e in examples]
        self._append("," if self.works else f"{{\n{_json(self.split)}: {{")
        self._append(f"\n{_json(work)}: {_json(rows)}")
        self.works += 1

    def finish(self) -> str:
        """End the file and return its digest."""
        self._append("}\n}\n")
        return self._digest.hexdigest()

    def _append(self, text: str) -> None:
        # Half of a surrogate pair has no UTF-8; written as its escape it is what JSON calls it anyway.
        content = text.encode("utf-8", "backslashreplace")
        self._digest.update(content)
        with self.path.open("ab") as file:
            file.write(content)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
