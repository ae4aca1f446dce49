"""Conversations of chat logs whose reply links are annotated, in the files of Kummerfeld et al. (2019)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ensue.benchmarks.discoeval.builders.common import files_below, numbered_lines
from ensue.errors import EnsueError
from ensue.text.io.rows import SourceRow

ANNOTATION = ".annotation.txt"
# The log beside an annotation: as it was written, or else in ASCII.
_LOGS = (".raw.txt", ".ascii.txt")
_MESSAGE = re.compile(r"\[\d\d:\d\d\] <(?P<who>[^>\s]+)> ?(?P<text>.*)")
_ADDRESS = re.compile(r"(?P<who>[^\s:,]+)(?=\s?[:,])")
_LINK = re.compile(r"(\d{1,9}) (\d{1,9}) -")
SOMEBODY = "<user>"


def read_conversations(folder: Path, encoding: str) -> Iterator[SourceRow]:
    """Every conversation as a row of utterances: the messages that links join, in the order of the log.

    The name of whoever is spoken to becomes <user>, as in the published data. Messages that no link touches
    and lines that are no messages, such as arrivals, belong to no conversation.
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
    """The messages of a log by the numbers of their lines, without times and names."""
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
    """The line numbers, from 0, of each group that links join, in order."""
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
