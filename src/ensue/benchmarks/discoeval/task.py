"""DiscoEval: what do frozen sentence vectors know of a sentence's place and role in its discourse?"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import Outcome, Prepared, PreparedTask, RunContext, Setting
from ensue.benchmarks.discoeval.data import SPLITS, DiscoEvalData, missing_files, read_task, select
from ensue.benchmarks.discoeval.judging import ProbedSplit, judge, metric_rows
from ensue.benchmarks.discoeval.probe import Choices, Probe, SentencePlaces, probe
from ensue.benchmarks.probing.choices import (
    VECTOR_SETTINGS,
    answer_all,
    layers_of,
    question_of,
    signed_model,
    signed_vectors,
)
from ensue.errors import EnsueError
from ensue.models.protocols import Encoder, Model, require
from ensue.records import Codec

if TYPE_CHECKING:
    from ensue.benchmarks.probing.vectors import SentenceVectors

SETTINGS = {
    "protocol": Setting(
        "paper",
        "paper (as the authors' code trains its classifiers) or converged (all linear, standardised, L-BFGS)",
        read.one_of("paper", "converged"),
    ),
    **VECTOR_SETTINGS,
    "seeds": Setting(1, "classifiers trained per task, from --seed on, and averaged", read.whole()),
    "context": Setting(
        "yes", "no: SP sees the moved sentence only (table 6 of the paper)", read.one_of("yes", "no")
    ),
    "hidden": Setting(
        "yes", "no: DC's classifier has no hidden layer (table 4 of the paper)", read.one_of("yes", "no")
    ),
}
# What a run has finished: the probe of a task at a layer.
_PROBES = Codec("discoeval", Probe.as_json, Probe.from_json)


@dataclass(frozen=True)
class DiscoEvalRun:
    """The suite with its files read and its settings fixed; `missing` names the files of tasks left out."""

    source: str
    asked: str
    tasks: list[DiscoEvalData]
    missing: dict[str, list[str]]
    limit: int | None
    seed: int
    settings: dict[str, Any]

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256("\n".join(task.fingerprint for task in self.tasks).encode()).hexdigest()

    def evaluate(self, model: Model, context: RunContext) -> Outcome:
        """Encode every distinct sentence once, then train and judge the classifiers task by task."""
        encoder = require(model, Encoder, "DiscoEval")
        layers = layers_of(encoder, self.settings)
        judged = list(self._judged(encoder, layers, context))
        return Outcome(
            items=(item for one in judged for item in one.items()),
            metrics=list(metric_rows(judged, self.asked, list(self.missing), self.limit)),
            signature=self._signature(model, layers),
            skipped={
                f"task {name} left out, for want of {', '.join(files)}": 1
                for name, files in self.missing.items()
            },
            tokens=0,
            extras={"fits": [fit for one in judged if one.split == "test" for fit in one.probe.fits]},
            notes=sum((task.notes for task in self.tasks), Counter[str]()),
        )

    def _judged(
        self, encoder: Encoder, layers: list[int | None], context: RunContext
    ) -> Iterator[ProbedSplit]:
        choices, pooling = self._choices(), self.settings["pooling"]
        question = question_of(
            encoder,
            layers,
            self.settings,
            data={task.name: task.fingerprint for task in self.tasks},
            limit=self.limit,
            seed=self.seed,
        )

        @lru_cache(maxsize=1)
        def places(name: str, vectors: SentenceVectors) -> dict[str, SentencePlaces]:
            examples = next(task.splits for task in self.tasks if task.name == name)
            return {split: SentencePlaces(examples[split], vectors.rows) for split in SPLITS}

        def answer(task: DiscoEvalData, layer: int | None, vectors: SentenceVectors) -> Probe:
            return probe(task, layer, vectors, places(task.name, vectors), choices)

        found = answer_all(
            encoder, self.tasks, layers, pooling, question, _PROBES, context, answer, "classifiers"
        )
        for task in self.tasks:
            for layer in layers:
                yield from judge(task, found[task.name, layer], choices)

    def _choices(self) -> Choices:
        s = self.settings
        return Choices(
            protocol=s["protocol"],
            context=s["context"] == "yes",
            hidden=s["hidden"] == "yes",
            seeds=tuple(range(self.seed, self.seed + s["seeds"])),
            device=s["classifier_device"],
        )

    def _signature(self, model: Model, layers: list[int | None]) -> str:
        s = self.settings
        ablations = "".join(f" {key}:no" for key in ("context", "hidden") if s[key] == "no")
        return (
            f"{signed_model(model)} protocol:{s['protocol']} {signed_vectors(s, layers)}{ablations} "
            f"seeds:{s['seeds']} seed:{self.seed}"
        )


def _prepare(task: str, data: str | None, limit: int | None, seed: int, settings: dict[str, Any]) -> Prepared:
    specs = select(task)
    for key, group in (("context", "SP"), ("hidden", "DC")):
        if settings[key] == "no" and all(spec.group != group for spec in specs):
            raise EnsueError(f"{key}=no is about {group}, which is not among what was asked for.")
    if settings["protocol"] == "converged" and settings["seeds"] > 1:
        raise EnsueError(
            "Protocol converged draws nothing at random, so seeds would all be alike; leave it out."
        )
    if data is None:
        raise EnsueError("discoeval needs --data: the folder that holds SP, BSO, DC, SSP, PDTB and RST.")
    folder = Path(data).expanduser()
    if not folder.is_dir():
        raise EnsueError(
            f"{folder} is not a folder; discoeval needs the one that holds SP, BSO and the rest."
        )
    missing = {spec.name: files for spec in specs if (files := missing_files(folder, spec))}
    if len(missing) == len(specs):
        first = next(iter(missing.values()))[0]
        raise EnsueError(f"{folder} has no whole task {task or 'of DiscoEval'}: {first} is missing.")
    tasks = [read_task(folder, spec, limit) for spec in specs if spec.name not in missing]
    return DiscoEvalRun(str(folder), task, tasks, missing, limit, seed, settings)


TASK = PreparedTask(SETTINGS, _prepare)
