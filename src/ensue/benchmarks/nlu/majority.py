"""Answers every example of a task alike: with its most frequent label.

The rule, which gives the most-frequent row of table A.2 exactly: the label that is most frequent in the dev set
(COPA's 55.0 needs it; in every other task the training set has the same), the commoner one of the training set
where two tie, then the first of the task's labels. `majority_of=train` counts in the training set first. Beyond that

- MultiRC: every answer is right, though most are not, since its F1 is that of the right ones;
- STS-B: the mean score;
- ReCoRD: of the passage's entities the one with the highest token F1 with all mentions of entities in the passage, as
  a footnote of section 3.5.1 has it; mentions are found in the text, the longest first;
- a diagnostic: the label of the task whose classifier answers it, or its own most frequent where that is not here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import RunContext, Setting
from ensue.benchmarks.nlu.choosing import positive_class
from ensue.benchmarks.nlu.examples import DEV, TRAIN, Example, Prediction, TaskData
from ensue.benchmarks.nlu.framing import Answers, answered_as
from ensue.benchmarks.nlu.systems import Answered
from ensue.metrics.answers import token_f1
from ensue.models.protocols import Model


class Majority:
    """The system of mode `majority`."""

    settings: Mapping[str, Setting] = {
        "majority_of": Setting(
            DEV,
            "where labels are counted first: dev (as the paper's row) or train",
            read.one_of(DEV, TRAIN),
        )
    }

    def answer(
        self,
        model: Model,
        tasks: Sequence[TaskData],
        settings: Mapping[str, Any],
        seed: int,
        context: RunContext,
    ) -> Iterator[Answered]:
        known = {data.spec.name: data for data in tasks}
        for data in tasks:
            source = known.get(data.spec.answered_by, data)
            answer = common_answer(source, settings["majority_of"])
            if answer is None and source is not data:
                source, answer = data, common_answer(data, settings["majority_of"])
            if answer is None and data.spec.form != "entity":
                continue
            yield Answered(
                data.spec.name,
                {split: _alike(data, data.splits[split], source, answer) for split in data.judged_splits},
            )

    def signature(self, model: Model, settings: Mapping[str, Any]) -> str:
        return f"majority of:{settings['majority_of']} answers:true entity:f1-with-mentions score:mean"


def common_answer(data: TaskData, first: str) -> Prediction | None:
    """The most frequent label or the mean score, counted in `first`, train or dev; None without any labels.

    A set without either of them (a diagnostic) is counted itself.
    """
    order = [first, *(split for split in (DEV, TRAIN) if split != first)]
    if not any(data.labelled(split) for split in order):
        order = list(data.splits)
    golds = [[example.gold for example in data.splits[split]] for split in order if data.labelled(split)]
    if not golds or data.spec.form == "entity":
        return None
    if data.spec.form == "score":
        return fmean(float(gold) for gold in golds[0])  # type: ignore[arg-type]  # a score
    if data.spec.form == "answers":
        return data.spec.labels[positive_class(data.spec)]
    counts = [Counter(str(gold) for gold in split) for split in golds]
    return max(data.spec.labels, key=lambda label: [count[label] for count in counts])


def _alike(
    data: TaskData, examples: Sequence[Example], source: TaskData, answer: Prediction | None
) -> dict[str, Prediction]:
    if answer is None:
        return {example.id: common_entity(example) for example in examples}
    if source.spec.form == "score":
        return {example.id: answer for example in examples}
    said = Answers({example.id: answer for example in examples}, {})
    return answered_as(said, source.spec, data.spec).predictions


def common_entity(example: Example) -> str:
    """The entity with the highest F1 with all mentions of the passage, the first of those that are equal."""
    options = sorted(set(example.choices), key=lambda entity: (-len(entity), entity))
    either = "|".join(map(re.escape, options))
    mentions = Counter(re.findall(rf"(?<!\w)(?:{either})(?!\w)", example.texts[0])) or Counter(options)

    def shared(entity: str) -> float:
        return sum(token_f1(entity, mention) * count for mention, count in mentions.items())

    return max(example.choices, key=shared)


system = Majority()
