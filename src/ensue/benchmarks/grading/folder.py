"""An organiser's own board: a folder of labels, and a board.toml that says what they are and how they are judged."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.base import content_of
from ensue.benchmarks.drawn import Drawn, mean_of_metrics, mean_of_samples
from ensue.benchmarks.grading import measures
from ensue.benchmarks.grading.board import (
    TEST,
    Board,
    BoardRequest,
    Column,
    Graded,
    Grader,
    SubmitRequest,
    Submitted,
)
from ensue.benchmarks.grading.predictions import PredictedLine, PredictionsBoard, Question
from ensue.benchmarks.grading.problems import Limits, LineCutter, Problems, Refused
from ensue.benchmarks.grading.values import (
    Wrong,
    decode,
    label_of,
    member,
    number_of,
    object_of,
    parse_json,
    shown,
    text_of,
)
from ensue.errors import EnsueError, hint
from ensue.jsonl import read_toml

_SCORE = "score"
_MOST_CLASSES = 1_000
_LONGEST = 20_000
# Kendall's tau is drawn from a table of all pairs of items, which would fill the memory.
_MOST_FOR_KENDALL = 2_000
# What a board.toml may say, and what kind of value that is.
_BOARD_KEYS: Mapping[str, type] = {"name": str, "about": str, "split": str, "tasks": dict}
_TASK_KEYS: Mapping[str, type] = {
    "labels": str,
    "metrics": list,
    "id": str,
    "label": str,
    "cluster": str,
    "asked": list,
    "positive": str,
    "classes": list,
    "counts": bool,
}
_NOUNS = {str: "a text", list: "a list of texts", dict: "a table", bool: "true or false"}


@dataclass(frozen=True)
class FolderTask:
    """A task of a board: its file of labels, its metrics, and which columns hold what."""

    name: str
    labels: str
    metrics: tuple[str, ...]
    id: str = "id"
    label: str = "label"
    cluster: str | None = None
    asked: tuple[str, ...] = ()
    positive: str | None = None
    classes: tuple[str, ...] = ()
    counts: bool = True

    @property
    def kind(self) -> measures.Kind:
        return measures.kind_of(self.metrics)


@dataclass(frozen=True)
class FolderSpec:
    """What a board.toml says."""

    path: Path
    name: str
    split: str
    tasks: tuple[FolderTask, ...]
    about: str = ""


class Labelled(NamedTuple):
    """An item: its gold answer (of texts all right ones), what it is resampled with, a digest of what is asked."""

    id: str
    gold: Any
    cluster: str
    asked: str


def read_spec(path: Path) -> FolderSpec:
    """Read a board.toml; what is wrong with it is one sentence."""
    said = read_toml(path)
    _check_keys(str(path), said, _BOARD_KEYS, ("name", "tasks"))
    tasks = []
    for name, given in said["tasks"].items():
        where = f"{path}, task {name!r}"
        if not isinstance(given, dict):
            raise EnsueError(f"{where} is not a table; write [tasks.{name}].")
        _check_keys(where, given, _TASK_KEYS, ("labels", "metrics"))
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in given.items()
        }
        task = FolderTask(name, **values)
        try:
            kind = task.kind
        except EnsueError as error:
            raise EnsueError(f"{where}: {error}.") from None
        if kind != "label" and (task.positive or task.classes):
            raise EnsueError(f"{where}: its metrics are of {kind}s, so there are no classes to name.")
        if task.classes and task.positive is not None and task.positive not in task.classes:
            raise EnsueError(f"{where}: positive = {task.positive!r} is none of its classes.")
        if task.label in task.asked:
            raise EnsueError(
                f"{where}: asked names the label {task.label!r}, so that answers could be tried out."
            )
        tasks.append(task)
    if not any(task.counts for task in tasks):
        raise EnsueError(f"{path} names no task that counts; write [tasks.NAME] with labels and metrics.")
    return FolderSpec(path, said["name"], said.get("split", TEST), tuple(tasks), said.get("about", ""))


def _check_keys(
    where: str, said: Mapping[str, Any], known: Mapping[str, type], needed: Iterable[str]
) -> None:
    for key, value in said.items():
        if key not in known:
            raise EnsueError(f"{where}: there is no key {key!r}; {hint(key, known)}")
        texts = known[key] is not list or all(isinstance(one, str) and one for one in value or [None])
        if not isinstance(value, known[key]) or not texts or value == "":
            raise EnsueError(f"{where}: {key} is not {_NOUNS[known[key]]}.")
    for key in needed:
        if key not in said:
            raise EnsueError(f"{where} has no {key}; add it.")


class FolderBoard(PredictionsBoard):
    """The tasks of a board.toml with their labels; predictions as JSON lines, CSV or TSV.

    With several tasks an id is TASK/ID. Systems are ranked by the mean over the tasks that count of the mean of each
    one's metrics.
    """

    def __init__(
        self, spec: FolderSpec, labels: Mapping[FolderTask, Sequence[Labelled]], split: str, partial: bool
    ) -> None:
        self._labels, self._several = labels, len(labels) > 1
        questions = {
            self._id(task, one.id): Question(task.name, one.asked, read)
            for task, found in labels.items()
            for read in [_reader(task, classes_of(task, found))]
            for one in found
        }
        super().__init__(spec.name, split, questions, partial=partial)

    def _id(self, task: FolderTask, id: str) -> str:
        return f"{task.name}/{id}" if self._several else id

    @property
    def columns(self) -> list[Column]:
        here = {"split": self.split}
        found = [Column(task.name, metric, here) for task in self._labels for metric in task.metrics]
        return [Column(self.name, _SCORE, here, main=True), *found]

    def lines(self, numbered: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, PredictedLine | Wrong]]:
        for number, row in table_rows(numbered):
            try:
                yield number, row if isinstance(row, Wrong) else self.read_row(row)
            except Wrong as wrong:
                yield number, wrong

    def judge(self, answers: Mapping[str, Any], not_scored: Mapping[str, str]) -> Graded:
        here = {"split": self.split}
        rows, scores = [], []
        for task, found in self._labels.items():
            if task.name in not_scored:
                continue
            given = [answers[self._id(task, one.id)] for one in found]
            figures = _figures(task, found, given)
            rows += [figure.row(task.name, metric, here) for metric, figure in figures.items()]
            if task.counts:
                scores.append(mean_of_metrics(list(figures.values())))
        if scores:
            of = sum(task.counts for task in self._labels)
            covers = {**here, "covers": f"{len(scores)} of {of} task{'s' if of > 1 else ''}"}
            rows.insert(0, mean_of_samples(scores).row(self.name, _SCORE, covers))
        return self.graded(rows, not_scored)


def _figures(task: FolderTask, found: Sequence[Labelled], given: Sequence[Any]) -> dict[str, Drawn]:
    gold, clusters = [one.gold for one in found], [one.cluster for one in found]
    if task.kind == "number":
        return measures.of_numbers(task.metrics, gold, given, clusters)
    if task.kind == "text":
        return measures.of_texts(task.metrics, gold, given, clusters)
    return measures.of_labels(task.metrics, gold, given, clusters, classes_of(task, found), task.positive)


def classes_of(task: FolderTask, found: Sequence[Labelled]) -> tuple[str, ...]:
    """Return the classes of a task: those it names, or else those of its labels, sorted."""
    return task.classes or (tuple(sorted({one.gold for one in found})) if task.kind == "label" else ())


def _reader(task: FolderTask, classes: Sequence[str]) -> Callable[[Any], Any]:
    if task.kind == "label":
        return lambda value: label_of(value, classes)
    if task.kind == "number":
        return lambda value: number_of(value, "prediction")
    return lambda value: _bounded_text(value)


def _bounded_text(value: Any) -> str:
    text = text_of(value, "prediction")
    if len(text) > _LONGEST:
        raise Wrong(f"the prediction has {len(text):,} characters, more than {_LONGEST:,}")
    return text


def read_labels(
    spec: FolderSpec, task: FolderTask, folder: Path, split: str, problems: Problems
) -> list[Labelled]:
    """Return the items of a task; what is wrong with its file is noted with its line."""
    name = task.labels.replace("{split}", split)
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise EnsueError(f"{spec.path}, task {task.name!r}: {name} leads out of {folder}.")
    found: dict[str, Labelled] = {}
    try:
        with path.open("rb") as stream:
            numbered = LineCutter(Limits()).lines(name, stream, problems)
            for number, row in table_rows(numbered):
                try:
                    if isinstance(row, Wrong):
                        raise row
                    one = _labelled(task, row)
                    if one.id in found:
                        raise Wrong(f"the id {shown(one.id)} was there before")
                    found[one.id] = one
                except Wrong as wrong:
                    problems.add(name, number, f"{wrong}.")
    except OSError as error:
        problems.add(name, 0, f"the file cannot be read: {error.strerror or error}.")
    if not problems.count(name):
        _check_task(name, task, list(found.values()), problems)
    return list(found.values())


def _labelled(task: FolderTask, row: Row) -> Labelled:
    id = member(row, task.id)
    if isinstance(id, bool) or not isinstance(id, int | str) or id == "":
        raise Wrong(f"the {task.id} {shown(id)} is not a text")
    gold = _gold(task, member(row, task.label))
    cluster = str(id) if task.cluster is None else str(member(row, task.cluster))
    asked = content_of(*(member(row, name) for name in task.asked)) if task.asked else ""
    return Labelled(str(id), gold, cluster, asked)


def _gold(task: FolderTask, value: Any) -> Any:
    if task.kind == "number":
        return number_of(value, task.label)
    if task.kind == "text":
        found = tuple(text_of(one, task.label) for one in (value if isinstance(value, list) else [value]))
        if not found or not all(found):
            raise Wrong(f"the {task.label} {shown(value)} is empty")
        return found
    if task.classes:
        return label_of(value, task.classes)
    said = str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, int) else value
    if not isinstance(said, str) or not said:
        raise Wrong(f"the {task.label} {shown(value)} is not a label")
    return said


def _check_task(name: str, task: FolderTask, found: Sequence[Labelled], problems: Problems) -> None:
    """Note what is wrong with the labels of a task as a whole."""
    classes = classes_of(task, found)
    if len(found) < 2:
        problems.add(name, 0, f"{len(found)} items, where a board needs two.")
    elif task.kind == "label" and not 2 <= len(classes) <= _MOST_CLASSES:
        problems.add(name, 0, f"{len(classes):,} classes, where a task has 2 to {_MOST_CLASSES:,}.")
    elif "f1" in task.metrics and (task.positive or "") not in classes and len(classes) != 2:
        problems.add(name, 0, f"f1 is of one class; name it as positive, one of {', '.join(classes[:20])}.")
    elif "kendall" in task.metrics and len(found) > _MOST_FOR_KENDALL:
        problems.add(name, 0, f"kendall is for {_MOST_FOR_KENDALL:,} items at most; name spearman instead.")
    elif task.positive is not None and task.positive not in classes:
        problems.add(name, 0, f"no label is {task.positive!r}, which board.toml calls positive.")


class FolderGrader(Grader):
    """Opens the board of a board.toml."""

    def __init__(self, path: Path) -> None:
        self.path, self.suite = path, str(path)

    def choose_split(self, split: str | None) -> str:
        """Return the split asked for, or the one that board.toml names; any will do that has files."""
        return split or read_spec(self.path).split

    def open(self, wanted: BoardRequest) -> Board:
        self.refuse_settings(wanted.settings)
        spec, labels, tasks = read_spec(self.path), wanted.labels, wanted.tasks
        known = {task.name: task for task in spec.tasks}
        if unknown := [name for name in tasks if name not in known]:
            raise EnsueError(f"{self.path} has no task {unknown[0]!r}; it has {', '.join(known)}.")
        if not labels.is_dir():
            raise EnsueError(f"{labels} is not a folder; name the one that holds the labels of {spec.name}.")
        problems = Problems()
        found = {
            task: read_labels(spec, task, labels, wanted.split, problems)
            for task in spec.tasks
            if not tasks or task.name in tasks
        }
        if problems.count():
            raise Refused(labels, problems)
        return FolderBoard(spec, found, wanted.split, wanted.partial)

    def submit(self, wanted: SubmitRequest) -> Submitted:
        raise EnsueError(f"{self.path} is not a benchmark that is run; write its predictions yourself.")


Row = dict[str, Any]


def table_rows(numbered: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, Row | Wrong]]:
    """Return each line as a row, or what is wrong with it; the first line says which kind of table it is.

    >>> list(table_rows(enumerate([b"id,prediction", b"7,yes"], 1)))
    [(2, {'id': '7', 'prediction': 'yes'})]
    """
    names: list[str] | None = None
    divider = ""
    for number, line in numbered:
        try:
            if number == 1 and not line.lstrip().startswith(b"{"):
                divider = "\t" if b"\t" in line else ","
                names = _fields(line, divider)
                if len(set(names)) != len(names):
                    raise Wrong("a column is named twice")
                continue
            yield (
                number,
                object_of(parse_json(line), "the line")
                if names is None
                else _row(names, _fields(line, divider)),
            )
        except Wrong as wrong:
            yield number, wrong
            if number == 1:
                # Without its header nothing can be said of the rows.
                return


def _fields(line: bytes, divider: str) -> list[str]:
    text = decode(line)
    if not text.strip():
        raise Wrong("the line is blank")
    if divider == "\t":
        return text.split("\t")
    try:
        return next(csv.reader([text], strict=True))
    except csv.Error as error:
        raise Wrong(f"not a row of columns divided by commas ({error})") from None


def _row(names: list[str], fields: list[str]) -> Row:
    if len(fields) != len(names):
        raise Wrong(f"{len(fields)} columns, where the header {shown(','.join(names))} has {len(names)}")
    return dict(zip(names, fields, strict=True))
