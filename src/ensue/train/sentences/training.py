"""Trains one network on a task, or on several at once, and answers with it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch

from ensue.backends.words import WordVectorModel
from ensue.benchmarks.nlu.examples import TRAIN, Example, Form, TaskData
from ensue.benchmarks.nlu.fitting import Learner, TrainingSplit, fit
from ensue.benchmarks.nlu.framing import (
    Framed,
    Ints,
    Parts,
    PredictedAnswers,
    answered_as,
    ask,
    frame,
    outputs_of,
)
from ensue.benchmarks.nlu.training import Schedule, TrainedAnswers
from ensue.progress import Progress, ignore
from ensue.train.sentences.network import HeadSize, SentenceNetwork, SentenceShape
from ensue.train.sentences.rows import TextVocabulary, number, vocabulary_of


@dataclass(frozen=True)
class Member:
    """A task in a training: what it learns from, and the tasks its classifier answers, itself first."""

    data: TaskData
    parts: Parts
    answers: list[TaskData]


@dataclass(frozen=True)
class Plan:
    """What is trained and how."""

    shape: SentenceShape
    schedule: Schedule
    max_words: int
    vectors: WordVectorModel | None


def words_for(members: Sequence[Member], vectors: WordVectorModel | None) -> TextVocabulary:
    """Return the vocabulary of some tasks."""

    def texts(form: Form, examples: list[Example]) -> Iterable[str]:
        # Each once, in the order of the data: numbers of words must not change from process to process.
        return dict.fromkeys(text for row in ask(form, examples).rows for text in row.texts)

    train = chain.from_iterable(texts(one.data.spec.form, one.parts.train) for one in members)
    other = chain.from_iterable(
        texts(one.data.spec.form, examples)
        for one in members
        for data in one.answers
        for split, examples in data.splits.items()
        if split != TRAIN or data is not one.data or one.parts.held_out
    )
    return vocabulary_of(vectors, train, other)


def train(
    members: Sequence[Member],
    plan: Plan,
    vocabulary: TextVocabulary,
    seed: int,
    progress: Progress = ignore,
) -> TrainedAnswers:
    """Train with a seed; the score is the unweighted mean over the tasks."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    framed = {one.data.spec.name: frame(one.data.spec, one.parts.train) for one in members}
    heads = {}
    for one in members:
        row = framed[one.data.spec.name].rows[0]
        heads[one.data.spec.name] = HeadSize(len(row.texts), len(row.marks), outputs_of(one.data.spec))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = SentenceNetwork(vocabulary, plan.shape, heads)
    network = network.to(device)

    cuts: dict[str, Counter[str]] = defaultdict(Counter)

    def split(name: str, rows: Framed, asked: str = "", what: str = "texts") -> TrainingSplit:
        """Rows for the classifier of `name`; with the task they were `asked` of, how many texts were cut is kept."""
        numbered = number(rows.rows, vocabulary, plan.max_words)
        if asked:
            cuts[asked][f"{what} cut at {plan.max_words} words"] += numbered.cut

        def forward(chosen: Ints) -> Any:
            return network(name, numbered.batch(chosen, device))

        return TrainingSplit(rows, forward, numbered.lengths)

    learners = []
    for one in members:
        spec = one.data.spec
        # A dev set is among what is answered, and counted there.
        counted = spec.name if one.parts.held_out else ""
        chosen_on = split(spec.name, frame(spec, one.parts.chosen_on), counted, "training texts")
        learnt = split(spec.name, framed[spec.name], spec.name, "training texts")
        learners.append(Learner(spec, learnt, chosen_on))
    how = fit(network, learners, plan.schedule, seed, progress)
    answers: dict[str, Mapping[str, PredictedAnswers]] = {}
    for one, learner in zip(members, learners, strict=True):
        for data in one.answers:
            answers[data.spec.name] = {
                name: answered_as(
                    learner.answer(
                        split(learner.spec.name, ask(learner.spec.form, data.splits[name]), data.spec.name)
                    ),
                    learner.spec,
                    data.spec,
                )
                for name in data.judged_splits
            }
    record = {**how.as_json(), "words": len(vocabulary), "device": device.type}
    record["cuts"] = {task: dict(+found) for task, found in cuts.items() if +found}
    if len(members) > 1:
        record["dev_by_task"] = how.by_task
    held = [one.data.spec.name for one in members if one.parts.held_out]
    if held:
        record["held_out"] = held
    return TrainedAnswers(how.best, record, answers)
