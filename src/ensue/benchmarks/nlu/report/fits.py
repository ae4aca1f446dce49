"""How the trainings of a GLUE or SuperGLUE run went: one by one, and the spread of several on dev."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ensue.benchmarks.nlu.report.scores import Spread, spread_of


class Training(NamedTuple):
    """One line of `fits.jsonl`; `task` may be the name of several tasks trained together."""

    task: str
    way: str
    seed: int | None
    length: str
    best_at: str
    rate: float | None
    dev: float | None
    dev_by_task: Mapping[str, float]
    seconds: float | None
    chosen: bool


def trainings(fits: Iterable[Mapping[str, Any]]) -> list[Training]:
    """The lines of a run's `fits.jsonl`, whichever way of training wrote them."""
    return [_training(fit) for fit in fits]


def dev_spreads(found: Iterable[Training]) -> dict[tuple[str, str], Spread]:
    """Dev scores over the seeds, by task and way of answering, wherever there are several.

    Tasks that were trained together are told both together and each by itself.
    """
    scores: dict[tuple[str, str], dict[str, float]] = {}
    for place, one in enumerate(found):
        of_tasks = {one.task: one.dev, **one.dev_by_task}
        for task, value in of_tasks.items():
            if value is not None:
                scores.setdefault((task, one.way), {})[f"seed {one.seed}#{place}"] = value
    return {
        key: spread_of(list(values.values()), [seed.partition("#")[0] for seed in values])
        for key, values in scores.items()
        if len(values) > 1
    }


def _training(fit: Mapping[str, Any]) -> Training:
    epochs, updates = fit.get("epochs"), fit.get("updates")
    by_task = fit.get("dev_by_task")
    return Training(
        task=str(fit["task"]),
        way=f"layer {fit['layer']}" if "layer" in fit else "",
        seed=fit["seed"] if isinstance(fit.get("seed"), int) else None,
        length=_counted(epochs, "epoch") or _counted(updates, "update"),
        best_at=_counted(fit.get("best_epoch"), "epoch") or _counted(fit.get("best_update"), "update"),
        rate=_number(fit.get("learning_rate", fit.get("last_learning_rate"))),
        dev=_number(fit.get("dev_score")),
        dev_by_task={task: float(value) for task, value in by_task.items()} if by_task else {},
        seconds=_number(fit.get("seconds")),
        chosen=bool(fit.get("chosen")),
    )


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _counted(value: Any, noun: str) -> str:
    count = _number(value)
    if count is None:
        return ""
    shown = f"{count:,.0f}" if count.is_integer() else f"{count:,.2f}".rstrip("0")
    return f"{shown} {noun}{'' if count == 1 else 's'}"
