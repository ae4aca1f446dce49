"""The worker's side: connect to a server, take texts one at a time, hand results back, all over HTTP.

A thread of its own tells the server every few seconds that the worker lives and how far it is, however long one
forward pass takes. A server that went away is waited for. No text is printed or kept.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from ensue.errors import EnsueError, RunFailed
from ensue.platform.home import Home
from ensue.platform.logs import where
from ensue.platform.trying.desk import Offer, Progress
from ensue.platform.trying.models import Task

_BEAT = 2.0  # seconds between two words to the server
_WAIT = 20.0  # seconds that the server may take to find something to do
_TIMEOUT = httpx.Timeout(_WAIT + 20, connect=10)
_PAUSES = (1.0, 2.0, 5.0, 10.0, 20.0)
_HANDING = 5  # how often a result is handed over before it is given up
_LONGEST_REASON = 500


class Place(NamedTuple):
    """Where a server is and with which words a worker may ask it."""

    url: str
    authorization: str


class Away(RunFailed):
    """The server does not answer now."""


class _Gone(Exception):
    """The request, or the worker itself, is known to the server no more."""


def place_of_home(home: Path) -> Place:
    """Return where the server that has a home open is."""
    found = Home(home).server()
    if found is None:
        raise Away(f"No server has {home} open; start one with `ensue serve --home {home}`.")
    return Place(str(found["url"]), f"Home {found['key']}")


class Worker:
    """A worker of some models; `find` is asked for the server each time that it is looked for."""

    def __init__(
        self,
        find: Callable[[], Place],
        tasks: Mapping[Offer, Task],
        connected: Callable[[str, str], None] = lambda url, id: None,
        say: Callable[[str], None] = lambda words: None,
    ) -> None:
        self.find, self.tasks, self.connected, self.say = find, dict(tasks), connected, say
        self.done = 0

    def run(self) -> None:
        """Work until interrupted. A server that is not there at first is an error; later it is waited for."""
        first = True
        while True:
            with httpx.Client(timeout=_TIMEOUT) as client:
                server = _Server(client, self.find() if first else self._found_again())
                worker = self._connect(server, first=first)
                first = False
                try:
                    self._serve(server, worker)
                except (Away, _Gone):
                    self.say(f"{server.place.url} went away; waiting for it.")
                finally:
                    with suppress(EnsueError, _Gone):
                        server.send("DELETE", f"/workers/{worker}")

    def _found_again(self) -> Place:
        for pause in _pauses():
            with suppress(Away):
                return self.find()
            time.sleep(pause)
        raise AssertionError("the pauses never end")

    def _connect(self, server: _Server, *, first: bool) -> str:
        offers = [offer._asdict() for offer in self.tasks]
        for pause in _pauses():
            try:
                answer = server.send("POST", "/workers", {"offers": offers})
                assert answer is not None
                self.connected(server.place.url, str(answer["id"]))
                return str(answer["id"])
            except Away:
                if first:
                    raise
            time.sleep(pause)
            # It may have come back under another address.
            with suppress(Away):
                server.place = self.find()
        raise AssertionError("the pauses never end")

    def _serve(self, server: _Server, worker: str) -> None:
        while True:
            leased = server.send("POST", f"/workers/{worker}/next?wait={_WAIT:g}")
            if leased is not None:
                self._do(server, f"/workers/{worker}/leases/{leased['lease']}", leased)

    def _do(self, server: _Server, path: str, leased: Mapping[str, Any]) -> None:
        task = self.tasks[Offer(leased["kind"], leased["model"])]
        with _beating(server, path) as progress:
            try:
                answer: dict[str, Any] = {"result": task(leased["texts"], progress)}
            except _Gone:
                return
            except EnsueError as error:
                answer = {"reason": str(error)[:_LONGEST_REASON]}
            except Exception as error:
                # Its words may quote the text.
                facts = where(error)
                self.say(f"A request failed: {facts['kind']} at {', '.join(facts['where'][-2:])}.")
                answer = {"reason": f"The worker failed at this text ({facts['kind']}); try another."}
            self._hand_over(server, path, answer)

    def _hand_over(self, server: _Server, path: str, answer: Mapping[str, Any]) -> None:
        for pause in (*_PAUSES[: _HANDING - 1], None):
            try:
                server.send("POST", f"{path}/result", answer)
                self.done += 1
                return
            except _Gone:
                return  # the visitor deleted it, or it was given up
            except Away:
                if pause is None:
                    raise
            except EnsueError as error:
                self.say(f"A result was not taken: {error}")
                with suppress(EnsueError, _Gone):
                    server.send("POST", f"{path}/result", {"reason": str(error)[:_LONGEST_REASON]})
                return
            time.sleep(pause)


class _Server:
    """The server as a worker asks it."""

    def __init__(self, client: httpx.Client, place: Place) -> None:
        self.client, self.place = client, place

    def send(self, method: str, path: str, body: Any = None) -> dict[str, Any] | None:
        """Ask for something; None where the answer is empty."""
        try:
            answer = self.client.request(
                method,
                f"{self.place.url}/api/v1{path}",
                json={} if body is None else body,
                headers={"Authorization": self.place.authorization},
            )
            found = answer.json() if answer.content else None
        except (httpx.TransportError, ValueError) as error:
            raise Away(f"{self.place.url} does not answer ({type(error).__name__}).") from None
        if answer.status_code == 404:
            raise _Gone
        if answer.status_code >= 500:
            raise Away(f"{self.place.url} answers {answer.status_code}.")
        if answer.status_code >= 400:
            said = found.get("error") if isinstance(found, dict) else None
            raise EnsueError(f"{self.place.url} refuses: {said or answer.status_code}")
        return found if isinstance(found, dict) else None


@contextmanager
def _beating(server: _Server, path: str) -> Iterator[Callable[[int, int, str], None]]:
    """Tell the server of progress from a thread; whoever reports progress is stopped once the lease is lost."""
    ended, lost = threading.Event(), threading.Event()
    latest = Progress()

    def progress(done: int, total: int, unit: str) -> None:
        nonlocal latest
        if lost.is_set():
            raise _Gone
        latest = Progress(int(done), int(total), str(unit))

    def beat() -> None:
        with httpx.Client(timeout=_BEAT * 2) as client:
            own = _Server(client, server.place)
            while not ended.wait(_BEAT):
                try:
                    own.send("PUT", path, latest._asdict())
                except _Gone:
                    lost.set()
                    return
                except EnsueError:
                    pass  # the result finds out

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield progress
    finally:
        ended.set()
        thread.join()


def _pauses() -> Iterator[float]:
    yield from _PAUSES
    while True:
        yield _PAUSES[-1]
