"""How far people agree, with intervals: in all, on each item, and each annotator with the others.

Judgments are of *units*: what can be agreed on, such as one sentence of a summary or one pair of a ranking. Units of
one item are resampled together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.benchmarks.drawn import ROUNDS, Drawn
from ensue.metrics.agreement import (
    Level,
    agreement_sums,
    alpha_of_coincidences,
    coincidences,
    kappa_of_sums,
    kappa_of_tables,
)
from ensue.stats.clustered import wilson
from ensue.stats.ranges import CORRELATION
from ensue.stats.resampling import MadeUp, sum_draws, table_of_clusters
from ensue.stats.student import normal_quantile

Numbers = NDArray[np.float64]
# Two annotators who share fewer units say next to nothing of how far they agree.
LEAST_SHARED = 5


class Judgment(NamedTuple):
    """What one annotator said of one unit of an item."""

    item: Hashable
    unit: Hashable
    annotator: str
    value: str | float


class Ratings(NamedTuple):
    """Judgments as a table [units, annotators] of numbers, nan for none; the item of each unit, and who is who."""

    table: Numbers
    items: tuple[Hashable, ...]
    annotators: tuple[str, ...]


class Marks(NamedTuple):
    """What one annotator marked in one unit of an item: characters, each with the label it was given."""

    item: Hashable
    unit: Hashable
    annotator: str
    characters: frozenset[tuple[str, int]]


class Agreement(NamedTuple):
    """Cohen's kappa (the mean over pairs of annotators), Fleiss', and alpha; None for what cannot be had.

    Passages have `overlap` alone: F1 of the characters that two annotators marked alike. Chance is next to nothing
    there, since most of a text is not marked.
    """

    cohen: Drawn | None
    fleiss: Drawn | None
    alpha: Drawn | None
    overlap: Drawn | None = None


class ItemAgreement(NamedTuple):
    """The share of an item's pairs of judgments that are the same, and how many pairs and judgments there are."""

    item: Hashable
    agreeing: float
    pairs: int
    judgments: int


class AnnotatorAgreement(NamedTuple):
    """How far one annotator agrees with the others: the share of pairs, and the mean kappa (None for too few).

    `same` says of each pair whether it agrees, `items` whose pair it is.
    """

    annotator: str
    same: tuple[bool, ...]
    items: tuple[Hashable, ...]
    kappa: Drawn | None
    judgments: int

    @property
    def agreeing(self) -> float | None:
        return sum(self.same) / len(self.same) if self.same else None


def ratings_of(judgments: Iterable[Judgment]) -> Ratings:
    """Put judgments in a table; words are numbered in the order of their spelling, numbers stay what they are."""
    given = list(judgments)
    words = sorted({one.value for one in given if isinstance(one.value, str)})
    codes = {word: float(code) for code, word in enumerate(words)}
    units = {unit: row for row, unit in enumerate(dict.fromkeys((one.item, one.unit) for one in given))}
    people = {name: column for column, name in enumerate(dict.fromkeys(one.annotator for one in given))}
    table = np.full((len(units), len(people)), np.nan)
    for one in given:
        value = codes[one.value] if isinstance(one.value, str) else float(one.value)
        table[units[one.item, one.unit], people[one.annotator]] = value
    return Ratings(table, tuple(item for item, _ in units), tuple(people))


def agreement_of(ratings: Ratings, level: Level = "nominal", *, seed: int = 0) -> Agreement:
    """Return all measures of agreement; the kappas are of labels, so that numbers of a scale have alpha alone."""
    table, items = ratings.table, ratings.items
    labels = level == "nominal"
    return Agreement(
        cohen=drawn_cohen(table, items, seed=seed) if labels else None,
        fleiss=drawn_fleiss(table, items, seed=seed) if labels else None,
        alpha=drawn_alpha(table, items, level, seed=seed),
    )


def drawn_alpha(
    table: Numbers,
    clusters: Sequence[Hashable],
    level: Level = "nominal",
    *,
    rounds: int = ROUNDS,
    seed: int = 0,
) -> Drawn | None:
    """Return Krippendorff's alpha of ratings [units, annotators], resampling clusters; None without a pair.

    Its value is nan where all ratings are the same.
    """
    shared = np.flatnonzero(np.isfinite(table).sum(axis=1) > 1).tolist()
    if not shared:
        return None
    # What one person alone judged says nothing of agreement, and is not counted as if it did.
    table, clusters = table[shared], [clusters[place] for place in shared]
    values, pairs = coincidences(table)
    flat = pairs.reshape(len(pairs), -1)
    units = len(set(clusters))
    given = pairs.sum(axis=(0, 1))
    # One made-up cluster that was judged at random: its judgments coincide as often as chance has it.
    chance = np.outer(given, given).reshape(1, -1) / given.sum() / units
    drawn = sum_draws(flat, clusters, made_up=MadeUp(chance, np.ones(1)), rounds=rounds, seed=seed)
    value = float(alpha_of_coincidences(pairs.sum(axis=0), values, level))
    draws = alpha_of_coincidences(drawn.reshape(rounds, *pairs.shape[1:]), values, level)
    return Drawn(value, draws, len(table), units, CORRELATION)


def drawn_fleiss(
    table: Numbers, clusters: Sequence[Hashable], *, rounds: int = ROUNDS, seed: int = 0
) -> Drawn | None:
    """Return Fleiss' kappa of the units with two labels or more; None where there is none, or but one label."""
    chosen = np.flatnonzero(np.isfinite(table).sum(axis=1) > 1).tolist()
    if not chosen:
        return None
    labels = np.unique(table[chosen][np.isfinite(table[chosen])])
    if len(labels) < 2:
        return None
    counts = (table[chosen][:, :, None] == labels).sum(axis=1)
    kept = [clusters[place] for place in chosen]
    sums = agreement_sums(counts)
    # As a made-up cluster for alpha: one that agrees as often as chance has it.
    chance = sums.sum(axis=0) / len(set(kept))
    chance[-2] = ((chance[:-2] / chance[:-2].sum()) ** 2).sum() * chance[-1]
    drawn = sum_draws(sums, kept, made_up=MadeUp(chance[None], np.ones(1)), rounds=rounds, seed=seed)
    value = float(kappa_of_sums(sums.sum(axis=0)))
    return Drawn(value, kappa_of_sums(drawn), len(chosen), len(set(kept)), CORRELATION)


def drawn_cohen(
    table: Numbers, clusters: Sequence[Hashable], *, rounds: int = ROUNDS, seed: int = 0
) -> Drawn | None:
    """Return the mean of Cohen's kappa over pairs of annotators, each as heavy as the units the two share.

    Pairs that share fewer than five units, and pairs of whom both gave one label throughout, are left out; it is of
    the units that the others share.
    """
    return _mean_kappa(list(_drawn_kappas(table, clusters, rounds, seed)))


class _PairKappa(NamedTuple):
    """Cohen's kappa of two annotators with its draws, and how heavy each of them is."""

    both: tuple[int, int]
    kappa: float
    units: list[int]
    draws: Numbers
    heavy: Numbers
    clusters: list[Hashable]


def _drawn_kappas(
    table: Numbers, clusters: Sequence[Hashable], rounds: int, seed: int
) -> Iterator[_PairKappa]:
    """Yield the kappa of each pair that has one; a round draws the same clusters for all of them."""
    generator = np.random.default_rng(seed)
    names = list(dict.fromkeys(clusters))
    weights = generator.standard_exponential((rounds, len(names)))
    places = {name: place for place, name in enumerate(names)}
    for both, units, tables in _pair_tables(table, clusters):
        kappa = float(kappa_of_tables(tables.sum(axis=0)))
        if np.isnan(kappa):
            continue
        own = list(dict.fromkeys(clusters[place] for place in units))
        drawn = np.tensordot(weights[:, [places[name] for name in own]], tables, axes=1)
        found = kappa_of_tables(drawn)
        # A round that drew one label alone for a pair has no kappa of it.
        heavy = np.where(np.isnan(found), 0.0, drawn.sum(axis=(1, 2)))
        yield _PairKappa(both, kappa, units, np.nan_to_num(found), heavy, own)


def _mean_kappa(pairs: Sequence[_PairKappa]) -> Drawn | None:
    """Return the mean kappa of pairs, each as heavy as the units the two share; None without any."""
    if not pairs:
        return None
    value = float(np.average([one.kappa for one in pairs], weights=[len(one.units) for one in pairs]))
    shares = np.sum([one.heavy for one in pairs], axis=0)
    means = np.sum([one.draws * one.heavy for one in pairs], axis=0) / np.where(shares > 0.0, shares, np.nan)
    units = {place for one in pairs for place in one.units}
    clusters = {name for one in pairs for name in one.clusters}
    return Drawn(value, means, len(units), len(clusters), CORRELATION)


def drawn_overlap(marks: Iterable[Marks], *, rounds: int = ROUNDS, seed: int = 0) -> Drawn | None:
    """Return how far what pairs of annotators marked overlaps, pooled over pairs; None where nobody could have."""
    units: dict[tuple[Hashable, Hashable], list[frozenset[tuple[str, int]]]] = {}
    for one in marks:
        units.setdefault((one.item, one.unit), []).append(one.characters)
    items = [item for item, _ in units]
    pairs = [list(combinations(given, 2)) for given in units.values()]
    sums = [
        [sum(2.0 * len(a & b) for a, b in some), sum(float(len(a) + len(b)) for a, b in some)]
        for some in pairs
    ]
    total = sum(marked for _, marked in sums)
    if not total:
        return None
    drawn = sum_draws(sums, items, rounds=rounds, seed=seed)
    value = sum(both for both, _ in sums) / total
    return Drawn(value, drawn[:, 0] / drawn[:, 1], len(units), len(set(items)))


def by_item(ratings: Ratings) -> list[ItemAgreement]:
    """Return how far each item's annotators agree, those they agree on least first."""
    agreeing: Counter[Hashable] = Counter()
    pairs: Counter[Hashable] = Counter()
    judgments: Counter[Hashable] = Counter()
    for item, row in zip(ratings.items, ratings.table, strict=True):
        counts = list(Counter(row[np.isfinite(row)].tolist()).values())
        total = sum(counts)
        pairs[item] += total * (total - 1) // 2
        judgments[item] += total if total > 1 else 0
        agreeing[item] += sum(count * (count - 1) // 2 for count in counts)
    found = [ItemAgreement(item, agreeing[item] / n, n, judgments[item]) for item, n in pairs.items() if n]
    return sorted(found, key=lambda one: (one.agreeing, -one.pairs))


def share_of_pairs(agreeing: float, judgments: int) -> tuple[float, float]:
    """Return the 95 % interval (Wilson's) of the share of pairs that agree among so many judgments of one item.

    Pairs that share a judgment are not independent: what they say is worth that of half as many pairs as there are
    judgments, at least (Hoeffding's bound on the variance of a mean over pairs).

    >>> [round(end, 3) for end in share_of_pairs(1.0, 6)]
    [0.439, 1.0]
    """
    return wilson(agreeing, judgments / 2, normal_quantile(0.95))


def by_annotator(ratings: Ratings, *, rounds: int = ROUNDS, seed: int = 0) -> list[AnnotatorAgreement]:
    """Return how far each annotator agrees with the others, in the order of the table."""
    table = ratings.table
    pairs: dict[int, list[_PairKappa]] = {}
    for pair in _drawn_kappas(table, ratings.items, rounds, seed):
        for one in pair.both:
            pairs.setdefault(one, []).append(pair)
    found = []
    for column, name in enumerate(ratings.annotators):
        own, others = table[:, [column]], np.delete(table, column, axis=1)
        units, whose = np.nonzero(np.isfinite(own) & np.isfinite(others))
        same = tuple((table[units, column] == others[units, whose]).tolist())
        items = tuple(ratings.items[unit] for unit in units.tolist())
        kappa = _mean_kappa(pairs.get(column, ()))
        found.append(AnnotatorAgreement(name, same, items, kappa, int(np.isfinite(own).sum())))
    return found


def _pair_tables(
    table: Numbers, clusters: Sequence[Hashable]
) -> list[tuple[tuple[int, int], list[int], Numbers]]:
    """Return for each pair that shares enough units those, and its tables of labels [clusters, labels, labels]."""
    given = np.isfinite(table)
    labels = np.unique(table[given])
    codes = np.searchsorted(labels, np.where(given, table, labels[0] if len(labels) else 0.0))
    found = []
    for a, b in combinations(range(table.shape[1]), 2):
        shared = np.flatnonzero(given[:, a] & given[:, b]).tolist()
        if len(shared) < LEAST_SHARED:
            continue
        cells = np.eye(len(labels) ** 2)[codes[shared, a] * len(labels) + codes[shared, b]]
        own = [clusters[place] for place in shared]
        tables = table_of_clusters(cells, own).reshape(-1, len(labels), len(labels))
        found.append(((a, b), shared, tables))
    return found
