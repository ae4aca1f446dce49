"""Next-token probabilities for a beam search: a text's shared prefix is run once, whatever branches from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ensue.scoring.branch_cache import BranchCache, Pool
from ensue.scoring.network import Network

Ids = tuple[int, ...]
# With so few hypotheses a prompt, all prompts of a text are run side by side, otherwise those of a prompt.
_FEW_BEAMS = 2


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
        # Which rows lie side by side; nothing where a mask alone does not say what a token sees.
        self.groups: Tensor | None = None

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def start(self) -> Tensor:
        """Run the shared prefixes, then each prompt's own tokens on top of its prefix."""
        prefixes = list(dict.fromkeys(prompt.shared for prompt in self.prompts if prompt.shared))
        at = {prefix: row for row, prefix in enumerate(prefixes)}
        texts = torch.tensor([at.get(prompt.shared, 0) for prompt in self.prompts], device=self.device)
        bare = torch.tensor([not prompt.shared for prompt in self.prompts], device=self.device)
        if prefixes:
            self._extend(prefixes)
            self.paths, self.lengths = self.paths[texts], self.lengths[texts].masked_fill(bare, 0)
        else:
            self.paths = self.paths.new_zeros((len(self.prompts), 0))
            self.lengths = self.lengths.new_zeros(len(self.prompts))
        ids, new = self._padded([prompt.own for prompt in self.prompts])
        if not self.network.sees_by_mask or bool(bare.any()):
            return self._logprobs(self._step(ids, new))
        states = self._beside(ids, new, texts)
        # The beams of one prompt share most of what they have come through; those of one text little beside it.
        few = self.beams <= _FEW_BEAMS
        self.groups = texts if few else torch.arange(len(self.prompts), device=self.device)
        return self._logprobs(states)

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def advance(self, parents: Tensor, tokens: Tensor) -> Tensor:
        self.paths, self.lengths = self.paths[parents], self.lengths[parents]
        one = torch.ones_like(tokens)
        if self.groups is None:
            return self._logprobs(self._step(tokens[:, None], one))
        self.groups = self.groups[parents]
        return self._logprobs(self._beside(tokens[:, None], one, self.groups))

    def _padded(self, runs: Sequence[Ids]) -> tuple[Tensor, Tensor]:
        """Return runs of tokens as rows, padded on the right with their last, and how long each is."""
        width = max(map(len, runs))
        ids = torch.tensor([[*run, *[run[-1]] * (width - len(run))] for run in runs], device=self.device)
        return ids, torch.tensor([len(run) for run in runs], device=self.device)

    def _extend(self, runs: Sequence[Ids]) -> Tensor:
        """Run one more stretch of tokens on every row; the state of each row's last token."""
        if not len(self.lengths):
            self.paths = self.paths.new_zeros((len(runs), 0))
            self.lengths = self.lengths.new_zeros(len(runs))
        return self._step(*self._padded(runs))

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

    def _beside(self, ids: Tensor, new: Tensor, groups: Tensor) -> Tensor:
        """Do as `_step`, but with the rows of a group side by side in one row, and a mask that says who sees what.

        The row's past is what any of them has come through, each token once: hypotheses of one prompt and prompts of
        one text share most of it, and reading the past of every row by itself is what takes the time of a step.
        """
        width = ids.shape[1]
        real = torch.arange(width, device=self.device) < new[:, None]
        owner, column = real.nonzero(as_tuple=True)
        group = torch.unique(groups, return_inverse=True)[1]
        count = int(group.max()) + 1
        rows, most_rows = side_by_side(group, count)
        places, most = side_by_side(group[owner], count)
        paths = self.paths.new_zeros((count * most_rows, self.paths.shape[1]))
        lengths = self.lengths.new_zeros(count * most_rows)
        paths[rows], lengths[rows] = self.paths, self.lengths
        union, seen_by = merged_paths(paths, lengths, most_rows)
        seen = torch.zeros((count * most, union.shape[1]), dtype=torch.bool, device=self.device)
        seen[places] = seen_by.flatten(0, 1)[rows[owner]]
        # Padding is nobody's: each has a number of its own, and so sees itself only.
        whose = -1 - torch.arange(count * most, device=self.device)
        whose[places] = owner
        whose = whose.view(count, most)
        same = (whose[:, :, None] == whose[:, None, :]).tril()
        hidden_from = ~torch.cat([seen.view(count, most, -1), same], 2)[:, None]
        dtype = self.network.dtype
        mask = torch.zeros(hidden_from.shape, dtype=dtype, device=self.device)
        mask.masked_fill_(hidden_from, torch.finfo(dtype).min)
        laid = ids.new_zeros(count * most)
        laid[places] = ids[owner, column]
        positions = self.lengths.new_zeros(count * most)
        positions[places] = self.lengths[owner] + column
        slots = torch.arange(self.used, self.used + len(owner), device=self.device)
        self.used += len(owner)
        hidden = self.network.hidden(
            laid.view(count, most),
            attention_mask=mask,
            position_ids=positions.view(count, most),
            cache=BranchCache(self.pool, union, places, slots),
        )
        self._lengthen(real, slots, new)
        return hidden.flatten(0, 1)[places[new.cumsum(0) - 1]]

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


def side_by_side(group: Tensor, count: int) -> tuple[Tensor, int]:
    """Return where the members of groups 0 … `count` - 1 lie when each group has a row; and the rows' width."""
    sizes = torch.bincount(group, minlength=count)
    order = group.argsort(stable=True)
    first = sizes.cumsum(0) - sizes
    within = torch.empty_like(group)
    within[order] = torch.arange(len(group), device=group.device) - first[group[order]]
    most = int(sizes.max())
    return group * most + within, most


def merged_paths(paths: Tensor, lengths: Tensor, beams: int) -> tuple[Tensor, Tensor]:
    """Return the slots of each `beams` neighbouring rows, every slot once, padded with 0 on the right; and, for each
    row, which of them are its own (prompts × beams × slots)."""
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
        (length,) = self.network.lengths([len(row)])
        hidden = self.network.hidden(torch.tensor([row], device=self.network.device), length=length)
        return torch.log_softmax(self.network.logits(hidden[0, -1:]), 1)
