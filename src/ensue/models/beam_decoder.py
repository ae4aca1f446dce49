"""Next-token probabilities for a beam search: a text's shared prefix is run once, whatever branches from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ensue.scoring.branch_cache import BranchCache, Pool
from ensue.scoring.network import Network

Ids = tuple[int, ...]


class TokenPrompt(NamedTuple):
    """A prompt as tokens: those that several prompts share, and its own; the latter are at least one."""

    shared: Ids
    own: Ids


class SharingDecoder:
    """Keeps keys and values of every token once; a hypothesis is a row of places in that store."""

    def __init__(
        self, network: Network, prompts: Sequence[TokenPrompt], *, beams: int, max_tokens: int
    ) -> None:
        self.network, self.prompts, self.beams = network, prompts, beams
        self.device = network.device
        room = sum(len(shared) for shared in {prompt.shared for prompt in prompts})
        room += sum(len(prompt.own) for prompt in prompts) + len(prompts) * beams * max_tokens
        self.pool, self.used = Pool(room), 0
        # Rows × positions, padded on the left; `lengths` says how many of a row's last places are its own.
        self.paths = torch.zeros((0, 0), dtype=torch.long, device=self.device)
        self.lengths = torch.zeros(0, dtype=torch.long, device=self.device)

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def start(self) -> Tensor:
        """Run the shared prefixes, then each prompt's own tokens on top of its prefix."""
        prefixes = list(dict.fromkeys(prompt.shared for prompt in self.prompts if prompt.shared))
        at = {prefix: row for row, prefix in enumerate(prefixes)}
        if prefixes:
            self._extend(prefixes)
            rows = [at.get(prompt.shared, 0) for prompt in self.prompts]
            bare = torch.tensor([not prompt.shared for prompt in self.prompts], device=self.device)
            chosen = torch.tensor(rows, device=self.device)
            self.paths = self.paths[chosen]
            self.lengths = self.lengths[chosen].masked_fill(bare, 0)
        else:
            self.paths = self.paths.new_zeros((len(self.prompts), 0))
            self.lengths = self.lengths.new_zeros(len(self.prompts))
        return self._logprobs(self._extend([prompt.own for prompt in self.prompts]))

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def advance(self, parents: Tensor, tokens: Tensor) -> Tensor:
        self.paths, self.lengths = self.paths[parents], self.lengths[parents]
        if self.beams > 1 and self.network.sees_by_mask and len(tokens) % self.beams == 0:
            return self._logprobs(self._fan(tokens))
        return self._logprobs(self._step(tokens[:, None], torch.ones_like(tokens)))

    def _extend(self, runs: Sequence[Ids]) -> Tensor:
        """Run one more stretch of tokens on every row; the state of each row's last token."""
        if not len(self.lengths):
            self.paths = self.paths.new_zeros((len(runs), 0))
            self.lengths = self.lengths.new_zeros(len(runs))
        width = max(map(len, runs))
        ids = torch.tensor([[*run, *[run[-1]] * (width - len(run))] for run in runs], device=self.device)
        return self._step(ids, torch.tensor([len(run) for run in runs], device=self.device))

    def _step(self, ids: Tensor, new: Tensor) -> Tensor:
        """Run rows of new tokens, padded on the right, and lengthen the rows' paths by the real ones."""
        rows, width = ids.shape
        longest = self.paths.shape[1]
        columns = torch.arange(width, device=self.device)
        real = columns < new[:, None]
        # Padding repeats the row's last position: it is never read, but must exist in the model.
        positions = self.lengths[:, None] + torch.minimum(columns, new[:, None] - 1)
        count = int(new.sum())
        slots = torch.arange(self.used, self.used + count, device=self.device)
        self.used += count
        keep = real.flatten().nonzero()[:, 0]
        cache = BranchCache(self.pool, self.paths if longest else None, keep, slots)
        mask = None
        if longest and bool((self.lengths < longest).any()):
            past = torch.arange(longest, device=self.device) >= longest - self.lengths[:, None]
            mask = torch.cat([past, torch.ones_like(real)], 1).long()
        hidden = self.network.hidden(ids, attention_mask=mask, position_ids=positions, cache=cache)
        self._lengthen(real, slots, new)
        return hidden[torch.arange(rows, device=self.device), new - 1]

    def _fan(self, tokens: Tensor) -> Tensor:
        """One more token of every hypothesis, those of a prompt side by side in one row.

        The row's past is what any of them has come through, each token once: beams share most of it, and reading
        the past of every beam by itself is what a step would spend its time on. A mask says who sees what.
        """
        rows, beams = len(tokens), self.beams
        union, seen = merged_paths(self.paths, self.lengths, beams)
        slots = torch.arange(self.used, self.used + rows, device=self.device)
        self.used += rows
        itself = torch.eye(beams, dtype=torch.bool, device=self.device).expand(rows // beams, -1, -1)
        hidden_from = ~torch.cat([seen, itself], 2)[:, None]
        dtype = self.network.dtype
        mask = torch.zeros(hidden_from.shape, dtype=dtype, device=self.device)
        mask.masked_fill_(hidden_from, torch.finfo(dtype).min)
        cache = BranchCache(self.pool, union, torch.arange(rows, device=self.device), slots)
        hidden = self.network.hidden(
            tokens.view(-1, beams),
            attention_mask=mask,
            position_ids=self.lengths.view(-1, beams),
            cache=cache,
        )
        self.paths = torch.cat([self.paths, slots[:, None]], 1)
        self.lengths = self.lengths + 1
        return hidden.flatten(0, 1)

    def _lengthen(self, real: Tensor, slots: Tensor, new: Tensor) -> None:
        """Put the new tokens' slots at the end of each row, and the padding back on the left."""
        fresh = torch.zeros(real.shape, dtype=torch.long, device=self.device)
        fresh[real] = slots
        joined = torch.cat([self.paths, fresh], 1)
        lengths = self.lengths + new
        shift = real.shape[1] - new  # the padding on the right of each row
        if bool(shift.any()):
            width = joined.shape[1]
            joined = joined.gather(1, (torch.arange(width, device=self.device) - shift[:, None]) % width)
        self.paths = joined[:, joined.shape[1] - int(lengths.max()) :]
        self.lengths = lengths

    def _logprobs(self, hidden: Tensor) -> Tensor:
        pieces = hidden.split(self.network.chunk)
        return torch.cat([torch.log_softmax(self.network.logits(piece), 1) for piece in pieces])


def merged_paths(paths: Tensor, lengths: Tensor, beams: int) -> tuple[Tensor, Tensor]:
    """The slots of each `beams` neighbouring rows, every slot once, padded with 0 on the right; and, for each row,
    which of them are its own (prompts × beams × slots)."""
    width = paths.shape[1]
    prompts = len(paths) // beams
    own = (torch.arange(width, device=paths.device) >= width - lengths[:, None]).view(prompts, -1)
    beyond = torch.iinfo(paths.dtype).max
    ordered, order = paths.reshape(prompts, -1).masked_fill(~own, beyond).sort(1)
    first = ordered < beyond
    first[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    rank = first.cumsum(1) - 1
    size = int(first.sum(1).max())
    union = paths.new_zeros((prompts, size))
    union[first.nonzero(as_tuple=True)[0], rank[first]] = ordered[first]
    place = torch.empty_like(rank).scatter_(1, order, rank)
    beam = torch.arange(beams * width, device=paths.device) // width
    seen = torch.zeros((prompts, beams * size), dtype=torch.bool, device=paths.device)
    prompt, column = own.nonzero(as_tuple=True)
    seen[prompt, beam[column] * size + place[prompt, column]] = True
    return union, seen.view(prompts, beams, size)


class PlainDecoder:
    """Runs every hypothesis from its first token again: for models whose past cannot be branched from."""

    def __init__(self, network: Network, prompts: Sequence[TokenPrompt]) -> None:
        self.network = network
        self.rows: list[Ids] = [prompt.shared + prompt.own for prompt in prompts]

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def start(self) -> Tensor:
        return torch.cat([self._one(row) for row in self.rows])

    def advance(self, parents: Tensor, tokens: Tensor) -> Tensor:
        self.rows = [
            (*self.rows[parent], token)
            for parent, token in zip(parents.tolist(), tokens.tolist(), strict=True)
        ]
        return self.start()

    def _one(self, row: Ids) -> Tensor:
        hidden = self.network.hidden(torch.tensor([row], device=self.network.device))
        return torch.log_softmax(self.network.logits(hidden[0, -1:]), 1)
