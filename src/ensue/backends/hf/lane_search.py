"""Beam search for any number of prompts in lanes: a prompt that is done makes room for the next."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from ensue.backends.hf.beam import BeamRules, Hypothesis, NoNumber, TokenPrompt
from ensue.backends.hf.choosing import NO_TOKEN, Chooser, Hypotheses, Stops
from ensue.backends.hf.lanes import Lanes
from ensue.scoring.causal import out_of_memory
from ensue.scoring.network import Network

log = logging.getLogger(__name__)

# Steps after which the host looks which lanes are done.
_LOOK = 8
# Hypotheses that are lengthened at once: more only costs memory on a CPU.
_ROWS = {"cuda": 2048}
_CPU_ROWS = 160
# The part of all lanes that must be free before prompts are put into them; the last ones come when all are.
_REFILL = 1 / 8
# The part of the lanes that are still busy with which alone a search goes on; recorded steps stay as they are.
_WORTH = {False: 3 / 4, True: 0.0}
# Prompts shorter than this part of the longest have lanes of their own.
_LIKE_LONG = 0.5

# How far a token's log-probability may be from the model's own and be the same but for rounding, in nats.
_TOLERANCE = {torch.float32: 2e-3, torch.float64: 2e-3}
_HALF_TOLERANCE = 0.1

Found = tuple[int, list[Hypothesis]]


class LaneWay(NamedTuple):
    """Whether a model's prompts may be searched in lanes."""

    lanes: bool


def find_lane_way(network: Network) -> LaneWay:
    """Find out whether hypotheses in lanes have the model's own log-probabilities."""
    if not network.sees_by_mask:
        return LaneWay(lanes=False)
    try:
        gap = lane_gap(network)
    except (RuntimeError, TypeError, ValueError, AttributeError, LookupError) as error:
        if out_of_memory(error):
            raise
        log.debug("lanes failed: %s", error)
        return LaneWay(lanes=False)
    log.debug("lanes: log-probabilities moved by %.3g nats a token", gap)
    return LaneWay(gap <= _TOLERANCE.get(network.dtype, _HALF_TOLERANCE))


@torch.inference_mode()  # type: ignore[untyped-decorator]
def lane_gap(network: Network) -> float:
    """Return how far the log-probabilities of hypotheses are from the model's own at most, in nats a token."""
    draw = torch.Generator().manual_seed(0)
    low, high = network.vocabulary // 2, network.vocabulary
    runs = [tuple(torch.randint(low, high, (n,), generator=draw).tolist()) for n in (9, 3, 5, 4)]
    prompts = [TokenPrompt(runs[0], runs[1]), TokenPrompt(runs[0], runs[2]), TokenPrompt((), runs[3])]
    rules = BeamRules(3, frozenset(), 0, 4)
    gap = 0.0
    # Two lanes, so that one of them is used again.
    for place, hypotheses in search_lanes(network, prompts, rules, room=2**20, batch=2**10, rows=6):
        before, one = prompts[place].shared + prompts[place].own, hypotheses[-1]
        ids = torch.tensor([[*before, *one.tokens]], device=network.device)
        table = torch.log_softmax(network.model(input_ids=ids).logits[0].float(), -1)
        plain = table[len(before) - 1 : -1].gather(1, ids[0, len(before) :, None]).sum()
        gap = max(gap, abs(float(plain) - one.logprob) / one.length)
    return gap


def search_lanes(
    network: Network,
    prompts: Sequence[TokenPrompt],
    rules: BeamRules,
    *,
    room: int,
    batch: int,
    apart: bool = False,
    history: bool = False,
    stops: Stops | None = None,
    rows: int | None = None,
) -> Iterator[Found]:
    """Yield each prompt's place and its hypotheses, the best first, as prompts are done.

    `room`: tokens whose keys and values are kept, `batch`: tokens of one pass. `apart` and `history` as `Chooser` and
    transformers have them: each end token by itself, n-grams of the prompt barred too.
    """
    order = sorted(range(len(prompts)), key=lambda i: (-_length(prompts[i]), prompts[i].shared, i))
    rows = min(rows or _ROWS.get(network.device.type, _CPU_ROWS), network.chunk)
    while order:
        longest = _length(prompts[order[0]])
        size = longest + rules.beams * rules.max_tokens
        most = max(min(room // size, rows // rules.beams), 1)
        like = [i for i in order if _length(prompts[i]) >= longest * _LIKE_LONG]
        here = like if len(like) >= most else order[:most]
        before = longest if history and rules.block_ngrams else stops.tail if stops else 0
        chooser = Chooser(rules, network.vocabulary, network.device, apart=apart, stops=stops)
        count = min(most, len(here))
        lanes = Lanes(network, lanes=count, beams=rules.beams, max_tokens=rules.max_tokens, width=longest)
        try:
            found = _Searching(lanes, chooser, before, batch).run(prompts, here)
        except RuntimeError as error:
            if not out_of_memory(error) or count == 1:
                raise
            log.warning("out of memory: %d prompts at a time -> %d", count, count // 2)
            rows = count // 2 * rules.beams
            continue
        yield from found
        order = order[len(here) :]


def _length(prompt: TokenPrompt) -> int:
    return len(prompt.shared) + len(prompt.own)


class _Searching:
    """The search of prompts that lanes of one size hold."""

    def __init__(self, lanes: Lanes, chooser: Chooser, history: int, batch: int) -> None:
        self._lanes, self._choose, self._history, self._batch = lanes, chooser, history, batch
        self._held = self._empty(lanes.count)
        self._replay: Callable[[], None] | None = None
        self._recorded = lanes.device.type == "cuda"

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def run(self, prompts: Sequence[TokenPrompt], order: Sequence[int]) -> list[Found]:
        """Search for all prompts, in order as lanes are free."""
        most = self._choose.rules.max_tokens
        waiting = list(reversed(order))
        holds: dict[int, int] = {}
        steps: dict[int, int] = {}
        found: list[Found] = []
        while waiting or holds:
            count = self._lanes.count
            free = [lane for lane in range(count) if lane not in holds]
            if waiting and (len(free) >= count * _REFILL or not holds):
                chosen = {lane: waiting.pop() for lane in free[: len(waiting)]}
                self._fill([prompts[i] for i in chosen.values()], list(chosen))
                holds |= chosen
                steps |= dict.fromkeys(chosen, 1)
            for _ in range(min(_LOOK, most) if self._recorded else 1):
                self._advance(min(max(steps[lane] for lane in holds), most))
                steps = {lane: taken + 1 for lane, taken in steps.items()}
            is_open, odd = torch.stack([self._held.open, self._held.odd]).tolist()
            if bad := [prompt for lane, prompt in holds.items() if odd[lane]]:
                raise NoNumber(min(bad))
            done = [lane for lane in holds if not is_open[lane]]
            found += zip([holds.pop(lane) for lane in done], self._read(done), strict=True)
            if not waiting and 0 < len(holds) <= count * _WORTH[self._recorded]:
                self._keep(list(holds))
                steps = {place: steps[lane] for place, lane in enumerate(holds)}
                holds = dict(enumerate(holds.values()))
        return found

    def _empty(self, lanes: int) -> Hypotheses:
        rules = self._choose.rules
        return Hypotheses.empty(lanes, rules.beams, rules.max_tokens, self._history, self._lanes.device)

    def _fill(self, prompts: Sequence[TokenPrompt], lanes: list[int]) -> None:
        """Put prompts into lanes and choose the first token of each."""
        device = self._lanes.device
        where = torch.tensor(lanes, device=device)
        logits = self._lanes.begin(prompts, where, self._batch)
        new = self._empty(len(prompts))
        lengths = torch.tensor([_length(prompt) for prompt in prompts], device=device)
        last = [(*prompt.shared, *prompt.own)[-self._history :] for prompt in prompts]
        told = [[*[NO_TOKEN] * (self._history - len(row)), *row] for row in last] if self._history else []
        history = torch.tensor(told, device=device) if told else new.history
        new.begun(lengths, history)
        self._choose(new, logits[:, None].expand(-1, new.sums.shape[1], -1))
        self._held.put(where, new)

    def _keep(self, lanes: list[int]) -> None:
        """Go on with some lanes only."""
        where = torch.tensor(lanes, device=self._lanes.device)
        self._replay = None
        self._held = self._held.take(where)
        self._lanes.keep(where)

    def _advance(self, steps: int) -> None:
        """Lengthen hypotheses of at most so many tokens by one; from the second time on, on a GPU, as recorded."""
        if self._replay is not None:
            self._replay()
        elif not self._recorded:
            self._step(steps)
        else:
            self._step(self._choose.rules.max_tokens)
            self._replay = _recorded(lambda: self._step(self._choose.rules.max_tokens))

    def _step(self, steps: int) -> None:
        held, lanes = self._held, self._lanes
        beams = held.written.shape[1]
        at = (held.steps - 1).clamp(min=0)
        ids = held.written.gather(2, at[:, None, None].expand(-1, beams, 1))[..., 0]
        positions = (held.lengths + at)[:, None].expand(-1, beams)
        slots = lanes.width + at[:, None] * beams + torch.arange(beams, device=at.device)
        prompt = torch.arange(lanes.width, device=at.device) < held.lengths[:, None]
        seen = torch.cat([prompt[:, None].expand(-1, beams, -1), held.seen(steps)], 2)
        self._choose(held, lanes.step(ids, positions, slots, seen))

    def _read(self, lanes: list[int]) -> list[list[Hypothesis]]:
        """Return the finished hypotheses of some lanes."""
        if not lanes:
            return []
        where = torch.tensor(lanes, device=self._lanes.device)
        held, ends = self._held.take(where), self._choose.rules.ends
        parts: list[Any] = [held.ended, held.ended_lengths, held.ended_sums, held.ended_scores]
        rows = zip(*(part.tolist() for part in parts), strict=True)
        return [
            [
                _hypothesis(tokens[:length], total, score, ends)
                for tokens, length, total, score in zip(*row, strict=True)
                if score > float("-inf")
            ]
            for row in rows
        ]


def _hypothesis(tokens: list[int], total: float, score: float, ends: frozenset[int]) -> Hypothesis:
    end = tokens[-1] if tokens[-1] in ends else None
    said = tokens if end is None else tokens[:-1]
    return Hypothesis(tuple(said), end, total, len(tokens), score)


def _recorded(work: Callable[[], None]) -> Callable[[], None]:
    """Record what the device does in some work, to be replayed on the same memory; where that fails, do it again."""
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    try:
        with torch.cuda.graph(graph):
            work()
    except RuntimeError as error:
        log.debug("steps of a search are not recorded: %s", error)
        return work
    log.debug("steps of a search are recorded")
    replay: Callable[[], None] = graph.replay
    return replay
