"""The executor on many machines: joins a Ray cluster, or starts one here, and has its workers do the work."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from typing import Any, Self, TypeVar

from ensue.errors import EnsueError, RunFailed
from ensue.execute.crew import Crew, need_ray
from ensue.execute.remote import remote_model
from ensue.execute.worker import ModelKey
from ensue.executing import name_of
from ensue.models.protocols import Model
from ensue.parallel import cores

Given = TypeVar("Given")
Made = TypeVar("Made")

# Seconds that a worker may take to come.
_PATIENCE = 120.0
# Seconds that a cluster's head may take to accept a connection.
_ANSWER = 10.0


class RayExecutor:
    """Workers of a Ray cluster, each with `cpus` processors and `gpus` GPUs.

    Without an `address` it is that of RAY_ADDRESS, or a cluster of this machine alone that ends with the executor.
    Without `workers` there are as many as the cluster has room for. A worker has one GPU where the cluster has any.
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        address: str | None = None,
        cpus: float = 1,
        gpus: float | None = None,
        patience: float = _PATIENCE,
    ) -> None:
        for name, number in {"workers": workers, "cpus": cpus, "patience": patience}.items():
            if number is not None and number <= 0:
                raise EnsueError(f"{name} is {number}, but must be more than 0.")
        self._ray = need_ray()
        self._started = _connect(self._ray, address or os.environ.get("RAY_ADDRESS"), workers, cpus)
        try:
            nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
            has_gpus = any(node.get("GPU", 0) for node in nodes)
            self.cpus, self.gpus = cpus, float(has_gpus if gpus is None else gpus)
            room = sum(_room(node, self.cpus, self.gpus) for node in nodes)
            if not room:
                raise EnsueError(_no_room(nodes, self.cpus, self.gpus))
            self._crew = Crew(workers or room, cpus=self.cpus, gpus=self.gpus, patience=patience)
        except BaseException:
            self._leave()
            raise

    def load(self, load: Callable[[], Model]) -> Model:
        """Return a model that each worker loads when it first has work for it, and keeps."""
        return remote_model(self._crew, ModelKey(name_of(load), load))

    def map(self, function: Callable[[Given], Made], items: Iterable[Given]) -> Generator[Made]:
        """`function` of every item in turn, done by the workers."""
        return self._crew.in_turn("apply", ((function, item) for item in items))

    def loads(self) -> dict[int, list[str]]:
        """Return the models that each worker has loaded, by its process: each once, or something is wrong."""
        return {place.process: names for place, names in self._crew.ask_idle("loaded")}

    def spent(self) -> dict[int, float]:
        """Return the processor's seconds that each worker has had, by its process."""
        return {place.process: seconds for place, seconds in self._crew.ask_idle("spent")}

    def about(self) -> dict[str, Any]:
        """Return how many workers came on which machines, with what, and how many were lost."""
        return {
            "executor": f"ray {self._ray.__version__}",
            "workers": dict(sorted(Counter(place.host for place in self._crew.places).items())),
            "cpus": self.cpus,
            "gpus": self.gpus,
            "lost": list(self._crew.lost),
        }

    def close(self) -> None:
        """Send the workers away, and end the cluster where it was started here."""
        self._crew.close()
        self._leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _leave(self) -> None:
        if self._started:
            self._ray.shutdown()


def _connect(ray: Any, address: str | None, workers: int | None, cpus: float) -> bool:
    """Join a cluster, or start one; say whether this process was in none before."""
    if ray.is_initialized():
        return False
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address and address != "local":
        try:
            _knock(address)
            ray.init(address=address, **quiet)
        except (OSError, OverflowError, RuntimeError, ValueError) as error:
            raise EnsueError(
                f"There is no Ray cluster at {address} ({_left_behind(ray, error)}); start one with "
                f"`ray start --head` there, or leave the address out to work on this machine alone."
            ) from None
        return True
    most = max(cores(), int((workers or 0) * cpus))
    try:
        ray.init(address="local", num_cpus=most, include_dashboard=False, **quiet)
    except Exception as error:  # of many kinds, bare ones among them
        raise RunFailed(
            f"Ray could not be started on this machine ({_left_behind(ray, error)}); see that it has memory and "
            f"processor time to spare and may write to {os.environ.get('RAY_TMPDIR', '/tmp')}, then run again."
        ) from None
    return True


def _left_behind(ray: Any, error: Exception) -> str:
    """Clear away what began to start, and return in a few words why it did not."""
    with contextlib.suppress(Exception):
        ray.shutdown()
    return next(iter(str(error).strip().splitlines()), type(error).__name__)[:160].rstrip(" .")


def _knock(address: str) -> None:
    """See that somebody listens at HOST:PORT, as Ray would for minutes; what is no such address is Ray's to judge."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER).close()


def _room(node: dict[str, float], cpus: float, gpus: float) -> int:
    """Say how many workers a machine has room for."""
    own = [int(node.get(name, 0) // each) for name, each in (("CPU", cpus), ("GPU", gpus)) if each]
    return min(own)


def _no_room(nodes: list[dict[str, float]], cpus: float, gpus: float) -> str:
    most = {name: max((node.get(name, 0) for node in nodes), default=0) for name in ("CPU", "GPU")}
    return (
        f"A worker is to have {cpus:g} CPUs and {gpus:g} GPUs, but no machine of the cluster has more than "
        f"{most['CPU']:g} and {most['GPU']:g}; ask for less with --worker-cpus and --worker-gpus."
    )
