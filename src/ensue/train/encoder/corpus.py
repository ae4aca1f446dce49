"""Sentences of structured documents as numbers on disk, with their places: mapped into memory, of any size."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.backends.discourse.words import VOCABULARY, Vocabulary, load_vocabulary
from ensue.errors import EnsueError
from ensue.train.encoder.spool import LABELS, PLACES, Spool, Told, spool_documents

WORDS, TITLES, INDEX = "words.bin", "titles.bin", "corpus.json"
OFFSETS, TITLE_OFFSETS, DEV = "offsets.bin", "title-offsets.bin", "dev.bin"
_LINES_AT_ONCE = 4096
Ints = npt.NDArray[np.int64]


class Asked(NamedTuple):
    """What a prepared corpus depends on, besides its sources."""

    vocabulary: int
    max_words: int
    dev_share: float


@dataclass(frozen=True)
class Corpus:
    """Sentences in reading order, document after document; all tables are mapped from the folder."""

    folder: Path
    dtype: str
    sentences: int
    titles: int
    documents: int
    dev_documents: int
    skipped: dict[str, int]

    @cached_property
    def words(self) -> npt.NDArray[Any]:
        return np.memmap(self.folder / WORDS, dtype=self.dtype, mode="r")

    @cached_property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Where each sentence begins in `words`; one more entry says where the last one ends."""
        return np.memmap(self.folder / OFFSETS, dtype=np.int64, mode="r", shape=(self.sentences + 1,))

    @cached_property
    def title_words(self) -> npt.NDArray[Any]:
        return np.fromfile(self.folder / TITLES, dtype=self.dtype)

    @cached_property
    def title_offsets(self) -> npt.NDArray[np.int64]:
        return np.memmap(self.folder / TITLE_OFFSETS, dtype=np.int64, mode="r", shape=(self.titles + 1,))

    @cached_property
    def labels(self) -> npt.NDArray[np.int32]:
        """Sentences × `spool.LABELS`."""
        return np.memmap(self.folder / PLACES, dtype=np.int32, mode="r", shape=(self.sentences, len(LABELS)))

    @property
    def files(self) -> list[Path]:
        """What a training reads of it."""
        return [self.folder / name for name in (WORDS, TITLES, PLACES, DEV, VOCABULARY)]

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return load_vocabulary(self.folder)

    def label(self, name: str) -> npt.NDArray[np.int32]:
        return self.labels[:, LABELS.index(name)]

    def rows(self, dev: bool) -> Ints:
        """The sentences of the training or of the dev documents."""
        held_out = np.fromfile(self.folder / DEV, dtype=np.bool_)
        return np.flatnonzero(held_out[self.label("document")] == dev)


def prepare_corpus(
    sources: Sequence[str], folder: Path, asked: Asked, *, workers: int = 1, told: Told | None = None
) -> Corpus:
    """The corpus of the sources, made or, where the same was made before, found in the folder.

    A source that is itself a folder with a prepared corpus is used as it is.
    """
    question = {
        **asked._asdict(),
        "sources": [[Path(source).name, _state(Path(source))] for source in sources],
    }
    if len(sources) == 1 and (Path(sources[0]) / INDEX).is_file():
        return _ready(Path(sources[0]), asked)
    if (found := _read(folder, question)) is not None:
        return found
    folder.mkdir(parents=True, exist_ok=True)
    (folder / INDEX).unlink(missing_ok=True)
    spool = spool_documents(sources, folder, asked.max_words, workers=workers, told=told)
    dev = spool.choose_dev(asked.dev_share)
    vocabulary = spool.count_words(dev).vocabulary(asked.vocabulary)
    vocabulary.save(folder)
    dtype = "uint16" if len(vocabulary) <= 2**16 else "int32"
    _number(spool, vocabulary, folder, dtype)
    dev.tofile(folder / DEV)
    spool.remove()
    facts: dict[str, Any] = {
        "dtype": dtype,
        "sentences": spool.sentences,
        "titles": spool.titles,
        "documents": spool.documents,
        "dev_documents": int(dev.sum()),
        "skipped": dict(spool.skipped),
    }
    (folder / INDEX).write_text(json.dumps({**question, "corpus": facts}, indent=2) + "\n", "utf-8")
    return Corpus(folder, **facts)


def _number(spool: Spool, vocabulary: Vocabulary, folder: Path, dtype: str) -> None:
    """Write the words of sentences and titles as numbers, with where each begins."""
    tables = (
        (spool.sentence_words(), WORDS, OFFSETS),
        (spool.title_words(), TITLES, TITLE_OFFSETS),
    )
    for lines, numbers, offsets in tables:
        total = 0
        with (folder / numbers).open("wb") as file, (folder / offsets).open("wb") as ends:
            ends.write(np.int64(0).tobytes())
            block: list[int] = []
            places: list[int] = []
            for _, words in lines:
                block += vocabulary.number(words)
                places.append(total + len(block))
                if len(places) == _LINES_AT_ONCE:
                    total += len(block)
                    file.write(np.asarray(block, dtype=dtype).tobytes())
                    ends.write(np.asarray(places, dtype=np.int64).tobytes())
                    block, places = [], []
            file.write(np.asarray(block, dtype=dtype).tobytes())
            ends.write(np.asarray(places, dtype=np.int64).tobytes())


def _read(folder: Path, question: dict[str, Any]) -> Corpus | None:
    """The corpus in the folder, if it answers the same question and is whole."""
    try:
        index = json.loads((folder / INDEX).read_text("utf-8"))
        if {key: index[key] for key in question} != json.loads(json.dumps(question)):
            return None
        corpus = Corpus(folder, **index["corpus"])
        whole = (folder / WORDS).stat().st_size == int(corpus.offsets[-1]) * np.dtype(corpus.dtype).itemsize
        return corpus if whole and (folder / VOCABULARY).is_file() else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _ready(folder: Path, asked: Asked) -> Corpus:
    """A prepared corpus, which must have been made as is asked now."""
    found = _read(folder, asked._asdict())
    if found is None:
        raise EnsueError(
            f"{folder} was prepared with another --vocabulary, --max-words or --dev-share, or is not whole."
        )
    return found


def _state(path: Path) -> list[Any]:
    """Size and time of the files a source is made of, so that a changed source is read again."""
    try:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        stats = [(file, file.stat()) for file in files if file.is_file()]
    except OSError as error:
        raise EnsueError(f"{error.filename} could not be read: {error.strerror}.") from error
    return [[file.name, stat.st_size, stat.st_mtime_ns] for file, stat in stats]
