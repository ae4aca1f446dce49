"""One measured number with its interval, and how numbers are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ensue.report.results import MetricRow

NONE = "–"


class Figure(NamedTuple):
    """A value with its 95 % interval and what it is of: n items in so many independent clusters."""

    value: float
    low: float | None = None
    high: float | None = None
    n: int = 0
    clusters: int | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Figure:
        """Read a row of results.json.

        >>> Figure.of({"value": 0.9, "ci95": [0.8, 0.95], "n": 40, "clusters": 4}).interval()
        '0.800–0.950'
        """
        low, high = row.get("ci95") or (None, None)
        return cls(row["value"], low, high, row["n"], row.get("clusters"))

    def row(self, task: str, metric: str, settings: Mapping[str, Any]) -> MetricRow:
        """Return the figure as a row of results.json."""
        return {
            "task": task,
            "metric": metric,
            "value": self.value,
            "ci95": [self.low, self.high],
            "n": self.n,
            "clusters": self.n if self.clusters is None else self.clusters,
            "settings": dict(settings),
        }

    def text(self, digits: int = 3) -> str:
        """Return the value in words."""
        return fraction(self.value, digits)

    def interval(self, digits: int = 3) -> str:
        """Return the interval in words, a dash where there is none."""
        return interval(self.low, self.high, digits)


def fraction(value: float | None, digits: int = 3) -> str:
    """Write a number with a true minus, none before a zero, and a dash for a missing one.

    >>> fraction(0.5), fraction(-0.25, 2), fraction(-0.0001), fraction(None)
    ('0.500', '−0.25', '0.000', '–')
    """
    if value is None:
        return NONE
    shown = f"{value:.{digits}f}"
    return shown.replace("-", "−" if float(shown) else "")


def signed(value: float | None, digits: int = 3) -> str:
    """Write a difference with its sign.

    >>> signed(0.1), signed(-0.05, 2), signed(-0.001, 2)
    ('+0.100', '−0.05', '0.00')
    """
    if value is None:
        return NONE
    shown = f"{value:+.{digits}f}"
    return shown.replace("-", "−") if float(shown) else shown[1:]


def interval(low: float | None, high: float | None, digits: int = 3) -> str:
    """Write an interval; "to" where a dash would look like another minus.

    >>> interval(0.1, 0.2), interval(-0.1, 0.2, 2), interval(None, None)
    ('0.100–0.200', '−0.10 to 0.20', '–')
    """
    if low is None or high is None:
        return NONE
    between = " to " if low < 0 else "–"
    return f"{fraction(low, digits)}{between}{fraction(high, digits)}"


def signed_interval(low: float | None, high: float | None, digits: int = 3) -> str:
    """Write the interval of a difference, both ends with their sign."""
    return NONE if low is None or high is None else f"{signed(low, digits)} to {signed(high, digits)}"


def count(number: int | None) -> str:
    """Write a count with its thousands divided.

    >>> count(12345), count(None)
    ('12,345', '–')
    """
    return NONE if number is None else f"{number:,}"


def p_value(value: float) -> str:
    """Write a p-value; below a thousandth only that."""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def settings_text(settings: Mapping[str, Any]) -> str:
    """Write a row's settings in words.

    >>> settings_text({"prefix_tokens": 256, "layer": 4})
    'prefix tokens 256, layer 4'
    """
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in settings.items())
