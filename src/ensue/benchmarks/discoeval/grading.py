"""Predictions of DiscoEval graded without a model: a label an example, as a run's items have it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ensue.benchmarks.base import content_of
from ensue.benchmarks.discoeval.data import DiscoEvalData, missing_files, read_task, select
from ensue.benchmarks.discoeval.judging import METRIC, ProbedSplit, metric_rows, without_layer
from ensue.benchmarks.discoeval.probe import JUDGED, Probe
from ensue.benchmarks.grading.board import BoardRequest, Column, Graded, in_part, one_name, without
from ensue.benchmarks.grading.predictions import Answer, PredictionsBoard, PredictionsGrader, Question
from ensue.benchmarks.grading.values import Wrong, label_of
from ensue.benchmarks.published import facts_of
from ensue.errors import EnsueError

# A prediction may be a list of as many labels, one a classifier; an example scores the share that is right.
_MOST = 32


class DiscoEvalBoard(PredictionsBoard):
    """The tasks asked for that are there, with the labels of a split."""

    def __init__(
        self, tasks: Sequence[DiscoEvalData], missing: Sequence[str], asked: str, split: str, partial: bool
    ) -> None:
        self._tasks, self._missing, self._asked = tasks, missing, asked
        questions = {
            example.id: Question(task.name, content_of(example.parts), _reader(task.labels))
            for task in tasks
            for example in task.splits[split]
        }
        super().__init__("discoeval", split, questions, partial=partial)

    @property
    def columns(self) -> list[Column]:
        here = {"split": self.split}
        tasks = [Column(task.name, METRIC, here) for task in self._tasks]
        groups = list(dict.fromkeys(task.spec.group for task in self._tasks))
        if self._asked:
            whole = tasks[0].task if len(tasks) == 1 else groups[0]
            return [Column(whole, METRIC, here, main=True), *(one for one in tasks if one.task != whole)]
        return [
            Column("average", METRIC, here, main=True),
            *(Column(group, METRIC, here) for group in groups if group != "RST"),
            *tasks,
        ]

    def parts(self) -> Mapping[str, str]:
        known = facts_of("ensue.benchmarks.discoeval")["items"][self.split]
        missing = without(self._missing, len(self._tasks) + len(self._missing))
        return in_part(self.counts(), known) | ({self.columns[0].task: missing} if missing else {})

    def question_id(self, id: str) -> str:
        return without_layer(id)

    def faults(self, answers: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        first: dict[str, tuple[str, int]] = {}
        for id, given in answers.items():
            other, count = first.setdefault(self.questions[id].task, (id, len(given)))
            if len(given) != count:
                yield id, f"the prediction has {len(given)} labels where that of {other} has {count}"

    def judge(self, answers: Mapping[str, Any], not_scored: Mapping[str, str]) -> Graded:
        judged = [self._probed(task, answers) for task in self._tasks if task.name not in not_scored]
        missing = [*self._missing, *not_scored]
        rows = list(metric_rows(judged, self._asked, missing))
        return self.graded(rows, not_scored)

    def _probed(self, task: DiscoEvalData, answers: Mapping[str, Any]) -> ProbedSplit:
        given = [answers[example.id] for example in task.splits[self.split]]
        codes = {label: code for code, label in enumerate(task.labels)}
        predictions = np.asarray([[codes[label] for label in one] for one in given], dtype=np.int64).T
        return ProbedSplit(
            task, Probe(None, [], {self.split: predictions}), self.split, {"split": self.split}
        )


def _reader(labels: Sequence[str]) -> Callable[[Any], list[str]]:
    """Return what reads a label, or a list of them."""

    def read(value: Any) -> list[str]:
        if not isinstance(value, list):
            return [label_of(value, labels)]
        if not 1 <= len(value) <= _MOST:
            raise Wrong(f"a list of {len(value):,} labels, where at least one and at most {_MOST} do")
        return [label_of(one, labels) for one in value]

    return read


class DiscoEvalGrader(PredictionsGrader):
    """Opens boards of DiscoEval and writes its predictions."""

    suite = "discoeval"
    splits = JUDGED[::-1]

    def open(self, wanted: BoardRequest) -> DiscoEvalBoard:
        self.refuse_settings(wanted.settings)
        asked = one_name(self.suite, wanted.tasks)
        labels, specs = wanted.labels, select(asked)
        if not labels.is_dir():
            raise EnsueError(
                f"{labels} is not a folder; discoeval needs the one that holds SP, BSO and the rest."
            )
        missing = {spec.name: files for spec in specs if (files := missing_files(labels, spec))}
        if len(missing) == len(specs):
            raise EnsueError(f"{labels} has no whole task: {next(iter(missing.values()))[0]} is missing.")
        read = [read_task(labels, spec, splits=[wanted.split]) for spec in specs if spec.name not in missing]
        return DiscoEvalBoard(read, list(missing), asked, wanted.split, wanted.partial)

    def answers(self, item: Mapping[str, Any]) -> Iterator[Answer]:
        way = {key: value for key, value in item["settings"].items() if key != "split"}
        yield Answer(without_layer(item["id"]), item["task"], way, item["outputs"]["predicted"])


GRADER = DiscoEvalGrader()
