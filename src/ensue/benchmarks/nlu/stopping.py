"""When a training of GLUE's baselines learns more slowly, and when it stops (appendix A.1.2.2 of the paper)."""

from __future__ import annotations

import math
from dataclasses import dataclass

FIRST_RATE = 1e-3
LOWEST_RATE = 1e-5
DIVISOR = 5.0
PATIENCE = 5


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
