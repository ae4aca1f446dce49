"""Beam search over anything that gives the log-probabilities of next tokens, many prompts at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ensue.errors import EnsueError


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
                f"{self.beams} beams of {self.min_tokens} to {self.max_tokens} tokens will not do: there must be "
                f"a beam, and room for the fewest tokens."
            )
        if self.block_ngrams < 0:
            raise EnsueError(f"block_ngrams {self.block_ngrams} will not do: 0 blocks nothing, 3 trigrams.")


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
