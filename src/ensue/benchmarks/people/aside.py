"""Items with a known answer, set aside for practice, qualification and controls; checks without any are refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import Setting
from ensue.benchmarks.people.kind import Kind, Phase, WorkItem, settings_of
from ensue.errors import EnsueError

Thing = TypeVar("Thing")
# For kinds whose papers had none.
QUALIFICATION = Setting(
    0, "qualification items, without feedback; bar decides who goes on (bar=none: everybody)", read.whole(0)
)


@dataclass(frozen=True)
class Aside(Generic[Thing]):
    """What is practice, qualification and control, and what is left."""

    training: list[Thing]
    qualification: list[Thing]
    controls: list[Thing]
    left: list[Thing]

    def taught(self) -> Iterator[tuple[Phase, Thing]]:
        """Yield what comes before the work, with its phase."""
        for one in self.training:
            yield "training", one
        for one in self.qualification:
            yield "qualification", one


def set_aside(found: Sequence[Thing], settings: Mapping[str, Any], *, at_least_left: int = 0) -> Aside[Thing]:
    """Take as many for practice, qualification and controls as settings say, in this order; some are always left.

    >>> set_aside("abcdef", {"training": 1, "qualification": 2, "controls": 1})
    Aside(training=['a'], qualification=['b', 'c'], controls=['d'], left=['e', 'f'])
    >>> set_aside("abc", {"training": 1, "qualification": 0, "controls": 5}, at_least_left=1).controls
    ['b']
    """
    room = max(0, len(found) - at_least_left)
    taken, rest = iter(found[:room]), found[room:]
    training, qualification, controls = (
        list(islice(taken, settings[name])) for name in ("training", "qualification", "controls")
    )
    return Aside(training, qualification, controls, [*taken, *rest])


def refuse_idle(kind: Kind, settings: Mapping[str, Any], items: Sequence[WorkItem]) -> None:
    """Refuse a bar without a qualification, a rate of controls without controls, and controls without a rate, unless
    they are the defaults."""
    known = settings_of(kind)
    asked = {
        name: settings[name]
        for name in ("bar", "control_rate")
        if settings[name] and settings[name] != known[name].default
    }
    if "bar" in asked and not any(item.phase == "qualification" for item in items):
        how = "set qualification to how many there are to be" if "qualification" in known else "leave bar out"
        raise EnsueError(
            f"bar={asked['bar']} says who qualifies, and this {kind.name} project has no qualification; {how}."
        )
    if "control_rate" in asked and not any(item.control for item in items):
        how = "set controls to how many there are to be, or" if settings.get("controls") == 0 else "set"
        raise EnsueError(
            f"control_rate={asked['control_rate']:g} mixes controls into the work, of which this {kind.name} project"
            f" has none; {how} control_rate=0."
        )
    controls = settings.get("controls", 0)
    if controls and controls != known["controls"].default and not settings["control_rate"]:
        raise EnsueError(
            f"controls={controls} takes known items for checks, and control_rate=0 gives none of them to anybody; set"
            " control_rate, to 0.1 say, or leave controls out."
        )
