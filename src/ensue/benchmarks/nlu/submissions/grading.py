"""Submissions to GLUE and SuperGLUE: files checked against the examples they must answer, then judged as in a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ensue.benchmarks.grading.board import (
    Board,
    BoardRequest,
    Column,
    Graded,
    Grader,
    SubmitRequest,
    Submitted,
    without,
)
from ensue.benchmarks.grading.problems import Problems, Refused
from ensue.benchmarks.nlu.examples import DEV, TEST, Example, Prediction, TaskData, TaskSpec
from ensue.benchmarks.nlu.submissions.archive import Archive, open_archive
from ensue.benchmarks.nlu.submissions.formats import files_of, parse
from ensue.benchmarks.nlu.suites import TITLES, specs_of, suite_of
from ensue.errors import EnsueError

if TYPE_CHECKING:
    from ensue.benchmarks.nlu.submissions.submission import Predictions
    from ensue.report.table import Table

# A file may have so many lines beyond one an example before it is read no further.
_SLACK = 1_000
_NAMED, _SHOWN = 5, 40
# Predictions by task and split.
_Answers = dict[tuple[str, str], dict[str, Prediction]]
_SCORE = "score"
_LEFT_OUT = "not in the zip"


class NluBoard(Board):
    """The tasks of a suite, or some of them, whose zips are graded against the labels of a split.

    Each file whose examples have labels must be in the zip, with each of their ids once and in their order. A file
    without labels is checked if its examples are there, and not scored. Where `partial` zips are taken, a file may
    be missing; a zip without one that counts has no score.
    """

    suffix = ".zip"

    def __init__(
        self,
        suite: str,
        data: Mapping[str, TaskData],
        split: str,
        tasks: Sequence[str] = (),
        *,
        partial: bool = False,
    ) -> None:
        self.name, self.split, self.data, self.partial = suite, split, data, partial
        self._specs = _wanted(suite, tasks)

    @property
    def columns(self) -> list[Column]:
        found = [
            Column(spec.name, metric, {"split": part})
            for spec, _, part in self._files()
            if spec.name in self.data and self.data[spec.name].labelled(part)
            for metric in spec.metrics
        ]
        return [Column(TITLES[self.name], _SCORE, {"split": self.split}, main=True), *found]

    def parts(self) -> Mapping[str, str]:
        from ensue.benchmarks.nlu.scores import SECTIONS, part_words

        rows: dict[tuple[str, str], int] = {}
        found: dict[str, str] = {}
        for spec, _, part in self._files():
            data = self.data.get(spec.name)
            if data is not None and data.labelled(part):
                split = SECTIONS.get(part, part)
                count = rows[spec.name, split] = rows.get((spec.name, split), 0) + len(data.splits[part])
                found[spec.name] = part_words(spec, split, count, data.instead.get(part, ""))
        counted = [spec.name for spec in self._specs if spec.in_score]
        absent = [name for name in counted if name not in found]
        if missing := without(absent, len(counted)):
            found[TITLES[self.name]] = missing
        return {name: words for name, words in found.items() if words}

    def check(self, file: Path) -> None:
        self._read(file)

    def grade(self, file: Path) -> Graded:
        answers, not_scored = self._read(file)
        from ensue.benchmarks.nlu.scores import judged_rows
        from ensue.benchmarks.nlu.systems import Answered

        given = [Answered(task, {part: found}) for (task, part), found in answers.items()]
        judged, metrics, phenomena = judged_rows(self.data, given)
        total = self.columns[0].find(metrics)
        whole = not any(
            spec.in_score and not_scored.get(file) == _LEFT_OUT for spec, file, _ in self._files()
        )
        return Graded(
            self.name,
            self.split,
            metrics,
            total["value"] if total is not None and whole else None,
            phenomena,
            not_scored,
            [note for one in judged for note in one.notes],
            "" if total is None else total["settings"]["covers"],
        )

    def _read(self, file: Path) -> tuple[_Answers, dict[str, str]]:
        """Return predictions by task and split, and why the other files are not scored."""
        known = [name for _, name, _ in _files(specs_of(self.name), self.split)]
        problems = Problems()
        with closing(open_archive(file, known, problems)) as opened:
            found = self._read_files(opened, problems)
        if problems.count():
            raise Refused(file, problems)
        return found

    def _read_files(self, archive: Archive, problems: Problems) -> tuple[_Answers, dict[str, str]]:
        answers: _Answers = {}
        not_scored: dict[str, str] = {}
        for spec, file, part in self._files():
            examples = self.data[spec.name].splits.get(part) if spec.name in self.data else None
            labelled = bool(examples) and self.data[spec.name].labelled(part)
            if file not in archive.files:
                # A file that is there but was refused has its problem already.
                if labelled and not self.partial and not problems.count(file):
                    problems.add(file, 0, "is missing from the zip.")
                else:
                    not_scored[file] = _LEFT_OUT if labelled else "neither in the zip nor labelled"
                continue
            if not examples:
                not_scored[file] = f"no examples of {part} among the labels"
                continue
            found = _read_file(archive, spec, file, examples, problems)
            if labelled:
                answers[spec.name, part] = found
            else:
                not_scored[file] = f"no labels of {part}"
        if not answers and not problems.count():
            problems.add("", 0, "none of its files has labels here, so there is nothing to grade.")
        return answers, not_scored

    def _files(self) -> Iterator[tuple[TaskSpec, str, str]]:
        return _files(self._specs, self.split)


class NluGrader(Grader):
    """Opens boards of a suite and writes its zips."""

    splits = (TEST, DEV)

    def __init__(self, suite: Literal["glue", "superglue"]) -> None:
        self.suite = suite

    def open(self, wanted: BoardRequest) -> NluBoard:
        self.refuse_settings(wanted.settings)
        labels, split, tasks = wanted.labels, wanted.split, wanted.tasks
        data = read_labels(labels, self.suite, tasks, split)
        _check_labels(labels, _wanted(self.suite, tasks), split, data)
        return NluBoard(self.suite, data, split, tasks, partial=wanted.partial)

    def knows(self, file: Path) -> bool:
        return file.suffix != ".jsonl" and guess_suite(file) == self.suite

    def grade(self, file: Path, wanted: BoardRequest) -> Graded:
        """Grade a zip or, from a .jsonl file, several people's labels of one task."""
        if file.suffix != ".jsonl":
            return super().grade(file, wanted)
        labels, split, tasks = wanted.labels, wanted.split, wanted.tasks
        if len(tasks) != 1:
            raise EnsueError(f"{file} holds people's labels of one task; say which, as in --tasks CB.")
        found = read_labels(labels, self.suite, tasks)
        if not found:
            raise EnsueError(f"{labels} has no files of {tasks[0]}; name the folder that holds its labels.")
        from ensue.benchmarks.nlu.submissions.people import people_rows

        (data,) = found.values()
        rows = people_rows(file, data, split)
        if not rows:
            raise EnsueError(
                f"{file}: {data.spec.name} has no labels of {split} in {labels} to judge people by, and where all "
                f"say the same there is no agreement to measure; give labels."
            )
        return Graded(self.suite, split, rows, None)

    def submit(self, wanted: SubmitRequest) -> Submitted:
        from ensue.benchmarks.nlu.submissions.submission import collect, write_submission
        from ensue.report.results import ITEMS_FILE, read_numbered_items

        run, output, split, chosen, fill_from = wanted
        predictions = collect(read_numbered_items(run), run / ITEMS_FILE, self.suite, split, chosen)
        answers = {} if fill_from is None else _most_frequent(self.suite, fill_from)
        filled: list[str] = []
        for spec, file, part in _files(specs_of(self.suite), split):
            found = answers.get(spec.name, {}).get(part)
            if found and part not in predictions.get(spec.name, {}):
                predictions.setdefault(spec.name, {})[part] = found
                filled.append(file)
        return write_submission(
            self.suite, predictions, output or run / f"{self.suite}-{split}.zip", split, filled
        )

    def tables(self, graded: Graded, title: str, tasks: Sequence[str] = ()) -> list[Table]:
        if not graded.diagnostics and all(row["metric"] != _SCORE for row in graded.metrics):
            return super().tables(graded, title, tasks)
        from ensue.benchmarks.nlu.report.table import phenomena_tables, tables

        # Named as a run of these tasks is, so that the rest is not missed.
        asked = "/".join(filter(None, (self.suite, ",".join(tasks))))
        results = {"benchmark": asked, "model": title, "metrics": [*graded.metrics, *graded.diagnostics]}
        return [*tables(results), *phenomena_tables(results)]


GLUE, SUPERGLUE = NluGrader("glue"), NluGrader("superglue")


def _most_frequent(suite: str, folder: Path) -> Predictions:
    """Return what the most-frequent baseline says of every task that has data."""
    from ensue.benchmarks.base import RunContext
    from ensue.benchmarks.nlu.systems import find, named

    system = find("majority")
    defaults = {name: setting.default for name, setting in system.settings.items()}
    tasks = list(read_labels(folder, suite).values())
    answers = system.answer(named("most-frequent"), tasks, defaults, 0, RunContext())
    return {one.task: {split: dict(found) for split, found in one.predictions.items()} for one in answers}


def _check_labels(labels: Path, specs: Sequence[TaskSpec], split: str, data: Mapping[str, TaskData]) -> None:
    """Raise where no task that counts has labels, which a diagnostic set with some does not make good."""
    counting = [spec for spec in specs if spec.in_score] or specs
    parts = [(data[spec.name], part) for spec, _, part in _files(counting, split) if spec.name in data]
    if any(task.labelled(part) for task, part in parts):
        return
    unlabelled = [task.splits[part][0].where for task, part in parts if task.splits.get(part)]
    seen = f" ({unlabelled[0]}, for one, is a row without)" if unlabelled and unlabelled[0] else ""
    raise EnsueError(
        f"{labels} has no labels for {split}{seen}; give a folder with labels, or choose another --split."
    )


def guess_suite(archive: Path) -> str:
    """Return the suite whose files a zip has; the names of the two have different endings."""
    problems = Problems()
    suites = {file: suite for suite in TITLES for _, file, _ in _files(specs_of(suite), TEST)}
    with closing(open_archive(archive, suites, problems)) as opened:
        found = {suites[name] for name in opened.names if name in suites}
    for suite in TITLES:
        if suite in found:
            return suite
    first = next(iter(suites))
    problems.add("", 0, f"no file of {' or '.join(TITLES)} is in it; the first would be called {first}.")
    raise Refused(archive, problems)


def _wanted(suite: str, tasks: Sequence[str]) -> list[TaskSpec]:
    return [spec for task in tasks or ("",) for spec in suite_of(suite).select(task)]


def read_labels(
    folder: Path, suite: str, tasks: Sequence[str] = (), split: str | None = None
) -> dict[str, TaskData]:
    """Return the tasks of a suite that a folder in the official layout has; with a split, that one alone."""
    specs = _wanted(suite, tasks)
    if not folder.is_dir():
        raise EnsueError(f"{folder} is not a folder; name the one that holds the tasks of {suite}.")
    found = {}
    for spec in specs:
        # Training sets are the most of a folder, and no part of a board.
        splits = None if split is None else set(files_of(spec, split).values())
        found[spec.name] = suite_of(suite).read_task(folder, spec, None, splits)
    return {name: data for name, data in found.items() if data is not None}


def _files(specs: Sequence[TaskSpec], split: str) -> Iterator[tuple[TaskSpec, str, str]]:
    for spec in specs:
        for file, part in files_of(spec, split).items():
            yield spec, file, part


def _read_file(
    archive: Archive, spec: TaskSpec, file: str, examples: Sequence[Example], problems: Problems
) -> dict[str, Prediction]:
    """Return the predictions of a file: every id once, none that is unknown, all in the order of the examples."""
    places = {example.id: place for place, example in enumerate(examples)}
    lines: dict[str, int] = {}
    found: dict[str, Prediction] = {}
    wrong_order: tuple[int, str, str] | None = None
    unread = False
    numbered = _bounded(archive.lines(file, problems), len(examples), file, problems)
    for row in parse(spec, file, numbered, problems):
        if not row.id:
            unread = True
        elif row.id not in places:
            if row.prediction is not None:
                problems.add(file, row.line, f"there is no example with the index {row.id[:_SHOWN]!r}.")
        elif row.id in found:
            problems.add(file, row.line, f"the index {row.id} was there before, in line {lines[row.id]}.")
        else:
            if wrong_order is None and places[row.id] != len(found):
                wrong_order = (row.line, row.id, examples[len(found)].id)
            # A file with a prediction that will not do is refused, so what stands in for it is never judged.
            lines[row.id], found[row.id] = row.line, "" if row.prediction is None else row.prediction
    # What is missing may follow from lines that could not be read, and is said only where all of them could.
    if unread:
        return found
    if absent := [id for id in places if id not in found]:
        named = ", ".join(absent[:_NAMED]) + (", …" if len(absent) > _NAMED else "")
        problems.add(file, 0, f"{len(absent):,} of {len(examples):,} examples have no prediction: {named}.")
    elif wrong_order:
        line, id, wanted = wrong_order
        problems.add(
            file, line, f"the index {id} stands where {wanted} was expected; keep the order of the examples."
        )
    return found


def _bounded(
    lines: Iterator[tuple[int, bytes]], examples: int, file: str, problems: Problems
) -> Iterator[tuple[int, bytes]]:
    """Return the lines, up to where there are far more than examples."""
    for number, line in lines:
        if number > examples + _SLACK:
            words = f"far more lines than the {examples:,} examples; it was not read further."
            problems.add(file, number, words)
            return
        yield number, line
