"""Word vectors as a sentence encoder: the mean of the vectors of a sentence's words (CBoW)."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.backends.hf.loading import ModelFolder, Options
from ensue.errors import EnsueError
from ensue.fetch.store import home, make_once
from ensue.lazy import from_extra
from ensue.models.card import ModelCard
from ensue.records import file_digest

ARCHITECTURE = "WordVectors"
VECTORS, WORDS = "vectors.f32", "words.txt"
_FLOAT = np.dtype("<f4")
_LARGEST = float(np.finfo(np.float32).max)
_LINES = 4096
_SENTENCES = 512

Table = npt.NDArray[np.float32]


class WordBlock(NamedTuple):
    """Some words and their vectors, one a row."""

    words: list[str]
    vectors: Table


class WordVectorModel:
    """Vectors of words, memory-mapped, and the row of each word.

    Words are what white space divides; each is looked up as it is, then in lower case, and skipped if it is
    not there. A sentence without any known word gets zeros and is counted in `without_words`.
    """

    def __init__(self, table: Table, rows: dict[str, int], card: ModelCard) -> None:
        self.table, self.rows, self.card = table, rows, card
        self.without_words = 0

    def encode(
        self, texts: Sequence[str], *, layers: Sequence[int] | None = None, pooling: str | None = None
    ) -> Table:
        if layers is not None:
            raise EnsueError(f"{self.card.name} has no layers to choose from.")
        if pooling not in (None, "mean"):
            raise EnsueError(f"{self.card.name} has no pooling {pooling!r}, only mean.")
        out = np.zeros((len(texts), self.table.shape[1]), dtype=np.float32)
        for begin in range(0, len(texts), _SENTENCES):
            found = [self._known(text) for text in texts[begin : begin + _SENTENCES]]
            counts = np.array([len(rows) for rows in found])
            self.without_words += int((counts == 0).sum())
            some = counts > 0
            if some.any():
                starts = np.concatenate([[0], np.cumsum(counts[some])[:-1]])
                vectors = self.table[np.concatenate([rows for rows in found if rows])]
                sums = np.add.reduceat(vectors.astype(np.float64), starts, axis=0)
                out[begin : begin + _SENTENCES][some] = sums / counts[some, None]
        return out

    def _known(self, text: str) -> list[int]:
        rows = self.rows
        found = [rows[word] if word in rows else rows.get(word.lower(), -1) for word in text.split()]
        return [row for row in found if row >= 0]


def load_word_vectors(folder: ModelFolder) -> WordVectorModel:
    """Load the model in a folder that `keep` made."""
    path = folder.path
    try:
        width = int(folder.config["width"])
        words = (path / WORDS).read_bytes().decode().removesuffix("\n").split("\n")
        table: Table = np.memmap(path / VECTORS, _FLOAT, "r").reshape(len(words), width)
        digest = hashlib.sha256(f"{width} ".encode())
        for part in (WORDS, VECTORS):
            digest.update(bytes.fromhex(file_digest(path / part)))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EnsueError(f"{path} does not hold whole word vectors ({error}); delete it.") from None
    identity = {"vectors": digest.hexdigest(), "words": "white space, as is, else lower case"}
    rows = {word: row for row, word in enumerate(words)}
    return WordVectorModel(table, rows, folder.card("word-vectors", identity))


def load_text_vectors(file: str | Path) -> WordVectorModel:
    """Load vectors from a text file, `word v1 v2 …` a line, plain or .gz; a binary copy is kept in ENSUE_HOME."""
    path = Path(file).expanduser()
    target = home() / "word-vectors" / file_digest(path)[:32]
    make_once(target, lambda work: keep(read_text(path), work / "made"), f"A copy of {path} cannot be kept")
    return load_word_vectors(ModelFolder.read(target, f"cbow:{path.name}", Options(), {"source": str(path)}))


def from_index(data: Path, target: Path) -> Path:
    """Make a model folder of a NumPy matrix and a Parquet file with a column of its words."""
    parquet = from_extra("pyarrow.parquet", "Unpacking these word vectors", "pyarrow", "hub")
    (matrix,), (index,) = data.glob("*.npy"), data.glob("*.parquet")
    words = parquet.read_table(index).column(0).to_pylist()
    vectors = np.load(matrix, mmap_mode="r", allow_pickle=False)
    if vectors.ndim != 2 or len(vectors) != len(words):
        raise EnsueError(f"{matrix.name} has the shape {vectors.shape}, but there are {len(words)} words.")
    spans = [slice(begin, begin + _LINES) for begin in range(0, len(words), _LINES)]
    return keep((WordBlock(words[span], vectors[span]) for span in spans), target)


def keep(blocks: Iterable[WordBlock], folder: Path) -> Path:
    """Write words and vectors as a model folder; of a word that comes twice the first vector is kept."""
    folder.mkdir(parents=True)
    seen: set[str] = set()
    width = 0
    with (folder / VECTORS).open("wb") as vectors, (folder / WORDS).open("wb") as words:
        for block in blocks:
            width = block.vectors.shape[1]
            fresh = []
            for word in block.words:
                fresh.append(word not in seen)
                seen.add(word)
            chosen = [word for word, new in zip(block.words, fresh, strict=True) if new]
            words.write("".join(f"{word}\n" for word in chosen).encode())
            vectors.write(np.ascontiguousarray(block.vectors[np.array(fresh)], dtype=_FLOAT).data)
    config = {"architectures": [ARCHITECTURE], "width": width, "words": len(seen)}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")
    return folder


def read_text(path: Path) -> Iterator[WordBlock]:
    """Read the words and vectors of a text file, in blocks; a word2vec header (`words width`) is passed over."""
    width = 0
    words: list[str] = []
    numbers: list[list[bytes]] = []
    number = 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                parts = line.split()
                if number == 1 and len(parts) == 2 and all(part.isdigit() for part in parts):
                    continue
                width = width or len(parts) - 1
                words.append(_word(parts, width, path, number))
                numbers.append(parts[-width:])
                if len(words) == _LINES:
                    yield _block(words, numbers, path, number)
                    words, numbers = [], []
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise EnsueError(f"{path} is not a whole gzip file, as line {number + 1} shows: {error}.") from None
    if words:
        yield _block(words, numbers, path, number)
    if not width:
        raise EnsueError(f"{path} holds no word vectors.")


def _word(parts: Sequence[bytes], width: int, path: Path, line: int) -> str:
    """Return the word of a line; some published words have spaces in them, but none ends in a number."""
    before = parts[: len(parts) - width]
    if width < 1 or not before or (len(before) > 1 and _is_number(before[-1])):
        raise EnsueError(
            f"{path}, line {line}: {len(parts)} columns, where a word and {max(width, 1)} numbers were expected."
        )
    try:
        return b" ".join(before).decode()
    except UnicodeDecodeError:
        raise EnsueError(f"{path}, line {line}: the word is not UTF-8.") from None


def _is_number(part: bytes) -> bool:
    try:
        float(part)
    except ValueError:
        return False
    return True


def _block(words: list[str], numbers: list[list[bytes]], path: Path, last: int) -> WordBlock:
    """Parse the numbers of some lines; where that fails, say in which."""
    try:
        with np.errstate(over="ignore"):
            vectors = np.array(numbers, dtype="S").astype(np.float64).astype(np.float32)
    except ValueError:
        vectors = np.full((len(numbers), 1), np.nan, dtype=np.float32)
    if not np.isfinite(vectors).all():
        for line, row in enumerate(numbers, last - len(words) + 1):
            bad = [part for part in row if not _is_number(part) or not abs(float(part)) <= _LARGEST]
            if bad:
                shown = bad[0][:20].decode(errors="replace")
                raise EnsueError(f"{path}, line {line}: {shown!r} is not a finite number.")
    return WordBlock(words, vectors)
