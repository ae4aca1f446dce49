"""Sentences of structured documents as numbers on disk, with their places: mapped into memory, of any size.

Documents are read once into plain lines of words beside a table of places (a spool), so that words can be counted
before they are numbered.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.atomic import write_json
from ensue.backends.discourse.words import VOCABULARY, Vocabulary, WordCounter, load_vocabulary, words_of
from ensue.errors import EnsueError
from ensue.parallel import ordered_map
from ensue.progress import Progress
from ensue.text.structure.readers import read_structured
from ensue.text.structure.sections import StructuredDocument, split_paragraphs
from ensue.train.corpora import INDEX, find_corpus, held, smallest_dtype, source_state

# What is known of a sentence: numbers of its document and titles (−1: it has none), level, places and totals.
LABELS = (
    "document",
    "level",
    "sentence",
    "sentences",
    "paragraph",
    "paragraphs",
    "section_title",
    "document_title",
)
WORDS, TITLES, PLACES = "words.bin", "titles.bin", "labels.bin"
OFFSETS, TITLE_OFFSETS, DEV = "offsets.bin", "title-offsets.bin", "dev.bin"
_SENTENCE_LINES, _TITLE_LINES = "spool-sentences.txt", "spool-titles.txt"
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
        """Sentences × `LABELS`."""
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
        """Return the sentences of the training or of the dev documents."""
        held_out = np.fromfile(self.folder / DEV, dtype=np.bool_)
        return np.flatnonzero(held_out[self.label("document")] == dev)


def prepare_corpus(
    sources: Sequence[str], folder: Path, asked: Asked, *, workers: int = 1, progress: Progress | None = None
) -> Corpus:
    """Return the corpus of the sources, made or, where the same was made before, found in the folder.

    A source that is itself a folder with a prepared corpus is used as it is.
    """
    question = {
        **asked._asdict(),
        "sources": [[Path(source).name, source_state(Path(source))] for source in sources],
    }
    if len(sources) == 1 and (Path(sources[0]) / INDEX).is_file():
        return _ready(Path(sources[0]), asked)
    with held(folder):
        found = _read(folder, question)
        if found is None:
            (folder / INDEX).unlink(missing_ok=True)
            _make(sources, folder, asked, question, workers, progress)
            found = _read(folder, question)
    assert found is not None, "a corpus that was just made answers its question"
    return found


def _make(
    sources: Sequence[str],
    folder: Path,
    asked: Asked,
    question: dict[str, Any],
    workers: int,
    progress: Progress | None,
) -> None:
    """Write the tables of the sources' sentences, then the index that speaks of them."""
    spool = spool_documents(sources, folder, asked.max_words, workers=workers, progress=progress)
    dev = spool.choose_dev(asked.dev_share)
    vocabulary = spool.count_words(dev).vocabulary(asked.vocabulary)
    vocabulary.save(folder)
    dtype = smallest_dtype(len(vocabulary))
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
    write_json(folder / INDEX, {**question, "corpus": facts})


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
    """Return the corpus in the folder, if it answers the same question and is complete."""

    def load(index: dict[str, Any]) -> Corpus | None:
        corpus = Corpus(folder, **index["corpus"])
        size = int(corpus.offsets[-1]) * np.dtype(corpus.dtype).itemsize
        complete = (folder / WORDS).stat().st_size == size and (folder / VOCABULARY).is_file()
        return corpus if complete else None

    return find_corpus(folder, question, load)


def _ready(folder: Path, asked: Asked) -> Corpus:
    """Return a prepared corpus, which must have been made as is asked now."""
    found = _read(folder, asked._asdict())
    if found is None:
        raise EnsueError(
            f"{folder} was prepared with another --vocabulary, --max-words or --dev-share, or is not whole."
        )
    return found


class Paragraph(NamedTuple):
    """A paragraph as lines of words, with its level and the place of its section's title among the titles."""

    level: int
    title: int
    lines: list[str]


class Worded(NamedTuple):
    """A document as words: its own title first (if it has one), then those of its sections."""

    id: str
    titled: bool
    titles: list[str]
    paragraphs: list[Paragraph]


@dataclass(frozen=True)
class Spool:
    """What was read, in a folder."""

    folder: Path
    sentences: int
    titles: int
    hashes: npt.NDArray[np.uint64]
    skipped: Counter[str]

    @property
    def documents(self) -> int:
        return len(self.hashes)

    def choose_dev(self, share: float) -> npt.NDArray[np.bool_]:
        """Return which documents are held out: those whose names have the smallest digests, whatever their order."""
        count = max(1, round(share * self.documents))
        if count >= self.documents:
            raise EnsueError(
                f"Too few documents ({self.documents}) to hold some out: give more, or a smaller --dev-share."
            )
        chosen = np.zeros(self.documents, dtype=np.bool_)
        chosen[np.argsort(self.hashes, kind="stable")[:count]] = True
        return chosen

    def sentence_words(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the document and the words of every sentence."""
        labels = np.memmap(
            self.folder / PLACES, dtype=np.int32, mode="r", shape=(self.sentences, len(LABELS))
        )
        with (self.folder / _SENTENCE_LINES).open(encoding="utf-8", newline="\n") as file:
            for document, line in zip(labels[:, 0], file, strict=True):
                yield int(document), line.split()

    def title_words(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the document and the words of every title."""
        with (self.folder / _TITLE_LINES).open(encoding="utf-8", newline="\n") as file:
            for line in file:
                document, _, words = line.partition("\t")
                yield int(document), words.split()

    def count_words(self, dev: npt.NDArray[np.bool_]) -> WordCounter:
        """Return the words of the training documents, titles among them."""
        counter = WordCounter()
        for lines in (self.sentence_words(), self.title_words()):
            for document, words in lines:
                if not dev[document]:
                    counter.add(words)
        return counter

    def remove(self) -> None:
        """Delete the lines; the table of places stays."""
        (self.folder / _SENTENCE_LINES).unlink()
        (self.folder / _TITLE_LINES).unlink()


def spool_documents(
    sources: Sequence[str],
    folder: Path,
    max_words: int,
    *,
    workers: int = 1,
    progress: Progress | None = None,
) -> Spool:
    """Read the sources into the folder, one document held at a time (a few with several workers)."""
    skipped: Counter[str] = Counter()
    hashes: list[int] = []
    sentences = titles = 0
    documents = (document for source in sources for document in read_structured(source, skipped=skipped))
    worded = ordered_map(partial(word_document, max_words=max_words), documents, workers)
    with (
        (folder / _SENTENCE_LINES).open("w", encoding="utf-8", newline="\n") as lines,
        (folder / _TITLE_LINES).open("w", encoding="utf-8", newline="\n") as title_lines,
        (folder / PLACES).open("wb") as places,
    ):
        for done, document in enumerate(worded, 1):
            if progress is not None:
                progress(done, 0, "documents read")
            table = place_sentences(document, len(hashes), titles)
            if not len(table):
                skipped["no words"] += 1
                continue
            lines.writelines(f"{line}\n" for paragraph in document.paragraphs for line in paragraph.lines)
            title_lines.writelines(f"{len(hashes)}\t{title}\n" for title in document.titles)
            places.write(table.tobytes())
            sentences += len(table)
            titles += len(document.titles)
            hashes.append(int.from_bytes(hashlib.sha256(document.id.encode("utf-8", "replace")).digest()[:8]))
    if not hashes:
        raise EnsueError(f"No source holds a sentence ({json.dumps(dict(skipped))}).")
    return Spool(folder, sentences, titles, np.asarray(hashes, dtype=np.uint64), skipped)


def word_document(document: StructuredDocument, max_words: int) -> Worded:
    """Return a document as words; sentences without any are left out, longer ones cut."""
    titles: list[str] = []
    own = " ".join(words_of(document.title))
    if own:
        titles.append(own)
    numbers: dict[tuple[str, ...], int] = {}
    paragraphs: list[Paragraph] = []
    for paragraph in split_paragraphs(document):
        words = [found[:max_words] for sentence in paragraph.sentences if (found := words_of(sentence))]
        if not words:
            continue
        path = paragraph.path
        if path not in numbers:
            title = " ".join(words_of(path[-1])) if path else ""
            numbers[path] = len(titles) if title else -1
            if title:
                titles.append(title)
        paragraphs.append(Paragraph(len(path), numbers[path], [" ".join(each) for each in words]))
    return Worded(document.id, bool(own), titles, paragraphs)


def place_sentences(document: Worded, number: int, first_title: int) -> npt.NDArray[np.int32]:
    """Return the rows of `LABELS` of a document's sentences."""
    total = len(document.paragraphs)
    own = first_title if document.titled else -1
    rows = [
        (
            number,
            paragraph.level,
            place,
            len(paragraph.lines),
            position,
            total,
            first_title + paragraph.title if paragraph.title >= 0 else -1,
            own,
        )
        for position, paragraph in enumerate(document.paragraphs)
        for place in range(len(paragraph.lines))
    ]
    return np.asarray(rows, dtype=np.int32).reshape(-1, len(LABELS))
