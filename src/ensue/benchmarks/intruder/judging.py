"""What is made of the values of each rule: items, metrics with intervals, and how two runs are compared."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ensue.benchmarks.base import content_of
from ensue.benchmarks.comparing import MeanScores, Pairs, Resampling, Tested, Untested
from ensue.benchmarks.intruder.edits import KINDS, Edited
from ensue.benchmarks.intruder.rules import Fitted, Sentences, flagged, least_of, rank_of, values_of
from ensue.metrics.preference import prefer_total
from ensue.report.figure import Figure
from ensue.report.results import Item, MetricRow
from ensue.scoring.verdict import Calibration, judge
from ensue.stats.clustered import Interval, clustered_interval, wilson
from ensue.stats.paired import paired_test
from ensue.stats.ranges import SHARE, Bounds
from ensue.stats.student import normal_quantile, student_quantile
from ensue.text.documents import Document

UNTOUCHED = "untouched"
# The rule `following` with the thresholds that the model's card has, as `ensue score --profile` applies them.
CALIBRATED = "calibrated"
# No rule of sentences: which of two texts, one of them edited, the model finds better as a whole.
WHOLE = "whole"
# Nor this: what people mark.
PEOPLE = "people"
POSITIONS = ("beginning", "middle", "end")
# Of edited documents; of untouched ones there are `false_alarms`.
METRICS = ("hit_rate", "rank", "hit_rate_at")
FALSE_ALARMS = "false_alarms"
_RANK: Bounds = (1.0, math.inf)


class Version(NamedTuple):
    """A document as it was read by the model: untouched, or with one edit."""

    document: Document
    edited: Edited

    @property
    def kind(self) -> str:
        return self.edited.kind

    @property
    def id(self) -> str:
        return f"{self.document.id}#{self.kind}"

    @property
    def asked(self) -> str:
        """Return a digest of what is read, which does not say where the edit is."""
        return content_of(self.edited.sentences)


def position_of(place: int, count: int) -> str:
    """Return in which third of the sentences after the first a place lies.

    >>> [position_of(place, 8) for place in (1, 2, 3, 4, 5, 6, 7)]
    ['beginning', 'beginning', 'beginning', 'middle', 'middle', 'end', 'end']
    """
    return POSITIONS[3 * (place - 1) // (count - 1)]


def item_of(
    version: Version,
    sentences: Sentences,
    untouched: Sentences,
    fitted: Fitted,
    calibration: Calibration | None,
    rate: float,
) -> Item:
    """Return the item of a version: what each rule makes of its sentences, and how right that is; and whether the
    model prefers the untouched text."""
    edited = version.edited
    values = {rule: values_of(sentences, rule, fitted.given) for rule in fitted.thresholds}
    found = {rule: flagged(values[rule], threshold) for rule, threshold in fitted.thresholds.items()}
    scores: dict[str, float] = {}
    for rule, place in found.items():
        scores |= scores_of(rule, edited, rank_of(values[rule], edited.places), place)
    if calibration is not None:
        found[CALIBRATED] = judge(sentences.following, calibration, rate).stands_out
        scores |= scores_of(CALIBRATED, edited, None, found[CALIBRATED])
    if edited.places and sentences.whole is not None and untouched.whole is not None:
        preferred = prefer_total(untouched.whole, sentences.whole)
        scores[f"{WHOLE}/accuracy"] = float(preferred == "good")
    more = {"values": values, "flagged": found, "thresholds": dict(fitted.thresholds)}
    if sentences.whole is not None:
        more[WHOLE] = sentences.whole
    return item_with(version, scores, more)


def item_with(version: Version, scores: dict[str, float], more: Mapping[str, Any]) -> Item:
    """Return the item of a version with the scores and what else is said of it."""
    document, edited = version
    outputs: dict[str, Any] = {"domain": document.domain, "places": list(edited.places)}
    new = [edited.sentences[place] for place in edited.places]
    if edited.places:
        outputs |= {"position": position_of(edited.places[0], len(edited.sentences)), "sentences": new}
    return Item(
        id=version.id,
        cluster=document.id,
        task="intruder",
        settings={"kind": version.kind},
        scores=scores,
        outputs={**outputs, **more},
        content=content_of(document.sentences, version.kind, edited.places, new),
        asked=version.asked,
    )


def scores_of(rule: str, edited: Edited, rank: int | None, place: int | None) -> dict[str, float]:
    """Return the scores of a rule, each under the rule and the metric it is of."""
    if not edited.places:
        return {f"{rule}/{FALSE_ALARMS}": float(place is not None)}
    # What is flagged is the first of equal ones; a hit is firmer than a tie.
    scores = {f"{rule}/hit_rate_at": float(place in edited.places and rank in (1, None))}
    if rank is not None:
        scores = {f"{rule}/hit_rate": float(rank == 1), f"{rule}/rank": float(rank), **scores}
    return scores


def rules_in(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the rules that scored any of the items, in their order."""
    names = dict.fromkeys(name.partition("/")[0] for item in items for name in item["scores"])
    return [name for name in names if name != WHOLE]


def metric_rows(items: Sequence[Item]) -> Iterator[MetricRow]:
    """Yield rows for each kind and rule, of all documents, by position, and by domain where there are several."""
    yield from _rows("intruder", items)
    for kind, rule, chosen in _by_kind_and_rule(items):
        for position in POSITIONS:
            there = [item for item in chosen if item["outputs"]["position"] == position]
            if there:
                settings = {"kind": kind, "rule": rule, "position": position}
                yield from _means("intruder", there, rule, ("hit_rate", "hit_rate_at"), settings)
    domains = sorted({item["outputs"]["domain"] for item in items})
    if len(domains) > 1:
        for domain in domains:
            yield from _rows(f"intruder/{domain}", [i for i in items if i["outputs"]["domain"] == domain])


def _by_kind_and_rule(items: Sequence[Item]) -> Iterator[tuple[str, str, list[Item]]]:
    rules = rules_in(items)
    for kind in KINDS:
        chosen = [item for item in items if item["settings"]["kind"] == kind]
        for rule in rules if chosen else ():
            yield kind, rule, chosen


def _rows(task: str, items: Sequence[Item]) -> Iterator[MetricRow]:
    controls = {item["cluster"]: item for item in items if item["settings"]["kind"] == UNTOUCHED}
    told: set[str] = set()
    for kind, rule, chosen in _by_kind_and_rule(items):
        if kind not in told:
            told.add(kind)
            chances = [_chance(item) for item in chosen]
            # It is known, not estimated.
            chance = Figure(math.fsum(chances) / len(chances), n=len(chances))
            yield chance.row(task, "chance", {"kind": kind})
            yield from _means(task, chosen, WHOLE, ("accuracy",), {"kind": kind})
        settings = {"kind": kind, "rule": rule}
        yield from _means(task, chosen, rule, METRICS, settings)
        # People read a document once, edited or not.
        if rule in chosen[0]["outputs"]["values"] and all(item["cluster"] in controls for item in chosen):
            edited = [_least(item, rule) for item in chosen]
            untouched = [_least(controls[item["cluster"]], rule) for item in chosen]
            yield Figure(*auc(edited, untouched)).row(task, "auc", settings)
    for rule in rules_in(items):
        settings = {"kind": UNTOUCHED, "rule": rule}
        yield from _means(task, list(controls.values()), rule, (FALSE_ALARMS,), settings)


def _means(
    task: str, items: Sequence[Item], rule: str, metrics: Sequence[str], settings: dict[str, Any]
) -> Iterator[MetricRow]:
    clusters = [item["cluster"] for item in items]
    for metric in metrics:
        name = f"{rule}/{metric}"
        if items and name in items[0]["scores"]:
            values = [item["scores"][name] for item in items]
            yield Figure(*clustered_interval(values, clusters, bounds=bounds_of(metric))).row(
                task, metric, settings
            )


def bounds_of(metric: str) -> Bounds:
    return _RANK if metric == "rank" else SHARE


def _chance(item: Item) -> float:
    """Return how often a sentence drawn blindly would be the right one."""
    outputs = item["outputs"]
    judged = next(iter(outputs["values"].values()))
    return len(outputs["places"]) / sum(value is not None for value in judged)


def _least(item: Item, rule: str) -> float:
    return least_of(item["outputs"]["values"][rule])[0]


def auc(edited: ArrayLike, untouched: ArrayLike) -> Interval:
    """Return how often an edited document's least value is below an untouched one's, ties half, and its interval.

    Both have a value a document, in one order. The spread is DeLong's of paired samples: how much each document moves
    the share by its two values. Wilson's interval of as many answers as spread so much keeps it in range.

    >>> auc([1.0, 2.0, 3.0], [2.0, 5.0, 6.0]).value.__round__(4)
    0.8333
    """
    low, high = np.asarray(edited, dtype=np.float64), np.asarray(untouched, dtype=np.float64)
    count = len(low)
    of_edited = 1.0 - _share_below(low, high)
    of_untouched = _share_below(high, low)
    value = float(of_edited.mean())
    if count == 1:
        return Interval(value, None, None, 1, 1)
    moved = of_edited + of_untouched - 2.0 * value
    variance = float((moved**2).sum()) / (count * (count - 1))
    if variance <= 1e-12 or not 0.0 < value < 1.0:
        ends = wilson(value, count, normal_quantile(0.95))
    else:
        ends = wilson(value, value * (1.0 - value) / variance, student_quantile(0.95, count - 1))
    return Interval(value, min(ends[0], value), max(ends[1], value), count, count)


def _share_below(values: np.ndarray[Any, Any], others: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return for each value the share of others below it, equal ones half."""
    ranked = np.sort(others)
    below = np.searchsorted(ranked, values, "left") + np.searchsorted(ranked, values, "right")
    return np.asarray(below / (2.0 * len(ranked)))


def tradeoff(edited: Sequence[tuple[float, bool]], untouched: Sequence[float]) -> list[tuple[float, float]]:
    """Return (false alarms, hit rate) at every threshold: an edited document has its least value, and whether it is
    that of the right sentence.

    >>> tradeoff([(1.0, True), (2.0, False), (3.0, True)], [2.5, 4.0])
    [(0.0, 0.0), (0.0, 0.3333333333333333), (0.5, 0.6666666666666666), (1.0, 0.6666666666666666)]
    """
    hits = np.sort([value for value, right in edited if right])
    alarms = np.sort(np.asarray(untouched, dtype=np.float64))
    thresholds = np.unique(np.concatenate([hits, alarms]))
    points = [(0.0, 0.0)]
    for threshold in thresholds:
        rate = float(np.searchsorted(alarms, threshold, "right") / len(alarms))
        hit = float(np.searchsorted(hits, threshold, "right") / len(edited))
        points.append((rate, hit))
    # Of points with one rate of false alarms the last is the highest.
    best = dict(points)
    return [points[0], *((rate, hit) for rate, hit in best.items() if (rate, hit) != points[0])]


class IntruderComparing(MeanScores):
    """Compares runs rule by rule: an item has the scores of all of them."""

    def tests(self, pairs: Pairs, how: Resampling) -> Iterator[Tested | Untested]:
        sides = [[dict(answers[0]) for answers in side] for side in (pairs.a, pairs.b)]
        for rule, metric, names in _tested(sides):
            settings = {**pairs.settings, "rule": rule}
            both = [
                (a[names[0]], b[names[1]], cluster)
                for a, b, cluster in zip(*sides, pairs.clusters, strict=True)
                if names[0] in a and names[1] in b
            ]
            if not both:
                yield Untested(pairs.task, settings, f"{metric} was scored in the first run only")
                continue
            a, b, clusters = zip(*both, strict=True)
            test = paired_test(a, b, clusters, bounds=bounds_of(metric), rounds=how.rounds, seed=how.seed)
            means = (math.fsum(a) / len(a), math.fsum(b) / len(b))
            yield Tested(pairs.task, metric, settings, *means, test, a == b)


def _tested(sides: Sequence[Sequence[Mapping[str, Any]]]) -> Iterator[tuple[str, str, tuple[str, str]]]:
    """Yield the rules and metrics to test, with what each side calls them; people are held against every rule."""
    first, second = ([*dict.fromkeys(name for answer in side for name in answer)] for side in sides)
    people = [all(name.startswith(f"{PEOPLE}/") for name in side) for side in (first, second)]
    for name in second if people[0] and not people[1] else first:
        rule, _, metric = name.partition("/")
        theirs = f"{PEOPLE}/{metric}"
        yield rule, metric, (theirs if people[0] else name, theirs if people[1] else name)


COMPARING = IntruderComparing()
