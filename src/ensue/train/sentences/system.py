"""Mode `train`: CBoW and BiLSTM baselines that learn from training sets alone, task by task or all at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import RunContext, Setting
from ensue.benchmarks.nlu.examples import TaskData
from ensue.benchmarks.nlu.framing import answered_with, parts_of
from ensue.benchmarks.nlu.systems import Answered, Settings
from ensue.benchmarks.nlu.training import Schedule, TrainedAnswers, answered, best_of
from ensue.errors import EnsueError
from ensue.models.protocols import Model
from ensue.train.sentences import ARCHITECTURES

if TYPE_CHECKING:
    from ensue.train.sentences.rows import TextVocabulary
    from ensue.train.sentences.training import Member, Plan

MULTITASK = "multitask"
_KEYS = ("vectors", "width", "classifier_hidden", MULTITASK, "validate_every", "max_steps", "max_words")


class Sentences:
    """The system of mode `train`."""

    settings: Mapping[str, Setting] = {
        "vectors": Setting(
            "glove-50d", "word vectors: a model, a text file (GloVe's form) or learned", read.text
        ),
        "width": Setting(256, "units of the BiLSTM in each direction (the paper: 1500)", read.whole()),
        "classifier_hidden": Setting(512, "hidden units of the classifiers", read.whole()),
        MULTITASK: Setting("no", "yes: one encoder for all tasks", read.one_of("yes", "no")),
        "validate_every": Setting(
            None,
            "updates between checks on dev (the paper: 10000; none: a pass, from 100 to 10000)",
            read.optional(read.whole()),
        ),
        "max_steps": Setting(20_000, "updates at most", read.whole()),
        "max_words": Setting(256, "words of a text that are read", read.whole()),
    }

    def answer(
        self, model: Model, tasks: Sequence[TaskData], settings: Settings, seed: int, context: RunContext
    ) -> Iterator[Answered]:
        from ensue.train.sentences.network import SentenceShape
        from ensue.train.sentences.rows import published_vectors
        from ensue.train.sentences.training import Member, Plan

        architecture = _architecture(model)
        found = [(data, parts_of(data, seed)) for data in tasks]
        members = [
            Member(data, parts, answered_with(data, tasks)) for data, parts in found if parts is not None
        ]
        if not members:
            return
        plan = Plan(
            SentenceShape(architecture, settings["width"], settings["classifier_hidden"]),
            Schedule(validate_every=settings["validate_every"], max_steps=settings["max_steps"]),
            settings["max_words"],
            published_vectors(settings["vectors"]),
        )
        if settings[MULTITASK] == "yes":
            yield from _answer(MULTITASK, members, settings, plan, seed, context)
            return
        for one in members:
            yield from _answer(one.data.spec.name, [one], settings, plan, seed, context)

    def signature(self, model: Model, settings: Settings) -> str:
        said = [f"train:{_architecture(model)}", *(f"{key}:{settings[key]}" for key in _KEYS)]
        return " ".join([*said, "adam:1e-3 batch:128 stop:lr/5"])


def _architecture(model: Model) -> str:
    architecture = model.card.identity.get("architecture")
    if model.card.kind != "untrained" or architecture not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise EnsueError(
            f"Mode train is for {known}, not for {model.card.name}; try --mode finetune or frozen."
        )
    return architecture


def _answer(
    name: str, group: list[Member], settings: Settings, plan: Plan, seed: int, context: RunContext
) -> Iterator[Answered]:
    """Train a group of tasks with every seed and answer with the best."""
    from ensue.train.sentences.training import train, words_for

    vocabulary: list[TextVocabulary] = []

    def trained(seed: int) -> TrainedAnswers:
        # Counting words takes a while, so only where something is to be trained, and once for all seeds.
        vocabulary.extend([] if vocabulary else [words_for(group, plan.vectors)])
        return train(group, plan, vocabulary[0], seed, context.progress)

    vectors = "learned" if plan.vectors is None else plan.vectors.card.identity
    asked = {key: settings[key] for key in _KEYS}
    asked |= {"architecture": plan.shape.architecture, "vectors": vectors}
    about = [data for one in group for data in one.answers]
    seeds = range(seed, seed + settings.get("runs", 1))
    best, fits = best_of(name, {**asked, "first_seed": seed}, about, seeds, context, trained)
    yield from answered(best, fits, {})


system = Sentences()
