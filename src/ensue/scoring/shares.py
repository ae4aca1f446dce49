"""A plan divided into shares that need nothing of each other, for workers that each do some of them.

A share runs whole steps of the plan, so that what comes out is the same to the last bit wherever it is run. Runs that
many shares go on from are run again in each, alone in their step as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

from ensue.models.request import PartScore, TokenPart
from ensue.scoring.plan import Step, needed_steps
from ensue.scoring.tree import Node

# A share has so many times the tokens of the runs that it repeats.
_REPEATED = 16


class Piece(NamedTuple):
    """Some of a part's log-probabilities, from place `begin` on, of so many in all (None: these are all)."""

    part: int
    score: PartScore
    begin: int = 0
    of: int | None = None


@dataclass(frozen=True)
class TreeShare:
    """Steps with the nodes they run, numbered anew, and the parts that are to be read off them.

    `length` stands for the lengths of all parts of the plan (`Network.lengths`).
    """

    nodes: list[Node]
    steps: list[Step]
    parts: Mapping[int, TokenPart]
    length: int | None

    def of_places(self, places: Sequence[int]) -> TreeShare:
        """Name every part by its place elsewhere."""
        nodes = [_named(node, places) for node in self.nodes]
        return replace(self, nodes=nodes, parts={places[j]: part for j, part in self.parts.items()})


def _named(node: Node, places: Sequence[int]) -> Node:
    pack = node.pack
    if pack is not None:
        begins = {places[j]: begin for j, begin in pack.begins.items()}
        pack = replace(pack, of={places[j]: own for j, own in pack.of.items()}, begins=begins)
    return replace(node, ends=[places[j] for j in node.ends], pack=pack)


def divide_plan(
    nodes: Sequence[Node],
    steps: Sequence[Step],
    parts: Sequence[TokenPart],
    done: Set[int],
    length: int | None,
    size: int,
) -> Iterator[TreeShare]:
    """Yield shares of about `size` tokens or more that together score every part not in `done`."""
    needed = needed_steps(nodes, steps, done)
    groups = _Groups(nodes, steps, needed)
    given: set[int] = set()
    held: list[int] = []
    for group in [*groups.apart(), None]:
        if group is not None:
            held += group
            repeated = groups.above(held)
            if groups.tokens(held) < max(size, _REPEATED * groups.tokens(repeated)):
                continue
        if held:
            chosen = sorted({*held, *groups.above(held)})
            share = _share(nodes, steps, parts, chosen, done | given, length)
            given |= set(share.parts)
            yield share
            held = []


class _Groups:
    """Which steps need which: groups of them that need no other but runs that are alone in their step."""

    def __init__(self, nodes: Sequence[Node], steps: Sequence[Step], needed: Sequence[bool]) -> None:
        self.nodes, self.steps, self.needed = nodes, steps, needed
        self.at = {node: place for place, step in enumerate(steps) for node in step.nodes}
        self.sizes = [sum(nodes[node].length for node in step.nodes) for step in steps]

    def _alone(self, place: int) -> bool:
        """Return whether a step runs one node, which may be run again elsewhere, and from which others go on."""
        step = self.steps[place]
        return len(step.nodes) == 1 and bool(self.nodes[step.nodes[0]].children)

    def _parents(self, place: int) -> set[int]:
        """Return the steps that a step's nodes go on from."""
        above = (self.nodes[node].parent for node in self.steps[place].nodes)
        return {self.at[parent] for parent in above if parent is not None}

    def apart(self) -> list[list[int]]:
        """Return the needed steps in groups, in their order; one that many go on from is a group of its own."""
        leader = list(range(len(self.steps)))

        def find(place: int) -> int:
            while leader[place] != place:
                leader[place] = leader[leader[place]]
                place = leader[place]
            return place

        for place in (place for place, wanted in enumerate(self.needed) if wanted):
            if self._alone(place):
                continue
            for parent in self._parents(place):
                if not self._alone(parent):
                    first, second = sorted((find(place), find(parent)))
                    leader[second] = first
        found: dict[int, list[int]] = {}
        for place, wanted in enumerate(self.needed):
            if wanted and not (self._alone(place) and not self.nodes[self.steps[place].nodes[0]].ends):
                found.setdefault(find(place), []).append(place)
        return list(found.values())

    def above(self, places: Sequence[int]) -> set[int]:
        """Return the steps that these need and are not among them."""
        own = set(places)
        found: set[int] = set()
        waiting = list(own)
        while waiting:
            fresh = self._parents(waiting.pop()) - own - found
            found |= fresh
            waiting += fresh
        return found

    def tokens(self, places: Sequence[int] | Set[int]) -> int:
        """Count the tokens that steps run."""
        return sum(self.sizes[place] for place in places)


def _share(
    nodes: Sequence[Node],
    steps: Sequence[Step],
    parts: Sequence[TokenPart],
    chosen: Sequence[int],
    done: Set[int],
    length: int | None,
) -> TreeShare:
    """Cut steps out of a plan, with the nodes that they run."""
    kept = [node for place in chosen for node in steps[place].nodes]
    number = {node: place for place, node in enumerate(sorted(kept))}
    renumbered = [
        replace(
            nodes[node],
            index=place,
            parent=None if (above := nodes[node].parent) is None else number[above],
            children=[number[child] for child in nodes[node].children if child in number],
        )
        for node, place in number.items()
    ]
    # What is freed by a step that is left out is never needed again here.
    own = [
        Step(
            tuple(number[node] for node in steps[place].nodes),
            tuple(number[node] for node in steps[place].free if node in number),
        )
        for place in chosen
    ]
    wanted = {part: parts[part] for node in kept for part in nodes[node].ends if part not in done}
    return TreeShare(renumbered, own, wanted, length)


def gather(pieces: Iterator[Sequence[Piece]]) -> Iterator[list[tuple[int, PartScore]]]:
    """Put pieces of parts together; a part comes out when its last piece has come."""
    waiting: dict[int, list[Piece]] = {}
    for batch in pieces:
        finished: list[tuple[int, PartScore]] = []
        for piece in batch:
            if piece.of is None:
                finished.append((piece.part, piece.score))
                continue
            held = waiting.setdefault(piece.part, [])
            held.append(piece)
            if sum(len(one.score.logprobs) for one in held) == piece.of:
                finished.append((piece.part, _joined(waiting.pop(piece.part))))
        if finished:
            yield finished


def _joined(pieces: Sequence[Piece]) -> PartScore:
    import numpy as np

    ordered = sorted(pieces, key=lambda piece: piece.begin)
    return PartScore(np.concatenate([piece.score.logprobs for piece in ordered]))
