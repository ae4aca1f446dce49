"""Times Kendall's tau and Krippendorff's alpha of this package against scipy's tau and a plain loop.

python bench/agreement.py     # process time of each, and how far apart the results are
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
from scipy import stats

from ensue.metrics.agreement import alpha_of_coincidences, coincidences
from ensue.metrics.correlation import rowwise
from ensue.stats.correlation import kendall_draws
from ensue.stats.resampling import draw_counts, sum_draws

SUMMARIES, ROUNDS, ARTICLES, SYSTEMS = 235, 200, 100, 16


def timed(make: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    began = time.process_time()
    made = make()
    return time.process_time() - began, made


def told(name: str, ours: tuple[float, np.ndarray], theirs: tuple[float, np.ndarray]) -> None:
    apart = float(np.abs(ours[1] - theirs[1]).max())
    print(
        f"{name}: {ours[0]:.3f} s, the other way {theirs[0]:.3f} s ({theirs[0] / ours[0]:.0f} ×), apart {apart:.1e}"
    )


def in_turn(weights: np.ndarray, pairs: np.ndarray) -> Iterator[np.ndarray]:
    """The summed coincidences of one round after the other."""
    for one in weights:
        yield (one[:, None, None] * pairs).sum(axis=0)


def main() -> None:
    generator = np.random.default_rng(0)
    metric = np.round(generator.normal(size=SUMMARIES), 2)
    human = np.round(metric + generator.normal(size=SUMMARIES))
    counts = draw_counts(SUMMARIES, ROUNDS, np.random.default_rng(0)).astype(int)
    drawn = [np.repeat(np.arange(SUMMARIES), row) for row in counts]
    told(
        f"tau-b of {ROUNDS} draws of {SUMMARIES} summaries",
        timed(lambda: kendall_draws(metric, human, rounds=ROUNDS)),
        timed(lambda: np.array([stats.kendalltau(metric[one], human[one]).statistic for one in drawn])),
    )
    x = np.round(generator.normal(size=(ARTICLES, SYSTEMS)), 1)
    y = np.round(x + generator.normal(size=(ARTICLES, SYSTEMS)), 1)
    told(
        f"tau-b of {ARTICLES} articles of {SYSTEMS} systems",
        timed(lambda: rowwise("kendall", x, y)),
        timed(lambda: np.array([stats.kendalltau(a, b).statistic for a, b in zip(x, y, strict=True)])),
    )
    ratings = generator.integers(0, 2, size=(SUMMARIES, 3)).astype(float)
    values, pairs = coincidences(ratings)
    weights = sum_draws(np.eye(SUMMARIES), rounds=ROUNDS)
    told(
        f"alpha of {ROUNDS} draws of {SUMMARIES} items",
        timed(lambda: alpha_of_coincidences(np.tensordot(weights, pairs, axes=1), values)),
        timed(lambda: np.array([alpha_of_coincidences(one, values) for one in in_turn(weights, pairs)])),
    )

    def alpha() -> np.ndarray:
        values, pairs = coincidences(ratings)
        return np.array(alpha_of_coincidences(pairs.sum(axis=0), values))

    one = timed(alpha)
    print(f"alpha of {SUMMARIES} items: {one[0]:.4f} s; scipy has none")


if __name__ == "__main__":
    main()
