"""What a run asks of its models, counted: by model and kind of work, whole or from a sample with an interval."""

from __future__ import annotations

import math
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

import numpy as np

from ensue.models.request import MaskedPart, Request, TokenPart
from ensue.runs.planning.shapes import Shape
from ensue.scoring.causal import NO_SHARING
from ensue.scoring.plan import Budget, cache_peak, make_plan
from ensue.scoring.tree import (
    LONG_ROW,
    ROW,
    Node,
    build_tree,
    lay_branches,
    merge_spines,
    pack_leaves,
    split_long,
)

# Groups of consecutive texts by which it is seen how documents differ.
_GROUPS = 16

What = Literal["scored", "encoded", "asked", "answered", "written"]


@dataclass
class Tally:
    """Counts of work; they add up, and scale with the data.

    `given` are tokens when every text is run by itself, `fed` those that are left when shared prefixes are run once,
    `run` those with padding. `seen` are pairs of a token and one that it sees, `near` those within a model's window,
    `attended` those that are computed, hidden ones and padding among them. `scored` are places at which the head is
    asked, `written` tokens of all hypotheses of a search, `written_seen` what they see, `steps` the passes of one
    token each in which they are written.
    """

    texts: float = 0
    characters: float = 0
    given: float = 0
    fed: float = 0
    run: float = 0
    seen: float = 0
    near: float = 0
    attended: float = 0
    scored: float = 0
    passes: float = 0
    written: float = 0
    written_seen: float = 0
    steps: float = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(Tally)))

    def times(self, factor: float) -> Tally:
        """Return as many times the work."""
        return Tally(*(getattr(self, one.name) * factor for one in fields(Tally)))

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


@dataclass
class Call:
    """One call of a model, kept so that a part of it can be measured: the method, its parallel lists, the rest."""

    method: str
    lists: tuple[Sequence[Any], ...]
    options: dict[str, Any]


@dataclass
class Work:
    """The work of one kind that one model is given.

    `counted` is what was looked at; where that is a sample, `blocks` has it block by block and `characters` says how
    much text there is in all. `held` is the most tokens whose keys and values are kept at once. It came in so many
    `streams`, each of which is run as a whole. Where rows are `compiled`, the last one of each is filled with
    `padding`; compiling for the largest would save so many seconds (`saved`).
    """

    model: str
    what: What
    shape: Shape
    dtype: str
    counted: Tally = field(default_factory=Tally)
    blocks: list[Tally] = field(default_factory=list)
    characters: float = 0
    texts: float = 0
    held: int = 0
    streams: int = 0
    compiled: bool = False
    saved: float = 0.0
    padding: float = 0.0
    calls: list[Call] = field(default_factory=list)

    def add(self, tally: Tally, *, held: int = 0) -> None:
        """Add work that was counted whole."""
        self.counted += tally
        self.characters += tally.characters
        self.texts += tally.texts
        self.held = max(self.held, held)

    @property
    def total(self) -> Tally:
        """All work: what was counted, scaled to the text that there is where it is a sample."""
        return self.times(1.0)

    def times(self, factor: float) -> Tally:
        """Return as many times the work: in a stream as much longer where there is one, else in more of them."""
        sampled = self.characters / max(self.counted.characters, 1) if self.blocks else 1.0
        scaled = self.counted.times(sampled * factor)
        scaled.texts, scaled.characters = self.texts * factor, self.characters * factor
        scaled.run += self.padding * (1.0 if self.streams == 1 else factor)
        return scaled

    def spread(self, of: Callable[[Tally], float]) -> float:
        """Return the standard error of a quantity of the total as a part of it, from how blocks differ; 0 where all
        was counted.

        As of a ratio to the characters, whose total is known.
        """
        if len(self.blocks) < 2:
            return 0.0
        values = np.asarray([of(one) for one in self.blocks])
        sizes = np.asarray([one.characters for one in self.blocks])
        if not values.sum():
            return 0.0
        ratio = values.sum() / sizes.sum()
        left = values - ratio * sizes
        seen = min(sizes.sum() / max(self.characters, 1), 1.0)
        deviation = math.sqrt(float((left**2).sum()) * len(left) / (len(left) - 1) * (1 - seen))
        return deviation / float(values.sum())

    @property
    def unevenness(self) -> float:
        """The standard error of the work's size as a part of it, from how groups of consecutive texts differ."""
        given = self.calls[0].lists[0] if self.calls else ()
        if len(given) < 2 * _GROUPS:
            return 0.0
        sizes = np.asarray([_characters(one) for one in given], dtype=np.float64)
        totals = np.asarray([group.mean() for group in np.array_split(sizes, _GROUPS)])
        return float(totals.std(ddof=1) / totals.mean() / math.sqrt(_GROUPS)) if totals.any() else 0.0


def _characters(one: Any) -> int:
    """Return the characters of what a model is given: a text, sentences, or a request."""
    return len(one.context) + len(one.continuation) if isinstance(one, Request) else len("".join(one))


@dataclass
class Ledger:
    """All work of a run, in the order in which it came up, and what had to be assumed.

    `mark` names what a plan leaves anywhere, by which it is found again. `inside` are the seconds of the main thread
    that models took for tokenising and planning, which a GPU's host does while the GPU works.
    """

    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    works: dict[tuple[str, What], Work] = field(default_factory=dict)
    assumptions: dict[str, None] = field(default_factory=dict)
    inside: float = 0.0

    def work(self, model: str, what: What, shape: Shape, dtype: str) -> Work:
        """Return the work of a model and kind, new where there was none yet."""
        return self.works.setdefault((model, what), Work(model, what, shape, dtype))

    @contextmanager
    def within(self) -> Iterator[None]:
        """Add the time that this takes to what models take of the main thread."""
        began = time.thread_time()
        yield
        if threading.current_thread() is threading.main_thread():
            self.inside += time.thread_time() - began

    def assume(self, words: str) -> None:
        """Keep what was assumed, said once."""
        self.assumptions[words] = None

    def __iter__(self) -> Iterator[Work]:
        return iter(self.works.values())


def count_batches(
    parts: Sequence[TokenPart], budget: Budget, window: int, *, share: bool, pack: bool
) -> tuple[Tally, int]:
    """Count token parts as `CausalExecutor` runs them, and the most tokens that its cache holds."""
    if share:
        runs = split_long(build_tree(parts), budget.longest_run)
        nodes = merge_spines(
            pack_leaves(runs, parts, branch=pack, row=min(ROW, budget.batch)), budget.longest_run
        )
        nodes = lay_branches(nodes, parts, min(LONG_ROW, budget.batch)) if pack else nodes
    else:
        nodes = build_tree(parts, min_run=NO_SHARING)
    tally = _of_nodes(nodes, window)
    tally.texts, tally.given = len(parts), sum(len(part.ids) for part in parts)
    steps = make_plan(nodes, budget)
    for step in steps:
        batch = [nodes[index] for index in step.nodes]
        width, past = max(node.length for node in batch), max(node.begin for node in batch)
        tally.run += len(batch) * width
        tally.attended += len(batch) * width * (past + width)
        tally.passes += width > 0
    return tally, cache_peak(nodes, steps)


def count_rows(parts: Sequence[TokenPart], budget: Budget, window: int, *, share: bool) -> Tally:
    """Count token parts as packed rows run them, without what pads the end of the last row (`row_padding`)."""
    nodes = build_tree(parts) if share else build_tree(parts, min_run=NO_SHARING)
    tally = _of_nodes(nodes, window)
    # A text's last token is only asked about.
    ends = [node for node in nodes if not node.children]
    tally.fed -= len(ends)
    tally.seen -= sum(node.end for node in ends)
    tally.near -= sum(min(node.end, window) for node in ends) if window else 0
    tally.texts, tally.given = len(parts), sum(len(part.ids) for part in parts)
    tally.passes = math.ceil(tally.fed / budget.batch)
    tally.run = tally.fed
    tally.attended = tally.seen
    return tally


def row_padding(fed: float, batch: int) -> float:
    """Count the tokens that fill the last row of so many, to one of the sizes that TreeRunner has.

    >>> row_padding(1000, 160), row_padding(30, 160), row_padding(320, 160)
    (0.0, 10.0, 0.0)
    """
    rest = fed % batch
    sizes = (math.ceil(batch / part) for part in (16, 4, 1))
    return float(next(size for size in sizes if size >= rest) - rest) if rest else 0.0


def _of_nodes(nodes: Sequence[Node], window: int) -> Tally:
    """Count tokens, what they see, and places that are asked about, of a tree."""
    tally = Tally()
    for node in nodes:
        if node.pack is not None:
            positions = node.pack.positions + 1
            tally.fed += len(positions)
            tally.seen += int(positions.sum())
            tally.near += int(np.minimum(positions, window).sum()) if window else 0
            tally.scored += len(node.pack.wanted)
            continue
        tally.fed += node.length
        tally.seen += pairs(node.begin, node.end)
        tally.near += pairs(node.begin, node.end, window) if window else 0
        tally.scored += max(node.end - max(node.scored_from, 1), 0)
    return tally


def pairs(begin: int, end: int, window: int = 0) -> int:
    """Count what the tokens at positions `[begin, end)` see: themselves and all before them, or so many of these.

    >>> pairs(0, 3), pairs(2, 3), pairs(0, 4, 2)
    (6, 3, 7)
    """
    if window and end > window:
        free = min(max(window, begin), end)
        return pairs(begin, free) + (end - free) * window
    return (end * (end + 1) - begin * (begin + 1)) // 2


def count_masked(parts: Sequence[MaskedPart]) -> Tally:
    """Count masked copies: each sees all of itself, and is asked about one place."""
    copies = [(len(part.ids), len(part.targets)) for part in parts]
    tokens = float(sum(length * count for length, count in copies))
    seen = float(sum(length * length * count for length, count in copies))
    asked = sum(count for _, count in copies)
    return Tally(
        texts=len(parts),
        given=tokens,
        fed=tokens,
        run=tokens,
        seen=seen,
        near=seen,
        attended=seen,
        scored=asked,
    )


def count_texts(lengths: Sequence[int], groups: Sequence[Sequence[int]]) -> Tally:
    """Count texts that an encoder reads, in groups that are padded to their longest."""
    tokens, seen = float(sum(lengths)), float(sum(length * length for length in lengths))
    tally = Tally(texts=len(lengths), given=tokens, fed=tokens, seen=seen, near=seen, passes=len(groups))
    for group in groups:
        width = max(lengths[i] for i in group)
        tally.run += width * len(group)
        tally.attended += width * width * len(group)
    return tally
