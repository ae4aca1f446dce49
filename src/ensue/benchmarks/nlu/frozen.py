"""Frozen sentence encoders with a classifier a task, as the paper's sentence representation models.

Each distinct text is encoded once and kept on disk; only classifiers (512 units) are trained, as appendix A.1.2
says, and the one that is best on dev answers. Of a marked word or mention (WiC, WSC) its phrase's vector is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ensue.benchmarks.base import RunContext, Setting
from ensue.benchmarks.nlu.examples import TRAIN, Example, Form, TaskData
from ensue.benchmarks.nlu.framing import (
    Framed,
    Ints,
    Parts,
    PredictedAnswers,
    TextRow,
    answered_as,
    answered_with,
    ask,
    frame,
    outputs_of,
    parts_of,
)
from ensue.benchmarks.nlu.systems import Answered, Settings
from ensue.benchmarks.nlu.training import Schedule, TrainedAnswers, answered, best_of
from ensue.benchmarks.probing.choices import VECTOR_SETTINGS, layers_of
from ensue.models.protocols import Cutting, Encoder, Model, require
from ensue.progress import Progress

if TYPE_CHECKING:
    from ensue.benchmarks.nlu.fitting import TrainingSplit
    from ensue.benchmarks.probing.vectors import SentenceVectors


class Frozen:
    """The system of mode `frozen`."""

    settings: Mapping[str, Setting] = VECTOR_SETTINGS

    def __init__(self, schedule: Schedule | None = None) -> None:
        self.schedule = schedule or Schedule()

    def answer(
        self, model: Model, tasks: Sequence[TaskData], settings: Settings, seed: int, context: RunContext
    ) -> Iterator[Answered]:
        encoder = require(model, Encoder, "Mode frozen")
        layers = layers_of(encoder, settings)
        seeds = range(seed, seed + settings.get("runs", 1))
        asked = {"identity": encoder.card.identity, "pooling": settings["pooling"], "first_seed": seed}
        for data in tasks:
            parts = parts_of(data, seed)
            if parts is None:
                continue
            about = answered_with(data, tasks)
            # Encoded when the first training needs it: where all are finished already, never.
            encoding = _Encoding(encoder, about, layers, settings["pooling"], context.progress)
            for layer in layers:
                train = partial(_train, encoding, parts, layer, self.schedule, settings["classifier_device"])
                # The layer is part of the name too, so that each has its own file.
                name = data.spec.name if layer is None else f"{data.spec.name}-layer-{layer}"
                best, fits = best_of(name, {**asked, "layer": layer}, about, seeds, context, train)
                said = {} if layer is None else {"layer": layer}
                yield from answered(best, [{**line, "task": data.spec.name, **said} for line in fits], said)

    def signature(self, model: Model, settings: Settings) -> str:
        pooling = settings["pooling"] or "own"
        return f"frozen pooling:{pooling} features:[u;v;|u-v|;u*v] mlp:512 adam:1e-3 batch:128 stop:lr/5"


@dataclass
class _Encoding:
    """The texts of tasks as vectors, encoded when these are first asked for, and how many texts were cut."""

    encoder: Encoder
    tasks: Sequence[TaskData]
    layers: Sequence[int | None]
    pooling: str | None
    progress: Progress

    @cached_property
    def vectors(self) -> SentenceVectors:
        from ensue.benchmarks.probing.vectors import encode_once

        splits = [examples for data in self.tasks for examples in data.splits.values()]
        return encode_once(
            self.encoder,
            _texts(self.tasks[0].spec.form, splits),
            layers=[layer for layer in self.layers if layer is not None] or None,
            pooling=self.pooling,
            progress=self.progress,
        )

    @cached_property
    def cuts(self) -> dict[str, dict[str, int]]:
        """How many texts of each task the encoder does not read to their end, for those that are."""
        encoder = self.encoder
        if not isinstance(encoder, Cutting):
            return {}
        form, found = self.tasks[0].spec.form, {}
        for data in self.tasks:
            learnt = [data.splits[TRAIN]] if TRAIN in data.splits else []
            sets = {"training texts": learnt, "texts": [data.splits[name] for name in data.judged_splits]}
            words = {
                f"{what} cut at {encoder.card.max_length} tokens": encoder.count_cut(_texts(form, examples))
                for what, examples in sets.items()
            }
            found[data.spec.name] = {what: count for what, count in words.items() if count}
        return {task: words for task, words in found.items() if words}


def pieces_of(row: TextRow) -> tuple[str, ...]:
    """Return the texts whose vectors make a row's features: its own, then its marked phrases."""
    return (*row.texts, *(row.texts[mark.text][mark.start : mark.end] for mark in row.marks))


def _texts(form: Form, splits: Sequence[list[Example]]) -> list[str]:
    """Return all distinct texts of some splits but blank ones, which no encoder need know."""
    found: dict[str, None] = {}
    for examples in splits:
        for row in ask(form, examples).rows:
            found.update(dict.fromkeys(pieces_of(row)))
    return [text for text in found if text.strip()]


def _train(
    encoding: _Encoding, parts: Parts, layer: int | None, schedule: Schedule, device: str, seed: int
) -> TrainedAnswers:
    """Train the first task's classifier and answer all the tasks with it."""
    import torch

    from ensue.benchmarks.nlu.fitting import Classifier, Learner, features_in, fit
    from ensue.benchmarks.probing.training import device_of

    about, vectors = encoding.tasks, encoding.vectors
    spec = about[0].spec
    where = device_of(device)
    train, chosen_on = frame(spec, parts.train), frame(spec, parts.chosen_on)
    row = train.rows[0]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = Classifier(features_in(len(row.texts), len(row.marks), vectors.width), outputs_of(spec))
    network = network.to(where)

    def split(framed: Framed) -> TrainingSplit:
        return _split(framed, vectors, layer, network, where)

    learner = Learner(spec, split(train), split(chosen_on))
    how = fit(network, [learner], schedule, seed, encoding.progress)
    held = {"held_out": True} if parts.held_out else {}

    def answered_on(data: TaskData, name: str) -> PredictedAnswers:
        return answered_as(learner.answer(split(ask(spec.form, data.splits[name]))), spec, data.spec)

    found = {data.spec.name: {name: answered_on(data, name) for name in data.judged_splits} for data in about}
    return TrainedAnswers(how.best, {**how.as_json(), **held, "cuts": encoding.cuts}, found)


def _split(
    framed: Framed, vectors: SentenceVectors, layer: int | None, network: Any, where: Any
) -> TrainingSplit:
    """Return rows whose features are made of stored vectors, batch by batch: all at once they may fill the memory."""
    import torch

    from ensue.benchmarks.nlu.fitting import TrainingSplit, row_features

    texts = len(framed.rows[0].texts)
    numbers = numbers_of([pieces_of(row) for row in framed.rows], vectors)

    def forward(rows: Ints) -> Any:
        stored = vectors.take(np.maximum(numbers[rows], 0), layer)
        # A blank text has zeros.
        stored[numbers[rows] < 0] = 0.0
        taken = torch.from_numpy(stored).to(where).unbind(1)
        return network(row_features(list(taken[:texts]), list(taken[texts:])))

    return TrainingSplit(framed, forward, np.zeros(len(framed.rows), dtype=np.int64))


def numbers_of(pieces: Sequence[tuple[str, ...]], vectors: SentenceVectors) -> Ints:
    """Return the row of the store for each text [rows, texts], −1 for a blank one."""
    flat = [text for row in pieces for text in row]
    found = np.full(len(flat), -1, dtype=np.int64)
    filled = [place for place, text in enumerate(flat) if text.strip()]
    found[filled] = vectors.rows([flat[place] for place in filled])
    return found.reshape(len(pieces), -1)


system = Frozen()
