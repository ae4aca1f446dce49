"""PDTB: the arguments of explicit or implicit relations and their second-level sense, from LDC's .pipe files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from ensue.benchmarks.discoeval.builders.common import Building, Split, files_below, numbered_lines, one_line
from ensue.errors import EnsueError

Kind = Literal["Explicit", "Implicit"]
_KINDS = frozenset({"Explicit", "Implicit", "AltLex", "EntRel", "NoRel"})
_TOP = frozenset({"Comparison", "Contingency", "Expansion", "Temporal"})

# The 48 columns of PDTB 2.0's pipe-delimited format, those that are read, counted from 0.
_COLUMNS = 48
_KIND, _SECTION, _FILE, _ARGUMENT_1, _ARGUMENT_2 = 0, 1, 2, 24, 34
# Two senses of the first connective, two of the second.
_SENSES = slice(11, 15)
_FILE_NAME = re.compile(r"wsj_(\d\d)\d\d$", re.IGNORECASE)
_LAST_SECTION = 24

# A sense with fewer relations in the training sections is left out.
FEWEST = 10


class Relation(NamedTuple):
    """A relation: its document, its section, its senses cut to the second level, and its arguments."""

    document: str
    section: int
    senses: tuple[str, ...]
    first: str
    second: str


def split_of(section: int) -> Split | None:
    """Return the split a section of the Wall Street Journal belongs to; the paper leaves out 0, 1 and 24.

    >>> split_of(2), split_of(15), split_of(23), split_of(24)
    ('train', 'valid', 'test', None)
    """
    if 2 <= section <= 14:
        return "train"
    if 15 <= section <= 18:
        return "valid"
    return "test" if 19 <= section <= 23 else None


def second_level(sense: str) -> str | None:
    """Return a sense without its third level, None where it has no second.

    >>> second_level("Contingency.Cause.Reason"), second_level("Expansion")
    ('Contingency.Cause', None)
    """
    parts = [part.strip() for part in sense.split(".")]
    return ".".join(parts[:2]) if len(parts) > 1 and parts[1] else None


def build_relations(made: Building) -> None:
    """Make a line for each relation and second-level sense, one of two senses twice, as published."""
    kind: Kind = "Explicit" if made.spec.name == "PDTB/explicit" else "Implicit"
    senses: dict[Split, list[tuple[Relation, str]]] = {split: [] for split in made.lines}
    for relation in read_relations(made.source, kind, made.options.encoding, made.skipped):
        split = split_of(relation.section)
        if split is None:
            made.skipped["relations of sections 0, 1 and 24"] += 1
        elif not relation.senses:
            made.skipped["relations without a sense of the second level"] += 1
        elif not relation.first or not relation.second:
            made.skipped["relations with an empty argument"] += 1
        else:
            senses[split] += [(relation, sense) for sense in relation.senses]
    counts = Counter(sense for _, sense in senses["train"])
    made.labels = tuple(sorted(sense for sense, count in counts.items() if count >= FEWEST))
    if len(made.labels) < 2:
        raise EnsueError(
            f"{made.source} has {len(made.labels)} senses with {FEWEST} or more {kind.lower()} relations in sections "
            f"2 to 14, where at least two are needed."
        )
    numbers = {sense: number for number, sense in enumerate(made.labels)}
    for split, found in senses.items():
        for relation, sense in found:
            if sense not in numbers:
                made.skipped[f"relations of a sense with fewer than {FEWEST} in training"] += 1
                continue
            made.lines[split].add_row(relation.document, numbers[sense], (relation.first, relation.second))
        if not made.lines[split]:
            raise EnsueError(
                f"{made.source} has no {kind.lower()} relation for {split}: is a section missing?"
            )


def read_relations(source: str, kind: Kind, encoding: str, skipped: Counter[str]) -> Iterator[Relation]:
    """Read the relations of a kind in a .pipe file, or in those of a folder and below by name."""
    path = Path(source).expanduser()
    if path.is_dir():
        files = files_below(path, ".pipe")
        if not files:
            raise EnsueError(f"{source} holds no .pipe file; make them of .pdtb with LDC's own converter.")
    elif path.is_file():
        files = [path]
    else:
        raise EnsueError(
            f"{source or 'The source of relations'} does not exist: give a folder of .pipe files."
        )
    for file in files:
        for number, line in numbered_lines(file, encoding):
            if not line.strip():
                continue
            columns = [column.strip() for column in line.split("|")]
            place = f"{file}, line {number}"
            if len(columns) != _COLUMNS:
                raise EnsueError(f"{place} has {len(columns)} columns, where the pipe format has {_COLUMNS}.")
            if columns[_KIND] not in _KINDS:
                raise EnsueError(f"{place} is not a type of relation: {columns[_KIND][:40]!r}.")
            if columns[_KIND] != kind:
                skipped["relations of another type"] += 1
                continue
            yield _relation(columns, file, place)


def _relation(columns: list[str], file: Path, place: str) -> Relation:
    section = _section(columns, file, place)
    senses = [sense for sense in columns[_SENSES] if sense]
    for sense in senses:
        if sense.partition(".")[0] not in _TOP:
            raise EnsueError(f"{place} has {sense[:60]!r} as a sense, which is none of the PDTB 2.0.")
    found = dict.fromkeys(name for sense in senses if (name := second_level(sense)))
    document = f"{section:02d}/{columns[_FILE]}"
    return Relation(
        document, section, tuple(found), one_line(columns[_ARGUMENT_1]), one_line(columns[_ARGUMENT_2])
    )


def _section(columns: list[str], file: Path, place: str) -> int:
    """Return the section that the line states; a file such as wsj_0203.pipe must agree, or stands in for it."""
    named = _FILE_NAME.match(file.stem)
    stated = columns[_SECTION] or (named[1] if named else "")
    if not (stated.isascii() and stated.isdigit() and int(stated) <= _LAST_SECTION):
        raise EnsueError(
            f"{place} has {stated[:40]!r} as its section, where 0 to {_LAST_SECTION} is expected."
        )
    if named and int(named[1]) != int(stated):
        raise EnsueError(f"{place} says section {int(stated)}, but the file's name says {int(named[1])}.")
    return int(stated)
