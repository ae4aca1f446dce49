"""Several runs of one benchmark, for every combination of models, seeds and settings, by one executor."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from ensue.errors import EnsueError
from ensue.executing import Chosen, Executor, LocalExecutor, executing, name_of
from ensue.models.protocols import Model
from ensue.parallel import side_by_side
from ensue.progress import Progress
from ensue.runs.run import Run, run

# Runs that workers have at once: while one is judged and written by the driver, they go on with the other.
_AT_ONCE = 2


def sweep(
    benchmark: str,
    *,
    model: str | Sequence[str] | None = None,
    seed: int | Sequence[int] = 0,
    over: Mapping[str, Sequence[Any]] | None = None,
    output: str | Path | None = None,
    executor: str | Chosen | Executor | None = None,
    at_once: int = _AT_ONCE,
    progress: Progress | None = None,
    **asked: Any,
) -> list[Run]:
    """Run a benchmark with every combination of models, seeds and settings, and return the finished runs in order.

    `over` names settings, each with the values it is to have; all else is given to `ensue.run`. Each run has a folder
    and records of its own, so that a sweep that was stopped goes on with `resume=True`, and what is finished is read.
    With `output` the folders lie in it, named for what differs. Workers have `at_once` runs at a time and load each
    model once; in this process runs are made one after the other, each model loaded once too.
    """
    if at_once < 1:
        raise EnsueError(f"at_once is {at_once}, but must be 1 or more.")
    varied = {
        "model": [model] if model is None or isinstance(model, str) else list(model),
        "seed": [seed] if isinstance(seed, int) else list(seed),
        **{name: list(values) for name, values in (over or {}).items()},
    }
    for name, values in varied.items():
        _check(name, values, asked)
    # The model first, so that all runs of one come before those of another.
    chosen = [dict(zip(varied, values, strict=True)) for values in product(*varied.values())]
    several = [name for name, values in varied.items() if len(values) > 1]

    def start(one: dict[str, Any], hands: Executor) -> Run:
        place = None if output is None else Path(output) / _name(one, several)
        return run(benchmark, **one, output=place, executor=hands, **asked)

    done: list[Run] = []
    with executing(executor) as hands:
        for finished in _each(start, chosen, hands, at_once):
            done.append(finished)
            if progress is not None:
                progress(len(done), len(chosen), "runs")
    return done


def _each(
    start: Callable[[dict[str, Any], Executor], Run],
    chosen: Sequence[dict[str, Any]],
    hands: Executor,
    at_once: int,
) -> Iterator[Run]:
    if isinstance(hands, LocalExecutor):
        keeping = _Keeping(hands.workers)
        return (start(one, keeping.for_model(one["model"])) for one in chosen)
    return side_by_side(lambda one: start(one, hands), chosen, at_once)


class _Keeping(LocalExecutor):
    """Works in this process, and keeps what it has loaded for the runs of one model."""

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self._of: str | None = None
        self._loaded: dict[str, Model] = {}

    def for_model(self, model: str | None) -> _Keeping:
        if model != self._of:
            self._of = model
            self._loaded.clear()
        return self

    def load(self, load: Callable[[], Model]) -> Model:
        name = name_of(load)
        if name not in self._loaded:
            self._loaded[name] = load()
        return self._loaded[name]


def _check(name: str, values: Sequence[Any], asked: Mapping[str, Any]) -> None:
    if name in asked:
        raise EnsueError(
            f"{name} is given both for all runs and with values of its own; leave one of them out."
        )
    if not values:
        raise EnsueError(f"{name} has no value; give one at least.")
    if len(set(map(str, values))) < len(values):
        raise EnsueError(f"{name} has a value twice; give each once.")


def _name(one: Mapping[str, Any], several: Sequence[str]) -> str:
    """Return the folder's name of one run: what differs between them."""
    return "-".join(f"{name}-{_in_a_name(str(one[name]))}" for name in several) or "run"


def _in_a_name(value: str) -> str:
    """Write a value as part of a file's name; one that cannot stand there as it is has a digest beside it.

    >>> _in_a_name("7"), _in_a_name("1,5"), _in_a_name("models/llama")
    ('7', '1-5-e10f70', 'llama-8832d3')
    """
    last = value.rpartition("/")[2]
    plain = "".join(letter if letter.isalnum() or letter in "._" else "-" for letter in last)
    return plain if plain == value else f"{plain}-{hashlib.sha256(value.encode()).hexdigest()[:6]}"
