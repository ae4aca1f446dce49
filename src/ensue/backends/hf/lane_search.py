"""Beam search for any number of prompts on a GPU: a prompt that is done makes room for the next."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from ensue.backends.hf.beam import BeamRules, Hypothesis, NoNumber, TokenPrompt
from ensue.backends.hf.choosing import NO_TOKEN, Chooser, Hypotheses, Stops
from ensue.backends.hf.lanes import Lanes
from ensue.scoring.causal import out_of_memory
from ensue.scoring.network import Network
from ensue.scoring.rope import one_for_all

log = logging.getLogger(__name__)

# Steps after which the host looks which lanes are done.
_LOOK = 8
# Hypotheses that are lengthened at once.
_ROWS = 2048
# The part of all lanes that must be free before prompts are put into them; the last ones come when all are.
_REFILL = 1 / 8
# Prompts shorter than this part of the longest have lanes of their own.
_LIKE_LONG = 0.5

# Where prompts have lanes; a CPU does better with fewer rows at a time.
_DEVICES = ("cuda",)
# How far a token's log-probability may be from the model's own and be the same but for rounding, in nats.
_TOLERANCE = {torch.float32: 2e-3, torch.float64: 2e-3}
_HALF_TOLERANCE = 0.1

Found = tuple[int, list[Hypothesis]]


def may_have_lanes(model: Any) -> bool:
    """Whether a model is where prompts have lanes."""
    return str(model.device.type) in _DEVICES


def takes_lanes(network: Network, longest: int) -> bool:
    """Whether a model's prompts, with what is written the longest of so many tokens, may be searched in lanes."""
    model = network.model
    if not may_have_lanes(model) or not network.sees_by_mask or longest > one_for_all(model):
        return False
    known: bool | None = getattr(model, "_ensue_lanes", None)
    if known is None:
        try:
            gap = lane_gap(network)
        except (RuntimeError, TypeError, ValueError, AttributeError, LookupError) as error:
            if out_of_memory(error):
                raise
            log.debug("lanes failed: %s", error)
            gap = float("inf")
        log.debug("lanes: log-probabilities moved by %.3g nats a token", gap)
        known = model._ensue_lanes = gap <= _TOLERANCE.get(network.dtype, _HALF_TOLERANCE)
    return known


@torch.inference_mode()  # type: ignore[untyped-decorator]
def lane_gap(network: Network) -> float:
    """Return how far the log-probabilities of hypotheses are from the model's own at most, in nats a token."""
    draw = torch.Generator().manual_seed(0)
    low, high = network.vocabulary // 2, network.vocabulary
    runs = [tuple(torch.randint(low, high, (n,), generator=draw).tolist()) for n in (9, 3, 5, 4)]
    prompts = [TokenPrompt(runs[0], runs[1]), TokenPrompt(runs[0], runs[2]), TokenPrompt((), runs[3])]
    rules = BeamRules(3, frozenset(), 0, 5)
    # Two lanes, so that one of them is used again.
    found = search_lanes(network, prompts, rules, room=2**20, batch=2**10, rows=6)
    gap = 0.0
    for place, hypotheses in found:
        before = prompts[place].shared + prompts[place].own
        for one in hypotheses:
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
    rows: int = _ROWS,
) -> Iterator[Found]:
    """Yield each prompt's place and its hypotheses, the best first, as prompts are done.

    `room`: tokens whose keys and values are kept, `batch`: tokens of one pass. `apart` and `history` as `Chooser` and
    transformers have them: each end token by itself, n-grams of the prompt barred too.
    """
    order = sorted(range(len(prompts)), key=lambda i: (-_length(prompts[i]), prompts[i].shared, i))
    rows = min(rows, network.chunk)
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
            found = _Searching(lanes, chooser, before, batch).run(prompts, here, count)
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
        self._replay: Callable[[], None] | None = None

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def run(self, prompts: Sequence[TokenPrompt], order: Sequence[int], count: int) -> list[Found]:
        """Search for all prompts in order, `count` at a time."""
        rules, device = self._choose.rules, self._lanes.device
        self._held = Hypotheses.empty(count, rules.beams, rules.max_tokens, self._history, device)
        waiting = list(reversed(order))
        holds: dict[int, int] = {}
        found: list[Found] = []
        while waiting or holds:
            free = [lane for lane in range(count) if lane not in holds]
            if waiting and (len(free) >= count * _REFILL or not holds):
                chosen = {lane: waiting.pop() for lane in free[: len(waiting)]}
                self._fill([prompts[i] for i in chosen.values()], list(chosen))
                holds |= chosen
            for _ in range(min(_LOOK, rules.max_tokens)):
                self._advance()
            is_open, odd = torch.stack([self._held.open, self._held.odd]).tolist()
            if bad := [prompt for lane, prompt in holds.items() if odd[lane]]:
                raise NoNumber(min(bad))
            done = [lane for lane in holds if not is_open[lane]]
            found += zip([holds.pop(lane) for lane in done], self._read(done), strict=True)
        return found

    def _fill(self, prompts: Sequence[TokenPrompt], lanes: list[int]) -> None:
        """Put prompts into lanes and choose the first token of each."""
        rules, device = self._choose.rules, self._lanes.device
        where = torch.tensor(lanes, device=device)
        logits = self._lanes.begin(prompts, where, self._batch)
        new = Hypotheses.empty(len(prompts), rules.beams, rules.max_tokens, self._history, device)
        lengths = torch.tensor([_length(prompt) for prompt in prompts], device=device)
        last = [(*prompt.shared, *prompt.own)[-self._history :] for prompt in prompts]
        told = [[*[NO_TOKEN] * (self._history - len(row)), *row] for row in last] if self._history else []
        history = torch.tensor(told, device=device) if told else new.history
        new.begun(lengths, history)
        self._choose(new, logits[:, None].expand(-1, rules.beams, -1))
        self._held.put(where, new)

    def _advance(self) -> None:
        """Lengthen all hypotheses by a token; from the second time on, on a GPU, as it was recorded."""
        if self._replay is not None:
            self._replay()
            return
        self._step()
        if self._lanes.device.type == "cuda":
            self._replay = _recorded(self._step) or self._step

    def _step(self) -> None:
        held, lanes = self._held, self._lanes
        beams = held.written.shape[1]
        at = (held.steps - 1).clamp(min=0)
        ids = held.written.gather(2, at[:, None, None].expand(-1, beams, 1))[..., 0]
        positions = (held.lengths + at)[:, None].expand(-1, beams)
        slots = lanes.width + at[:, None] * beams + torch.arange(beams, device=at.device)
        prompt = torch.arange(lanes.width, device=at.device) < held.lengths[:, None]
        seen = torch.cat([prompt[:, None].expand(-1, beams, -1), held.seen], 2)
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


def _recorded(work: Callable[[], None]) -> Callable[[], None] | None:
    """Record what the device does in some work, to be replayed on the same memory; None where that cannot be."""
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    try:
        with torch.cuda.graph(graph):
            work()
    except RuntimeError as error:
        log.debug("steps of a search are not recorded: %s", error)
        return None
    replay: Callable[[], None] = graph.replay
    return replay
