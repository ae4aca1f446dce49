"""How long tests go on that could go on forever: briefly by default, at length with ENSUE_TESTS=long."""

from __future__ import annotations

import os

LONG = os.environ.get("ENSUE_TESTS") == "long"


def effort(brief: int, long: int) -> int:
    """Return how many examples, rounds or kills to try."""
    return long if LONG else brief
