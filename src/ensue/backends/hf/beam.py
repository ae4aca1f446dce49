"""Beam search for many prompts at a time; what prompts and hypotheses share is run once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ensue.errors import EnsueError
from ensue.scoring.network import BranchCache, Network, Pool


@dataclass(frozen=True)
class BeamRules:
    """How hypotheses grow: at least `min_tokens` before an end, at most `max_tokens` with it, no n-gram twice.

    Hypotheses are ranked by the sum of their log-probabilities over their length to the power `length_penalty`;
    the end counts as a token. `ends` are the tokens that end one.
    """

    beams: int
    ends: frozenset[int]
    min_tokens: int = 0
    max_tokens: int = 60
    length_penalty: float = 1.0
    block_ngrams: int = 0

    def __post_init__(self) -> None:
        if self.beams < 1 or self.max_tokens < 1 or not 0 <= self.min_tokens <= self.max_tokens:
            raise EnsueError(
                f"Invalid beams={self.beams}, min_tokens={self.min_tokens}, max_tokens={self.max_tokens}: expected "
                f"beams and max_tokens of 1 or more, and min_tokens of 0 to max_tokens."
            )
        if self.block_ngrams < 0:
            raise EnsueError(
                f"Invalid block_ngrams={self.block_ngrams}: expected 0 or more (3 blocks trigrams)."
            )


class Hypothesis(NamedTuple):
    """Tokens without the end, the end (None where there was no room for it), the sum of log-probabilities and how
    many tokens it is of, both with the end, and the score it is ranked by."""

    tokens: tuple[int, ...]
    end: int | None
    logprob: float
    length: int
    score: float


class NoNumber(Exception):
    """A token's log-probability is no number; `prompt` says after which prompt."""

    def __init__(self, prompt: int) -> None:
        super().__init__(f"no number after prompt {prompt}")
        self.prompt = prompt


class Decoder(Protocol):
    """Runs the network: rows are hypotheses, all prompts' one after another."""

    def start(self) -> Tensor:
        """Return log-probabilities of the first new token, prompts × vocabulary."""

    def advance(self, parents: Tensor, tokens: Tensor) -> Tensor:
        """Lengthen earlier rows by a token each, and return the log-probabilities of the next."""


def search(decoder: Decoder, rules: BeamRules) -> list[list[Hypothesis]]:
    """Find the best hypotheses of each prompt, at most `beams`, the best first.

    A prompt is done when it has `beams` finished hypotheses and its best open one, at its present length, is no
    better than the worst of them.
    """
    table = decoder.start()
    finished: list[list[Hypothesis]] = [[] for _ in range(len(table))]
    active = list(range(len(table)))
    tokens = torch.zeros((len(table), 0), dtype=torch.long, device=table.device)
    sums = torch.zeros(len(table), dtype=torch.float32, device=table.device)
    for length in range(1, rules.max_tokens + 1):
        rank, parents, chosen = _candidates(table, tokens, sums, len(active), rules)
        grown = torch.cat([tokens[parents], chosen[..., None]], -1)  # prompts × candidates × tokens
        ranks, picks, whole = rank.tolist(), chosen.tolist(), grown.cpu().numpy()
        # What is no number ranks above all that are.
        if bad := [active[place] for place, row in enumerate(ranks) if math.isnan(row[0])]:
            raise NoNumber(bad[0])
        still: list[int] = []
        rows: list[int] = []
        spare: list[bool] = []
        for place, prompt in enumerate(active):
            ended, going = _sorted_out(ranks[place], picks[place], whole[place], length, rules)
            best = sorted([*finished[prompt], *ended], key=lambda found: -found.score)[: rules.beams]
            finished[prompt] = best
            if not going or _settled(best, ranks[place][going[0]], length, rules):
                continue
            # Every prompt keeps as many rows; one with too few repeats its first, which then can never win.
            still.append(prompt)
            missing = rules.beams - len(going)
            rows += [place * rank.shape[1] + column for column in going + going[:1] * missing]
            spare += [False] * len(going) + [True] * missing
        if not still:
            break
        active = still
        kept = torch.tensor(rows, device=table.device)
        tokens = grown.flatten(0, 1)[kept]
        sums = rank.flatten()[kept].masked_fill(torch.tensor(spare, device=table.device), float("-inf"))
        table = decoder.advance(parents.flatten()[kept], chosen.flatten()[kept])
    return finished


def _sorted_out(
    ranks: list[float], picks: list[int], rows: npt.NDArray[np.int64], length: int, rules: BeamRules
) -> tuple[list[Hypothesis], list[int]]:
    """Divide one prompt's candidates, best first, into those that end here and the places of those that go on.

    Only the first `beams` may end; the others are there to take the place of those that do.
    """
    ended: list[Hypothesis] = []
    going: list[int] = []
    last = length == rules.max_tokens
    for column, (value, token) in enumerate(zip(ranks, picks, strict=True)):
        if value == float("-inf"):
            break  # all that follow are barred as well
        ends = token in rules.ends
        if not ends and not last:
            going.append(column)
        if column < rules.beams and (ends or last):
            row = tuple(rows[column].tolist())
            said, end = (row[:-1], token) if ends else (row, None)
            ended.append(Hypothesis(said, end, value, length, value / length**rules.length_penalty))
    return ended, going[: rules.beams]


def _candidates(
    table: Tensor, tokens: Tensor, sums: Tensor, prompts: int, rules: BeamRules
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the best continuations of each prompt's rows: sum, row continued, token; each prompts × candidates."""
    table = table.clone()
    _bar_ends(table, tokens.shape[1], rules)
    _bar_ngrams(table, tokens, rules.block_ngrams)
    rows, vocabulary = table.shape[0] // prompts, table.shape[1]
    total = (sums[:, None] + table).view(prompts, rows * vocabulary)
    # A row has one end at most, so that twice the beams always hold enough that go on.
    rank, place = total.topk(min(2 * rules.beams, total.shape[1]), dim=1)
    first = torch.arange(prompts, device=table.device)[:, None] * rows
    return rank, first + place // vocabulary, place % vocabulary


def _bar_ends(table: Tensor, length: int, rules: BeamRules) -> None:
    """Forbid end tokens before `min_tokens`; afterwards keep only the most likely one."""
    ends = torch.tensor(sorted(rules.ends), dtype=torch.long, device=table.device)
    if not len(ends):
        return
    likeliest, which = table[:, ends].max(1)
    table[:, ends] = float("-inf")
    if length >= rules.min_tokens:
        table.scatter_(1, ends[which][:, None], likeliest[:, None])


def _bar_ngrams(table: Tensor, tokens: Tensor, size: int) -> None:
    """Forbid tokens that would complete an n-gram their row already has."""
    length = tokens.shape[1]
    if not size or length < size:
        return
    seen = tokens.unfold(1, size, 1)
    tail = tokens[:, length - size + 1 :]
    rows, places = (seen[..., :-1] == tail[:, None]).all(-1).nonzero(as_tuple=True)
    table[rows, seen[rows, places, -1]] = float("-inf")


def _settled(best: list[Hypothesis], open_sum: float, length: int, rules: BeamRules) -> bool:
    return len(best) == rules.beams and best[-1].score >= open_sum / length**rules.length_penalty


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
        rows = len(prefixes or self.prompts)
        self.paths, self.lengths = self.paths.new_zeros((rows, 0)), self.lengths.new_zeros(rows)
        if prefixes:
            self._step(*self._padded(prefixes))
            self.paths, self.lengths = self.paths[texts], self.lengths[texts].masked_fill(bare, 0)
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

    def _step(self, ids: Tensor, new: Tensor) -> Tensor:
        """Run rows of new tokens, padded on the right, lengthen the rows' paths by the real ones, and return the
        state of each row's last."""
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
