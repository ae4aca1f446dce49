"""What models are tested on: other benchmarks, prepared with one set of texts each, and what of them is an answer.

Every test asks which of two texts is better, so that accuracies have one scale and chance is 0.5: a document or its
shuffled version, a document or one with an intruder, the better or the worse rated of two texts about one thing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ensue.benchmarks import registry
from ensue.benchmarks.base import Outcome, Prepared
from ensue.benchmarks.intruder.judging import UNTOUCHED, WHOLE
from ensue.benchmarks.intruder.rules import REMOVAL
from ensue.benchmarks.intruder.task import IntruderRun
from ensue.benchmarks.ratings.task import RatingsRun, judged_pairs
from ensue.benchmarks.settings import resolve
from ensue.benchmarks.shuffle.task import ShuffleRun
from ensue.errors import EnsueError
from ensue.report.results import Item

ACCURACY, HIT_RATE = "accuracy", "hit_rate"
# What of a scorer is held against a rater's removal, and its measure of a text that people rated.
_FOLLOWING, _PER_TOKEN, _RATING = "following", "per_token", "model_rating"

Answers = Iterator[Item]


@dataclass(frozen=True)
class Test:
    """A benchmark with a set of texts read, and what its outcome answers."""

    name: str
    set: str
    prepared: Prepared
    answers_in: Callable[[Sequence[Item]], Answers]

    def answers(self, outcome: Outcome, model: str) -> list[Item]:
        """Return what a model answered, one item a pair of texts, under its name and that of the set."""
        found = []
        for item in self.answers_in(list(outcome.items)):
            settings = {"set": self.set, **item["settings"], "model": model}
            found.append(
                Item(
                    id=f"{model}: {self.set}: {item['id']}",
                    cluster=f"{self.set}: {item['cluster']}",
                    task=f"transfer/{self.name}",
                    settings=settings,
                    scores=item["scores"],
                    outputs={"pair": item["id"]},
                    content=item.get("content", ""),
                )
            )
        return found


def tests_of(
    sets: Mapping[str, str | None],
    ratings: str | None,
    limit: int | None,
    seed: int,
    settings: Mapping[str, Any],
) -> list[Test]:
    """Prepare shuffled texts and intruders of every set, and the rated texts where there are any."""

    def prepared(name: str, data: str | None, **more: Any) -> Prepared:
        task = registry.find(name).load_task()
        known = {key: value for key, value in settings.items() if key in task.settings}
        made = task.prepare("", data, limit, seed, resolve(name, task.settings, known | more))
        _check(made)
        return made

    found = [
        Test("shuffle", name, prepared("shuffle", data, allow_shuffle_trained="yes"), _shuffled)
        for name, data in sets.items()
    ]
    # Likeness is another model's, which would be held against all alike.
    found += [
        Test("intruder", name, prepared("intruder", data, encoder="none"), _intruded)
        for name, data in sets.items()
    ]
    if ratings is not None:
        found.append(Test("ratings", "people", prepared("ratings", ratings), _rated))
    return found


def _check(made: Prepared) -> None:
    """Refuse texts that a test has nothing to ask of, before any model has been asked anything."""
    if isinstance(made, ShuffleRun):
        made.versions()
    elif isinstance(made, IntruderRun):
        made.usable()
    elif isinstance(made, RatingsRun) and not made.data.have_pairs:
        raise EnsueError(
            f"{made.source} has no two texts of one `group` that people rate differently, so transfer has nothing to "
            "ask about them."
        )


def _shuffled(items: Sequence[Item]) -> Answers:
    for item in items:
        yield _with(item, {ACCURACY: item["scores"][ACCURACY]})


def _intruded(items: Sequence[Item]) -> Answers:
    for item in items:
        if item["settings"]["kind"] != UNTOUCHED:
            rule = REMOVAL if f"{REMOVAL}/{HIT_RATE}" in item["scores"] else _FOLLOWING
            scores = {
                ACCURACY: item["scores"][f"{WHOLE}/{ACCURACY}"],
                HIT_RATE: item["scores"][f"{rule}/{HIT_RATE}"],
            }
            yield _with(item, scores)


def _rated(items: Sequence[Item]) -> Answers:
    measure = _RATING if _RATING in items[0]["outputs"] else _PER_TOKEN
    for pair in judged_pairs(items, measure):
        first, second = pair.items
        yield Item(
            id=f"{first['id']} {second['id']}",
            cluster=pair.group,
            task="",
            settings={},
            scores={ACCURACY: pair.right},
            outputs={},
            content=f"{first.get('content', '')} {second.get('content', '')}",
        )


def _with(item: Item, scores: dict[str, float]) -> Item:
    return Item(
        id=item["id"],
        cluster=item["cluster"],
        task=item["task"],
        settings=item["settings"],
        scores=scores,
        outputs={},
        content=item.get("content", ""),
    )
