"""What every benchmark is: settings, items made from data, and scores made from a model's outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable

from ensue import lazy
from ensue.errors import EnsueError
from ensue.progress import Progress, ignore

if TYPE_CHECKING:
    from ensue.models.card import ModelCard
    from ensue.models.protocols import Model
    from ensue.records import Records
    from ensue.report.results import Item, MetricRow
    from ensue.scoring.journal import Journal

# How the names of files begin that a run keeps beside its records until it is finished.
KEPT = ".kept-"
# How the names of people begin who are a run's model, as in `human:EXPORT`.
HUMAN = "human:"
# The kind of model that people are, who are named so.
PEOPLE = "human"


def content_of(*parts: Any) -> str:
    """Return a short digest of an item's own texts and gold, never of settings or of what a model made of them.

    Two runs may be compared on an item where it is the same in both, whatever the item is called.

    >>> content_of("A question.", ["yes", "no"], "yes")
    '3167dd8609d82cd7'
    """
    import hashlib
    import json

    # With escapes, since a file of a hub may hold half of a surrogate pair, which has no UTF-8.
    return hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()[:16]


def covers(tasks: int, of: int, limit: int | None) -> str:
    """Return what an average is over, for its row's settings.

    >>> covers(9, 12, None), covers(12, 12, 20)
    ('9 of 12 tasks', '12 of 12 tasks, the first 20 lines of each file')
    """
    return f"{tasks} of {of} tasks" + ("" if limit is None else f", the first {limit:,} lines of each file")


# A model by its name.
LoadModel = Callable[[str], "Model"]


@dataclass
class Setting:
    """One `--set key=value`: its default, what it means, and how it is read and checked."""

    default: Any
    about: str
    read: Callable[[str], Any]


def _in_memory() -> Records:
    from ensue.records import Records

    return Records()


@dataclass
class RunContext:
    """What a run lends a benchmark: a journal, a folder for extra files, progress, how to load a further model as
    the run's own was loaded, and the records of what is finished, which hold the journal too.

    A benchmark deletes none of what it keeps here: the run does, once its results are in place.
    """

    journal: Journal | None = None
    folder: Path | None = None
    progress: Progress = ignore
    load: LoadModel | None = None
    records: Records = field(default_factory=_in_memory)

    def load_further(self, name: str) -> Model:
        """Load a model beside the run's own; a run remembers those it has loaded."""
        if self.load is None:
            raise EnsueError(f"This run cannot load {name}: its context has no way to load a further model.")
        return self.load(name)

    def kept_file(self, name: str) -> Path | None:
        """Return where a file stands that is too large for a record; None where a run has no folder."""
        return None if self.folder is None else self.folder / f"{KEPT}{name}"


@dataclass
class Outcome:
    """What a benchmark hands back: items, metric rows, and an account of what was left out.

    The signature states the model and the benchmark's own choices; the run puts version, data and limit before it.
    """

    items: Iterable[Item]
    metrics: list[MetricRow]
    signature: str
    skipped: dict[str, int]
    tokens: int
    extras: Mapping[str, Iterable[dict[str, Any]]] = field(default_factory=dict)
    notes: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class NamedSystem:
    """A system of a benchmark that is a name and a card: the benchmark knows what it does."""

    card: ModelCard

    @classmethod
    def of(cls, name: str, kind: str, **identity: str) -> NamedSystem:
        """Return the system of a name; `kind` and `identity` go onto its card."""
        from ensue.models.card import ModelCard

        return cls(ModelCard(name=name, kind=kind, source="ensue", identity=identity, licence="Apache-2.0"))


class Prepared(Protocol):
    """A benchmark with its data read and its settings fixed. It may state the `dtype` its model is loaded in."""

    @property
    def fingerprint(self) -> str:
        """A digest of the data."""

    @property
    def source(self) -> str: ...

    def evaluate(self, model: Model, context: RunContext) -> Outcome: ...


class ReadData(Protocol):
    """Data that were read from somewhere."""

    @property
    def fingerprint(self) -> str: ...

    @property
    def source(self) -> str: ...


Data = TypeVar("Data", bound=ReadData)


@dataclass(frozen=True)
class DataRun(Generic[Data]):
    """A benchmark with its data read and its settings fixed; one adds how a model is evaluated."""

    data: Data
    settings: dict[str, Any]

    @property
    def fingerprint(self) -> str:
        return self.data.fingerprint

    @property
    def source(self) -> str:
        return self.data.source


@runtime_checkable
class Depending(Protocol):
    """A prepared benchmark whose results depend on more than its data, its settings and the model's weights."""

    def depends_on(self, model: Model) -> dict[str, Any]:
        """Return what that is, by name: a run of anything else is another run."""


@runtime_checkable
class Guided(Protocol):
    """A prepared benchmark that asks a model for more by what it has answered, which a plan can only assume."""

    def assumed(self, model: Model) -> str:
        """Say what a plan takes for granted; empty where nothing depends on answers."""


class Task(Protocol):
    """What makes the items of a benchmark and judges a model's outputs."""

    @property
    def settings(self) -> Mapping[str, Setting]: ...

    def prepare(
        self, task: str, data: str | None, limit: int | None, seed: int, settings: dict[str, Any]
    ) -> Prepared: ...


@dataclass(frozen=True)
class PreparedTask:
    """A task of the settings it has and the function that makes its items, as `Task.prepare` does."""

    settings: Mapping[str, Setting]
    prepare: Callable[[str, str | None, int | None, int, dict[str, Any]], Prepared]


@dataclass(frozen=True)
class Baseline:
    """A system of a benchmark's own, which `--model NAME` finds: a function of its name, and a line about it."""

    load: str
    about: str


@dataclass(frozen=True)
class Builder:
    """What makes data: the function that becomes `ensue build NAME`, and the one that `ensue.build` calls."""

    command: str
    build: str | None = None


@dataclass(frozen=True)
class Benchmark:
    """A benchmark as the registry knows it: its name, and where its parts are, as `module:object`.

    Nothing is imported before it is asked for. A package of its own names one such object under the entry point
    group `ensue.benchmarks`.

    - `task`: a `Task`.
    - `comparing`: how two runs are compared (`benchmarks.comparing.Comparing`); the means of scores without one.
    - `tables`: a function of (results, run folder or None) that returns the `Table`s of a run, for the terminal.
    - `page`: the `report.page.Page` of its runs.
    - `systems`: by name, what `--model NAME` stands for in this benchmark alone.
    - `builders`: by name, what makes its data from raw works.
    - `grader`: its `grading.board.Grader`, which writes submissions and grades them.
    - `commands`: by name, functions that become `ensue NAME`.
    - `people`: by name, kinds of annotation projects (`people.kind.Kind`), which `ensue annotate create` knows.
    """

    name: str
    about: str
    task: str
    default_model: str = "smollm2"
    comparing: str | None = None
    tables: str | None = None
    page: str | None = None
    grader: str | None = None
    systems: Mapping[str, Baseline] = field(default_factory=dict)
    builders: Mapping[str, Builder] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)
    people: Mapping[str, str] = field(default_factory=dict)

    def load_task(self) -> Task:
        """Import what makes and judges its items."""
        found: Task = lazy.load(self.task)
        return found
