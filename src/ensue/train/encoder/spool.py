"""Documents read once into plain lines of words beside a table of places, so that words can be counted first."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.backends.discourse.words import WordCounter, words_of
from ensue.errors import EnsueError
from ensue.parallel import ordered_map
from ensue.text.structure.readers import read_structured
from ensue.text.structure.sections import StructuredDocument, split_paragraphs

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
PLACES = "labels.bin"
_SENTENCES, _TITLES = "spool-sentences.txt", "spool-titles.txt"
Told = Callable[[int, int, str], None]


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
        """Which documents are held out: those whose names have the smallest digests, whatever their order."""
        count = max(1, round(share * self.documents))
        if count >= self.documents:
            raise EnsueError(
                f"Too few documents ({self.documents}) to hold some out: give more, or a smaller --dev-share."
            )
        chosen = np.zeros(self.documents, dtype=np.bool_)
        chosen[np.argsort(self.hashes, kind="stable")[:count]] = True
        return chosen

    def sentence_words(self) -> Iterator[tuple[int, list[str]]]:
        """The document and the words of every sentence."""
        labels = np.memmap(
            self.folder / PLACES, dtype=np.int32, mode="r", shape=(self.sentences, len(LABELS))
        )
        with (self.folder / _SENTENCES).open(encoding="utf-8", newline="\n") as file:
            for document, line in zip(labels[:, 0], file, strict=True):
                yield int(document), line.split()

    def title_words(self) -> Iterator[tuple[int, list[str]]]:
        """The document and the words of every title."""
        with (self.folder / _TITLES).open(encoding="utf-8", newline="\n") as file:
            for line in file:
                document, _, words = line.partition("\t")
                yield int(document), words.split()

    def count_words(self, dev: npt.NDArray[np.bool_]) -> WordCounter:
        """The words of the training documents, titles among them."""
        counter = WordCounter()
        for lines in (self.sentence_words(), self.title_words()):
            for document, words in lines:
                if not dev[document]:
                    counter.add(words)
        return counter

    def remove(self) -> None:
        """Delete the lines; the table of places stays."""
        (self.folder / _SENTENCES).unlink()
        (self.folder / _TITLES).unlink()


def spool_documents(
    sources: Sequence[str], folder: Path, max_words: int, *, workers: int = 1, told: Told | None = None
) -> Spool:
    """Read the sources into the folder, one document held at a time (a few with several workers)."""
    skipped: Counter[str] = Counter()
    hashes: list[int] = []
    sentences = titles = 0
    documents = (document for source in sources for document in read_structured(source, skipped=skipped))
    worded = ordered_map(partial(word_document, max_words=max_words), documents, workers)
    with (
        (folder / _SENTENCES).open("w", encoding="utf-8", newline="\n") as lines,
        (folder / _TITLES).open("w", encoding="utf-8", newline="\n") as title_lines,
        (folder / PLACES).open("wb") as places,
    ):
        for done, document in enumerate(worded, 1):
            if told is not None:
                told(done, 0, "documents read")
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
    """A document as words; sentences without any are left out, longer ones cut."""
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
    """The rows of `LABELS` of a document's sentences."""
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
