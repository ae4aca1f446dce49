"""Kinds of annotation projects: what makes the items that people are given, and judges those that have a gold answer.

A benchmark names its kinds as `people` (by name, `module:object`); another package may name one under the entry point
group `ensue.annotation`. `custom` belongs to nobody.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from ensue import lazy
from ensue.atomic import replacing
from ensue.benchmarks import registry
from ensue.benchmarks import settings as read
from ensue.benchmarks.base import Setting
from ensue.benchmarks.people.export import BARRED, Export, Record, refusing_edited
from ensue.benchmarks.people.export import read as read_export
from ensue.benchmarks.people.form import Form, Values
from ensue.errors import EnsueError
from ensue.report.figure import Figure
from ensue.report.results import MetricRow
from ensue.stats.ranges import SHARE, Bounds

Phase = Literal["training", "qualification", "work"]
PHASES: tuple[Phase, ...] = ("training", "qualification", "work")
_GROUP = "ensue.annotation"
_OWN = {"custom": "ensue.benchmarks.people.custom:KIND"}


@dataclass(frozen=True)
class WorkItem:
    """One item of a project.

    `key` says what it is in the benchmark, and goes into the export. `gold` are the values expected, for feedback,
    qualification and controls; `words` is said after a training item. `wanted` is how many people answer it, where it
    is not as many as the project's `labels`. `authors` wrote what it shows and are never given it, `among` are the
    only ones who are (both are pseudonyms). Items of one `group` are given to a person one after another. `secret` is
    for the kind alone.
    """

    form: Form
    key: Mapping[str, Any] = field(default_factory=dict)
    phase: Phase = "work"
    group: str = ""
    stage: str = ""
    control: bool = False
    gold: Values | None = None
    words: str = ""
    wanted: int | None = None
    authors: tuple[str, ...] = ()
    among: tuple[str, ...] = ()
    secret: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Done:
    """A final answer to an item of a group that counts, with the item: what later stages are made of."""

    key: Mapping[str, Any]
    stage: str
    annotator: str
    values: Values
    seconds: float
    position: int
    form: Form
    secret: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Earned:
    """What somebody is owed: for the work, and on top of it."""

    pay: Fraction
    bonus: Fraction


class Judged(NamedTuple):
    """A value that people can agree on: of which item, of which part of it, in answer to which field, called what."""

    item: str
    part: str
    field: str
    name: str
    value: Any


@dataclass(frozen=True)
class Files:
    """An export in a benchmark's own format: texts by path within a folder, and what is to be said of them."""

    texts: Mapping[str, str]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Built:
    """What a kind makes of data: items in the order they are given, and a page of instructions in Markdown."""

    title: str
    instructions: str
    items: Sequence[WorkItem]
    source: str = ""
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Reads:
    """What a kind is made of: `about` says what the data are. Without any, some take the bundled documents
    (`bundled`); some read a folder alone (`folder`)."""

    about: str
    bundled: bool = False
    folder: bool = False


DOCUMENTS = Reads(
    "Documents: JSON lines with `text` or `sentences`, text files, or a folder of either.", bundled=True
)


class Kind(Protocol):
    """A kind of project. `settings` are its own `--set`; `defaults` change those of every project (`COMMON`).

    `reads` says what its data are. `follows` is whether later stages are made of what was answered, by `follow`.
    """

    name: str
    about: str
    reads: Reads
    settings: Mapping[str, Setting]
    defaults: Mapping[str, Any]
    follows: bool

    def preset(self, data: str | None) -> Mapping[str, Any]:
        """Return settings that the data makes; `--set` comes before them."""

    def build(self, data: str | None, settings: Mapping[str, Any], seed: int) -> Built:
        """Make the items of a project. `data` is the file or folder named with `--data`."""

    def right(self, gold: Values, values: Values) -> bool:
        """Return whether an answer agrees with the gold one."""

    def follow(self, group: str, done: Sequence[Done]) -> Sequence[WorkItem]:
        """Return the items that come after the answers of a group; those there are by their id are not added."""

    def files(self, export: Export, data: str | None) -> Files:
        """Return an export as the kind's benchmark reads it. `data` is what the project was made of, if moved."""

    def scores(self, export: Export) -> list[MetricRow]:
        """Return how right the work is, where gold answers are known, as rows of results.json."""

    def earned(self, export: Export) -> Mapping[str, Earned]:
        """Return what everybody is owed, by pseudonym."""

    def judged(self, record: Record) -> Iterable[Judged]:
        """Return what an answer says, of things that others answer for, too."""


class Plain:
    """What most kinds share: an answer is right where every gold value is given."""

    reads = Reads("A file or a folder.")
    settings: Mapping[str, Setting] = {}
    defaults: Mapping[str, Any] = {}
    follows = False

    def preset(self, data: str | None) -> Mapping[str, Any]:
        return {}

    def right(self, gold: Values, values: Values) -> bool:
        return all(values.get(key) == value for key, value in gold.items())

    def follow(self, group: str, done: Sequence[Done]) -> Sequence[WorkItem]:
        return ()

    def files(self, export: Export, data: str | None) -> Files:
        raise EnsueError(f"A project of kind {export.kind} has no format besides the export itself.")

    def scores(self, export: Export) -> list[MetricRow]:
        """Return the share of answers that are right, and of items that most are right about, a tie as half."""
        judged: dict[str, list[float]] = {}
        for one in export.answers():
            if one.right is not None:
                judged.setdefault(one.item, []).append(float(one.right))
        if not judged:
            return []
        items = [item for item, given in judged.items() for _ in given]
        right = [value for given in judged.values() for value in given]
        rows = [mean_row(export.kind, "accuracy", right, items)]
        if len(right) > len(judged):
            shares = [sum(given) / len(given) for given in judged.values()]
            votes = [0.5 if share == 0.5 else float(share > 0.5) for share in shares]
            rows.append(mean_row(export.kind, "accuracy_majority", votes, list(judged)))
        return rows

    def earned(self, export: Export) -> Mapping[str, Earned]:
        """Return `pay` for every answer; `bonus` for those not too fast, of people who missed no control."""
        pay, bonus = (Fraction(str(export.settings.get(name) or 0)) for name in ("pay", "bonus"))
        given = [one for one in export.records if one.owed]
        failed = {one.annotator for one in export.people if one.state in BARRED}
        failed |= {one.annotator for one in export.records if one.control and one.right is False}
        answers = Counter(one.annotator for one in given)
        careful = Counter(one.annotator for one in given if not one.hasty and one.annotator not in failed)
        return {name: Earned(pay * n, bonus * careful[name]) for name, n in answers.items()}

    def judged(self, record: Record) -> Iterable[Judged]:
        """Return every value, each of the item that was answered."""
        return [Judged(record.item, "", name, name, value) for name, value in record.values.items()]


def mean_row(
    task: str,
    metric: str,
    values: Sequence[float],
    items: Sequence[str],
    bounds: Bounds = SHARE,
    **settings: Any,
) -> MetricRow:
    """Return the mean of what answers are worth as a row of results.json; an item's answers are resampled whole."""
    from ensue.stats.clustered import clustered_interval  # with numpy, which those who ask people do without

    return Figure(*clustered_interval(values, items, bounds=bounds)).row(task, metric, settings)


def between(least: float, most: float) -> Callable[[str], float]:
    """Read a number from `least` to `most`."""

    def reading(text: str) -> float:
        value = read.number(text)
        if not least <= value <= most:
            raise ValueError(f"a number from {least:g} to {most:g}")
        return value

    return reading


def _bar(text: str) -> str | float | None:
    if text in {"median", "none"}:
        return "median" if text == "median" else None
    return between(0, 1)(text)


def _address(text: str) -> str:
    if text and not re.fullmatch(r"https?://[^\s/]\S*", text, re.ASCII | re.IGNORECASE):
        raise ValueError("an address that begins with https:// or http://")
    return text


MOST_LABELS = 1000
_LONGEST_LEASE = 100_000  # minutes
# What every project may be told with --set, whatever its kind.
COMMON: dict[str, Setting] = {
    "labels": Setting(5, "people per item", read.whole(1, MOST_LABELS)),
    "lease_minutes": Setting(
        30, "minutes without activity after which work is given to others", read.whole(1, _LONGEST_LEASE)
    ),
    "most_items": Setting(None, "most work items per person (none: all)", read.optional(read.whole())),
    "bar": Setting(None, "to qualify: median, a fraction of items right, or none", _bar),
    "control_rate": Setting(0.1, "controls among the work, as a fraction", between(0, 0.5)),
    "most_missed": Setting(1, "controls that a person may miss before being stopped", read.whole(0)),
    "minimum_seconds": Setting(0.0, "an answer given faster is too fast", between(0, 3600)),
    "most_hasty": Setting(2, "answers that may be too fast before a person is stopped", read.whole(0)),
    "pay": Setting(0.0, "paid for a work item", between(0, 10_000)),
    "bonus": Setting(0.0, "paid on top for one that passed every check", between(0, 10_000)),
    "currency": Setting("", "currency of payments", read.text),
    "completion_code": Setting("", "completion code shown to a person at the end", read.text),
    "completion_url": Setting("", "URL that a person is sent to at the end", _address),
    "consent": Setting("", "the consent page, in Markdown (otherwise ours)", read.text),
    "contact": Setting("", "contact address on the consent page", read.text),
}


def settings_of(kind: Kind) -> dict[str, Setting]:
    """Return every setting of a project of that kind, with the kind's own defaults."""
    common = {
        key: Setting(kind.defaults.get(key, one.default), one.about, one.read) for key, one in COMMON.items()
    }
    return common | dict(kind.settings)


def described(name: str) -> dict[str, Any]:
    """Return a kind as a program lists it: what people do, what it is made of, and its settings."""
    found = kind(name)
    settings = {
        key: {"default": one.default, "about": one.about, "choices": list(read.choices_of(one.read))}
        for key, one in settings_of(found).items()
    }
    return {"name": name, "about": found.about, "data": found.reads.about, "settings": settings}


def kinds() -> dict[str, str]:
    """Return where each kind is, as `module:object`, by name; nothing is imported."""
    named = {name: where for one in registry.every() for name, where in one.people.items()}
    return dict(_others()) | named | _OWN


@cache
def _others() -> tuple[tuple[str, str], ...]:
    """Return the kinds of other packages; found once, since every installed package is looked at."""
    return tuple((point.name, point.value) for point in entry_points(group=_GROUP))


def kind(name: str) -> Kind:
    """Return the kind of a name."""
    known = kinds()
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there is {', '.join(sorted(known))}."
        raise EnsueError(f"There is no kind of annotation {name!r}; {hint}")
    found: Kind = lazy.load(known[name])
    return found


def convert(path: str | Path, folder: Path, data: str | None = None) -> Files:
    """Write an export in the format of its kind's benchmark to a folder, which must be new or empty."""
    export = read_export(path)
    with refusing_edited(path):
        files = kind(export.kind).files(export, data)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise EnsueError(f"{folder} is there already and not empty; choose another --output.")
    with replacing(folder) as part:
        for name, text in files.texts.items():
            (part / name).parent.mkdir(parents=True, exist_ok=True)
            (part / name).write_text(text, "utf-8")
    return files


def instructions(module: str, name: str) -> str:
    """Return a page of instructions that lies as `NAME.md` beside a module's file."""
    return (Path(module).parent / f"{name}.md").read_text("utf-8")
