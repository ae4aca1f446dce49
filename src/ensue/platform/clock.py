"""The one place that the platform reads the time from, so that tests can move it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class Clock:
    """Tell the time, in UTC."""

    def now(self) -> datetime:
        """Return the time now, with its zone."""
        return datetime.now(UTC)


class SetClock(Clock):
    """A clock that stands still until it is moved.

    >>> clock = SetClock(datetime(2026, 11, 30, 23, 59, tzinfo=UTC))
    >>> clock.move(minutes=2)
    >>> clock.now().isoformat()
    '2026-12-01T00:01:00+00:00'
    """

    def __init__(self, time: datetime) -> None:
        self.time = time.astimezone(UTC)

    def now(self) -> datetime:
        return self.time

    def move(self, **step: float) -> None:
        """Move by a step, given as `timedelta` takes it; a negative one sets the clock back."""
        self.time += timedelta(**step)
