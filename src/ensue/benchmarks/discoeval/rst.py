"""RST's nodes from the published pickles, which are loaded without ever running code, and to and from JSON."""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ensue.atomic import write_atomic
from ensue.errors import EnsueError, os_errors

# The splits by the names their files bear.
SPLIT_NAMES = {"train": "TRAIN", "dev": "DEV", "test": "TEST"}
# JSON is preferred: it needs no trust at all.
_ENDINGS = (".jsonl", ".json", ".pkl")


class RstNode(NamedTuple):
    """An inner node of a discourse tree: its relation with nuclearity, and the units of its two subtrees."""

    label: str
    left: tuple[str, ...]
    right: tuple[str, ...]


def find(folder: Path, name: str) -> Path | None:
    """Return the file of a split, such as RST_TRAIN.jsonl, or the pickle where there is no JSON."""
    paths = (folder / f"RST_{name}{ending}" for ending in _ENDINGS)
    return next((path for path in paths if path.is_file()), None)


def read_nodes(path: Path) -> tuple[bytes, list[RstNode]]:
    """Return the bytes of a file and the nodes in them; anything that is not a node is named by its place."""
    with os_errors(path):
        raw = path.read_bytes()
    parse = {".jsonl": _json_lines, ".json": _json, ".pkl": _pickled}[path.suffix]
    nodes = [_node(value, f"{path}, {place}") for place, value in parse(path, raw)]
    if not nodes:
        raise EnsueError(f"{path} is empty.")
    return raw, nodes


def convert_rst(folder: str | Path, output: str | Path) -> list[Path]:
    """Write the pickles of a folder as JSON lines (label, left, right) into another, and return the files."""
    folder, output = Path(folder), Path(output)
    pickles = [folder / f"RST_{name}.pkl" for name in SPLIT_NAMES.values()]
    absent = [path.name for path in pickles if not path.is_file()]
    if absent:
        raise EnsueError(f"{folder} has no {', '.join(absent)}.")
    written = []
    for path in pickles:
        nodes = read_nodes(path)[1]
        target = output / f"{path.stem}.jsonl"
        write_atomic(
            target,
            (json.dumps(node._asdict(), ensure_ascii=False) + "\n" for node in nodes),
            make_folder=True,
        )
        written.append(target)
    return written


class _PlainUnpickler(pickle.Unpickler):
    """Makes lists, tuples, dictionaries, strings and numbers, and refuses whatever names a class or function."""

    def find_class(self, module: str, name: str) -> Any:
        raise _Refused(f"{module}.{name}")

    def persistent_load(self, pid: Any) -> Any:
        raise _Refused("an object kept elsewhere")


class _Refused(Exception):
    pass


def _pickled(path: Path, raw: bytes) -> Iterator[tuple[str, Any]]:
    try:
        # The encoding is that of strings in pickles made by Python 2.
        value = _PlainUnpickler(io.BytesIO(raw), encoding="utf-8").load()
    except _Refused as refused:
        raise EnsueError(
            f"{path} holds more than lists and strings ({refused}), so it was not loaded: a pickle may run any code."
        ) from None
    # Bytes that are no pickle can fail in any of a dozen ways.
    except Exception as error:
        raise EnsueError(f"{path} is not a readable pickle: {error}.") from None
    yield from _numbered(path, value)


def _json(path: Path, raw: bytes) -> Iterator[tuple[str, Any]]:
    try:
        value = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise EnsueError(f"{path} is not readable JSON: {error}.") from None
    yield from _numbered(path, value)


def _numbered(path: Path, value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, list):
        raise EnsueError(f"{path} holds no list of nodes.")
    for number, one in enumerate(value, start=1):
        yield f"node {number}", one


def _json_lines(path: Path, raw: bytes) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(raw.splitlines(), start=1):
        try:
            yield f"line {number}", json.loads(line.decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise EnsueError(f"{path}, line {number}: not readable JSON ({error}).") from None


def _node(value: Any, place: str) -> RstNode:
    """Read a node from (label, left, right) or an object of these names."""
    if isinstance(value, dict) and set(value) == {"label", "left", "right"}:
        value = (value["label"], value["left"], value["right"])
    if not isinstance(value, list | tuple) or len(value) != 3:
        raise EnsueError(f"{place}: a node is a label, a left and a right list of units.")
    label, *sides = value
    if not isinstance(label, str) or not label.strip():
        raise EnsueError(f"{place}: the label is not a relation such as NS-Elaboration.")
    left, right = (_units(side, name, place) for side, name in zip(sides, ("left", "right"), strict=True))
    return RstNode(label.strip(), left, right)


def _units(side: Any, name: str, place: str) -> tuple[str, ...]:
    if not isinstance(side, list | tuple) or not side:
        raise EnsueError(f"{place}: the {name} side is not a list of units.")
    if not all(isinstance(unit, str) for unit in side):
        raise EnsueError(f"{place}: a unit of the {name} side is not text.")
    units = tuple(" ".join(unit.split()) for unit in side)
    if not all(units):
        raise EnsueError(f"{place}: a unit of the {name} side is empty.")
    return units
