"""Everything that can be set when an answerer is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

from ensue.backends.qa.answerer import Reading
from ensue.backends.qa.network import AdapterShape
from ensue.errors import EnsueError
from ensue.train.loop import LoopSettings, Precision, Schedule

# Adapters begin at nothing and bear large steps; whole encoders would forget what they know.
_RATE, _FULL_RATE = 1e-3, 5e-5
# With whole encoders the new head learns so many times as fast.
_FASTER = 20.0


@dataclass(frozen=True)
class QaSettings:
    """One training of an answerer.

    `adapter` is None where the whole encoder learns. `loop.steps` and `loop.evaluate_every` are 0 where epochs
    decide, `warmup_share` is the part of all steps over which the rate rises. With `any_place` an answer counts
    wherever its words stand in the text.
    """

    model: str
    loop: LoopSettings
    reading: Reading
    adapter: AdapterShape | None
    epochs: int = 4
    batch: int = 32
    dropout: float = 0.05
    warmup_share: float = 0.06
    head_faster: float = 1.0
    dev_share: float = 0.1
    test_share: float = 0.1
    any_place: bool = False


def make_settings(
    *,
    model: str,
    loop: dict[str, Any],
    reading: dict[str, Any],
    full: bool,
    rank: int,
    alpha: float | None,
    targets: str,
    learning_rate: float | None,
    evaluate_every: int | None,
    **others: Any,
) -> QaSettings:
    """Settings from what was asked; what will not do is one sentence."""
    _one_of("schedule", loop["schedule"], get_args(Schedule))
    _one_of("precision", loop["precision"], get_args(Precision))
    names = tuple(filter(None, (name.strip() for name in targets.split(",")))) if targets != "all" else ()
    if targets != "all" and not names:
        raise EnsueError("--targets is empty; name layers such as query,value, or all.")
    rate = learning_rate if learning_rate is not None else _FULL_RATE if full else _RATE
    return QaSettings(
        model=model,
        loop=LoopSettings(steps=0, warmup=0, learning_rate=rate, evaluate_every=evaluate_every or 0, **loop),
        reading=Reading(**reading),
        adapter=None if full else AdapterShape(rank, alpha if alpha is not None else 2.0 * rank, names),
        head_faster=_FASTER if full else 1.0,
        **others,
    )


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise EnsueError(f"--{name} {value} will not do: it is one of {', '.join(known)}.")
