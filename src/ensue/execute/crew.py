"""Ray's actors as a crew: hired, given one thing at a time each, and replaced when they are lost."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import as_completed
from typing import Any, NamedTuple

from ensue.errors import RunFailed
from ensue.execute.worker import Place, Worker
from ensue.lazy import from_extra
from ensue.parallel import side_by_side, threads
from ensue.version import __version__

log = logging.getLogger(__name__)

# How many workers may be lost with one piece of work in their hands before it is given up.
_TRIES = 3
# Seconds after which one that waits for a worker looks whether it is still to, and that all such may take to end.
_LOOK, _PARTING = 0.5, 30.0
# What of the driver's environment workers are given: where models and data lie, and whether hubs may be asked.
_ENVIRONMENT = ("ENSUE_HOME", "ENSUE_DATA", "HF_HOME", "HF_HUB_OFFLINE", "TOKENIZERS_PARALLELISM")


def need_ray() -> Any:
    """Import Ray, or say how to get it."""
    # It would tell its makers that it is used, and stop the program to say so.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Workers without a GPU are to see none; Ray warns that this will be its default.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    return from_extra("ray", "Work on many machines", "Ray", "ray")


class Hand(NamedTuple):
    """A worker at work, and where it is."""

    actor: Any
    place: Place


class Crew:
    """So many workers, each with its processors and GPUs. `patience` is how long one that is hired may take to come,
    in seconds: a machine may first have to be started."""

    def __init__(self, workers: int, *, cpus: float, gpus: float, patience: float) -> None:
        self._ray = need_ray()
        self.size, self.patience = workers, patience
        self._environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        self._environment["OMP_NUM_THREADS"] = str(max(int(cpus), 1))
        self._actors = self._ray.remote(Worker).options(
            num_cpus=cpus,
            num_gpus=gpus,
            # One machine's memory is soon full of models.
            scheduling_strategy="SPREAD",
            max_restarts=0,
            max_task_retries=0,
        )
        self._changed = threading.Condition()
        self._idle: list[Hand] = []
        self._busy: list[Hand] = []
        self._coming = 0
        self._closed = False
        self.places: list[Place] = []
        self.lost: list[str] = []
        for _ in range(workers):
            self._hire()

    def do(self, method: str, *arguments: Any) -> Any:
        """Have one worker do something, another where that one is lost."""
        for _ in range(_TRIES):
            hand = self._take()
            try:
                found = self._ray.get(getattr(hand.actor, method).remote(*arguments))
            except self._ray.exceptions.RayTaskError as error:
                self._give_back(hand)
                raise _cause(error) from error
            except self._ray.exceptions.RayError as error:
                self._replace(hand, error)
            except BaseException:
                self._give_back(hand)
                raise
            else:
                self._give_back(hand)
                return found
        raise RunFailed(
            f"A piece of the work was given up: {_TRIES} workers were lost over it, the last because "
            f"{self.lost[-1]}; what is finished is kept: mend that, then run again with --resume."
        )

    def each(self, method: str, calls: Sequence[Sequence[Any]]) -> Iterator[tuple[int, Any]]:
        """Have all workers do something with each of several arguments; yield what comes, with its number."""
        with threads(self.size) as pool:
            under_way = {pool.submit(self.do, method, *call): number for number, call in enumerate(calls)}
            for future in as_completed(under_way):
                yield under_way.pop(future), future.result()

    def in_turn(self, method: str, calls: Iterator[Sequence[Any]]) -> Generator[Any]:
        """Do the same in order, with no more than some calls under way."""
        return side_by_side(lambda call: self.do(method, *call), calls, self.size)

    def ask_idle(self, method: str) -> list[tuple[Place, Any]]:
        """Ask each worker that has nothing to do."""
        with self._changed:
            hands = list(self._idle)
        return [(hand.place, self._ray.get(getattr(hand.actor, method).remote())) for hand in hands]

    def close(self) -> None:
        """Send all workers away, and wait for the threads that wait for them.

        Ray must not be left before they are done: what it is asked for after that, it asks of a new cluster, or of
        the one that is just ending, and then ends this process.
        """
        with self._changed:
            self._closed = True
            for hand in [*self._idle, *self._busy]:
                self._dismiss(hand.actor)
            self._idle.clear()
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._busy and not self._coming, timeout=_PARTING)

    def _hire(self) -> None:
        self._coming += 1
        threading.Thread(target=self._welcome, daemon=True).start()

    def _welcome(self) -> None:
        """Wait for a worker to come; one that does not come is not waited for any longer."""
        actor = place = None
        try:
            actor = self._actors.remote(self._environment)
            place = self._await(actor.place.remote())
            if place is None:
                why = f"no machine had room for a worker within {self.patience:g} seconds"
            else:
                why = "" if place.version == __version__ else _other_version(place)
        except (Exception, SystemExit) as error:  # of Ray, which ends threads too when a driver leaves it
            why = reason(error)
        with self._changed:
            self._coming -= 1
            if place is None or why or self._closed:
                self.lost.append(why)
                self._dismiss(actor)
            else:
                self.places.append(place)
                self._idle.append(Hand(actor, place))
            self._changed.notify_all()

    def _await(self, coming: Any) -> Place | None:
        """Return where a worker is once it has come; None where it does not, or the crew is sent away meanwhile."""
        until = time.monotonic() + self.patience
        while not self._closed and (left := until - time.monotonic()) > 0:
            if self._ray.wait([coming], timeout=min(left, _LOOK))[0]:
                return Place(*self._ray.get(coming))
        return None

    def _take(self) -> Hand:
        """Return a worker with nothing to do, the one that was idle last."""
        with self._changed:
            while not self._idle:
                if self._closed:
                    raise RunFailed("The workers were sent away.")
                if not self._busy and not self._coming:
                    raise RunFailed(
                        f"There is no worker left ({self.lost[-1]}); what is finished is kept: run again with "
                        f"--resume when there are machines."
                    )
                self._changed.wait()
            hand = self._idle.pop()
            self._busy.append(hand)
            return hand

    def _give_back(self, hand: Hand) -> None:
        with self._changed:
            self._busy.remove(hand)
            if not self._closed:
                self._idle.append(hand)
            self._changed.notify_all()

    def _replace(self, hand: Hand, error: Exception) -> None:
        """Send away a worker that is lost, and hire another."""
        self._dismiss(hand.actor)
        with self._changed:
            self._busy.remove(hand)
            self.lost.append(reason(error))
            if not self._closed:
                log.warning("a worker on %s was lost: %s", hand.place.host, self.lost[-1])
                self._hire()
            self._changed.notify_all()

    def _dismiss(self, actor: Any) -> None:
        if actor is not None:
            with contextlib.suppress(Exception):
                self._ray.kill(actor)


def _other_version(place: Place) -> str:
    return f"{place.host} has ensue {place.version} and not {__version__}"


def _cause(error: Any) -> BaseException:
    """Return what a worker raised, as it would have been raised here."""
    cause: BaseException = error.cause if isinstance(error.cause, BaseException) else error
    if isinstance(cause, MemoryError):
        return RunFailed(
            "A worker ran out of memory; what is finished is kept: use fewer workers a machine or a smaller model, "
            "then run again with --resume."
        )
    return cause


def reason(error: BaseException) -> str:
    """Say in a few words why a worker is gone."""
    words = str(error)
    low = words.lower()
    if "outofmemory" in type(error).__name__.lower() or "out of memory" in low or "memory pressure" in low:
        return "its machine ran out of memory (use fewer workers a machine or a smaller model)"
    if (
        "its node has died" in low
        or "node was terminated" in low
        or "nodedied" in type(error).__name__.lower()
    ):
        return "its machine is gone"
    if "unavailable" in type(error).__name__.lower():
        return "it cannot be reached"
    if "No module named" in words or "ModuleNotFoundError" in words:
        return f"ensue is not installed there ({words.strip().splitlines()[-1][:120]})"
    return f"its process ended ({' '.join(words.split())[:160]})"
