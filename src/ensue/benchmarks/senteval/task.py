"""SentEval: what do frozen sentence vectors know of likeness, sentiment, topics and grammar?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import DataRun, Outcome, Prepared, PreparedTask, RunContext, Setting
from ensue.benchmarks.drawn import Drawn
from ensue.benchmarks.probing.choices import (
    VECTOR_SETTINGS,
    answer_all,
    layers_of,
    question_of,
    signed_model,
    signed_vectors,
)
from ensue.benchmarks.senteval.answering import Given, answer, answers_of
from ensue.benchmarks.senteval.data import SentEvalData, SentEvalSpec, SentEvalSuite, chosen, read_suite
from ensue.benchmarks.senteval.judging import (
    PartAnswers,
    TaskFigures,
    figures_of,
    group_rows,
    has_correlation,
    items_of,
    over_sets,
    task_rows,
)
from ensue.errors import EnsueError
from ensue.models.protocols import Encoder, Model, require
from ensue.records import Codec
from ensue.report.results import MetricRow

if TYPE_CHECKING:
    from ensue.benchmarks.probing.vectors import SentenceVectors

SETTINGS = {
    "protocol": Setting(
        "paper",
        "paper (as SentEval's code trains its classifiers) or converged (standardised, to the optimum)",
        read.one_of("paper", "converged"),
    ),
    **VECTOR_SETTINGS,
}
# What a run has finished: the answers to a task at a layer.
_GIVEN = Codec("senteval", Given.as_json, Given.from_json)


@dataclass(frozen=True)
class SentEvalRun(DataRun[SentEvalSuite]):
    """The tasks with their files read and the settings fixed."""

    asked: list[SentEvalSpec]
    limit: int | None
    seed: int

    def evaluate(self, model: Model, context: RunContext) -> Outcome:
        """Encode every distinct sentence once, then answer and judge layer by layer and task by task."""
        encoder = require(model, Encoder, "SentEval")
        layers = layers_of(encoder, self.settings)
        given = self._given(encoder, layers, context)
        judged: list[PartAnswers] = []
        rows: list[MetricRow] = []
        for layer in layers:
            found = [(data, given[data.task.name, layer]) for data in self.data.tasks]
            answered = [
                (data, one, answers_of(data, one, self.settings["protocol"], layer)) for data, one in found
            ]
            judged += [part for _, _, answers in answered for part in answers]
            rows += judge(answered, self.asked, self.limit)[0]
        return Outcome(
            items=(item for part in judged for item in items_of(part)),
            metrics=rows,
            signature=self._signature(model, layers),
            skipped=self._skipped(),
            tokens=0,
            notes=self._notes(judged),
        )

    def _given(
        self, encoder: Encoder, layers: list[int | None], context: RunContext
    ) -> dict[tuple[str, int | None], Given]:
        """Return the answers to every task at every layer, those of an interrupted run included."""
        from ensue.benchmarks.senteval.protocols import PROTOCOLS

        s, tasks = self.settings, self.data.tasks
        classifiers = PROTOCOLS[s["protocol"]](self.seed, s["classifier_device"])
        question = question_of(encoder, layers, s, data=self.fingerprint, seed=self.seed)

        def answered(data: SentEvalData, layer: int | None, vectors: SentenceVectors) -> Given:
            return answer(data, layer, vectors, classifiers)

        return answer_all(encoder, tasks, layers, s["pooling"], question, _GIVEN, context, answered, "tasks")

    def _notes(self, judged: Sequence[PartAnswers]) -> Counter[str]:
        notes = sum((data.notes for data in self.data.tasks), Counter[str]())
        undefined = sum(not part.classes and not has_correlation(part) for part in judged)
        if undefined:
            notes["correlations of answers that are all the same, counted as 0"] += undefined
        return notes

    def _skipped(self) -> dict[str, int]:
        skipped = sum((data.skipped for data in self.data.tasks), Counter[str]())
        for name, file in self.data.missing.items():
            skipped[f"task {name} left out, for want of {file}"] += 1
        return dict(skipped)

    def _signature(self, model: Model, layers: list[int | None]) -> str:
        s = self.settings
        vectors = signed_vectors(s, layers)
        return f"{signed_model(model)} sts:cosine protocol:{s['protocol']} {vectors} seed:{self.seed}"


def judge(
    answered: Sequence[tuple[SentEvalData, Given, list[PartAnswers]]],
    asked: Sequence[SentEvalSpec],
    limit: int | None = None,
) -> tuple[list[MetricRow], list[TaskFigures]]:
    """Return the rows of answers at one layer, those of sets, tasks and groups, and the figures of the tasks."""
    rows: list[MetricRow] = []
    figures: list[TaskFigures] = []
    for data, given, answers in answered:
        parts = [figures_of(part) for part in answers]
        if data.task.sets:
            rows += [
                figure.row(part.task, metric, part.settings)
                for part, found in zip(answers, parts, strict=True)
                for metric, figure in found.items()
            ]
        figures += whole(data, given, answers, parts)
    rows += [row for one in figures for row in task_rows(one)]
    rows += group_rows(figures, asked, limit)
    return rows, figures


def whole(
    data: SentEvalData, given: Given, answers: Sequence[PartAnswers], figures: Sequence[dict[str, Drawn]]
) -> list[TaskFigures]:
    """Return a task's figures split by split; the sets of an STS year make one."""
    if data.task.sets:
        at = {key: value for key, value in answers[0].settings.items() if key == "layer"}
        return [over_sets(data.task, figures, at)]
    found = [
        TaskFigures(data.task, part.settings, one, {}) for part, one in zip(answers, figures, strict=True)
    ]
    if given.dev_accuracy is not None:
        dev = {"accuracy": Drawn(given.dev_accuracy, None, len(answers[0].ids))}
        found.insert(0, TaskFigures(data.task, {**answers[0].settings, "split": "dev"}, dev, {}))
    return found


def _prepare(task: str, data: str | None, limit: int | None, seed: int, settings: dict[str, Any]) -> Prepared:
    tasks = chosen(task)
    if data is None:
        raise EnsueError("senteval needs --data: the folder that holds downstream and probing.")
    return SentEvalRun(read_suite(data, tasks, limit), settings, tasks, limit, seed)


TASK = PreparedTask(SETTINGS, _prepare)
