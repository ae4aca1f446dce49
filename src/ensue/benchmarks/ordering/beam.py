"""Beam search for the best order of several sets of sentences at once, whatever scores the next sentence."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

Order = tuple[int, ...]


class Ask(NamedTuple):
    """How well does sentence `following` of set `number` follow what is in order already?"""

    number: int
    order: Order
    following: int


class Hypothesis(NamedTuple):
    """The beginning of an order and its value so far."""

    order: Order
    value: float


# The values of many such questions, in their order.
Answer = Callable[[Sequence[Ask]], Sequence[float]]
# What two beginnings have in common that no sentence after them can tell apart.
State = Callable[[Order], Hashable]


def whole_order(order: Order) -> Hashable:
    """Tell all beginnings apart: what comes depends on all that is there."""
    return order


def set_and_last(count: int = 1) -> State:
    """Tell beginnings apart by what is in them and their last sentences: what comes depends on that alone."""
    return lambda order: (frozenset(order), order[-count:])


def search(
    counts: Sequence[int], width: int, answer: Answer, state: State = whole_order
) -> list[list[Hypothesis]]:
    """Return the best orders found of each set of so many sentences, best first; all sets take a step together.

    The first sentence and the second are chosen together: one alone says little of how well it opens a text. Of
    beginnings in one `state` the best is kept.
    """
    opened = answer([Ask(number, (), first) for number, count in enumerate(counts) for first in range(count)])
    values = iter(opened)
    beams = [[Hypothesis((first,), next(values)) for first in range(count)] for count in counts]
    for step in range(1, max(counts)):
        asked = [
            (kept, Ask(number, kept.order, following))
            for number, beam in enumerate(beams)
            if counts[number] > step
            for kept in beam
            for following in range(counts[number])
            if following not in kept.order
        ]
        grown: dict[int, list[Hypothesis]] = {}
        for (kept, ask), value in zip(asked, answer([ask for _, ask in asked]), strict=True):
            grown.setdefault(ask.number, []).append(
                Hypothesis((*kept.order, ask.following), kept.value + value)
            )
        for number, found in grown.items():
            beams[number] = _best(found, width, state)
    return [sorted(beam, key=lambda one: -one.value) for beam in beams]


def _best(found: list[Hypothesis], width: int, state: State) -> list[Hypothesis]:
    kept: dict[Hashable, Hypothesis] = {}
    # Stable, so that equal values stay in the order they were made in.
    for one in sorted(found, key=lambda each: -each.value):
        kept.setdefault(state(one.order), one)
        if len(kept) == width:
            break
    return list(kept.values())
