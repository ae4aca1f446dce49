"""The examples a few-shot prompt begins with: from the training set, balanced over the answers, the same for all."""

from __future__ import annotations

import hashlib
import itertools
import random
from collections import defaultdict
from collections.abc import Sequence

from ensue.benchmarks.nlu.examples import TRAIN, Example, TaskData, TaskSpec
from ensue.errors import EnsueError


def training_set(task: TaskData, tasks: Sequence[TaskData]) -> list[Example]:
    """The task's training examples, or those of the task whose classifier answers it; none where neither is here."""
    sources = [task, *(other for other in tasks if other.spec.name == task.spec.answered_by)]
    return next((list(source.splits[TRAIN]) for source in sources if source.labelled(TRAIN)), [])


def draw(spec: TaskSpec, train: Sequence[Example], count: int, seed: int) -> list[Example]:
    """So many training examples in mixed order, each answer as often as the others where there are enough of it."""
    digest = hashlib.sha256(f"{seed} {spec.name}".encode()).digest()
    generator = random.Random(int.from_bytes(digest[:8], "little"))
    groups: dict[str, list[Example]] = defaultdict(list)
    for example in train:
        if (answer := _answer(spec, example)) is not None:
            groups[answer].append(example)
    there = sum(map(len, groups.values()))
    if there < count:
        raise EnsueError(
            f"{spec.name} has {there} training examples that could be shown, fewer than shots={count}; ask for fewer."
        )
    mixed = []
    for answer in sorted(groups):
        members = groups[answer]
        generator.shuffle(members)
        mixed.append(members)
    # Which answer is shown once more than the others, when they do not come out even, is drawn too.
    generator.shuffle(mixed)
    in_turn = (example for row in itertools.zip_longest(*mixed) for example in row if example is not None)
    chosen = list(itertools.islice(in_turn, count))
    generator.shuffle(chosen)
    return chosen


def _answer(spec: TaskSpec, example: Example) -> str | None:
    """What the examples are balanced over; None for one that cannot be shown."""
    gold = example.gold
    if gold is None:
        return None
    if spec.form == "score":
        return str(round(float(str(gold))))
    if spec.form == "entity":
        right = gold if isinstance(gold, tuple) else (gold,)
        return "" if any(choice in right for choice in example.choices) else None
    return str(gold)
