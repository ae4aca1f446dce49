"""A pilot: a few seconds of a plan's own work, done, to see how far a profile is from this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from ensue.errors import EnsueError
from ensue.models.protocols import Model
from ensue.runs.planning.hardware import Hardware
from ensue.runs.planning.tally import Call, Ledger, Work
from ensue.scoring.engine import score

# Seconds that the pilot of each kind of work may take, by the profile, and the places it is taken from.
SECONDS, PIECES = 3.0, 3


def measured_ratios(
    ledger: Ledger, device: Hardware, models: Any, clock: Callable[[], float] = time.perf_counter
) -> dict[tuple[str, str], float]:
    """Return how many times as long as the profile says each kind of work takes here."""
    real: dict[str, Model] = {}
    found: dict[tuple[str, str], float] = {}
    for work in ledger:
        if work.model not in real:
            real[work.model] = models.real(work.model)
        found[work.model, work.what] = _ratio(work, device, real[work.model], models, clock)
    return found


def _ratio(work: Work, device: Hardware, real: Model, models: Any, clock: Callable[[], float]) -> float:
    from ensue.runs.planning.counting import counting_model

    call = work.calls[0]
    count = len(call.lists[0])
    each = device.seconds_of(work) / max(work.total.texts, 1)
    wanted = min(max(round(SECONDS / max(each, 1e-9)), PIECES), count)
    pieces = _pieces(count, wanted)
    ledger = Ledger()
    meta = models.loaded[work.model][1]
    counting = counting_model(meta, ledger, models.target_of(meta))
    _do(real, _part(call, range(min(2, count))))
    began = clock()
    _do(counting, _part(call, pieces))
    between = clock()
    _do(real, _part(call, pieces))
    ended = clock()
    predicted = sum(device.seconds_of(one) for one in ledger)
    if not predicted:
        raise EnsueError(f"There is nothing of {work.model} to measure.")
    # What the host does for both, tokenising and planning, is counted apart.
    return max((ended - between) - (between - began), 0.0) / predicted


def _pieces(count: int, wanted: int) -> Sequence[int]:
    """Choose places in runs of consecutive ones, evenly apart: what neighbours share is part of the work.

    >>> list(_pieces(12, 6))
    [0, 1, 5, 6, 10, 11]
    """
    each = -(-wanted // PIECES)
    if each * PIECES >= count:
        return range(count)
    starts = [round(i * (count - each) / (PIECES - 1)) for i in range(PIECES)]
    return sorted(set(chain.from_iterable(range(start, start + each) for start in starts)))


def _part(call: Call, places: Sequence[int]) -> Call:
    return Call(call.method, tuple([one[i] for i in places] for one in call.lists), call.options)


def _do(model: Any, call: Call) -> None:
    if call.method == "score":
        score(model, call.lists[0], **call.options)
    else:
        getattr(model, call.method)(*call.lists, **call.options)
