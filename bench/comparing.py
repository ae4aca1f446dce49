"""How often a comparison is wrong: p-values of systems that are equally good, intervals of those that are not.

    python bench/comparing.py

Items come in clusters that share their difficulty. The truth of two systems is what they score on a million items.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ensue.metrics.classification import confusion_cells, f1, matthews
from ensue.stats.paired_statistic import mean_correlation, paired_correlation_test, paired_statistic_test
from ensue.stats.resampling import one_hot

Numbers = NDArray[np.float64]
Codes = NDArray[np.int64]
TRIALS, ROUNDS = 400, 400
METRICS: dict[str, Callable[[Numbers], Numbers]] = {"mcc": matthews, "f1": f1}


def labels(
    generator: np.random.Generator, clusters: int, size: int, worse: float
) -> tuple[Codes, Codes, Codes]:
    """Gold labels, a system's answers, and those of another that is right less often by that share."""
    n = clusters * size
    gold = (generator.random(n) < 0.7).astype(np.int64)
    chance = np.repeat(generator.beta(4, 2, clusters), size)
    a, b = (np.where(generator.random(n) < chance * share, gold, 1 - gold) for share in (1.0, 1.0 - worse))
    return gold, a, b


def table(gold: Codes, given: Codes) -> Numbers:
    return one_hot(confusion_cells(gold, given, 2), 4)


def of_labels(metric: str, clusters: int, size: int, worse: float) -> tuple[float, float]:
    """The share of p-values up to 5 %, and of intervals that hold the truth."""

    def statistic(sums: Numbers) -> Numbers:
        return METRICS[metric](sums.reshape(*sums.shape[:-1], 2, 2))

    gold, a, b = labels(np.random.default_rng(9), 1_000_000 // size, size, worse)
    truth = float(statistic(table(gold, a).sum(axis=0)) - statistic(table(gold, b).sum(axis=0)))
    truth = truth if worse else 0.0
    generator = np.random.default_rng(1)
    small = held = 0
    for trial in range(TRIALS):
        gold, a, b = labels(generator, clusters, size, worse)
        names = (np.arange(len(gold)) // size).tolist()
        found = paired_statistic_test(
            table(gold, a), table(gold, b), names, statistic, rounds=ROUNDS, seed=trial
        )
        small += found.p_value <= 0.05
        held += found.low is not None and found.high is not None and found.low <= truth <= found.high
    return small / TRIALS, held / TRIALS


def of_scores(kind: str, n: int, noise: float) -> tuple[float, float]:
    """The same of two systems' scores, the second with more noise and on another scale."""

    def draw(generator: np.random.Generator, n: int) -> tuple[Numbers, Numbers, Numbers]:
        gold = generator.normal(size=n)
        return gold, gold + generator.normal(size=n), 3.0 * (gold + noise * generator.normal(size=n)) + 1.0

    gold, a, b = draw(np.random.default_rng(9), 1_000_000)
    truth = mean_correlation(kind, a, gold) - mean_correlation(kind, b, gold) if noise != 1.0 else 0.0
    generator = np.random.default_rng(2)
    small = held = 0
    for trial in range(TRIALS // 2):
        gold, a, b = draw(generator, n)
        found = paired_correlation_test(kind, a, b, gold, list(range(n)), rounds=5 * ROUNDS, seed=trial)
        small += found.p_value <= 0.05
        held += found.low is not None and found.high is not None and found.low <= truth <= found.high
    return small / (TRIALS // 2), held / (TRIALS // 2)


def main() -> None:
    print("| metric | items | p ≤ .05, equal | coverage, equal | coverage, unequal |\n|---|---|---|---|---|")
    for metric in METRICS:
        for clusters, size in ((10, 3), (50, 3), (400, 1)):
            small, held = of_labels(metric, clusters, size, 0.0)
            _, apart = of_labels(metric, clusters, size, 0.15)
            print(f"| {metric} | {clusters} × {size} | {small:.3f} | {held:.3f} | {apart:.3f} |", flush=True)
    for kind in ("pearson", "spearman"):
        for n in (30, 200):
            small, held = of_scores(kind, n, 1.0)
            _, apart = of_scores(kind, n, 2.0)
            print(f"| {kind} | {n} | {small:.3f} | {held:.3f} | {apart:.3f} |", flush=True)


if __name__ == "__main__":
    main()
