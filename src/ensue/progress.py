"""How long work reports progress: one signature for all of it."""

from __future__ import annotations

from collections.abc import Callable

# Called with what is done, of how much (0 where nobody knows), and the unit both are counted in.
Progress = Callable[[int, int, str], None]


def ignore(done: int, total: int, unit: str) -> None:
    """Report to nobody."""
