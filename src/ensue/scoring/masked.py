"""Pseudo-log-likelihood of masked language models: each token predicted from all the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from ensue.errors import EnsueError
from ensue.models.request import MaskedPart, PartScore, Policy, Prepared, Request, Window
from ensue.scoring.causal import Finished, out_of_memory
from ensue.scoring.network import Network
from ensue.scoring.plan import Budget
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
from ensue.scoring.tree import common_prefix


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
        words = _words(tokenizer, text) if policy.masked == "within-word" else list(range(len(ids)))
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


class MaskedExecutor:
    """Scores masked parts: rows of like length in batches, the head at the masked position only.

    Without `pad` only rows of one length run together: some models take padding for text.
    """

    def __init__(self, network: Network, budget: Budget, mask: int, *, pad: bool = True) -> None:
        self.network = network
        self.budget = budget
        self.mask = mask
        self.pad = pad and network.rope is None

    def run(self, parts: Sequence[MaskedPart], done: Set[int] = frozenset()) -> Iterator[Finished]:
        """Score the parts not in `done`; a part comes out when its last position is known."""
        rows = [
            (part, target)
            for part in sorted(range(len(parts)), key=lambda i: (-len(parts[i].ids), i))
            for target in range(len(parts[part].targets))
        ]
        found = {i: np.zeros(len(part.targets)) for i, part in enumerate(parts) if i not in done}
        left = {i: len(part.targets) for i, part in enumerate(parts) if i not in done}
        position = 0
        while position < len(rows):
            width = len(parts[rows[position][0]].ids)
            batch = rows[position : position + max(self.budget.batch // width, 1)]
            if not self.pad:
                batch = [row for row in batch if len(parts[row[0]].ids) == width]
            wanted = any(part in left for part, _ in batch)
            try:
                values = self._run(parts, batch) if wanted else None
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
                self.budget = self.budget.halved()
                continue
            position += len(batch)
            finished: Finished = []
            for (part, target), value in zip(batch, values if values is not None else (), strict=False):
                if part in left:
                    found[part][target] = value
                    left[part] -= 1
                    if left[part] == 0:
                        del left[part]
                        finished.append((part, PartScore(found.pop(part))))
            if finished:
                yield finished

    def _run(self, parts: Sequence[MaskedPart], batch: Sequence[tuple[int, int]]) -> npt.NDArray[np.float64]:
        """Run one forward pass over masked copies."""
        width = max(len(parts[part].ids) for part, _ in batch)
        ids = np.zeros((len(batch), width), dtype=np.int64)
        mask = np.zeros((len(batch), width), dtype=np.int64)
        where = np.zeros(len(batch), dtype=np.int64)
        targets = np.zeros(len(batch), dtype=np.int64)
        for row, (index, target) in enumerate(batch):
            part = parts[index]
            ids[row, : len(part.ids)] = part.ids
            ids[row, list(part.hidden[target])] = self.mask
            mask[row, : len(part.ids)] = 1
            where[row] = row * width + part.targets[target]
            targets[row] = part.ids[part.targets[target]]
        device = self.network.device
        with torch.inference_mode():
            padding = None if mask.all() else torch.from_numpy(mask).to(device)
            hidden = self.network.hidden(
                torch.from_numpy(ids).to(device), attention_mask=padding, length=width
            )
            chosen = hidden.flatten(0, 1).index_select(0, torch.from_numpy(where).to(device))
            return self.network.logprobs(chosen, targets)
