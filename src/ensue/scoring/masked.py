"""Pseudo-log-likelihood of masked language models: each token predicted from all the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from ensue.errors import EnsueError
from ensue.models.request import MaskedPart, PartScore, Policy, Prepared, Request, Window
from ensue.scoring.causal import Finished, out_of_memory
from ensue.scoring.network import Network
from ensue.scoring.plan import Budget
from ensue.scoring.prefixes import common_prefix
from ensue.scoring.shares import Piece
from ensue.scoring.texts import EndToEnd, lay
from ensue.scoring.tokens import (
    RELEASED_MASKED,
    Pieces,
    cut_pieces,
    cut_windows,
    prepare_each,
    spans_of,
    specials_around,
    tokenise,
    tokenise_requests,
)
from ensue.scoring.transfers import Arriving, fetch, send

# A part and one of its targets: a sequence with that target masked.
Copy = tuple[int, int]
# So many batches are a share of the work.
_SHARE = 4


class Specials(NamedTuple):
    """The ids a tokenizer puts around a text, and the mask."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    mask: int


def specials_of(tokenizer: Any, model: str) -> Specials:
    """Return what the tokenizer puts around a text, read off an example."""
    if tokenizer.mask_token_id is None:
        raise EnsueError(f"The tokenizer of {model} has no mask token, so masked scoring is not possible.")
    return Specials(*specials_around(tokenizer, model), int(tokenizer.mask_token_id))


def specials_under(policy: Policy, specials: Specials) -> Specials:
    """Return what stands around a window; the authors' code takes the special tokens away."""
    return specials._replace(before=(), after=()) if policy.masked == "released" else specials


def window_under(policy: Policy) -> Window:
    """Return the window policy, which is the authors' own where all else is."""
    return "released" if policy.masked == "released" else policy.window


def prepare_masked(
    requests: Sequence[Request],
    policy: Policy,
    *,
    tokenizer: Any,
    specials: Specials,
    max_length: int,
    model: str,
) -> list[Prepared]:
    """Turn requests into masked parts, in windows or cut as they ask; a context is seen but not scored."""
    specials = specials_under(policy, specials)
    room = max_length - len(specials.before) - len(specials.after)
    if room < 1:
        raise EnsueError(f"max_length {max_length} leaves {model} no room to score anything.")

    def prepare_cut(chosen: list[Request]) -> list[Prepared]:
        pieces = cut_pieces(tokenizer, chosen, room, model)
        within = policy.masked == "within-word"
        words = {r.continuation: _words(tokenizer, r.continuation) for r in chosen} if within else {}
        return [
            _prepare_cut(piece, specials, words.get(request.continuation))
            for request, piece in zip(chosen, pieces, strict=True)
        ]

    return prepare_each(
        requests,
        lambda whole: _prepare_whole(whole, policy, tokenizer, specials, room, model),
        prepare_cut,
    )


def _prepare_cut(piece: Pieces, specials: Specials, words: list[int] | None) -> Prepared:
    """Join what a cut leaves to one sequence between special tokens, the continuation masked token by token."""
    used, count = len(piece.context), len(piece.continuation)
    if not count:
        return Prepared((), tokens=0, spans=(), notes=Counter({"nothing to score": 1}), context_tokens=used)
    first = len(specials.before) + used
    words = list(range(count)) if words is None else words[:count]
    ids = np.asarray([*specials.before, *piece.context, *piece.continuation, *specials.after], dtype=np.int32)
    hidden = tuple(tuple(first + j for j in range(i, count) if words[j] == words[i]) for i in range(count))
    part = MaskedPart(ids, tuple(range(first, first + count)), hidden)
    return Prepared((part,), tokens=count, spans=tuple(piece.spans) or None, context_tokens=used)


def _prepare_whole(
    requests: Sequence[Request], policy: Policy, tokenizer: Any, specials: Specials, room: int, model: str
) -> list[Prepared]:
    """Prepare requests without a cut, context and continuation tokenised jointly."""
    joint = tokenise_requests(tokenizer, requests)
    before = tokenise(tokenizer, [request.context for request in requests])
    window = window_under(policy)
    out = []
    for request, (ids, spans), context_ids in zip(requests, joint, before, strict=True):
        text = request.context + request.continuation
        begin = common_prefix(context_ids, ids)
        words = _words(tokenizer, text) if policy.masked == "within-word" else None
        if len(ids) > room and (window == "refuse" or (begin and policy.overflow == "refuse")):
            raise EnsueError(
                f"A text of {len(ids)} tokens is longer than the {room} that {model} takes "
                f"(it begins {text[:40]!r}); shorten it or choose another window policy."
            )
        notes: Counter[str] = Counter()
        cuts, mix = cut_windows(len(ids), room, "strided" if begin else window, RELEASED_MASKED)
        notes["windowed"] += len(cuts) > 1
        parts: list[MaskedPart] = []
        scored: list[range] = []
        for cut in cuts:
            start = max(cut.scored_from, begin)
            if start >= cut.end:
                continue
            shift = len(specials.before) - cut.begin
            piece = np.asarray([*specials.before, *ids[cut.begin : cut.end], *specials.after], dtype=np.int32)
            targets = range(start, cut.end)
            hidden: tuple[tuple[int, ...], ...] = tuple((i + shift,) for i in targets)
            if words is not None:
                hidden = tuple(
                    tuple(j + shift for j in range(i, cut.end) if words[j] == words[i]) for i in targets
                )
            parts.append(MaskedPart(piece, tuple(i + shift for i in targets), hidden))
            scored.append(targets)
        if not parts:
            notes["nothing to score"] += 1
            out.append(Prepared((), tokens=0, spans=(), notes=+notes))
            continue
        tokens = len(set().union(*scored))
        found = spans_of(spans, scored, tokens, len(request.context))
        out.append(Prepared(tuple(parts), mix, tokens, found, +notes))
    return out


def _words(tokenizer: Any, text: str) -> list[int]:
    """Return the word each token belongs to; tokens without one stand alone."""
    if not tokenizer.is_fast:
        raise EnsueError("The within-word variant needs a fast tokenizer, which knows word borders.")
    ids = tokenizer(text, add_special_tokens=False, verbose=False).word_ids()
    return [-1 - i if word is None else int(word) for i, word in enumerate(ids)]


class CopyShare(NamedTuple):
    """Batches of copies, the parts they are of, and those of them whose scores are wanted."""

    parts: Mapping[int, MaskedPart]
    batches: Sequence[Sequence[Copy]]
    wanted: Set[int]


def _copies(parts: Sequence[MaskedPart]) -> list[Copy]:
    """Return every part with each of its targets, the longest first."""
    return [
        (part, target)
        for part in sorted(range(len(parts)), key=lambda i: (-len(parts[i].ids), i))
        for target in range(len(parts[part].targets))
    ]


class MaskedExecutor:
    """Scores masked parts: rows of like length in batches, the head at the masked position only.

    Without `pad` only rows of one length run together: some models take padding for text. With a `way` the copies lie
    end to end, and nothing is padded.
    """

    def __init__(
        self, network: Network, budget: Budget, mask: int, *, pad: bool = True, way: EndToEnd | None = None
    ) -> None:
        self.network = network
        self.budget = budget
        self.mask = mask
        self.pad = pad and network.rope is None
        self.way = way

    def run(self, parts: Sequence[MaskedPart], done: Set[int] = frozenset()) -> Iterator[Finished]:
        """Score the parts not in `done`; a part comes out when its last position is known."""
        rows = _copies(parts)
        known = _Known(parts, done)
        position = 0
        # Read one batch late: the host lays out the next while a GPU works.
        waiting: tuple[Sequence[Copy], Arriving] | None = None
        while position < len(rows):
            batch = self._batch(parts, rows, position)
            launched = None
            if any(part in known.left for part, _ in batch):
                try:
                    launched = batch, self._launch(parts, batch)
                except (RuntimeError, MemoryError) as error:
                    if not out_of_memory(error):
                        raise
                    self.budget = self.budget.halved()
                    continue
            position += len(batch)
            if waiting is not None and (finished := known.take(*waiting)):
                yield finished
            waiting = launched
        if waiting is not None and (finished := known.take(*waiting)):
            yield finished

    def divide(self, parts: Sequence[MaskedPart], done: Set[int] = frozenset()) -> Iterator[CopyShare]:
        """Yield shares of what `run` would do: some of its batches, with the parts that these are of."""
        rows, position = _copies(parts), 0
        held: list[Sequence[Copy]] = []
        while position < len(rows):
            batch = self._batch(parts, rows, position)
            position += len(batch)
            if any(part not in done for part, _ in batch):
                held.append(batch)
            if held and (len(held) == _SHARE or position == len(rows)):
                own = {part for batch in held for part, _ in batch}
                yield CopyShare({part: parts[part] for part in own}, held, own - done)
                held = []

    def work(self, share: CopyShare) -> Iterator[list[Piece]]:
        """Do a share, a batch at a time; a batch for which memory runs out is halved."""
        waiting = list(reversed(share.batches))
        while waiting:
            batch = waiting.pop()
            try:
                values = self._launch(share.parts, batch).numpy()
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error) or len(batch) == 1:
                    raise
                half = len(batch) // 2
                waiting += [batch[half:], batch[:half]]
                continue
            numbered = zip(batch, values, strict=True)
            pieces = []
            for part, group in groupby(numbered, key=lambda one: one[0][0]):
                own = list(group)
                found = np.asarray([value for _, value in own], dtype=np.float64)
                pieces.append(Piece(part, PartScore(found), own[0][0][1], len(share.parts[part].targets)))
            yield [piece for piece in pieces if piece.part in share.wanted]

    def _batch(self, parts: Sequence[MaskedPart], rows: Sequence[Copy], position: int) -> Sequence[Copy]:
        """Return the copies that are run together, from a position on."""
        width = len(parts[rows[position][0]].ids)
        if self.way is not None:
            return rows[position : position + _fitting(parts, rows, position, self.budget.batch)]
        batch = rows[position : position + max(self.budget.batch // width, 1)]
        return batch if self.pad else [row for row in batch if len(parts[row[0]].ids) == width]

    def _launch(
        self, parts: Sequence[MaskedPart] | Mapping[int, MaskedPart], batch: Sequence[Copy]
    ) -> Arriving:
        """Begin one forward pass over masked copies."""
        copies = masked_copies(parts, batch, self.mask)
        device = self.network.device
        with torch.inference_mode():
            if self.way is not None:
                hidden = self.way.run(self.way.lay(copies.ids, copies.lengths))[0][0]
                places = copies.at + np.cumsum(copies.lengths) - copies.lengths
            else:
                row = lay(copies.ids, copies.lengths, device)
                ids, real = row.padded(row.ids)
                even = int(copies.lengths.min()) == row.longest
                hidden = self.network.hidden(
                    ids.masked_fill(~real, 0),
                    attention_mask=None if even else real.long(),
                    length=row.longest,
                ).flatten(0, 1)
                places = copies.at + np.arange(len(batch)) * row.longest
            states = hidden.index_select(0, send(places, device))
            return fetch(self.network.chosen(states, send(copies.tokens, device)))


class _Known:
    """The log-probabilities found so far of parts that are not finished."""

    def __init__(self, parts: Sequence[MaskedPart], done: Set[int]) -> None:
        self.left = {i: len(part.targets) for i, part in enumerate(parts) if i not in done}
        self._found = {i: np.zeros(count) for i, count in self.left.items()}

    def take(self, batch: Sequence[Copy], values: Arriving) -> Finished:
        """Take the values of a batch, and return what is finished by them."""
        finished: Finished = []
        for (part, target), value in zip(batch, values.numpy().tolist(), strict=True):
            if part in self.left:
                self._found[part][target] = value
                self.left[part] -= 1
                if self.left[part] == 0:
                    del self.left[part]
                    finished.append((part, PartScore(self._found.pop(part))))
        return finished


def _fitting(parts: Sequence[MaskedPart], rows: Sequence[Copy], position: int, budget: int) -> int:
    """Return how many copies from a position on have as many tokens as the budget, one at least."""
    count = 1
    room = budget - len(parts[rows[position][0]].ids)
    while position + count < len(rows) and (room := room - len(parts[rows[position + count][0]].ids)) >= 0:
        count += 1
    return count


class Copies(NamedTuple):
    """Masked copies one after another: their tokens, how many each has, which is asked in each, and what it was."""

    ids: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    at: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int64]


def masked_copies(
    parts: Sequence[MaskedPart] | Mapping[int, MaskedPart], batch: Sequence[Copy], mask: int
) -> Copies:
    """Make the copies of a batch, those of one part at a time."""
    ids, lengths, at, tokens = [], [], [], []
    for index, group in groupby(batch, key=itemgetter(0)):
        part, asked = parts[index], [target for _, target in group]
        hidden = [part.hidden[target] for target in asked]
        copies = np.tile(part.ids.astype(np.int64), (len(asked), 1))
        rows = np.repeat(np.arange(len(asked)), [len(group) for group in hidden])
        copies[rows, np.fromiter(chain.from_iterable(hidden), np.int64, len(rows))] = mask
        ids.append(copies.ravel())
        lengths.append(np.full(len(asked), len(part.ids)))
        at.append(np.asarray([part.targets[target] for target in asked]))
        tokens.append(part.ids[at[-1]].astype(np.int64))
    return Copies(*map(np.concatenate, (ids, lengths, at, tokens)))
