"""How long GLUE's baselines are trained: when a training is checked, slowed down and stopped (appendix A.1.2.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

FIRST_RATE = 1e-3
LOWEST_RATE = 1e-5
DIVISOR = 5.0
PATIENCE = 5
_RARELY, _OFTEN = 10_000, 100
# Fewer training examples than any task has, FewGLUE's 32 among them, are a trial (--limit 20), checked oftener: four
# checks at least come before the end, and 400 updates are minutes of a BiLSTM on a CPU.
_FEWEST, _OF_A_TRIAL = 32, 10


@dataclass(frozen=True)
class Schedule:
    """How long and in what steps is trained; the paper says nothing of where gradients are clipped.

    `validate_every` None: after each pass over the data, but no oftener than every 100 updates and no more rarely
    than every 10,000, which is what the paper does with training sets that are far larger together. A trial of
    fewer than 32 training examples is checked every 10 updates.
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
        if examples < _FEWEST:
            return _OF_A_TRIAL
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
