"""How long GLUE's baselines are trained: when a training is checked, slowed down and stopped (appendix A.1.2.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

FIRST_RATE = 1e-3
LOWEST_RATE = 1e-5
DIVISOR = 5.0
PATIENCE = 5
_RARELY, _OFTEN = 10_000, 100
# Where all examples are one batch, an update is a pass, and a hundred of them between two checks are too many.
_OF_ONE_BATCH = 10


@dataclass(frozen=True)
class Schedule:
    """How long and in what steps is trained; the paper says nothing of where gradients are clipped.

    `validate_every` None: after each pass over the data, but no oftener than every 100 updates and no more rarely
    than every 10,000, which is what the paper does with training sets that are far larger together. A training set
    of a single batch, which none of the tasks is as a whole, is checked every 10 updates.
    """

    batch: int = 128
    validate_every: int | None = None
    max_steps: int = 20_000
    rate: float = FIRST_RATE
    clip: float = 5.0

    def checks(self, examples: int) -> int:
        """After how many updates validation is due."""
        if self.validate_every is not None:
            return self.validate_every
        if examples <= self.batch:
            return _OF_ONE_BATCH
        return min(_RARELY, max(_OFTEN, -(-examples // self.batch)))


@dataclass
class Stopping:
    """Told every validation score in turn: divides the learning rate by 5 at each that is no improvement.

    Training stops once the rate has dropped below 1e-5, or after 5 checks in a row without an improvement. From
    1e-3 the rate is too low after three failures in all, so that the second rule only binds with other numbers.
    """

    rate: float = FIRST_RATE
    lowest: float = LOWEST_RATE
    divisor: float = DIVISOR
    patience: int = PATIENCE
    best: float = -math.inf
    failures: int = 0

    def improved(self, score: float) -> bool:
        """Take in a score (NaN is none); whether it is the best so far."""
        if score > self.best:
            self.best, self.failures = score, 0
            return True
        self.failures += 1
        self.rate /= self.divisor
        return False

    @property
    def over(self) -> bool:
        """Whether training is to stop."""
        return self.rate < self.lowest or self.failures >= self.patience
