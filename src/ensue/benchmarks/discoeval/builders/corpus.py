"""Documents as a stream of sentences with their categories, from wherever documents are kept."""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ensue.benchmarks.discoeval.builders.common import Building, Seen, files_below, numbered_lines, one_line
from ensue.errors import EnsueError
from ensue.jsonl import JSON_LINES, in_words
from ensue.parallel import ordered_map
from ensue.text.documents import BUNDLED, read_documents
from ensue.text.io.rows import (
    TEXT_FILES,
    SourceRow,
    is_hub_name,
    json_objects,
    read_folder,
    read_hub,
    read_text_file,
    row_from_columns,
)
from ensue.text.sentences import split_lines, split_sentences

Extent = Literal["lead", "whole"]

# Rows go to the processes that split them so many at a time.
_CHUNK = 64
_STRUCTURED = (".xml", ".bz2", ".tokens", ".raw", ".md", ".markdown", ".html", ".htm", ".xhtml")
_TABLES = (".jsonl", ".ndjson")
_STORY = tuple(f"sentence{number}" for number in range(1, 6))
ANNOTATION = ".annotation.txt"
# The log beside an annotation: as it was written, or else in ASCII.
_LOGS = (".raw.txt", ".ascii.txt")
_MESSAGE = re.compile(r"\[\d\d:\d\d\] <(?P<who>[^>\s]+)> ?(?P<text>.*)")
_ADDRESS = re.compile(r"(?P<who>[^\s:,]+)(?=\s?[:,])")
_LINK = re.compile(r"(\d{1,9}) (\d{1,9}) -")
SOMEBODY = "<user>"


class SourceText(NamedTuple):
    """A document as sentences, each on one line."""

    id: str
    place: str
    sentences: tuple[str, ...]
    categories: frozenset[str] = frozenset()


def read_texts(made: Building, extent: Extent) -> Iterator[SourceText]:
    """Read the documents of a source, one chunk held at a time; two with the same id are refused.

    `extent` says how much is read of a document with sections: its lead or all of it. JSON lines may carry
    `categories`, a list of names; a .csv holds ROC stories, a folder of annotated chat logs conversations.
    """
    ids, texts = Seen(), Seen()
    rows = islice(_raw(made, extent), made.options.limit)
    split = partial(_split_all, split=made.options.split, language=made.language)
    done = 0
    first = list(islice(rows, _CHUNK))
    # Where sentences are given there is nothing to split, and sending them round would only cost time.
    workers = made.workers if any(raw.row.text is not None for raw in first) else 1
    stream = chain(first, rows)
    chunks = iter(lambda: list(islice(stream, _CHUNK)), [])
    for chunk in ordered_map(split, chunks, workers):
        for text in chunk:
            if ids.before(text.id):
                raise EnsueError(
                    f"{text.place} has the id {text.id!r}, which an earlier document has already."
                )
            done += 1
            made.count(done)
            if not text.sentences:
                made.skipped["documents without text"] += 1
            elif texts.before(*text.sentences):
                made.skipped["documents with the text of an earlier one"] += 1
            else:
                yield text


class _Raw(NamedTuple):
    row: SourceRow
    categories: frozenset[str] = frozenset()


def _split_all(chunk: Iterable[_Raw], split: str | None, language: str) -> list[SourceText]:
    found = []
    for row, categories in chunk:
        if row.text is None:
            sentences: Iterable[str] = row.sentences or ()
        else:
            sentences = split_lines(row.text) if split == "lines" else split_sentences(row.text, language)
        found.append(SourceText(row.id, row.place, tuple(map(one_line, sentences)), categories))
    return found


def _raw(made: Building, extent: Extent) -> Iterator[_Raw]:
    """Read the documents of a source before they are split, by what the source is."""
    source, options = made.source, made.options
    if source == BUNDLED:
        return (
            _Raw(SourceRow(document.id, document.id, document.domain, sentences=document.sentences))
            for document in read_documents()
        )
    if not source:
        raise EnsueError("No documents are named: give a file, a folder or a hub data set.")
    path = Path(source).expanduser()
    if not os.path.exists(path):
        if is_hub_name(source):
            return map(_Raw, read_hub(source, text_column=options.text_column))
        raise EnsueError(f"{source} does not exist.")
    if path.is_dir():
        if files_below(path, ANNOTATION):
            return map(_Raw, read_conversations(path, options.encoding))
        if tables := files_below(path, *_TABLES):
            labels = (table.relative_to(path).with_suffix("").as_posix() for table in tables)
            return (raw for one in zip(tables, labels, strict=True) for raw in _table(made, *one))
        if files_below(path, *_STRUCTURED):
            return _structured(path, extent, made.skipped)
        return map(_Raw, read_folder(path, encoding=options.encoding))
    ending = path.suffix.lower()
    if ending in JSON_LINES:
        return _table(made, path, path.stem)
    if ending == ".csv":
        return map(_Raw, _stories(path, options.encoding))
    if ending in _STRUCTURED:
        return _structured(path, extent, made.skipped)
    if ending in TEXT_FILES:
        return iter([_Raw(read_text_file(path, encoding=options.encoding))])
    raise EnsueError(
        f"{source} is not a kind of file that is read here: give .jsonl, .csv, a dump or a folder."
    )


def _table(made: Building, path: Path, label: str) -> Iterator[_Raw]:
    for place, columns in json_objects(path, made.options.encoding):
        row = row_from_columns(
            columns,
            place=place,
            id=f"{label}:{place.rpartition(' ')[2]}",
            domain=label,
            text_column=made.options.text_column,
        )
        yield _Raw(row, _categories(columns, place))


def _categories(columns: Mapping[str, Any], place: str) -> frozenset[str]:
    value = columns.get("categories") or []
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        given = in_words(value) if not isinstance(value, list) else "a list of other things"
        raise EnsueError(f"{place} has {given} as 'categories', where a list of names is expected.")
    return frozenset(name for name in map(one_line, value) if name)


def _structured(path: Path, extent: Extent, skipped: Counter[str]) -> Iterator[_Raw]:
    """Read documents with sections; their sentences never run over the end of a paragraph."""
    from ensue.text.structure.readers import read_structured
    from ensue.text.structure.sections import Section

    def paragraphs(sections: tuple[Section, ...]) -> Iterator[str]:
        for section in sections:
            yield from section.paragraphs
            yield from paragraphs(section.sections)

    for document in read_structured(path, skipped=skipped):
        kept = [*document.paragraphs, *(paragraphs(document.sections) if extent == "whole" else ())]
        text = "\n\n".join(kept)
        yield _Raw(
            SourceRow(f"{path}, {document.id}", document.id, path.stem, text=text if text.strip() else None)
        )


def _stories(path: Path, encoding: str) -> Iterator[SourceRow]:
    """Read the stories of a file of the ROC Stories corpus: an id and five columns of sentences."""
    reader = csv.DictReader(line + "\n" for _, line in numbered_lines(path, encoding))
    try:
        absent = [name for name in _STORY if name not in (reader.fieldnames or ())]
        if absent:
            raise EnsueError(f"{path}, line 1 names no column {absent[0]!r}, so these are no ROC stories.")
        for columns in reader:
            place = f"{path}, line {reader.line_num}"
            sentences = [columns[name] for name in _STORY]
            if None in columns or not all(sentence and sentence.strip() for sentence in sentences):
                raise EnsueError(f"{place} has no five sentences in their columns.")
            name = columns.get("storyid") or columns.get("InputStoryid") or f"{path.stem}:{reader.line_num}"
            yield SourceRow(place, name, path.stem, sentences=tuple(sentences))
    except csv.Error as error:
        raise EnsueError(f"{path}, line {reader.line_num} is not sound CSV: {error}.") from error


def read_conversations(folder: Path, encoding: str) -> Iterator[SourceRow]:
    """Read every conversation as a row of utterances: the messages that links join, in the order of the log.

    The files are those of Kummerfeld et al. (2019): chat logs whose reply links are annotated. The name of whoever
    is spoken to becomes <user>, as in the published data. Messages that no link touches and lines that are no
    messages, such as arrivals, belong to no conversation.
    """
    for annotation in files_below(folder, ANNOTATION):
        stem = annotation.name.removesuffix(ANNOTATION)
        logs = [path for ending in _LOGS if (path := annotation.with_name(stem + ending)).is_file()]
        if not logs:
            raise EnsueError(f"{annotation} has no log {stem}{_LOGS[0]} beside it.")
        lines = [line for _, line in numbered_lines(logs[0], encoding)]
        label = (annotation.parent.relative_to(folder) / stem).as_posix()
        spoken = _utterances(lines)
        for numbers in _joined(annotation, len(lines), encoding):
            utterances = tuple(spoken[number] for number in numbers if number in spoken)
            if utterances:
                place = f"{logs[0]}, line {numbers[0] + 1}"
                yield SourceRow(place, f"{label}:{numbers[0]}", folder.name, sentences=utterances)


def _utterances(lines: list[str]) -> dict[int, str]:
    """Return the messages of a log by the numbers of their lines, without times and names."""
    found = {number: match for number, line in enumerate(lines) if (match := _MESSAGE.match(line))}
    names = {match["who"].lower() for match in found.values()}
    spoken = {}
    for number, match in found.items():
        text = match["text"].strip()
        address = _ADDRESS.match(text)
        if address and address["who"].lower() in names:
            text = SOMEBODY + text[address.end() :]
        if text:
            spoken[number] = text
    return spoken


def _joined(annotation: Path, count: int, encoding: str) -> list[list[int]]:
    """Return the line numbers, from 0, of each group that links join, in order."""
    root: dict[int, int] = {}

    def top(number: int) -> int:
        while root.setdefault(number, number) != number:
            root[number] = root[root[number]]
            number = root[number]
        return number

    for place, line in numbered_lines(annotation, encoding):
        if not line.strip():
            continue
        link = _LINK.fullmatch(line.strip())
        if link is None or max(map(int, link.groups())) >= count:
            raise EnsueError(f"{annotation}, line {place} links no two of the log's {count:,} lines.")
        one, other = sorted((top(int(link[1])), top(int(link[2]))))
        root[other] = one
    groups: dict[int, list[int]] = {}
    for number in sorted(root):
        groups.setdefault(top(number), []).append(number)
    return list(groups.values())
