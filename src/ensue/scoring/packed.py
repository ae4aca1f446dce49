"""Score by packed rows on a GPU: lay parts into rows, choose how these are run, and check what comes out."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence, Set
from functools import cache
from typing import NamedTuple

import numpy as np
import torch

from ensue.models.request import TokenPart
from ensue.scoring.causal import NO_SHARING, CausalExecutor, Executor, Finished, out_of_memory
from ensue.scoring.forest import Forest, grow_forest
from ensue.scoring.network import Network
from ensue.scoring.plan import Budget
from ensue.scoring.portions import with_last
from ensue.scoring.rows import Row, make_rows
from ensue.scoring.runners import IN_FLIGHT, Launched, Runner, TextRunner, TreeRunner, layers_of
from ensue.scoring.shares import Piece, TreeShare

log = logging.getLogger(__name__)

# Seconds that a compiled pass saves on an H200 for each token, layer and unit of a layer's width (what is not written
# to memory between products: the same for 135 M and for 8 B parameters), and those that compiling takes.
_SAVED = 1e-10
_COMPILING = 8.0
# Uncompiled, texts are run end to end where sharing their prefixes would leave more than this of their tokens.
_LITTLE_SHARED = 0.7
# A row that is filled less than this waits for more, where more is to come.
_FULL = 0.95
# Nats a token by which a compiled row may differ from a plain pass: a wrong one differs by whole nats.
_TOLERANCE = 0.25
# Of fewer tokens than these no mean is taken in bfloat16: each may move by a nat, as for the probe.
_SEVERAL = 8


class _Flying(NamedTuple):
    """A row that the device was given, the parts that its names are of, and those that it has the scores of.

    It is None where all of them were known and it was not run.
    """

    launched: Launched | None
    parts: Sequence[TokenPart]
    own: Set[TokenPart]

    def land(self, places: Mapping[TokenPart, int], done: Set[int]) -> Finished:
        """Wait for the row, and return the scores of parts that are asked for and not known, by their places."""
        if self.launched is None:
            return []
        named = [(places.get(self.parts[i]), score) for i, score in self.launched.scores()]
        return [(place, score) for place, score in named if place is not None and place not in done]


class RowShare(NamedTuple):
    """The parts of a row, what share of all they are, and those of them whose scores are wanted."""

    parts: Mapping[int, TokenPart]
    share: float
    wanted: Set[int]
    length: int | None


class PackedExecutor(Executor):
    """Scores rows of whole trees or texts on a GPU; what does not go so is done by the `plain` executor.

    `texts` says whether the network may have texts end to end, `runs_trees` whether trees, which is asked once, when
    they are first wanted.
    """

    share = True

    def __init__(
        self,
        network: Network,
        budget: Budget,
        plain: CausalExecutor,
        *,
        texts: bool,
        runs_trees: Callable[[Network], bool],
        compile: str = "auto",
    ) -> None:
        super().__init__(network, budget)
        self.plain, self.texts, self.compile = plain, texts, compile
        self._runs_trees = cache(lambda: runs_trees(network))
        self._kept: TreeRunner | None = None
        self._trusted: set[type] = set()
        self._failed = self._refused = False
        # What share of all parts these are, whether more come after them, and which are left to be run with those.
        self._share, self._more = 1.0, False
        self._held: set[TokenPart] = set()
        # The rows that the device still had when the parts before these came to their end.
        self._flying: deque[_Flying] = deque()

    def run_more(
        self, parts: Sequence[TokenPart], done: Set[int], share: float, last: bool
    ) -> Generator[Finished, None, set[int]]:
        """Score parts that are such a share of all; return those left to be given again with more.

        So no row but the last of all has to be padded. Which are left depends on the parts alone, not on `done`.
        """
        alike = len({*self.network.lengths([len(part.ids) for part in parts])}) == 1
        self._share, self._more, self._held = share, alike and not last, set()
        try:
            yield from self.run(parts, done)
        finally:
            self._share, self._more = 1.0, False
        return {i for i, part in enumerate(parts) if part in self._held}

    def attempt(self, parts: Sequence[TokenPart], done: Set[int], length: int | None) -> Iterator[Finished]:
        short = [i for i, part in enumerate(parts) if len(part.ids) <= self.budget.batch]
        finished = set(done)
        if short:
            names = {i: j for j, i in enumerate(short)}
            known = {names[i] for i in done if i in names}
            try:
                for batch in self._packed([parts[i] for i in short], known, length):
                    named = [(short[j], score) for j, score in batch]
                    finished.update(i for i, _ in named)
                    yield named
                finished.update(i for i in short if parts[i] in self._held)
            except Exception as error:  # of any compiler behind torch
                if out_of_memory(error):
                    raise
                self._failed, self._held = True, set()
                log.warning(
                    "packed rows cannot be run (%s); going on in batches", str(error).splitlines()[0][:200]
                )
        rest = [i for i in range(len(parts)) if i not in finished or i in done]
        if len(finished) < len(parts):
            self.plain.budget = self.budget
            known = {j for j, i in enumerate(rest) if i in done}
            for batch in self.plain.attempt([parts[i] for i in rest], known, length):
                yield [(rest[j], score) for j, score in batch]

    def divide_group(
        self, parts: Mapping[int, TokenPart], done: Set[int], length: int | None
    ) -> Iterator[RowShare | TreeShare]:
        """Divide into rows, which are laid again by whoever runs them; what has none goes in batches."""
        short = [(i, part) for i, part in parts.items() if len(part.ids) <= self.budget.batch]
        own = [part for _, part in short]
        forest = grow_forest(own)
        runner = self._runner(forest, own) if own else None
        if runner is None:
            yield from self.plain.divide_group(parts, done, length)
            return
        if not runner.shares:
            forest = grow_forest(own, min_run=NO_SHARING)
        whole = sum(len(part.ids) for part in own)
        for row in make_rows(forest, self.budget.batch):
            held = dict(short[i] for i in row.pieces.parts)
            if wanted := held.keys() - done:
                yield RowShare(held, sum(len(p.ids) for p in held.values()) / whole, wanted, length)
        long = {i: part for i, part in parts.items() if len(part.ids) > self.budget.batch}
        if long:
            yield from self.plain.divide_group(long, done, length)

    def work(self, share: RowShare | TreeShare) -> Iterator[list[Piece]]:
        if isinstance(share, TreeShare):
            yield from self.plain.work(share)
            return
        places, own = list(share.parts), list(share.parts.values())
        self._share = share.share
        try:
            for batch in self._run_group(own, frozenset(), share.length):
                named = [(places[j], self._sure(own[j], score, share.length)) for j, score in batch]
                yield [Piece(place, score) for place, score in named if place in share.wanted]
        finally:
            self._share = 1.0

    def _packed(self, parts: Sequence[TokenPart], done: Set[int], length: int | None) -> Iterator[Finished]:
        """Score what goes in packed rows: all of the parts, or none."""
        try:
            yield from self._in_rows(parts, done, length)
        except BaseException:
            self._flying.clear()
            raise

    def _in_rows(self, parts: Sequence[TokenPart], done: Set[int], length: int | None) -> Iterator[Finished]:
        flying, places = self._flying, {part: i for i, part in enumerate(parts)}
        under_way = {part for one in flying for part in one.own}
        fresh = [part for part in parts if part not in under_way]
        forest = grow_forest(fresh)
        runner = self._runner(forest, fresh)
        held: Set[TokenPart] = frozenset()
        if runner is not None:
            if not runner.shares:
                forest = grow_forest(fresh, min_run=NO_SHARING)
            for row, last in with_last(make_rows(forest, self.budget.batch)):
                own = {fresh[i] for i in row.pieces.parts}
                if last and self._more and len(row.ids) < _FULL * self.budget.batch:
                    held = own
                    break
                # Read some rows late: the host lays the next while the device works.
                known = all(places[part] in done for part in own)
                flying.append(
                    _Flying(None if known else self._launch(runner, row, fresh, length), fresh, own)
                )
                while len(flying) > IN_FLIGHT:
                    yield flying.popleft().land(places, done)
            if self._more:
                self._held = set(held).union(*(one.own for one in flying))
                return
        while flying:
            yield flying.popleft().land(places, done)

    def _launch(self, runner: Runner, row: Row, parts: Sequence[TokenPart], length: int | None) -> Launched:
        launched = runner.launch(row, length)
        if type(runner) not in self._trusted:
            self._check(launched, parts, length)
            self._trusted.add(type(runner))
        return launched

    def _runner(self, forest: Forest, parts: Sequence[TokenPart]) -> Runner | None:
        """Choose how rows are run: compiled where it is repaid, else by the tokens that sharing saves."""
        if self._failed:
            return None
        fed, given = forest.size, sum(len(part.ids) for part in parts)
        width = self.network.model.get_input_embeddings().weight.shape[1]
        saved = _SAVED * fed / self._share * len(layers_of(self.network.trunk)) * width
        wanted = self.compile == "always" or (self.compile == "auto" and saved > _COMPILING)
        if wanted and self._runs_trees():
            return self._trees()
        if self.compile == "always" and not self._refused:
            self._refused = True
            name = type(self.network.model).__name__
            log.warning("%s is not compiled: in compiled rows it does not give its own scores", name)
        if self.texts and fed > _LITTLE_SHARED * given:
            return TextRunner(self.network)
        return None

    def _trees(self) -> TreeRunner:
        """Return what runs trees; one is kept as long as the budget is."""
        if self._kept is None or self._kept.room != self.budget.batch:
            self._kept = TreeRunner(self.network, self.budget.batch)
        return self._kept

    def _check(self, launched: Launched, parts: Sequence[TokenPart], length: int | None) -> None:
        """Compare the shortest parts of a first row with a plain pass: what is compiled may be wrong here alone."""
        found = dict(launched.scores())
        some = sorted(found, key=lambda i: len(parts[i].ids))[:4]
        for batch in self.plain.attempt([parts[i] for i in some], frozenset(), length):
            for j, expected in batch:
                gaps = np.abs(found[some[j]].logprobs - expected.logprobs)
                rounded = self.network.dtype == torch.bfloat16 and len(gaps) < _SEVERAL
                gap = gaps.max() / 4 if rounded else gaps.mean()
                if not gap <= _TOLERANCE and np.isfinite(expected.logprobs).all():
                    raise RuntimeError(f"their scores are {gap:.3g} nats a token away from the plain ones")
