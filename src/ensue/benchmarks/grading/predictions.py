"""Predictions as one JSON object a line: written from a run's items, read from strangers, every id once.

A line is `{"id": …, "prediction": …}` with the id that the item has in `items.jsonl` and, where it is known, the
`content` that was asked (an item's `asked`): predictions made on other data are refused by it. What that digest is of
holds no gold answer, so that nobody can try out answers on it.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ensue.atomic import write_json_lines
from ensue.benchmarks.grading.board import Board, Graded, Grader, SubmitRequest, Submitted
from ensue.benchmarks.grading.problems import Limits, LineCutter, Problems, Refused
from ensue.benchmarks.grading.values import Wrong, member, object_of, parse_json, shown, text_of
from ensue.errors import EnsueError

_KEYS = ("id", "content", "prediction")
# A file may have so many lines beyond one an item before it is read no further.
_SLACK = 1_000
_NAMED = 5


class Question(NamedTuple):
    """An item of a board: its task, a digest of what is asked, and what checks a prediction (it raises `Wrong`)."""

    task: str
    asked: str
    read: Callable[[Any], Any]


class PredictedLine(NamedTuple):
    """What one line says of which item; no `content` where it does not name what was asked."""

    id: str
    prediction: Any
    content: str = ""


class PredictionsBoard(Board):
    """Questions by id, to which a file has one prediction each, in any order.

    Where `partial` files are taken, all predictions of a task may be missing.
    """

    suffix = ".jsonl"

    def __init__(
        self,
        name: str,
        split: str,
        questions: Mapping[str, Question],
        *,
        partial: bool = False,
        limits: Limits | None = None,
    ) -> None:
        self.name, self.split, self.questions, self.partial = name, split, questions, partial
        self._limits = limits or Limits()

    @abstractmethod
    def judge(self, answers: Mapping[str, Any], not_scored: Mapping[str, str]) -> Graded:
        """Score answers by id: all those of each task that is not among `not_scored`."""

    def faults(self, answers: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        """Return what is wrong with answers that are right each for itself: an id, and what is wrong there."""
        return ()

    def question_id(self, id: str) -> str:
        """Return the id of the question that an item of a run answers; the same, unless an id says how as well."""
        return id

    def counts(self) -> Counter[str]:
        """Return how many items each task has."""
        return Counter(question.task for question in self.questions.values())

    def read_row(self, row: dict[str, Any]) -> PredictedLine:
        """Return what a line says, or raise `Wrong`."""
        if unknown := [key for key in row if key not in _KEYS]:
            raise Wrong(f"the key {shown(unknown[0])} is none of {', '.join(_KEYS)}")
        id = member(row, "id")
        if isinstance(id, bool) or not isinstance(id, int | str) or id == "":
            raise Wrong(f"the id {shown(id)} is not a text")
        known = str(id) if str(id) in self.questions else self.question_id(str(id))
        return PredictedLine(known, member(row, "prediction"), text_of(row.get("content", ""), "content"))

    def lines(self, numbered: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, PredictedLine | Wrong]]:
        """Return what each line says, or what is wrong with it."""
        for number, line in numbered:
            try:
                yield number, self.read_row(object_of(parse_json(line), "the line"))
            except Wrong as wrong:
                yield number, wrong

    def check(self, file: Path) -> None:
        self._read(file)

    def grade(self, file: Path) -> Graded:
        return self.judge(*self._read(file))

    def _read(self, file: Path) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the answers by id, in the order of the questions, and why some tasks have none."""
        problems = Problems()
        try:
            size = file.stat().st_size
            if size > self._limits.file_bytes:
                words = (
                    f"the file has {size:,} bytes, more than {self._limits.file_bytes:,}; it was not read."
                )
                problems.add(file.name, 0, words)
                raise Refused(file, problems)
            with file.open("rb") as stream:
                numbered = LineCutter(self._limits).lines(file.name, stream, problems)
                answers = self._answers(file.name, self._bounded(file.name, numbered, problems), problems)
        except OSError as error:
            problems.add(file.name, 0, f"the file cannot be read: {error.strerror or error}.")
            raise Refused(file, problems) from None
        not_scored = {} if problems.count() else self._left_out(file.name, answers, problems)
        if problems.count():
            raise Refused(file, problems)
        return {id: answers[id] for id in self.questions if id in answers}, not_scored

    def _bounded(
        self, name: str, numbered: Iterator[tuple[int, bytes]], problems: Problems
    ) -> Iterator[tuple[int, bytes]]:
        """Return the lines, up to where there are far more than questions."""
        for number, line in numbered:
            if number > len(self.questions) + _SLACK:
                words = f"far more lines than the {len(self.questions):,} items; it was not read further."
                problems.add(name, number, words)
                return
            yield number, line

    def _answers(
        self, name: str, numbered: Iterator[tuple[int, bytes]], problems: Problems
    ) -> dict[str, Any]:
        """Return what is said of each item; what is wrong with a line is noted, and the next one is read."""
        answers: dict[str, Any] = {}
        places: dict[str, int] = {}
        elsewhere: list[tuple[int, str]] = []
        for number, said in self.lines(numbered):
            if isinstance(said, Wrong):
                problems.add(name, number, f"{said}.")
                continue
            question = self.questions.get(said.id)
            if question is None:
                problems.add(name, number, f"there is no item with the id {shown(said.id)}.")
            elif said.id in places:
                problems.add(
                    name, number, f"the id {shown(said.id)} was there before, in line {places[said.id]}."
                )
            else:
                places[said.id] = number
                if said.content and said.content != question.asked:
                    elsewhere.append((number, said.id))
                try:
                    answers[said.id] = question.read(said.prediction)
                except Wrong as wrong:
                    problems.add(name, number, f"{wrong}.")
        for id, words in self.faults(answers):
            problems.add(name, places[id], f"{words}.")
        if elsewhere:
            number, id = elsewhere[0]
            words = f"{len(elsewhere):,} of {len(self.questions):,} items are of other texts than those of this board"
            problems.add(name, number, f"{words}, {id} for one; predict on its own data.")
        return answers

    def _left_out(self, name: str, answers: Mapping[str, Any], problems: Problems) -> dict[str, str]:
        """Return the tasks without any answer, where those may be; note all other questions that have none."""
        answered = {self.questions[id].task for id in answers}
        tasks = list(dict.fromkeys(question.task for question in self.questions.values()))
        left_out = {task: "no predictions" for task in tasks if self.partial and task not in answered}
        absent = [id for id, one in self.questions.items() if id not in answers and one.task not in left_out]
        if absent or not answered:
            named = ", ".join(absent[:_NAMED]) + (", …" if len(absent) > _NAMED else "")
            words = f"{len(absent):,} of {len(self.questions):,} items have no prediction: {named}."
            problems.add(name, 0, words if absent else "there is no prediction in it.")
        return left_out


class Answer(NamedTuple):
    """What an item of a run says: of which question of which task, and the settings that say how it was answered."""

    id: str
    task: str
    way: Mapping[str, Any]
    prediction: Any


class PredictionsGrader(Grader):
    """Writes a run's items as predictions."""

    @abstractmethod
    def answers(self, item: Mapping[str, Any]) -> Iterable[Answer]:
        """Return what an item says; several things where it was answered in several ways, nothing where in none."""

    def submit(self, wanted: SubmitRequest) -> Submitted:
        from ensue.report.results import ITEMS_FILE, read_numbered_items

        run, output, split, chosen, fill_from = wanted
        if fill_from is not None:
            raise EnsueError(f"--fill-missing is for zips of GLUE and SuperGLUE; {self.suite} has none.")
        source = run / ITEMS_FILE
        found: dict[str, dict[str, dict[str, Any]]] = {}
        for line, item in read_numbered_items(run):
            if item["settings"].get("split", split) != split:
                continue
            try:
                answers = list(self.answers(item))
            except (KeyError, TypeError, AttributeError):
                raise EnsueError(
                    f"{source}, line {line}: the item has no prediction, so this is not a run of {self.suite}."
                ) from None
            for answer in answers:
                if is_chosen(answer.task, answer.way, chosen):
                    way = json.dumps(answer.way, ensure_ascii=False, sort_keys=True)
                    rows = found.setdefault(answer.task, {}).setdefault(way, {})
                    if answer.id in rows:
                        raise EnsueError(f"{source}, line {line}: {answer.id} comes twice; run it again.")
                    content = {"content": item["asked"]} if "asked" in item else {}
                    rows[answer.id] = {"id": answer.id, **content, "prediction": answer.prediction}
        for task, ways in found.items():
            if len(ways) > 1:
                raise several_ways(source, task, [json.loads(way) for way in ways])
        every = [row for ways in found.values() for rows in ways.values() for row in rows.values()]
        if not every:
            raise EnsueError(f"{run} has no predictions on {split} to submit to {self.suite}.")
        path = output or run / f"{self.suite}-{split}.jsonl"
        write_json_lines(path, every)
        counts = {task: len(rows) for task, ways in found.items() for rows in ways.values()}
        return Submitted(path, self.suite, split, counts)


def is_chosen(task: str, settings: Mapping[str, Any], chosen: Mapping[str, str]) -> bool:
    """Return whether an item's settings are those asked for; a setting it does not have tells nothing apart.

    The keys of `chosen` are settings (`template`), or those of one task (`RTE.template`).
    """
    # The command line turns every hyphen of a key into an underscore.
    own = f"{task.replace('-', '_')}."
    named = {key.removeprefix(own): value for key, value in chosen.items() if key.startswith(own)}
    general = {key: value for key, value in chosen.items() if "." not in key}
    for key, value in {**general, **named}.items():
        if key in settings and value not in (str(settings[key]), json.dumps(settings[key])):
            return False
    return True


def several_ways(source: Path, task: str, ways: list[dict[str, Any]]) -> EnsueError:
    """Return what to say where a run has several answers to a task: the settings in which they differ."""
    keys = list(dict.fromkeys(key for way in ways for key in way))
    values = {key: list(dict.fromkeys(str(way.get(key, "none")) for way in ways)) for key in keys}
    differing = {key: found for key, found in values.items() if len(found) > 1}
    listed = "; ".join(f"{key}: {', '.join(found)}" for key, found in differing.items())
    key, found = next(iter(differing.items()))
    return EnsueError(
        f"{source} answers {task} in {len(ways)} ways ({listed}); pick one with --set {key}={found[0]}, or for this "
        f"task alone with --set {task}.{key}={found[0]}."
    )
