"""Where work is done: in this process, or by workers on many machines, which a layer above provides."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import ensue
from ensue.errors import EnsueError
from ensue.models.protocols import Model
from ensue.parallel import ordered_map

Given = TypeVar("Given")
Made = TypeVar("Made")

LOCAL = "local"
# By name the public class that opens one: a layer above implements it.
_KNOWN = {"ray": "RayExecutor"}


class Executor(Protocol):
    """What loads models and does work; it is closed when the work is done."""

    def load(self, load: Callable[[], Model]) -> Model:
        """Return the model that `load` loads, which must be possible to pickle."""

    def map(self, function: Callable[[Given], Made], items: Iterable[Given]) -> Generator[Made]:
        """`function` of every item in turn, with bounded look-ahead."""

    def about(self) -> dict[str, Any]:
        """Return what a run's record says of it."""

    def close(self) -> None: ...


class LocalExecutor:
    """Does everything here, in `workers` processes where a function goes over many items."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or 1

    def load(self, load: Callable[[], Model]) -> Model:
        return load()

    def map(self, function: Callable[[Given], Made], items: Iterable[Given]) -> Generator[Made]:
        return ordered_map(function, items, self.workers)

    def about(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        """There is nothing to give back."""


class Chosen(NamedTuple):
    """An executor that is opened when there is work for it: its name, and what it is given."""

    name: str
    options: Mapping[str, Any]

    @property
    def is_local(self) -> bool:
        return self.name == LOCAL

    def open(self) -> Executor:
        """Open it: here, or as the public class of its name does."""
        if self.is_local:
            return LocalExecutor(**self.options)
        kind, _, address = self.name.partition(":")
        # `ray://HOST` is an address of Ray's own, for drivers outside the cluster.
        where = {"address": self.name if address.startswith("//") else address} if address else {}
        opened: Executor = getattr(ensue, _KNOWN[kind])(**self.options, **where)
        return opened


def choose(name: str, **options: Any) -> Chosen:
    """Choose an executor by its name: `local`, `ray` (this machine's own), `ray:ADDRESS` or `ray://ADDRESS`.

    `options` that are None are left to the executor: `workers`, and what each of them has (`cpus`, `gpus`).
    """
    given = {option: value for option, value in options.items() if value is not None}
    if name == LOCAL:
        if given:
            raise EnsueError(
                f"Workers are for many machines; add --executor ray or leave out --{_option(given)}."
            )
    elif name.partition(":")[0] not in _KNOWN:
        names = " or ".join([LOCAL, *_KNOWN])
        raise EnsueError(f"There is no executor {name!r}; choose {names}, or ray:ADDRESS for a cluster.")
    return Chosen(name, given)


def _option(given: Mapping[str, Any]) -> str:
    return "workers" if "workers" in given else f"worker-{next(iter(given))}"


@contextmanager
def executing(executor: str | Chosen | Executor | None) -> Iterator[Executor]:
    """Have an executor for as long as something is done; one that was given open is left open."""
    if isinstance(executor, str) or executor is None:
        executor = choose(executor or LOCAL)
    if not isinstance(executor, Chosen):
        yield executor
        return
    opened = executor.open()
    try:
        yield opened
    finally:
        opened.close()


def name_of(load: Callable[[], Model]) -> str:
    """Return the name under which what a function loads is kept: the same for the same arguments.

    Not from its pickle, in which equal arguments may look different.
    """
    whole = load if isinstance(load, partial) else partial(load)
    said = (
        f"{whole.func.__module__}:{whole.func.__qualname__} {whole.args!r} {sorted(whole.keywords.items())!r}"
    )
    return hashlib.sha256(said.encode()).hexdigest()[:16]
