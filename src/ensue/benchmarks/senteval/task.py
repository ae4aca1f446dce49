"""SentEval: what do frozen sentence vectors know of likeness, sentiment, topics and grammar?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import Outcome, Prepared, RunContext, Setting
from ensue.benchmarks.drawn import Drawn
from ensue.benchmarks.probing.choices import VECTOR_SETTINGS, layers_of
from ensue.benchmarks.senteval.answering import Bench, Given, answer, answers_of
from ensue.benchmarks.senteval.catalog import Task, chosen
from ensue.benchmarks.senteval.data import Suite, TaskData, read_suite
from ensue.benchmarks.senteval.judging import (
    Answers,
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
from ensue.records import Codec, digest_of
from ensue.report.results import MetricRow
from ensue.version import __version__

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
class SentEvalRun:
    """The tasks with their files read and the settings fixed."""

    suite: Suite
    asked: tuple[Task, ...]
    limit: int | None
    seed: int
    settings: dict[str, Any]

    @property
    def fingerprint(self) -> str:
        return self.suite.fingerprint

    @property
    def source(self) -> str:
        return self.suite.source

    def evaluate(self, model: Model, context: RunContext) -> Outcome:
        """Encode every distinct sentence once, then answer and judge layer by layer and task by task."""
        encoder = require(model, Encoder, "SentEval")
        layers = layers_of(encoder, self.settings)
        given = self._given(encoder, layers, context)
        judged, rows = [], []
        for layer in layers:
            figures: list[TaskFigures] = []
            for data in self.suite.tasks:
                answers = answers_of(data, given[data.task.name, layer], self.settings["protocol"], layer)
                judged += answers
                parts = [figures_of(part) for part in answers]
                if data.task.sets:
                    rows += [
                        row for part, found in zip(answers, parts, strict=True) for row in _rows(part, found)
                    ]
                figures += whole(data, given[data.task.name, layer], answers, parts)
            rows += [row for one in figures for row in task_rows(one)]
            rows += group_rows(figures, self.asked, self.limit)
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
        """The answers to every task at every layer, those of an interrupted run included."""
        from ensue.benchmarks.probing.vectors import encode_once
        from ensue.benchmarks.senteval.protocols import PROTOCOLS

        places = [(data, layer) for layer in layers for data in self.suite.tasks]
        asked, records = self._question(encoder, layers), context.records
        keys = {(data.task.name, layer): digest_of(asked, data.task.name, layer) for data, layer in places}
        known = {place: records.get(_GIVEN, key) for place, key in keys.items()}
        waiting = [(data, layer) for data, layer in places if known[data.task.name, layer] is None]
        found = {place: given for place, given in known.items() if given is not None}
        if not waiting:
            return found
        tasks = {data.task.name: data for data, _ in waiting}
        vectors = encode_once(
            encoder,
            (sentence for data in tasks.values() for sentence in data.sentences()),
            layers=layers,
            pooling=self.settings["pooling"],
            progress=context.progress,
            where=lambda sentence: next(filter(None, (data.place_of(sentence) for data in tasks.values()))),
        )
        classifiers = PROTOCOLS[self.settings["protocol"]](self.seed, self.settings["classifier_device"])
        for data, layer in waiting:
            given = answer(data, Bench(vectors, layer, classifiers))
            records.add(_GIVEN, [(keys[data.task.name, layer], given)])
            found[data.task.name, layer] = given
            if context.progress is not None:
                context.progress(len(found), len(places), "tasks")
        return found

    def _question(self, model: Model, layers: list[int | None]) -> dict[str, Any]:
        """Everything the answers depend on; other layers beside one change nothing about it."""
        return {
            "version": __version__,
            "model": model.card.identity,
            "max_length": model.card.max_length,
            "own": layers == [None],
            "data": self.fingerprint,
            "seed": self.seed,
            "settings": {key: value for key, value in self.settings.items() if key != "layer"},
        }

    def _notes(self, judged: Sequence[Answers]) -> Counter[str]:
        notes = sum((data.notes for data in self.suite.tasks), Counter[str]())
        undefined = sum(not part.classes and not has_correlation(part) for part in judged)
        if undefined:
            notes["correlations of answers that are all the same, counted as 0"] += undefined
        return notes

    def _skipped(self) -> dict[str, int]:
        skipped = sum((data.skipped for data in self.suite.tasks), Counter[str]())
        for name, file in self.suite.missing.items():
            skipped[f"task {name} left out, for want of {file}"] += 1
        return dict(skipped)

    def _signature(self, model: Model, layers: list[int | None]) -> str:
        s, card = self.settings, model.card
        weights = card.identity.get("weights", "-")[:12]
        shown = "own" if layers == [None] else ",".join(map(str, layers))
        return (
            f"model:{card.signed_name} weights:{weights} sts:cosine protocol:{s['protocol']} "
            f"layer:{shown} pooling:{s['pooling'] or 'own'} seed:{self.seed}"
        )


def whole(
    data: TaskData, given: Given, answers: Sequence[Answers], figures: Sequence[dict[str, Drawn]]
) -> list[TaskFigures]:
    """A task's figures split by split; the sets of an STS year make one."""
    if data.task.sets:
        at = {key: value for key, value in answers[0].settings.items() if key == "layer"}
        return [over_sets(data.task, figures, at)]
    found = [
        TaskFigures(data.task, part.settings["split"], part.settings, one, {})
        for part, one in zip(answers, figures, strict=True)
    ]
    if given.dev_accuracy is not None:
        dev = Drawn(given.dev_accuracy, None, len(answers[0].ids))
        found.insert(
            0, TaskFigures(data.task, "dev", {**answers[0].settings, "split": "dev"}, {"accuracy": dev}, {})
        )
    return found


def _rows(part: Answers, figures: dict[str, Drawn]) -> Iterator[MetricRow]:
    for metric, figure in figures.items():
        yield figure.row(part.task, metric, part.settings)


class SentEvalTask:
    """Make and judge the items of the benchmark."""

    settings = SETTINGS

    def prepare(
        self, task: str, data: str | None, limit: int | None, seed: int, settings: dict[str, Any]
    ) -> Prepared:
        tasks = chosen(task)
        if data is None:
            raise EnsueError("senteval needs --data: the folder that holds downstream and probing.")
        return SentEvalRun(read_suite(data, tasks, limit), tasks, limit, seed, settings)


TASK = SentEvalTask()
