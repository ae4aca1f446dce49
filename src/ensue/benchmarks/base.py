"""What every benchmark is: settings, items made from data, and scores made from a model's outputs."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NotRequired, Protocol, TypedDict

from ensue.models.protocols import Model
from ensue.records import Records
from ensue.scoring.journal import Journal

# How the names of files begin that a run keeps beside its records until it is finished.
KEPT = ".kept-"


class Item(TypedDict):
    """One line of items.jsonl: enough to score again without the model.

    `content` is the digest that `content_of` makes of what was asked; runs are paired by it.
    """

    id: str
    cluster: str
    task: str
    settings: dict[str, Any]
    scores: dict[str, float]
    outputs: dict[str, Any]
    content: NotRequired[str]


class MetricRow(TypedDict):
    """One row of results.json; values are fractions."""

    task: str
    metric: str
    value: float
    ci95: list[float | None]
    n: int
    clusters: int
    settings: dict[str, Any]


def content_of(*parts: Any) -> str:
    """A short digest of an item's own texts and gold, never of settings or of what a model made of them.

    Two runs may be compared on an item where it is the same in both, whatever the item is called.

    >>> content_of("A question.", ["yes", "no"], "yes")
    '3167dd8609d82cd7'
    """
    # With escapes, since a file of a hub may hold half of a surrogate pair, which has no UTF-8.
    return hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()[:16]


def covers(tasks: int, of: int, limit: int | None) -> str:
    """What an average is over, for its row's settings.

    >>> covers(9, 12, None), covers(12, 12, 20)
    ('9 of 12 tasks', '12 of 12 tasks, the first 20 lines of each file')
    """
    return f"{tasks} of {of} tasks" + ("" if limit is None else f", the first {limit:,} lines of each file")


# Called with (done, total, unit).
Progress = Callable[[int, int, str], None]
# A model by its name.
LoadModel = Callable[[str], Model]


@dataclass
class Setting:
    """One `--set key=value`: its default, what it means, and how it is read and checked."""

    default: Any
    about: str
    read: Callable[[str], Any]


@dataclass
class RunContext:
    """What a run lends a benchmark: a journal, a place for extra files, someone to tell of progress, how to load a
    further model as the run's own was loaded, and the records of what is finished, which hold the journal too.

    A benchmark deletes none of what it keeps here: the run does, once its results are in place.
    """

    journal: Journal | None = None
    folder: Path | None = None
    progress: Progress | None = None
    load: LoadModel | None = None
    records: Records = field(default_factory=Records)

    def kept_file(self, name: str) -> Path | None:
        """Where a file stands that is too large for a record; None where a run has no folder."""
        return None if self.folder is None else self.folder / f"{KEPT}{name}"


@dataclass
class Outcome:
    """What a benchmark hands back: items, metric rows, and an account of what was left out.

    The signature states the model and the benchmark's own choices; the run puts version, data and limit before it.
    """

    items: Iterator[Item] | list[Item]
    metrics: list[MetricRow]
    signature: str
    skipped: dict[str, int]
    tokens: int
    extras: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    notes: Counter[str] = field(default_factory=Counter)


class Prepared(Protocol):
    """A benchmark with its data read and its settings fixed."""

    @property
    def fingerprint(self) -> str:
        """A digest of the data."""

    @property
    def source(self) -> str: ...

    def evaluate(self, model: Model, context: RunContext) -> Outcome: ...


class Benchmark(Protocol):
    """A benchmark as the registry knows it."""

    name: str
    about: str
    settings: Mapping[str, Setting]

    def prepare(
        self, task: str, data: str | None, limit: int | None, seed: int, settings: dict[str, Any]
    ) -> Prepared: ...
