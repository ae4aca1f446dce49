"""Vectors of sentences: each distinct one is encoded once per model, pooling and layers, and kept on disk."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.atomic import lock, write_json
from ensue.errors import EnsueError
from ensue.fetch.store import home as default_home
from ensue.jsonl import read_object
from ensue.models.protocols import Encoder, Placed
from ensue.progress import Progress, ignore

# Sentences given to the encoder at a time, which sorts them by length; what a killed run loses at most.
CHUNK = 4096
# A GPU is through with as many in a fraction of a second.
_LARGE_CHUNK = 65_536
_FORMAT = 2
_DIGEST_BYTES = 16
# A line of the index: a sentence's digest, and a checksum of it and of its vectors at every layer.
_LINE_BYTES = _DIGEST_BYTES + 4
# Rows that are read at once to be checked.
_CHECKED = 4096
_FLOAT = np.dtype("<f4")
_SHOWN = 60

Vectors = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]


@dataclass(eq=False)
class SentenceVectors:
    """Vectors of distinct sentences, memory-mapped.

    `layers` are those that are kept, counted from the embedding (0); None for the encoder's own output.
    """

    folder: Path
    width: int
    layers: tuple[int, ...] | None
    known: Mapping[bytes, int]
    count: int
    # Only the layer at work is mapped, so that a walk over all layers does not fill the memory.
    _open: tuple[int | None, Vectors] | None = None

    def __len__(self) -> int:
        return len(self.known)

    def rows(self, sentences: Sequence[str]) -> Rows:
        """Return the row number of each sentence."""
        found = np.empty(len(sentences), dtype=np.int64)
        for i, sentence in enumerate(sentences):
            row = self.known.get(_digest(sentence))
            if row is None:
                raise EnsueError(f"This sentence was never encoded: {_short(sentence)}.")
            found[i] = row
        return found

    def take(self, rows: Rows, layer: int | None = None) -> Vectors:
        """Return the vectors of the rows, `rows.shape + (width,)`; an only layer may be left out."""
        kept = self.layers or (None,)
        if layer is None and len(kept) == 1:
            layer = kept[0]
        if layer not in kept:
            there = ", ".join(map(str, self.layers)) if self.layers else "the encoder's own output"
            raise EnsueError(f"Layer {layer} was not kept, only {there}.")
        if rows.size == 0:
            return np.zeros((*rows.shape, self.width), dtype=np.float32)
        if self._open is None or self._open[0] != layer:
            shape = (self.count, self.width)
            self._open = (layer, np.memmap(self.folder / _file_of(layer), _FLOAT, "r", shape=shape))
        return np.asarray(self._open[1][rows], dtype=np.float32)


def encode_once(
    encoder: Encoder,
    sentences: Iterable[str],
    *,
    layers: Sequence[int | None] | None = None,
    pooling: str | None = None,
    home: Path | None = None,
    progress: Progress = ignore,
    where: Callable[[str], str] | None = None,
) -> SentenceVectors:
    """Return vectors of all the sentences; only those not yet on disk are encoded, each of them once.

    `where` says at which file and line a sentence stands, should the encoder make no numbers of it. `layers` are as
    `layers_of` returns them: numbers from the embedding (0) on, or None for the encoder's own output. Processes that
    encode with the same model at once share the work: each takes a chunk at a time and sees what others finished.
    """
    wanted = tuple(sorted({layer for layer in layers or () if layer is not None})) or None
    store = _Store(encoder, wanted, pooling, (home or default_home()) / "vectors")
    needed = _distinct(sentences)
    with store.locked():
        if not store.width:
            store.begin(encoder.encode([], layers=wanted, pooling=pooling))
        store.drop_damaged(needed)
    missing = [item for item in needed.items() if item[0] not in store.known]
    done = len(needed) - len(missing)
    size = _LARGE_CHUNK if isinstance(encoder, Placed) and encoder.device_kind != "cpu" else CHUNK
    for begin in range(0, len(missing), size):
        progress(done, len(needed), "sentences")
        with store.locked():
            chunk = [item for item in missing[begin : begin + size] if item[0] not in store.known]
            if chunk:
                texts = [text for _, text in chunk]
                vectors = encoder.encode(texts, layers=wanted, pooling=pooling)
                store.append([digest for digest, _ in chunk], texts, vectors, where)
        done += len(missing[begin : begin + size])
    progress(done, len(needed), "sentences")
    return SentenceVectors(store.folder, store.width, wanted, store.known, store.rows)


class _Store:
    """One folder of vectors, which belongs to one model, pooling and set of layers.

    Each layer has a file of float32 rows; the index holds the digest of each row's sentence with a checksum and is
    written after the vectors, so that a row counts once its digest is there. What a kill leaves behind that is cut;
    a row that is damaged is made again, below the others.
    """

    def __init__(
        self, encoder: Encoder, layers: tuple[int, ...] | None, pooling: str | None, root: Path
    ) -> None:
        card = encoder.card
        if not card.identity:
            raise EnsueError(f"{card.name} states no identity, so its vectors cannot be told from another's.")
        self.about: dict[str, Any] = {
            "format": _FORMAT,
            "identity": card.identity,
            "kind": card.kind,
            "max_length": card.max_length,
            "pooling": pooling,
            "layers": None if layers is None else list(layers),
        }
        key = hashlib.sha256(json.dumps(self.about, sort_keys=True).encode()).hexdigest()[:32]
        self.name, self.layers, self.folder = card.name, layers, root / key
        self.known: dict[bytes, int] = {}
        self.rows = 0
        self._sums: list[int] = []
        # 0 until the folder states what it is for.
        self.width = 0

    @property
    def files(self) -> list[Path]:
        return [self.folder / _file_of(layer) for layer in self.layers or (None,)]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder against other writers, with all they finished taken in."""
        with self._disk(), ExitStack() as stack:
            self.folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(lock(self.folder / "lock"))
            self._refresh()
            held = stack.pop_all()
        with held:
            yield

    @contextmanager
    def _disk(self) -> Iterator[None]:
        """Turn a full or unwritable disk into one sentence."""
        try:
            yield
        except OSError as error:
            raise EnsueError(
                f"Vectors of {self.name} cannot be kept in {self.folder}: {error.strerror or error}; make room "
                f"there or set ENSUE_HOME to a writable folder."
            ) from error

    def _refresh(self) -> None:
        """Take in what was added since, by whichever process, and cut off what is not whole."""
        about = self.folder / "about.json"
        if not about.is_file():
            return
        try:
            stated = read_object(about)
        except EnsueError as error:
            raise EnsueError(f"{error} Delete the folder {self.folder}.") from None
        width = stated.pop("width", None)
        if stated != self.about or not isinstance(width, int):
            raise EnsueError(f"{self.folder} holds vectors of another model; delete that folder.")
        self.width = width
        sizes = [path.stat().st_size // (width * _FLOAT.itemsize) for path in self.files if path.is_file()]
        index = self.folder / "index"
        digests = index.read_bytes() if index.is_file() else b""
        whole = min(len(digests) // _LINE_BYTES, *sizes) if len(sizes) == len(self.files) else 0
        if whole < self.rows:
            self.known.clear()
            self._sums.clear()
            self.rows = 0
        for row in range(self.rows, whole):
            line = digests[row * _LINE_BYTES : (row + 1) * _LINE_BYTES]
            self._take_in(line[:_DIGEST_BYTES], int.from_bytes(line[_DIGEST_BYTES:], "little"))
        for path in self.files:
            _cut(path, whole * width * _FLOAT.itemsize)
        _cut(index, whole * _LINE_BYTES)

    def _take_in(self, digest: bytes, checksum: int) -> None:
        """Know the next row; where a sentence has two, the later took the place of a damaged one."""
        self.known[digest] = self.rows
        self._sums.append(checksum)
        self.rows += 1

    def drop_damaged(self, needed: Iterable[bytes]) -> None:
        """Check the rows that are needed, forget those that are not as they were written, and say how many."""
        digests = sorted((d for d in needed if d in self.known), key=self.known.__getitem__)
        shape = (self.rows, self.width)
        bad = 0
        with self._disk():
            kept = [np.memmap(path, _FLOAT, "r", shape=shape) for path in self.files] if digests else []
            for begin in range(0, len(digests), _CHECKED):
                part = digests[begin : begin + _CHECKED]
                places = [self.known[digest] for digest in part]
                found = np.stack([np.asarray(layer[places]) for layer in kept], axis=1)
                for digest, place, vectors in zip(part, places, found, strict=True):
                    if _checksum(digest, vectors) != self._sums[place]:
                        del self.known[digest]
                        bad += 1
        if bad:
            print(
                f"{self.folder}: {bad:,} damaged vectors of {self.name} are made again.",
                file=sys.stderr,
                flush=True,
            )

    def begin(self, empty: Vectors) -> None:
        """State what the folder is for; `empty` is what the encoder makes of no sentences."""
        self.width = int(empty.shape[-1])
        with self._disk():
            for path in [*self.files, self.folder / "index"]:
                path.unlink(missing_ok=True)
        write_json(self.folder / "about.json", {**self.about, "width": self.width})

    def append(
        self,
        digests: Sequence[bytes],
        sentences: Sequence[str],
        vectors: Vectors,
        where: Callable[[str], str] | None,
    ) -> None:
        """Add rows, the index last; vectors that are no numbers are refused, with all that came with them."""
        middle = () if self.layers is None else (len(self.layers),)
        if vectors.shape != (len(sentences), *middle, self.width):
            raise EnsueError(
                f"{self.name} gave an array of shape {vectors.shape} for {len(sentences)} sentences, where "
                f"rows of width {self.width} were expected."
            )
        good = np.isfinite(vectors).reshape(len(sentences), -1).all(axis=1)
        if not good.all():
            bad = sentences[int(np.argmin(good))]
            stands = f"{where(bad)}: " if where else ""
            raise EnsueError(
                f"{stands}{self.name} gave a vector that is not all finite numbers for {_short(bad)}."
            )
        by_layer = np.ascontiguousarray(vectors[:, None] if self.layers is None else vectors, dtype=_FLOAT)
        sums = [_checksum(digest, rows) for digest, rows in zip(digests, by_layer, strict=True)]
        with self._disk():
            for place, path in enumerate(self.files):
                with path.open("ab") as file:
                    file.write(np.ascontiguousarray(by_layer[:, place]).data)
                    file.flush()
                    os.fsync(file.fileno())
            with (self.folder / "index").open("ab") as file:
                file.write(b"".join(d + s.to_bytes(4, "little") for d, s in zip(digests, sums, strict=True)))
        for digest, checksum in zip(digests, sums, strict=True):
            self._take_in(digest, checksum)


def _distinct(sentences: Iterable[str]) -> dict[bytes, str]:
    """Return the distinct sentences by digest, in order of first appearance."""
    found: dict[bytes, str] = {}
    for number, sentence in enumerate(sentences, 1):
        if not sentence.strip():
            raise EnsueError(f"Sentence {number} is empty ({sentence!r}), so it has no vector.")
        found.setdefault(_digest(sentence), sentence)
    return found


def _digest(sentence: str) -> bytes:
    try:
        return hashlib.sha256(sentence.encode()).digest()[:_DIGEST_BYTES]
    except UnicodeEncodeError:
        raise EnsueError(f"This sentence is not valid Unicode: {_short(sentence)}.") from None


def _checksum(digest: bytes, vectors: Vectors) -> int:
    """Return the checksum of a sentence's row: its digest and its vectors, layer by layer."""
    return zlib.crc32(np.ascontiguousarray(vectors).data, zlib.crc32(digest))


def _cut(path: Path, size: int) -> None:
    """Shorten a file to `size` bytes if it is longer."""
    if path.is_file() and path.stat().st_size > size:
        os.truncate(path, size)


def _file_of(layer: int | None) -> str:
    return "vectors.f32" if layer is None else f"layer-{layer:03d}.f32"


def _short(sentence: str) -> str:
    return repr(sentence if len(sentence) <= _SHOWN else sentence[: _SHOWN - 1] + "…")
