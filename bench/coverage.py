"""Simulates how often 95 % intervals hold the truth: this package's, and the percentile bootstrap's it used before.

python bench/coverage.py                    # every table of docs/scoring.md, about ten minutes on one core
python bench/coverage.py --only means --rounds 200
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.benchmarks.drawn import Drawn
from ensue.metrics.classification import accuracy, macro_f1, matthews
from ensue.stats.clustered import clustered_interval, clustered_ratio
from ensue.stats.correlation import correlation_draws
from ensue.stats.paired import paired_test
from ensue.stats.ranges import CORRELATION, POSITIVE, SHARE
from ensue.stats.resampling import confusion_draws

Numbers = NDArray[np.float64]
Ends = tuple[float | None, float | None]
CLUSTERS = (2, 5, 10, 30, 100)
ACCURACIES = (0.5, 0.8, 0.95, 0.99, 1.0)
DRAWS = 1_000
# What a sentence-entailment set such as CB looks like: how often each of three classes is gold.
GOLD = (0.41, 0.50, 0.09)


class Cell(NamedTuple):
    """Of one simulated situation: how often an interval held the truth and how wide it was, before and after."""

    before: float
    after: float
    width_before: float
    width_after: float

    def __str__(self) -> str:
        return f"{self.before:.2f} → {self.after:.2f}"


def percentile(draws: Numbers) -> Ends:
    """The middle 95 % of draws."""
    low, high = np.quantile(draws[~np.isnan(draws)], [0.025, 0.975])
    return float(low), float(high)


def resampled_ratio(above: Numbers, below: Numbers, generator: np.random.Generator) -> Numbers:
    """The ratio of sums of as many clusters as there are, drawn with replacement."""
    places = generator.integers(0, len(above), size=(DRAWS, len(above)))
    return np.asarray(above[places].sum(axis=1) / below[places].sum(axis=1))


def simulate(truth: float, draw: Callable[[], tuple[Ends, Ends]], rounds: int) -> Cell:
    """How often the intervals before and after hold the truth, and their mean width."""
    held, width = np.zeros(2), np.zeros(2)
    for _ in range(rounds):
        for side, (low, high) in enumerate(draw()):
            if low is None or high is None:
                raise ValueError("A simulated sample has no interval; simulate larger ones.")
            held[side] += low <= truth + 1e-12 and truth - 1e-12 <= high
            width[side] += high - low
    return Cell(*(held / rounds).tolist(), *(width / rounds).tolist())


def mean_of(
    count: int, sizes: Sequence[int], truth: float, alike: float, generator: np.random.Generator, rounds: int
) -> Cell:
    """Right-or-wrong answers in clusters whose accuracies are beta-distributed around the truth."""

    def draw() -> tuple[Ends, Ends]:
        size = generator.choice(sizes, size=count)
        chance = np.full(count, truth)
        if alike and truth < 1.0:
            strength = 1.0 / alike - 1.0
            chance = generator.beta(truth * strength, (1.0 - truth) * strength, size=count)
        right = generator.binomial(size, chance)
        values = np.concatenate(
            [np.r_[np.ones(r), np.zeros(s - r)] for r, s in zip(right, size, strict=True)]
        )
        found = clustered_interval(values, np.repeat(np.arange(count), size).tolist(), bounds=SHARE)
        return percentile(resampled_ratio(right.astype(float), size.astype(float), generator)), found[1:3]

    return simulate(truth, draw, rounds)


def means(generator: np.random.Generator, rounds: int) -> None:
    """Accuracies of documents."""
    kinds = [("1", (1,), 0.0), ("20", (20,), 0.0), ("20", (20,), 0.3), ("1, 5 or 40", (1, 5, 40), 0.3)]
    header("size", "alike", "clusters", *(f"{one:g}" for one in ACCURACIES))
    widths = []
    for name, sizes, alike in kinds:
        for count in CLUSTERS:
            cells = [mean_of(count, sizes, truth, alike, generator, rounds) for truth in ACCURACIES]
            row(name, f"{alike:g}", str(count), *map(str, cells))
            widths.append(
                (name, alike, count, [f"{c.width_before:.3f} → {c.width_after:.3f}" for c in cells])
            )
    print("\nMean width:\n")
    header("size", "alike", "clusters", *(f"{one:g}" for one in ACCURACIES))
    for name, alike, count, shown in widths:
        row(name, f"{alike:g}", str(count), *shown)


def pairs(generator: np.random.Generator, rounds: int) -> None:
    """Two models on the same items: the first gains on some, loses on others, by cluster more or less."""
    header("clusters", "size", "gains, loses", "holds the truth", "apart from p before", "after")
    for count in (5, 10, 30, 100):
        for size in (1, 20):
            for gained, lost in ((0.3, 0.1), (0.05, 0.05), (0.02, 0.0)):
                apart = np.zeros(2)

                def draw(
                    count: int = count,
                    size: int = size,
                    gained: float = gained,
                    lost: float = lost,
                    apart: Numbers = apart,
                ) -> tuple[Ends, Ends]:
                    strength = 3.0
                    shares = [
                        generator.beta(part * strength, (1 - part) * strength, size=count) if part else 0.0
                        for part in (gained, lost)
                    ]
                    up, down = (np.broadcast_to(np.asarray(one), (count,)) for one in shares)
                    up, down = up / np.maximum(1.0, up + down), down / np.maximum(1.0, up + down)
                    luck = generator.random((count, size))
                    a, b = (luck < up[:, None]).ravel(), (luck > 1.0 - down[:, None]).ravel()
                    names = np.repeat(np.arange(count), size).tolist()
                    found = paired_test(a, b, names, bounds=SHARE, rounds=500)
                    sums = (a.astype(float) - b).reshape(count, size).sum(axis=1)
                    old = percentile(resampled_ratio(sums, np.full(count, float(size)), generator))
                    for side, (low, high) in enumerate((old, found[1:3])):
                        outside = low is not None and high is not None and not low <= 0.0 <= high
                        apart[side] += outside != (found.p_value <= 0.05)
                    return old, found[1:3]

                cell = simulate(_expected(gained, lost, generator), draw, rounds)
                row(
                    str(count),
                    str(size),
                    f"{gained:g}, {lost:g}",
                    str(cell),
                    *(f"{x / rounds:.2f}" for x in apart),
                )


def _expected(gained: float, lost: float, generator: np.random.Generator) -> float:
    """The true difference, shares that exceed 1 together being scaled down."""
    drawn = [
        generator.beta(p * 3.0, (1 - p) * 3.0, size=1_000_000) if p else np.zeros(1) for p in (gained, lost)
    ]
    return float(np.mean((drawn[0] - drawn[1]) / np.maximum(1.0, drawn[0] + drawn[1])))


def ratios(generator: np.random.Generator, rounds: int) -> None:
    """Perplexity of a word: works with other levels, and texts of unequal length."""
    header("works", "texts a work", "word perplexity")
    for count in (2, 5, 10, 30, 100):
        for texts in ((8,), (1, 5, 40)):

            def draw(count: int = count, texts: tuple[int, ...] = texts) -> tuple[Ends, Ends]:
                size = generator.choice(texts, size=count)
                owner = np.repeat(np.arange(count), size)
                words = generator.uniform(60, 130, size=len(owner))
                level = generator.normal(4.0, 0.3, size=count)
                nats = words * (level[owner] + generator.normal(0.0, 0.4, size=len(owner)))
                found = clustered_ratio(nats, words, owner.tolist(), bounds=POSITIVE)
                above, below = (np.bincount(owner, weights=one) for one in (nats, words))
                return percentile(resampled_ratio(above, below, generator)), found[1:3]

            row(str(count), " or ".join(map(str, texts)), str(simulate(4.0, draw, rounds)))


def classes(generator: np.random.Generator, rounds: int) -> None:
    """A classifier of three classes, one of them rare."""
    metrics = {"accuracy": accuracy, "F1 (macro)": macro_f1, "MCC": matthews}
    header("n", "metric", *(f"{one:g}" for one in (0.6, 0.8, 0.95, 0.99, 1.0)))
    for n in (30, 56, 100):
        for name, metric in metrics.items():
            cells = []
            for right in (0.6, 0.8, 0.95, 0.99, 1.0):
                table = np.diag(GOLD) * right + (1 - np.eye(3)) * np.array(GOLD)[:, None] * (1 - right) / 2

                def draw(table: Numbers = table, n: int = n, metric: Callable = metric) -> tuple[Ends, Ends]:
                    cells = generator.choice(9, size=n, p=table.ravel())
                    seen = np.bincount(cells, minlength=9).reshape(3, 3)
                    draws = confusion_draws(cells, 3, rounds=DRAWS, seed=int(generator.integers(1 << 31)))
                    old = generator.multinomial(n, seen.ravel() / n, size=DRAWS).reshape(DRAWS, 3, 3)
                    return percentile(metric(old)), Drawn(float(metric(seen)), metric(draws), n).interval()

                cells.append(str(simulate(float(metric(table)), draw, rounds)))
            row(str(n), name, *cells)


def correlations(generator: np.random.Generator, rounds: int) -> None:
    """Pearson's and Spearman's correlation of normal pairs."""
    truths = (0.0, 0.5, 0.8, 0.95)
    header("n", "metric", *(f"{one:g}" for one in truths))
    for n in (30, 56, 100):
        for kind in ("pearson", "spearman"):
            cells = []
            for truth in truths:

                def draw(truth: float = truth, n: int = n, kind: str = kind) -> tuple[Ends, Ends]:
                    x = generator.normal(size=n)
                    y = truth * x + math.sqrt(1.0 - truth**2) * generator.normal(size=n)
                    drawn = correlation_draws(x, y, rounds=DRAWS, seed=int(generator.integers(1 << 31)))
                    draws = getattr(drawn, kind)
                    ranks = (x, y) if kind == "pearson" else (x.argsort().argsort(), y.argsort().argsort())
                    seen = float(np.corrcoef(*ranks)[0, 1])
                    return percentile(draws), Drawn(seen, draws, n, bounds=CORRELATION).interval()

                wanted = truth if kind == "pearson" else 6.0 / math.pi * math.asin(truth / 2.0)
                cells.append(str(simulate(wanted, draw, rounds)))
            row(str(n), kind, *cells)


def header(*names: str) -> None:
    row(*names)
    print("|" + "---|" * len(names), flush=True)


def row(*cells: str) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)


TABLES = {"means": means, "pairs": pairs, "ratios": ratios, "classes": classes, "correlations": correlations}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=list(TABLES), help="one of the tables")
    parser.add_argument(
        "--rounds", type=int, default=1_000, help="samples of each situation (default: 1,000)"
    )
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    for name, table in TABLES.items():
        if chosen.only in (None, name):
            print(f"\n## {name}: held, before → after\n")
            table(np.random.default_rng(chosen.seed), chosen.rounds)


if __name__ == "__main__":
    main()
