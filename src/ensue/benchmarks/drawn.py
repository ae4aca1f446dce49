"""A number with the draws of its bootstrap, so that means of several have intervals too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.report.figure import Figure
from ensue.report.results import MetricRow
from ensue.stats.clustered import wilson
from ensue.stats.correlation import percentile_interval
from ensue.stats.ranges import SHARE, Bounds
from ensue.stats.student import normal_quantile

# Rounds of the bootstrap. All intervals of a run are made of draws, so that those of averages are, too.
ROUNDS = 2_000
# A perfect correlation may differ from 1 by this much, and its draws from one another.
_ROUNDING = 1e-9
Numbers = NDArray[np.float64]


class Drawn(NamedTuple):
    """A number with its bootstrap draws; without draws there is no interval.

    `clusters` is how many independent units were resampled: as many as examples where it is not given. `bounds`
    are the ends of what the number can be.
    """

    value: float
    draws: Numbers | None
    n: int
    clusters: int | None = None
    bounds: Bounds = SHARE

    @property
    def units(self) -> int:
        return self.n if self.clusters is None else self.clusters

    def interval(self) -> tuple[float | None, float | None]:
        """Return the 95 % interval; it holds the value.

        Draws that are all the same say nothing of the spread. At an end of what the number can be (a perfect
        correlation) that is Wilson's interval for as many right answers as units; elsewhere there is none.
        """
        if self.draws is None or self.units < 2:
            return None, None
        if float(np.ptp(self.draws)) <= _ROUNDING:
            low, high = self.bounds
            share = (self.value - low) / (high - low)
            if min(share, 1.0 - share) > _ROUNDING:
                return None, None
            ends = wilson(round(share), self.units, normal_quantile(0.95))
            return low + (high - low) * ends[0], low + (high - low) * ends[1]
        lower, upper = percentile_interval(self.draws, self.units)
        if lower is None or upper is None:
            return None, None
        return min(lower, self.value), max(upper, self.value)

    def row(self, task: str, metric: str, settings: Mapping[str, Any]) -> MetricRow:
        return Figure(self.value, *self.interval(), self.n, self.units).row(task, metric, settings)


def mean_of_samples(figures: Sequence[Drawn], weights: Sequence[float] | None = None) -> Drawn:
    """Return the mean of figures of independent samples; drawn where all of them are."""
    value = float(np.average([figure.value for figure in figures], weights=weights))
    drawn = [figure.draws for figure in figures if figure.draws is not None]
    draws = None
    if len(drawn) == len(figures):
        # A round's draws share their seed across figures of equal size; shuffling makes them independent.
        generator = np.random.default_rng(1)
        mixed = [generator.permutation(one) for one in drawn]
        draws = np.asarray(np.average(mixed, axis=0, weights=weights), dtype=np.float64)
    n, units = sum(figure.n for figure in figures), sum(figure.units for figure in figures)
    return Drawn(value, draws, n, units, _mean_bounds(figures))


def mean_of_metrics(figures: Sequence[Drawn]) -> Drawn:
    """Return the mean of several metrics of one sample, whose draws belong together round by round."""
    value = float(np.mean([figure.value for figure in figures]))
    drawn = [figure.draws for figure in figures if figure.draws is not None]
    draws = np.mean(drawn, axis=0) if len(drawn) == len(figures) else None
    n = max(figure.n for figure in figures)
    return Drawn(value, draws, n, figures[0].units, _mean_bounds(figures))


def _mean_bounds(figures: Sequence[Drawn]) -> Bounds:
    """Return the widest ends: those of a mean of correlations and shares are not needed more exactly."""
    return min(figure.bounds[0] for figure in figures), max(figure.bounds[1] for figure in figures)


def mean_of_answers(figures: Sequence[Drawn]) -> Drawn:
    """Return the mean of one metric over several answers to the same examples.

    How much such answers vary together is not kept, so their draws are averaged in order of size, as if they
    always rose and fell together: the interval may be too wide, never too narrow.
    """
    return mean_of_metrics(
        [figure._replace(draws=None if figure.draws is None else np.sort(figure.draws)) for figure in figures]
    )
