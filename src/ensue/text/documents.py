"""Documents, which every benchmark on running text starts from, read from wherever they are kept."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from typing import Literal

from ensue.errors import EnsueError
from ensue.jsonl import JSON_LINES
from ensue.shelf import Shelf
from ensue.text.io.rows import (
    TEXT_FILES,
    SourceRow,
    path_of,
    read_folder,
    read_hub,
    read_json_lines,
    read_text_file,
)
from ensue.text.sentences import language_code, split_lines, split_sentences

BUNDLED = "bundled"

Split = Literal["sentences", "lines"]


@dataclass(frozen=True, slots=True)
class Document:
    """A text as sentences; `text` is the raw text where the source gave one and not its sentences."""

    id: str
    sentences: tuple[str, ...]
    domain: str
    text: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Documents:
    """Documents in the order of their source.

    `fingerprint` changes with the ids, the sentences and the domains that the source states, and stays the
    same when the files move. `skipped` counts what could not be read, by reason. Many documents lie on disk.
    """

    items: Sequence[Document]
    fingerprint: str
    skipped: dict[str, int]
    source: str

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Document]:
        return iter(self.items)


def read_documents(
    source: str | Path = BUNDLED,
    *,
    limit: int | None = None,
    text_column: str | None = None,
    split: Split = "sentences",
    language: str = "en",
    encoding: str = "utf-8",
) -> Documents:
    """Read the first `limit` documents (or all) of a source.

    A source is `bundled`, a JSON Lines file (`text` or `sentences`; `id` and `domain` may be there), a text
    file, a folder of either, or, where no such path exists, a hub data set: `owner/name[/config][:split]`.
    `text_column` names the column to read where it has another name; `split="lines"` takes each line of a
    text for a sentence; `language` (an ISO 639 code) is for the splitter, `encoding` for files not in UTF-8.

    >>> read_documents(limit=1).items[0].domain
    'news'
    """
    if limit is not None and limit < 1:
        raise EnsueError(f"The limit of documents is {limit}, but must be at least 1.")
    splitter = _splitter(split, language)
    items: Shelf[Document] = Shelf()
    skipped: Counter[str] = Counter()
    digest = hashlib.sha256()
    for row in read_rows(source, text_column=text_column, encoding=encoding):
        if row.is_empty:
            skipped["no text"] += 1
            continue
        sentences = tuple(splitter(row.text)) if row.text is not None else row.sentences or ()
        items.append(Document(row.id, sentences, row.domain or row.default_domain, row.text))
        # A domain taken from the name of a file or folder is left out, or moving the data would change it.
        digest.update(json.dumps([row.id, row.domain, sentences]).encode() + b"\n")
        if len(items) == limit:
            break
    if not items:
        raise EnsueError(f"{source} has no document with text.")
    return Documents(items, digest.hexdigest(), dict(skipped), str(source))


def _splitter(split: str, language: str) -> Callable[[str], list[str]]:
    if split == "sentences":
        return partial(split_sentences, language=language_code(language))
    if split == "lines":
        return split_lines
    raise EnsueError(f"Text is split into sentences or lines, not into {split!r}.")


def read_rows(
    source: str | Path, *, text_column: str | None = None, encoding: str = "utf-8"
) -> Iterator[SourceRow]:
    """Read the rows of a source, one held at a time; refuse an id that comes twice."""
    places: dict[str, str] = {}
    for row in _rows(source, text_column, encoding):
        if not row.is_empty and places.setdefault(row.id, row.place) != row.place:
            raise EnsueError(f"{row.place} has the id {row.id!r}, which {places[row.id]} has already.")
        yield row


def _rows(source: str | Path, text_column: str | None, encoding: str) -> Iterator[SourceRow]:
    """Return the rows of a source, by what it is."""
    if source == BUNDLED:
        return _bundled_rows()
    path = path_of(source, "documents are")
    if path is None:
        return read_hub(str(source), text_column=text_column)
    if path.is_dir():
        return read_folder(path, text_column=text_column, encoding=encoding)
    if path.suffix.lower() in JSON_LINES:
        return read_json_lines(path, text_column=text_column, encoding=encoding)
    if path.suffix.lower() in TEXT_FILES:
        return iter([read_text_file(path, encoding=encoding)])
    raise EnsueError(
        f"{source} is not a kind of file that is read here: give .jsonl, .txt or a folder of them."
    )


def _bundled_rows() -> Iterator[SourceRow]:
    with as_file(files("ensue.text") / "data" / "documents.jsonl") as path:
        yield from read_json_lines(path)
