"""Beam search for many prompts at a time, for models without lanes; what prompts share is run once."""

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


class TokenPrompt(NamedTuple):
    """A prompt as tokens: those that several prompts share, and its own; the latter are at least one."""

    shared: Ids
    own: Ids


class SharingDecoder:
    """Keeps keys and values of every token once; a hypothesis is a row of places in that store."""

    def __init__(
        self, network: Network, prompts: Sequence[TokenPrompt], *, beams: int, max_tokens: int
    ) -> None:
        self.network, self.prompts = network, prompts
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
        texts = torch.tensor([at.get(prompt.shared, 0) for prompt in self.prompts], device=self.device)
        bare = torch.tensor([not prompt.shared for prompt in self.prompts], device=self.device)
        rows = len(prefixes or self.prompts)
        self.paths, self.lengths = self.paths.new_zeros((rows, 0)), self.lengths.new_zeros(rows)
        if prefixes:
            self._step(*self._padded(prefixes))
            self.paths, self.lengths = self.paths[texts], self.lengths[texts].masked_fill(bare, 0)
        ids, new = self._padded([prompt.own for prompt in self.prompts])
        return self._logprobs(self._step(ids, new))

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def advance(self, parents: Tensor, tokens: Tensor) -> Tensor:
        self.paths, self.lengths = self.paths[parents], self.lengths[parents]
        return self._logprobs(self._step(tokens[:, None], torch.ones_like(tokens)))

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
