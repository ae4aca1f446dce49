"""Targeted pairs: of two endings of a text that differ in one thing, the model should prefer the one that follows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import DataRun, Outcome, Prepared, PreparedTask, RunContext, Setting, content_of
from ensue.benchmarks.coherence.judging import column_of, mean_rows
from ensue.benchmarks.coherence.neighbours import NOTHING
from ensue.benchmarks.coherence.rating import BY_SETTING, rate_texts, rater_of, rater_signature, read_in_part
from ensue.benchmarks.pairs.data import Pair, Pairs, read_pairs
from ensue.metrics.preference import prefer_total
from ensue.models.protocols import Model, Rater, Scorer, require
from ensue.models.request import Policy, Request
from ensue.report.results import Item, MetricRow
from ensue.scoring.engine import choices, score
from ensue.text.sentences import split_sentences

# What is asked of every pair, in this order.
_ASKED = ("good", "bad", "good_alone", "bad_alone")
METRICS = ("accuracy", "accuracy_gain", "accuracy_alone", "ties")

SETTINGS = {
    "joiner": Setting(" ", "what stands between context and ending", read.text),
    **BY_SETTING,
    **{name: read.POLICY_SETTINGS[name] for name in ("bos", "max_length", "masked")},
}


@dataclass(frozen=True)
class PairsRun(DataRun[Pairs]):
    """The test with its pairs read and its settings fixed."""

    def evaluate(self, model: Model, context: RunContext) -> Outcome:
        """Score or rate both endings of every pair after their context, and on their own."""
        rater = rater_of(model, self.settings, "The test of pairs")
        if rater is not None:
            return self._by_rating(rater, context)
        scorer = require(model, Scorer, "The test of pairs")
        requests = [request for pair in self.data.items for request in self._requests(pair)]
        policy = self._policy()
        scored = score(scorer, requests, policy=policy, journal=context.journal, progress=context.progress)
        outputs = [{"logprob": one.logprob, "tokens": one.tokens} for one in scored.scores]
        items = self._items(outputs, "logprob")
        joiner = self.settings["joiner"].encode("unicode_escape").decode()
        return Outcome(
            items=items,
            metrics=list(metric_rows(items)),
            signature=f"{choices(scorer, policy)} joiner:'{joiner}' ties:1e-4",
            skipped={},
            tokens=scored.tokens,
            notes=scored.notes,
        )

    def _by_rating(self, rater: Rater, context: RunContext) -> Outcome:
        """Rate each ending as the last sentence of its context, and as a text of its own."""
        texts = [text for pair in self.data.items for text in _texts(pair)]
        items = self._items([{"rating": value} for value in rate_texts(rater, texts, context)], "rating")
        return Outcome(
            items=items,
            metrics=list(metric_rows(items)),
            signature=f"{rater_signature(rater)} ties:1e-4",
            skipped={},
            tokens=0,
            notes=read_in_part(rater, texts),
        )

    def _items(self, outputs: Sequence[dict[str, float]], value: str) -> list[Item]:
        four = zip(*(iter(outputs),) * len(_ASKED), strict=True)
        return [_item(pair, found, value) for pair, found in zip(self.data.items, four, strict=True)]

    def _requests(self, pair: Pair) -> Iterator[Request]:
        """Return both endings after the context, and both on their own: what their words alone give away."""
        for ending in (pair.good, pair.bad):
            if pair.context:
                yield Request(self.settings["joiner"] + ending, pair.context)
            else:
                yield Request(ending)
        for ending in (pair.good, pair.bad):
            yield Request(ending, NOTHING)

    def _policy(self) -> Policy:
        s = self.settings
        return Policy(window="refuse", bos=s["bos"], max_length=s["max_length"], masked=s["masked"])


def _texts(pair: Pair) -> Iterator[list[str]]:
    """Yield the same as sentences."""
    before = split_sentences(pair.context) if pair.context else []
    for ending in (pair.good, pair.bad):
        yield [*before, ending]
    for ending in (pair.good, pair.bad):
        yield [ending]


def _item(pair: Pair, found: Sequence[dict[str, float]], value: str) -> Item:
    good, bad, good_alone, bad_alone = (one[value] for one in found)
    verdict = prefer_total(good, bad)
    alone = prefer_total(good_alone, bad_alone)
    # What the context adds to an ending, however likely that is without it.
    gain = prefer_total(good - good_alone, bad - bad_alone)
    return Item(
        id=pair.id,
        cluster=pair.group,
        task="pairs",
        settings={"phenomenon": pair.phenomenon},
        scores={
            "accuracy": float(verdict == "good"),
            "accuracy_gain": float(gain == "good"),
            "accuracy_alone": float(alone == "good"),
            "ties": float(verdict == "same"),
        },
        outputs=dict(zip(_ASKED, found, strict=True)),
        content=content_of(pair.context, pair.good, pair.bad),
    )


def metric_rows(items: Sequence[Item]) -> Iterator[MetricRow]:
    """Yield rows of all pairs, and of each phenomenon where there are several; groups of pairs are independent."""
    yield from mean_rows("pairs", column_of(items, METRICS)[0], {})
    phenomena = list(dict.fromkeys(item["settings"]["phenomenon"] for item in items))
    for name in phenomena if len(phenomena) > 1 else ():
        chosen = [item for item in items if item["settings"]["phenomenon"] == name]
        yield from mean_rows("pairs", column_of(chosen, METRICS)[0], {"phenomenon": name})


def _prepare(task: str, data: str | None, limit: int | None, seed: int, settings: dict[str, Any]) -> Prepared:
    read.refuse_task("pairs", task)
    return PairsRun(read_pairs(data, limit), settings)


TASK = PreparedTask(SETTINGS, _prepare)
