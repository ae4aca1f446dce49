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
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.atomic import write_json
from ensue.backends.discourse.words import VOCABULARY, Vocabulary, WordCounter, load_vocabulary, words_of
from ensue.errors import EnsueError
from ensue.parallel import ordered_map
from ensue.progress import Progress, ignore
from ensue.text.structure.readers import read_structured
from ensue.text.structure.sections import StructuredDocument, split_paragraphs
from ensue.train.corpora import INDEX, find_corpus, find_or_make, smallest_dtype, source_state

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
# The spool's files: lines of a document's number and words, and the tables their numbers and beginnings become.
_SENTENCE_LINES, _TITLE_LINES = "spool-sentences.txt", "spool-titles.txt"
_TABLES = {_SENTENCE_LINES: (WORDS, OFFSETS), _TITLE_LINES: (TITLES, TITLE_OFFSETS)}
_LINES_AT_ONCE = 4096
Ints = npt.NDArray[np.int64]


class Asked(NamedTuple):
    """What a prepared corpus depends on, besides its sources."""

    vocabulary: int
    max_words: int
    dev_share: float


@dataclass(frozen=True)
class SentenceCorpus:
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
    sources: Sequence[str], folder: Path, asked: Asked, *, workers: int = 1, progress: Progress = ignore
) -> SentenceCorpus:
    """Return the corpus of the sources, made or, where the same was made before, found in the folder.

    A source that is itself a folder with a prepared corpus is used as it is.
    """
    question = {
        **asked._asdict(),
        "sources": [[Path(source).name, source_state(Path(source))] for source in sources],
    }
    if len(sources) == 1 and (Path(sources[0]) / INDEX).is_file():
        ready = find_corpus(Path(sources[0]), asked._asdict(), _load)
        if ready is None:
            raise EnsueError(
                f"{sources[0]} was prepared with another --vocabulary, --max-words or --dev-share, or is not whole."
            )
        return ready

    def make() -> None:
        """Write the tables of the sources' sentences, then the index that speaks of them."""
        (folder / INDEX).unlink(missing_ok=True)
        spool = _spool_documents(sources, folder, asked.max_words, workers, progress)
        dev = _choose_dev(spool.hashes, asked.dev_share)
        counter = WordCounter()
        for lines in _TABLES:
            for document, words in _spooled(folder / lines):
                if not dev[document]:
                    counter.add(words)
        vocabulary = counter.vocabulary(asked.vocabulary)
        vocabulary.save(folder)
        dtype = smallest_dtype(len(vocabulary))
        for lines in _TABLES:
            _number(folder, lines, vocabulary, dtype)
            (folder / lines).unlink()
        dev.tofile(folder / DEV)
        facts: dict[str, Any] = {
            "dtype": dtype,
            "sentences": spool.sentences,
            "titles": spool.titles,
            "documents": len(dev),
            "dev_documents": int(dev.sum()),
            "skipped": dict(spool.skipped),
        }
        write_json(folder / INDEX, {**question, "corpus": facts})

    return find_or_make(folder, question, _load, make)


def _number(folder: Path, lines: str, vocabulary: Vocabulary, dtype: str) -> None:
    """Write the words of spooled lines as numbers, with where each line begins."""
    numbers, offsets = _TABLES[lines]
    total = 0
    spooled = _spooled(folder / lines)
    with (folder / numbers).open("wb") as file, (folder / offsets).open("wb") as ends:
        ends.write(np.int64(0).tobytes())
        while some := list(islice(spooled, _LINES_AT_ONCE)):
            found = [vocabulary.number(words) for _, words in some]
            places = np.cumsum([len(each) for each in found], dtype=np.int64) + total
            total = int(places[-1])
            file.write(np.asarray(list(chain.from_iterable(found)), dtype=dtype).tobytes())
            ends.write(places.tobytes())


def _spooled(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the document and the words of every line."""
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            document, _, words = line.partition("\t")
            yield int(document), words.split()


def _load(folder: Path, index: dict[str, Any]) -> SentenceCorpus | None:
    """Return the corpus in the folder, if it is complete."""
    corpus = SentenceCorpus(folder, **index["corpus"])
    size = int(corpus.offsets[-1]) * np.dtype(corpus.dtype).itemsize
    complete = (folder / WORDS).stat().st_size == size and (folder / VOCABULARY).is_file()
    return corpus if complete else None


def _choose_dev(hashes: npt.NDArray[np.uint64], share: float) -> npt.NDArray[np.bool_]:
    """Return which documents are held out: those whose names have the smallest digests, whatever their order."""
    count = max(1, round(share * len(hashes)))
    if count >= len(hashes):
        raise EnsueError(
            f"Too few documents ({len(hashes)}) to hold some out: give more, or a smaller --dev-share."
        )
    chosen = np.zeros(len(hashes), dtype=np.bool_)
    chosen[np.argsort(hashes, kind="stable")[:count]] = True
    return chosen


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


class Spool(NamedTuple):
    """How many sentences and titles were read, a digest of each document's name, and what was left out."""

    sentences: int
    titles: int
    hashes: npt.NDArray[np.uint64]
    skipped: Counter[str]


def _spool_documents(
    sources: Sequence[str], folder: Path, max_words: int, workers: int, progress: Progress
) -> Spool:
    """Read the sources into the folder, one document held at a time (a few with several workers)."""
    skipped: Counter[str] = Counter()
    hashes: list[int] = []
    sentences = titles = 0
    documents = (document for source in sources for document in read_structured(source, skipped=skipped))
    worded = ordered_map(partial(_word_document, max_words=max_words), documents, workers)
    with (
        (folder / _SENTENCE_LINES).open("w", encoding="utf-8", newline="\n") as lines,
        (folder / _TITLE_LINES).open("w", encoding="utf-8", newline="\n") as title_lines,
        (folder / PLACES).open("wb") as places,
    ):
        for done, document in enumerate(worded, 1):
            progress(done, 0, "documents read")
            table = _place_sentences(document, len(hashes), titles)
            if not len(table):
                skipped["no words"] += 1
                continue
            spoken = (line for paragraph in document.paragraphs for line in paragraph.lines)
            lines.writelines(f"{len(hashes)}\t{line}\n" for line in spoken)
            title_lines.writelines(f"{len(hashes)}\t{title}\n" for title in document.titles)
            places.write(table.tobytes())
            sentences += len(table)
            titles += len(document.titles)
            hashes.append(int.from_bytes(hashlib.sha256(document.id.encode("utf-8", "replace")).digest()[:8]))
    if not hashes:
        raise EnsueError(f"No source holds a sentence ({json.dumps(dict(skipped))}).")
    return Spool(sentences, titles, np.asarray(hashes, dtype=np.uint64), skipped)


def _word_document(document: StructuredDocument, max_words: int) -> Worded:
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


def _place_sentences(document: Worded, number: int, first_title: int) -> npt.NDArray[np.int32]:
    """Return the rows of `LABELS` of a document's sentences."""
    total, own = len(document.paragraphs), first_title if document.titled else -1
    rows = [
        (number, level, place, len(lines), position, total, first_title + title if title >= 0 else -1, own)
        for position, (level, title, lines) in enumerate(document.paragraphs)
        for place in range(len(lines))
    ]
    return np.asarray(rows, dtype=np.int32).reshape(-1, len(LABELS))
