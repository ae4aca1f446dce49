"""Mode `hypothesis-only`: pairs answered from their second text alone, to see what a data set gives away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ensue.benchmarks.base import RunContext, Setting
from ensue.benchmarks.nlu.examples import DEV, TRAIN, Example, TaskData
from ensue.benchmarks.nlu.framing import Answers, answered_as
from ensue.benchmarks.nlu.systems import Answered
from ensue.models.protocols import Model


class SecondText:
    """The audit of the paper's diagnostic set, for any task of pairs.

    A set without training examples of its own is answered by the classifier of the task that answers it, which
    may learn from that task's dev set where there is no training set.
    """

    settings: Mapping[str, Setting] = {}

    def answer(
        self,
        model: Model,
        tasks: Sequence[TaskData],
        settings: Mapping[str, Any],
        seed: int,
        context: RunContext,
    ) -> Iterator[Answered]:
        from ensue.benchmarks.nlu.hypothesis_only import classifier

        known = {data.spec.name: data for data in tasks}
        for data in tasks:
            source = known.get(data.spec.answered_by, data)
            split = TRAIN if source.labelled(TRAIN) or source is data else DEV
            if data.spec.form != "pair" or not source.labelled(split):
                continue
            labels = source.spec.labels
            examples = source.splits[split]
            gold = np.asarray([labels.index(str(example.gold)) for example in examples], dtype=np.int64)
            predict, l2 = classifier([example.texts[1] for example in examples], gold, len(labels))

            def answers(asked: list[Example], predict: Any = predict, source: TaskData = source) -> Answers:
                found = predict([example.texts[1] for example in asked])
                given = {one.id: source.spec.labels[place] for one, place in zip(asked, found, strict=True)}
                return Answers(given, {})

            yield Answered(
                data.spec.name,
                {
                    each: answered_as(answers(data.splits[each]), source.spec, data.spec).predictions
                    for each in data.judged_splits
                },
                fits=[{"learned_from": f"{source.spec.name} {split}", "examples": len(gold), "l2": l2}],
            )

    def signature(self, model: Model, settings: Mapping[str, Any]) -> str:
        return "features:1-2-grams-of-second-text"


system = SecondText()
