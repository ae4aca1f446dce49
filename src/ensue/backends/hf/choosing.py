"""The choice of hypotheses in a beam search over many lanes, all on the device: no step waits for the host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from ensue.backends.hf.beam import BeamRules

# Stands for no token in what is compared with tokens.
NO_TOKEN = 2**30


@dataclass(frozen=True)
class Stops:
    """Texts that end a hypothesis: whether rows of the last `tail` tokens (`NO_TOKEN` before the first) have one."""

    tail: int
    hit: Callable[[Tensor], Tensor]


@dataclass
class Hypotheses:
    """The hypotheses of every lane; all but `lengths`, `steps`, `open`, `odd` and `history` are lanes × beams.

    `written` are the tokens of open ones, `slots` at which place of its step each token was run, `sums` their
    log-probabilities together (minus infinity where there is no such hypothesis). `ended` are the finished ones,
    best first, with their sums, lengths and scores. `history` are the prompts' last tokens.
    """

    lengths: Tensor
    steps: Tensor
    open: Tensor
    odd: Tensor
    history: Tensor
    written: Tensor
    slots: Tensor
    sums: Tensor
    ended: Tensor
    ended_sums: Tensor
    ended_lengths: Tensor
    ended_scores: Tensor

    @classmethod
    def empty(cls, lanes: int, beams: int, max_tokens: int, history: int, device: torch.device) -> Hypotheses:
        """Return lanes in which nothing is open."""

        def whole(*shape: int) -> Tensor:
            return torch.zeros((lanes, *shape), dtype=torch.long, device=device)

        def never(*shape: int) -> Tensor:
            return torch.full((lanes, *shape), float("-inf"), device=device)

        return cls(
            lengths=whole(),
            steps=whole(),
            open=whole().bool(),
            odd=whole().bool(),
            history=whole(history),
            written=whole(beams, max_tokens),
            slots=whole(beams, max_tokens),
            sums=never(beams),
            ended=whole(beams, max_tokens),
            ended_sums=never(beams),
            ended_lengths=whole(beams),
            ended_scores=never(beams),
        )

    def take(self, lanes: Tensor) -> Hypotheses:
        """Return some lanes, in the order they are named."""
        return Hypotheses(**{one.name: getattr(self, one.name)[lanes] for one in fields(self)})

    def put(self, lanes: Tensor, other: Hypotheses) -> None:
        """Put hypotheses into lanes."""
        for one in fields(self):
            getattr(self, one.name)[lanes] = getattr(other, one.name)

    def begun(self, lengths: Tensor, history: Tensor) -> None:
        """Begin every lane with one empty hypothesis after a prompt of such a length."""
        self.lengths, self.history = lengths, history
        self.open = torch.ones_like(self.open)
        self.sums[:, 0] = 0.0

    def seen(self, steps: int) -> Tensor:
        """Return which of its lane's tokens of the first steps each hypothesis has come through.

        The shape is lanes × beams × (steps × beams).
        """
        beams, device = self.written.shape[1], self.slots.device
        own = self.slots[..., :steps, None] == torch.arange(beams, device=device)
        past = torch.arange(steps, device=device) < self.steps[:, None]
        return (own & past[:, None, :, None]).flatten(2)


class Chooser:
    """Lengthens the hypotheses of every open lane by a token, as the rules have it.

    `apart`: any end token may end a hypothesis, as transformers has it; otherwise the likeliest only, where many
    tokens say the same. `history`: n-grams of the prompt count too. The search itself is that of `beam.search`.
    """

    def __init__(
        self,
        rules: BeamRules,
        vocabulary: int,
        device: torch.device,
        *,
        apart: bool = False,
        stops: Stops | None = None,
    ) -> None:
        self.rules, self._apart, self._stops = rules, apart, stops
        ends = sorted(end for end in rules.ends if end < vocabulary)
        self._ends = torch.tensor(ends, dtype=torch.long, device=device)
        self._is_end = torch.zeros(vocabulary, dtype=torch.bool, device=device)
        self._is_end[self._ends] = True
        self._count = (max(2, 1 + len(ends)) if apart else 2) * rules.beams
        self._may_end = torch.arange(self._count, device=device) < rules.beams
        sizes = [float(max(length, 1)) ** rules.length_penalty for length in range(rules.max_tokens + 1)]
        self._sizes = torch.tensor(sizes, device=device)

    def __call__(self, held: Hypotheses, logits: Tensor) -> None:
        """Choose by the logits (lanes × beams × vocabulary) of what follows each open hypothesis; in place."""
        rules, beams = self.rules, self.rules.beams
        worst = ~torch.isfinite(logits.amax(-1)) & (held.sums > float("-inf"))
        odd = held.odd | (held.open & worst.any(1))
        table = torch.log_softmax(logits, -1)
        self._bar_ends(table, held.steps)
        self._bar_ngrams(table, held)
        total = (held.sums[..., None] + table).flatten(1)
        rank, place = total.topk(self._count, dim=1)
        parents, tokens = place // table.shape[2], place % table.shape[2]
        # A lane that is done stands still, perhaps at its last step.
        before = held.steps.clamp(max=rules.max_tokens - 1)
        at, length = before[:, None, None], before + 1
        grown = _of(held.written, parents).scatter_(2, at.expand(-1, self._count, 1), tokens[..., None])
        ends = self._is_end[tokens] | (length >= rules.max_tokens)[:, None]
        if self._stops is not None:
            ends = ends | self._stopped(self._stops, held, grown, length)
        # Only the first `beams` may end; the others are there to take the place of those that do.
        ending = ends & (rank > float("-inf")) & self._may_end
        size = self._sizes[length][:, None]
        scores = torch.cat([held.ended_scores, (rank / size).masked_fill(~ending, float("-inf"))], 1)
        ended_scores, best = scores.topk(beams, dim=1)
        sums, going = rank.masked_fill(ends, float("-inf")).topk(beams, dim=1)
        first = sums[:, 0]
        settled = (ended_scores[:, -1] > float("-inf")) & (ended_scores[:, -1] >= first / size[:, 0])
        slots = _of(held.slots, parents.gather(1, going))
        here = torch.arange(beams, device=slots.device)[None, :, None].expand(len(slots), -1, 1)
        slots.scatter_(2, at.expand(-1, beams, 1), here)
        chosen = {
            "steps": length,
            "odd": odd,
            "written": _of(grown, going),
            "slots": slots,
            "sums": sums,
            "ended": _of(torch.cat([held.ended, grown], 1), best),
            "ended_sums": torch.cat([held.ended_sums, rank], 1).gather(1, best),
            "ended_lengths": torch.cat([held.ended_lengths, length[:, None].expand_as(rank)], 1).gather(
                1, best
            ),
            "ended_scores": ended_scores,
            "open": ~settled & (first > float("-inf")),
        }
        was_open = held.open.clone()
        for name, new in chosen.items():
            old = getattr(held, name)
            old.copy_(torch.where(was_open.view(-1, *[1] * (old.dim() - 1)), new, old))

    def _bar_ends(self, table: Tensor, steps: Tensor) -> None:
        """Forbid end tokens before `min_tokens`; afterwards keep all, or only the most likely one."""
        if not len(self._ends):
            return
        early = (steps < self.rules.min_tokens)[:, None, None]
        values = table[..., self._ends].masked_fill(early, float("-inf"))
        if not self._apart and len(self._ends) > 1:
            best, which = values.max(-1, keepdim=True)
            values = torch.full_like(values, float("-inf")).scatter_(-1, which, best)
        table[..., self._ends] = values

    def _bar_ngrams(self, table: Tensor, held: Hypotheses) -> None:
        """Forbid tokens that would complete an n-gram their hypothesis, or its prompt, already has."""
        size = self.rules.block_ngrams
        beams, history = held.written.shape[1], held.history.shape[1]
        before = held.history[:, None].expand(-1, beams, -1)
        row = torch.cat([before, held.written], 2)
        if not size or row.shape[2] < size:
            return
        runs = row.unfold(2, size, 1)
        end = (history + held.steps)[:, None, None]  # the place of the token to come
        tail = end - size + 1 + torch.arange(size - 1, device=row.device)
        last = row.gather(2, tail.clamp(min=0).expand(-1, beams, -1))
        begins = torch.arange(runs.shape[2], device=row.device)
        # A run of tokens that are all there, and a tail that begins no earlier than the first token.
        first = history - held.lengths.clamp(max=history)[:, None, None]
        there = (begins + size <= end) & (begins >= first) & (end - size + 1 >= first)
        same = (runs[..., :-1] == last[:, :, None]).all(-1) & there
        barred = torch.zeros_like(same, dtype=table.dtype).masked_fill_(~same, float("inf"))
        barred.masked_fill_(same, float("-inf"))
        table.scatter_reduce_(2, runs[..., -1].clamp(max=table.shape[2] - 1), barred, "amin")

    def _stopped(self, stops: Stops, held: Hypotheses, grown: Tensor, length: Tensor) -> Tensor:
        """Return which candidates end in a text that stops them."""
        before = held.history[:, None].expand(-1, grown.shape[1], -1)
        row = torch.cat([before, grown], 2)
        history = held.history.shape[1]
        places = (history + length)[:, None] - stops.tail + torch.arange(stops.tail, device=row.device)
        known = places >= (history - held.lengths.clamp(max=history))[:, None]
        tail = row.gather(2, places.clamp(min=0)[:, None].expand(-1, row.shape[1], -1))
        tail = tail.masked_fill(~known[:, None], NO_TOKEN)
        return stops.hit(tail.flatten(0, 1)).view(tail.shape[:2])


def _of(rows: Tensor, chosen: Tensor) -> Any:
    """Return rows (lanes × rows × tokens) by their places in each lane (lanes × chosen)."""
    return rows.gather(1, chosen[..., None].expand(-1, -1, rows.shape[2]))
