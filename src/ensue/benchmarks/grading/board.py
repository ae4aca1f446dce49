"""What a board is: a benchmark's questions and labels, ready to check and grade the files of strangers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ensue import lazy
from ensue.benchmarks.grading.problems import Problem, Refused
from ensue.errors import EnsueError

if TYPE_CHECKING:
    from ensue.benchmarks.base import Prepared, Task
    from ensue.report.results import MetricRow
    from ensue.report.table import Table

TEST = "test"
_NAMED = 5


class Column(NamedTuple):
    """A column of a board: the metric rows of a task that have these settings, whatever else they have.

    `main` is the one column that systems are ranked by.
    """

    task: str
    metric: str
    settings: Mapping[str, Any] = {}
    main: bool = False

    def find(self, rows: Iterable[MetricRow]) -> MetricRow | None:
        """Return the row that belongs into this column, None where there is none."""
        for row in rows:
            same = (row["task"], row["metric"]) == (self.task, self.metric)
            if same and all(row["settings"].get(key) == value for key, value in self.settings.items()):
                return row
        return None


@dataclass(frozen=True)
class Graded:
    """What a submission is worth: rows as in results.json, the score it is ranked by, and what was not scored.

    `diagnostics` are rows by category and tag of a diagnostic set; they count in no score. `score` is None where a
    task that counts was not answered. `covers` says what the score is over, and which tasks in part.
    """

    suite: str
    split: str
    metrics: list[MetricRow]
    score: float | None
    diagnostics: list[MetricRow] = field(default_factory=list)
    not_scored: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    covers: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "not_scored": dict(self.not_scored), "notes": list(self.notes)}


class Board(ABC):
    """Questions and labels that were read once, against which any number of files are checked and graded."""

    name: str
    split: str
    # What a submission's file name ends in.
    suffix: str

    @property
    @abstractmethod
    def columns(self) -> list[Column]:
        """The columns of its table, the main one first."""

    def parts(self) -> Mapping[str, str]:
        """Return which tasks are graded on a part of what was published, or on other data, in words.

        The task of the main column is said to be so where others are missing.
        """
        return {}

    @abstractmethod
    def grade(self, file: Path) -> Graded:
        """Grade a submission, or raise `Refused` with everything that is wrong with it."""

    @abstractmethod
    def check(self, file: Path) -> None:
        """Raise `Refused` with everything that is wrong with a submission; nothing is graded."""

    def graded(
        self,
        metrics: list[MetricRow],
        not_scored: Mapping[str, str],
        notes: Sequence[str] = (),
        diagnostics: list[MetricRow] | None = None,
    ) -> Graded:
        """Return what was made of a submission; its score is in the main column, where no task was left out."""
        row = next(column for column in self.columns if column.main).find(metrics)
        score = None if row is None or not_scored else row["value"]
        covers = "" if row is None else str(row["settings"].get("covers", ""))
        return Graded(self.name, self.split, metrics, score, diagnostics or [], not_scored, notes, covers)

    def validate(self, file: Path) -> list[Problem]:
        """Return everything that is wrong with a submission, nothing where it can be graded."""
        try:
            self.check(file)
        except Refused as refused:
            return refused.problems
        return []


@dataclass(frozen=True)
class Submitted:
    """A submission as written: rows by file, the files for which there was nothing, notes, and what was filled in."""

    path: Path
    suite: str
    split: str
    files: Mapping[str, int]
    missing: Sequence[str] = ()
    notes: Sequence[str] = ()
    filled: Sequence[str] = ()

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "path": str(self.path)}


def in_part(counts: Mapping[str, int], published: Mapping[str, int]) -> dict[str, str]:
    """Return of which tasks there are other numbers of items than were published, in words.

    >>> in_part({"RST": 2308, "SSP": 90, "DC": 7}, {"RST": 2308, "SSP": 4000, "DC": 5})
    {'SSP': '90 of 4,000 items', 'DC': '7 items, where 5 were published'}
    """
    found = {}
    for task, count in counts.items():
        known = published.get(task, count)
        if count < known:
            found[task] = f"{count:,} of {known:,} items"
        elif count > known:
            found[task] = f"{count:,} items, where {known:,} were published"
    return found


def without(missing: Sequence[str], of: int, noun: str = "tasks") -> str:
    """Return of how many tasks which ones are missing, in words; nothing where none is.

    >>> without(["SP/wiki", "RST"], 12)
    '10 of 12 tasks, without SP/wiki and RST'
    """
    if not missing:
        return ""
    shown = [*missing[:_NAMED], *([f"{len(missing) - _NAMED} others"] if len(missing) > _NAMED else [])]
    named = " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]
    return f"{of - len(missing)} of {of} {noun}, without {named}"


def one_name(suite: str, tasks: Sequence[str]) -> str:
    """Return the one task or group that was asked for, empty for all."""
    if len(tasks) > 1:
        raise EnsueError(
            f"{suite} is graded whole, by one group or by one task; name one of {', '.join(tasks)}."
        )
    return tasks[0] if tasks else ""


def _seed_of(settings: Mapping[str, str] | None) -> tuple[int, dict[str, str]]:
    """Return the seed of a board, 0 where none is given, and the other settings."""
    given = dict(settings or {})
    seed = given.pop("seed", "0")
    if not (seed.isascii() and seed.isdigit() and len(seed) <= 18):
        raise EnsueError(f"Invalid seed={seed}: expected a whole number from 0.")
    return int(seed), given


class BoardRequest(NamedTuple):
    """What a board is opened on: labels, their split, and tasks and settings of a run, as text; `partial` where whole
    tasks may be left out of a submission."""

    labels: Path
    split: str
    tasks: Sequence[str] = ()
    settings: Mapping[str, str] | None = None
    partial: bool = False


class SubmitRequest(NamedTuple):
    """What a submission is written from; `chosen` settings pick one of several ways in which a run answered.

    Tasks that the run left out are answered by a baseline from the data in `fill_from`, where that is given.
    """

    run: Path
    output: Path | None
    split: str
    chosen: Mapping[str, str]
    fill_from: Path | None = None


class Grader(ABC):
    """What a benchmark names as its `grader`: how submissions are written from a run, and how a board is opened."""

    suite: str
    splits: Sequence[str] = (TEST,)

    @abstractmethod
    def open(self, wanted: BoardRequest) -> Board:
        """Read the questions and labels of a split."""

    @abstractmethod
    def submit(self, wanted: SubmitRequest) -> Submitted:
        """Write the predictions of a run."""

    def knows(self, file: Path) -> bool:
        """Return whether a file looks like a submission to this benchmark."""
        return False

    def grade(self, file: Path, wanted: BoardRequest) -> Graded:
        """Grade one file."""
        return self.open(wanted).grade(file)

    def tables(self, graded: Graded, title: str, tasks: Sequence[str] = ()) -> list[Table]:
        """Return the tables that `ensue grade` prints."""
        from ensue.report.figure import Figure
        from ensue.report.table import Column as TableColumn
        from ensue.report.table import Table

        columns = [TableColumn("task", words=True), TableColumn("metric", words=True)]
        columns += [TableColumn("settings", words=True, fold=True), TableColumn("value"), TableColumn("n")]
        table = Table(columns, title=title)
        for row in [*graded.metrics, *graded.diagnostics]:
            said = ", ".join(f"{key} {value}" for key, value in row["settings"].items())
            low, high = row["ci95"]
            figure = Figure(row["value"], low, high, row["n"], row["clusters"])
            table.add(row["task"], row["metric"], said, figure, row["n"])
        return [table]

    def prepare(self, task: Task, wanted: BoardRequest, name: str, needed: str) -> Prepared:
        """Prepare the run whose questions are asked, by its name; labels hold what is `needed`."""
        from ensue.benchmarks.settings import resolve

        if not wanted.labels.exists():
            raise EnsueError(f"{wanted.labels} is not there; name the file or folder of the {needed}.")
        seed, given = _seed_of(wanted.settings)
        values = resolve(self.suite, task.settings, given)
        return task.prepare(name, str(wanted.labels), None, seed, values)

    def refuse_settings(self, settings: Mapping[str, str] | None) -> None:
        if settings:
            raise EnsueError(f"{self.suite} is graded without settings; leave {', '.join(settings)} out.")

    def choose_split(self, split: str | None) -> str:
        """Return the split asked for, or the first of those there are."""
        if split is not None and split not in self.splits:
            raise EnsueError(f"--split {split} is none of {', '.join(self.splits)}, which {self.suite} has.")
        return split or self.splits[0]


def grader_of(suite: str) -> Grader:
    """Return what grades submissions to a benchmark by its name, or to the board of a board.toml."""
    from ensue.benchmarks import registry

    if suite.endswith(".toml"):
        from ensue.benchmarks.grading.folder import FolderGrader

        return FolderGrader(Path(suite))
    reference = registry.find(suite).grader
    if reference is None:
        known = ", ".join(one.name for one in registry.every() if one.grader is not None)
        raise EnsueError(f"{suite} has no way of grading submissions; there is {known}.")
    found: Grader = lazy.load(reference)
    return found


def open_board(
    suite: str | Path,
    labels: Path,
    split: str | None = None,
    tasks: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
    *,
    partial: bool = False,
) -> Board:
    """Read a board once, to check and grade any number of files: a benchmark by its name, or a board.toml.

    `labels` is the data folder that a run would read, with its labels; `settings` are those of a run, as text. Of a
    benchmark the test split is graded where none is named, of a board.toml the one it names. Where
    `partial` submissions are taken, whole tasks may be left out; what leaves out one that counts has no score.
    """
    grader = grader_of(str(suite))
    return grader.open(BoardRequest(labels, grader.choose_split(split), tasks, settings, partial))


def grade(
    file: str | Path,
    labels: str | Path,
    suite: str | None = None,
    *,
    split: str | None = None,
    tasks: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
) -> Graded:
    """Validate a submission and score it, or raise `Refused` with everything that is wrong with it.

    `labels` is the data folder that a run would read, with its labels. Where no `suite` is named, the
    file shows which benchmark it answers. With `tasks`, only their predictions are wanted.
    """
    file, labels = Path(file), Path(labels)
    grader = grader_of(suite or guess_suite(file))
    return grader.grade(file, BoardRequest(labels, grader.choose_split(split), tasks, settings))


def guess_suite(file: Path) -> str:
    """Return the benchmark that a file is a submission to, by its looks."""
    from ensue.benchmarks import registry

    for one in registry.every():
        if one.grader is not None and grader_of(one.name).knows(file):
            return one.name
    raise EnsueError(f"{file} does not show which benchmark it answers; name it with --suite.")
