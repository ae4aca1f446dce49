"""Grading a submission: every file checked against the examples it must answer, then judged like any run.

The command line and the server call the same `grade`. It needs no model, and nothing that a model needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ensue.benchmarks.nlu.examples import DEV, TEST, Example, Prediction, TaskData, TaskSpec
from ensue.benchmarks.nlu.submissions.archive import Archive, Limits, Problem, Problems, Refused, open_archive
from ensue.benchmarks.nlu.submissions.formats import files_of, parse
from ensue.benchmarks.nlu.suites import TITLES, specs_of, suite_of
from ensue.errors import EnsueError

if TYPE_CHECKING:
    from ensue.report.results import MetricRow

__all__ = ["GradedSubmission", "Problem", "Refused", "grade", "guess_suite", "read_labels"]

# A file may have so many lines beyond one an example before it is read no further.
_SLACK = 1_000
_NAMED, _SHOWN = 5, 40


@dataclass(frozen=True)
class GradedSubmission:
    """A submission's figures: the rows of a run, the benchmark's score, and the files that were not scored."""

    archive: Path
    suite: str
    split: str
    metrics: list[MetricRow]
    score: float | None
    not_scored: Mapping[str, str]
    notes: Sequence[str]

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "archive": str(self.archive)}


def grade(
    archive: Path,
    labels: Path | Mapping[str, TaskData],
    suite: str | None = None,
    *,
    split: str = TEST,
    tasks: Sequence[str] = (),
    limits: Limits | None = None,
) -> GradedSubmission:
    """Validate a submission and score it, or raise `Refused` with everything that is wrong with it.

    `labels` is a folder in the official layout, or tasks that were read before. Each file whose examples have labels
    there must be in the zip, with each of their ids once and in their order. A file without labels is checked if its
    examples are there, and not scored. With `tasks`, only their files are wanted.
    """
    if split not in (DEV, TEST):
        raise EnsueError(f"A submission answers {DEV} or {TEST}, not {split!r}; choose another --split.")
    suite = suite or guess_suite(archive, limits)
    specs = _wanted(suite, tasks)
    known = [file for _, file, _ in _files(specs_of(suite), split)]
    data = read_labels(labels, suite, tasks) if isinstance(labels, Path) else labels
    _check_labels(labels, specs, split, data)
    problems = Problems()
    with closing(open_archive(archive, known, problems, limits)) as opened:
        answers, not_scored = _read_answers(opened, specs, split, data, problems)
    if problems.count():
        raise Refused(archive, problems)
    return _judge(archive, suite, split, data, answers, not_scored)


def _check_labels(
    labels: Path | Mapping[str, TaskData], specs: Sequence[TaskSpec], split: str, data: Mapping[str, TaskData]
) -> None:
    """Raise where no task that counts has labels, which a diagnostic set with some does not make good."""
    counting = [spec for spec in specs if spec.in_score] or specs
    parts = [(data[spec.name], part) for spec, _, part in _files(counting, split) if spec.name in data]
    if any(task.labelled(part) for task, part in parts):
        return
    unlabelled = [task.splits[part][0].where for task, part in parts if task.splits.get(part)]
    where = f"{labels} has" if isinstance(labels, Path) else "The data have"
    seen = f" ({unlabelled[0]}, for one, is a row without)" if unlabelled and unlabelled[0] else ""
    raise EnsueError(
        f"{where} no labels for {split}{seen}; give a folder with labels, or choose another --split."
    )


def guess_suite(archive: Path, limits: Limits | None = None) -> str:
    """Return the suite whose files a zip has; the names of the two have different endings."""
    problems = Problems()
    suites = {file: suite for suite in TITLES for _, file, _ in _files(specs_of(suite), TEST)}
    with closing(open_archive(archive, suites, problems, limits)) as opened:
        found = {suites[name] for name in opened.names if name in suites}
    for suite in TITLES:
        if suite in found:
            return suite
    first = next(iter(suites))
    problems.add("", 0, f"no file of {' or '.join(TITLES)} is in it; the first would be called {first}.")
    raise Refused(archive, problems)


def _wanted(suite: str, tasks: Sequence[str]) -> list[TaskSpec]:
    return [spec for task in tasks or ("",) for spec in suite_of(suite).select(task)]


def read_labels(folder: Path, suite: str, tasks: Sequence[str] = ()) -> dict[str, TaskData]:
    """Return the tasks of a suite that a folder in the official layout has."""
    specs = _wanted(suite, tasks)
    if not folder.is_dir():
        raise EnsueError(f"{folder} is not a folder; name the one that holds the tasks of {suite}.")
    found = {spec.name: suite_of(suite).read_task(folder, spec, None) for spec in specs}
    return {name: data for name, data in found.items() if data is not None}


def _files(specs: Sequence[TaskSpec], split: str) -> Iterator[tuple[TaskSpec, str, str]]:
    for spec in specs:
        for file, part in files_of(spec, split).items():
            yield spec, file, part


def _read_answers(
    archive: Archive, specs: Sequence[TaskSpec], split: str, data: Mapping[str, TaskData], problems: Problems
) -> tuple[dict[tuple[str, str], dict[str, Prediction]], dict[str, str]]:
    """Return predictions by task and split, and why the other files are not scored."""
    answers: dict[tuple[str, str], dict[str, Prediction]] = {}
    not_scored: dict[str, str] = {}
    for spec, file, part in _files(specs, split):
        examples = data[spec.name].splits.get(part) if spec.name in data else None
        labelled = bool(examples) and data[spec.name].labelled(part)
        if file not in archive.files:
            # A file that is there but was refused has its problem already.
            if labelled and not problems.count(file):
                problems.add(file, 0, "is missing from the zip.")
            elif not labelled:
                not_scored[file] = "neither in the zip nor labelled"
            continue
        if not examples:
            not_scored[file] = f"no examples of {part} among the labels"
            continue
        found = _read_file(archive, spec, file, examples, problems)
        if labelled:
            answers[spec.name, part] = found
        else:
            not_scored[file] = f"no labels of {part}"
    return answers, not_scored


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


def _judge(
    archive: Path,
    suite: str,
    split: str,
    data: Mapping[str, TaskData],
    answers: Mapping[tuple[str, str], Mapping[str, Prediction]],
    not_scored: Mapping[str, str],
) -> GradedSubmission:
    from ensue.benchmarks.nlu.scores import SCORE, judged_rows
    from ensue.benchmarks.nlu.systems import Answered

    given = [Answered(task, {part: found}) for (task, part), found in answers.items()]
    judged, metrics = judged_rows(data, given)
    total = (TITLES[suite], SCORE)
    scores = [row["value"] for row in metrics if (row["task"], row["metric"]) == total]
    notes = [note for one in judged for note in one.notes]
    return GradedSubmission(archive, suite, split, metrics, scores[0] if scores else None, not_scored, notes)
