"""Predictions of SentEval graded without a model: a label an example, or a number a pair of sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ensue.benchmarks.base import content_of, covers
from ensue.benchmarks.drawn import mean_of_samples
from ensue.benchmarks.grading.board import BoardRequest, Column, Graded, in_part, one_name, without
from ensue.benchmarks.grading.predictions import Answer, PredictionsBoard, PredictionsGrader, Question
from ensue.benchmarks.grading.values import label_of, number_of
from ensue.benchmarks.published import facts_of
from ensue.benchmarks.senteval.answering import Given, answers_of, parts_of
from ensue.benchmarks.senteval.comparing import COMPARING
from ensue.benchmarks.senteval.data import ExampleRows, SentEvalData, SentEvalSpec, chosen, read_suite
from ensue.benchmarks.senteval.task import judge

_TOTAL, _SCORE, _STS13 = "SentEval", "score", "STS13"


class SentEvalBoard(PredictionsBoard):
    """The tasks asked for that are there and have answers of their own on the split.

    Systems are ranked by the unweighted mean over tasks of each one's own metric.
    """

    def __init__(
        self, tasks: Sequence[SentEvalData], asked: Sequence[SentEvalSpec], split: str, partial: bool
    ) -> None:
        self._asked = asked
        self._parts = {data.name: (data, found) for data in tasks if (found := parts_of(data, split))}
        questions = {
            f"{name}/{id}": Question(name, content_of(texts), _reader(data.classes))
            for name, (data, parts) in self._parts.items()
            for rows in parts.values()
            for id, texts in zip(rows.ids, zip(*rows.texts, strict=True), strict=True)
        }
        super().__init__("senteval", split, questions, partial=partial)

    @property
    def columns(self) -> list[Column]:
        here = {"split": self.split}
        tasks = [Column(name, data.task.metric, here) for name, (data, _) in self._parts.items()]
        return [Column(_TOTAL, _SCORE, here, main=True), *tasks]

    def parts(self) -> Mapping[str, str]:
        known = facts_of("ensue.benchmarks.senteval")["items"][self.split]
        absent = [spec.name for spec in self._asked if spec.name not in self._parts]
        missing = without(absent, len(self._asked))
        found = in_part(self.counts(), known) | ({_TOTAL: missing} if missing else {})
        smt = {_STS13: "without its SMT set, whose licence keeps it out of SentEval"}
        return smt | found if _STS13 in self._parts else found

    def judge(self, answers: Mapping[str, Any], not_scored: Mapping[str, str]) -> Graded:
        answered = []
        for name, (data, parts) in self._parts.items():
            if name not in not_scored:
                given = Given({part: _values(name, rows, answers) for part, rows in parts.items()})
                # How a system was trained is its own affair.
                without = [
                    replace(one, settings={k: v for k, v in one.settings.items() if k != "protocol"})
                    for one in answers_of(data, given, "", None)
                ]
                answered.append((data, given, without))
        rows, figures = judge(answered, self._asked)
        mean = mean_of_samples([one.figures[one.task.metric] for one in figures])
        covered = {"split": self.split, "covers": covers(len(figures), len(self._asked), None)}
        return self.graded([mean.row(_TOTAL, _SCORE, covered), *rows], not_scored)


def _values(
    task: str, rows: ExampleRows, answers: Mapping[str, Any]
) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.asarray([answers[f"{task}/{id}"] for id in rows.ids], dtype=np.float64)


def _reader(classes: tuple[str, ...]) -> Callable[[Any], float]:
    """Return what reads a class as its number, or a score."""
    if not classes:
        return lambda value: number_of(value, "prediction")
    codes = {label: float(code) for code, label in enumerate(classes)}
    return lambda value: codes[label_of(value, classes)]


class SentEvalGrader(PredictionsGrader):
    """Opens boards of SentEval and writes its predictions."""

    suite = "senteval"
    splits = ("test", "dev")

    def open(self, wanted: BoardRequest) -> SentEvalBoard:
        self.refuse_settings(wanted.settings)
        asked = chosen(one_name(self.suite, wanted.tasks))
        read = read_suite(str(wanted.labels), asked).tasks
        return SentEvalBoard(read, asked, wanted.split, wanted.partial)

    def answers(self, item: Mapping[str, Any]) -> Iterator[Answer]:
        found = COMPARING.asked(item)
        outputs = item["outputs"]
        prediction = outputs["similarity"] if "similarity" in outputs else outputs["predicted"]
        yield Answer(found.id, found.task, found.way, prediction)


GRADER = SentEvalGrader()
