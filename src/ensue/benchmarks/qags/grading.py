"""Any metric of consistency graded without a model: a number for each summary, held against what people say of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ensue.benchmarks.base import content_of
from ensue.benchmarks.grading.board import BoardRequest, Column, Graded, in_part, without
from ensue.benchmarks.grading.predictions import Answer, PredictionsBoard, PredictionsGrader, Question
from ensue.benchmarks.grading.values import number_of
from ensue.benchmarks.published import facts_of
from ensue.benchmarks.qags.data.sets import MAIN_SCORE, JudgedSet, JudgedSets, read_sets
from ensue.benchmarks.qags.judging import judge
from ensue.benchmarks.qags.task import TASK
from ensue.benchmarks.settings import resolve
from ensue.errors import EnsueError
from ensue.report.figure import Figure
from ensue.report.results import MetricRow

_TOTAL, _SCORE = "QAGS", "score"
_MEASURE = "measure"
# The settings of a run that change what is asked.
_SETTINGS = ("human",)


class QagsBoard(PredictionsBoard):
    """The sets that are there; ranked by the mean over sets of Pearson's correlation, of triplets of the accuracy."""

    def __init__(self, data: JudgedSets, partial: bool) -> None:
        self._data = data
        questions = {
            id: Question(one.name, content_of(*pair), _read)
            for one in data.sets
            for id, pair in zip(one.ids, one.pairs, strict=True)
        }
        super().__init__("qags", "test", questions, partial=partial)

    @property
    def columns(self) -> list[Column]:
        return [Column(_TOTAL, _SCORE, main=True), *map(_headline, self._data.sets)]

    def parts(self) -> Mapping[str, str]:
        known = facts_of("ensue.benchmarks.qags")["items"][self.split]
        missing = without(self._data.missing, len(self._data.sets) + len(self._data.missing), "sets")
        return in_part(self.counts(), known) | ({_TOTAL: missing} if missing else {})

    def judge(self, answers: Mapping[str, Any], not_scored: Mapping[str, str]) -> Graded:
        rows: list[MetricRow] = []
        notes: Counter[str] = Counter()
        for one in self._data.sets:
            if one.name not in not_scored:
                found = judge(one, {"prediction": [answers[id] for id in one.ids]})
                rows += found.rows
                notes.update(found.notes)
        for row in rows:
            row["settings"] = {key: value for key, value in row["settings"].items() if key != _MEASURE}
        counted = [f"{words}: {count:,}" for words, count in notes.items()]
        return self.graded([*self._score(rows), *rows], not_scored, counted)

    def _score(self, rows: Sequence[MetricRow]) -> Iterator[MetricRow]:
        """Return the mean over sets; none where one of them has no figure, since all its scores are the same."""
        cells = [_headline(one).find(rows) for one in self._data.sets]
        found = [cell for cell in cells if cell is not None]
        if len(found) == len(cells):
            mean = float(np.mean([cell["value"] for cell in found]))
            of = len(self._data.sets) + len(self._data.missing)
            figure = Figure(
                mean, None, None, sum(cell["n"] for cell in found), sum(c["clusters"] for c in found)
            )
            yield figure.row(_TOTAL, _SCORE, {"covers": f"{len(found)} of {of} sets"})


def _headline(judged: JudgedSet) -> Column:
    """Return the one figure that stands for a set."""
    if judged.triplets:
        return Column(judged.name, "accuracy")
    if judged.systems:
        return Column(judged.name, "pearson", {"level": "summary", "human": MAIN_SCORE[judged.name]})
    return Column(judged.name, "pearson")


def _read(value: Any) -> float:
    return number_of(value, "score")


class QagsGrader(PredictionsGrader):
    """Opens boards of QAGS's sets and writes one of a run's metrics as predictions."""

    suite = "qags"

    def open(self, wanted: BoardRequest) -> QagsBoard:
        given = dict(wanted.settings or {})
        if other := [key for key in given if key not in _SETTINGS]:
            raise EnsueError(f"qags is graded with the setting {_SETTINGS[0]} only; leave {other[0]} out.")
        if wanted.tasks:
            given["sets"] = ",".join(wanted.tasks)
        known = resolve(self.suite, TASK.settings, given)
        found = read_sets(str(wanted.labels), known["sets"], None, every_score=known["human"] == "all")
        return QagsBoard(found, wanted.partial)

    def answers(self, item: Mapping[str, Any]) -> Iterator[Answer]:
        for measure, value in item["scores"].items():
            yield Answer(item["id"], item["task"], {_MEASURE: measure}, value)


GRADER = QagsGrader()
