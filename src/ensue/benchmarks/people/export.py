"""What people answered in an annotation project, as an export holds it: JSON lines, read without the platform.

The first line says what the project is, every other line is one final answer. Names are pseudonyms. A digest of all
of it stands in the first line, so that numbers are those of what was exported.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

from ensue.benchmarks.people.form import Values
from ensue.errors import EnsueError
from ensue.jsonl import read_lines

# How a project's source ends whose data were uploaded, and are not kept.
UPLOADED = " (uploaded)"
MARK = "annotation"
VERSION = 1
DIGEST = "digest"
_CENTURY = 3.2e9  # seconds
# The states of people whose work does not count.
BARRED = frozenset({"stopped", "excluded", "deleted"})
# The state of answers about what does not count any more, such as reviews of an excluded writer.
SUPERSEDED = "superseded"


@dataclass(frozen=True)
class Person:
    """Somebody at work on a project, by pseudonym, and how they stand."""

    annotator: str
    phase: str = "work"
    state: str = "active"
    reason: str = ""


@dataclass(frozen=True)
class Record:
    """One final answer; `seconds` is time on task without idle time.

    `state` is void where it does not count, superseded where it does not through no fault of whoever gave it.
    """

    key: Mapping[str, Any]
    annotator: str
    values: Values
    phase: str = "work"
    group: str = ""
    stage: str = ""
    control: bool = False
    gold: Values | None = None
    right: bool | None = None
    hasty: bool = False
    state: str = "answered"
    seconds: float = 0.0
    elapsed: float = 0.0
    saved_at: str = ""

    @property
    def item(self) -> str:
        """The id of what was answered."""
        return str(self.key.get("id", ""))

    @property
    def counts(self) -> bool:
        """Whether it is part of the result: work, no control, not void."""
        return self.phase == "work" and not self.control and self.state == "answered"

    @property
    def owed(self) -> bool:
        """Whether it is paid: work, controls too, that is not void."""
        return self.phase == "work" and self.state in {"answered", SUPERSEDED}


@dataclass(frozen=True)
class Export:
    """A project's answers. `fields` says of what type (`form.py`) the values of each field are; `wanted` how many
    answers the work of each stage is to have, where it is known."""

    project: str
    kind: str
    records: tuple[Record, ...]
    title: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    source: str = ""
    state: str = ""
    people: tuple[Person, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    wanted: Mapping[str, int] = field(default_factory=dict)
    counted: bool = True  # whether the first line said how many answers there are, as older ones did not

    @classmethod
    def of(
        cls, header: Mapping[str, Any], lines: Iterable[Mapping[str, Any]], place: str = "The export"
    ) -> Export:
        """Make one of its first line and the others, as JSON has them."""
        if header.get("ensue") != MARK:
            raise EnsueError(
                f"{place} is no export of an annotation project: its first line does not say so."
            )
        if header.get("version") != VERSION:
            said = json.dumps(header.get("version"))[:40]
            raise EnsueError(f"{place} is an export of version {said}; this Ensue reads version {VERSION}.")
        try:
            found, wanted = list(lines), header.get("answers")
            if wanted is not None and wanted != len(found):
                raise EnsueError(
                    f"{place} has {len(found):,} of the {wanted:,} answers that were exported; it was cut off or"
                    " edited, so export the project again."
                )
            if DIGEST in header and header[DIGEST] != digest_of(header, found):
                raise EnsueError(f"{place} was edited after it was exported; export the project again.")
            records = tuple(_record(line, f"{place}, answer {n}") for n, line in enumerate(found, 1))
            people = tuple(_person(one) for one in header.get("participants", ()))
            return cls(
                str(header["project"]),
                str(header["kind"]),
                records,
                str(header.get("title") or ""),
                dict(header.get("settings") or {}),
                int(header.get("seed") or 0),
                str(header.get("source") or ""),
                str(header.get("state") or ""),
                people,
                dict(header.get("fields") or {}),
                dict(header.get("wanted") or {}),
                wanted is not None,
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            raise EnsueError(f"{place} is damaged; export the project again.") from None

    def answers(self, stage: str | None = None) -> Iterator[Record]:
        """Yield the answers that count, or those of one stage."""
        return (one for one in self.records if one.counts and stage in (None, one.stage))

    def refuse_empty(self) -> NoReturn:
        """Say why no answer counts: there is none, or whoever gave them was stopped or excluded."""
        if any(one.phase == "work" and not one.control for one in self.records):
            raise EnsueError(
                f"No answer in the project {self.project} counts: whoever gave one was stopped, excluded or deleted."
            )
        raise EnsueError(f"Nobody has answered anything in the project {self.project} yet.")

    def data(self, moved: str | None = None) -> str:
        """Return where the project's data lie: what is named now, or what it was made of."""
        if moved is None and self.source.endswith(UPLOADED):
            raise EnsueError(
                f"The project's data were uploaded as {self.source.removesuffix(UPLOADED)} and are not kept;"
                " name them with --data."
            )
        return moved or self.source

    @property
    def annotators(self) -> tuple[str, ...]:
        """Everybody in the project, those who entered first before the others."""
        named = (one.annotator for one in self.people)
        return tuple(dict.fromkeys([*named, *(one.annotator for one in self.records)]))


def digest_of(header: Mapping[str, Any], lines: Iterable[Mapping[str, Any]]) -> str:
    """Return the digest of an export, which its first line has besides what is counted here."""
    found = hashlib.sha256()
    first = {key: value for key, value in header.items() if key != DIGEST}
    for line in chain([first], lines):
        found.update(json.dumps(line, sort_keys=True).encode())
    return found.hexdigest()


def read(path: str | Path, kind: str | None = None) -> Export:
    """Read an export; `kind` refuses one of another kind of project."""
    path = Path(path).expanduser()
    lines = read_lines(path)
    first = next(lines, None)
    if first is None:
        raise EnsueError(f"{path} is empty; export the project again.")
    found = Export.of(first[1], (line for _, line in lines), str(path))
    if kind is not None and found.kind != kind:
        raise EnsueError(f"{path} is of a project of kind {found.kind}, where one of kind {kind} is needed.")
    return found


@contextmanager
def refusing_edited(place: str | Path) -> Iterator[None]:
    """Refuse, in a sentence, an export whose answers are none of its kind: anybody may have edited the file."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise EnsueError(
            f"{place} has an answer that no project of its kind exports; export the project again."
        ) from error


def _person(line: Mapping[str, Any]) -> Person:
    return Person(
        str(line["annotator"]), str(line["phase"]), str(line["state"]), str(line.get("reason") or "")
    )


def _time(value: Any) -> float:
    """Return seconds; nobody takes longer over an item than a century."""
    seconds = float(value or 0.0)
    if not 0 <= seconds <= _CENTURY:
        raise ValueError(f"{seconds} seconds")
    return seconds


def _record(line: Mapping[str, Any], place: str) -> Record:
    key, values, gold = line.get("key"), line.get("values"), line.get("gold")
    if not isinstance(key, dict) or not isinstance(values, dict) or not isinstance(gold, dict | None):
        raise EnsueError(f"{place} has no key and values, or gold that is no object.")
    if not isinstance(line["annotator"], str) or not line["annotator"]:
        raise EnsueError(f"{place} does not say whose it is.")
    return Record(
        key,
        line["annotator"],
        values,
        str(line.get("phase", "work")),
        str(line.get("group") or ""),
        str(line.get("stage") or ""),
        bool(line.get("control", False)),
        gold,
        line.get("right"),
        bool(line.get("hasty", False)),
        str(line.get("state", "answered")),
        _time(line.get("seconds")),
        _time(line.get("elapsed")),
        str(line.get("saved_at") or ""),
    )
