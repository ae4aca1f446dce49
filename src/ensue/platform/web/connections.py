"""Connections that keep the server waiting: how long each may, and which of them go where there are too many.

uvicorn waits for the headers of a request, and for whoever reads its answer, as long as they take, and refuses
everybody once there are too many connections. Here both have so many seconds, and one connection too many ends the
one that has kept the server waiting longest: whoever sends a request at once is answered, however many trickle. How
slowly a body may come is the business of `security.Guard`.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, NamedTuple

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class Patience(NamedTuple):
    """How long the server waits for the other side, in seconds, and for how many at once."""

    headers: float = 15.0  # from the first byte, or the connection, to the end of a request's headers
    reading: float = 30.0  # without anything being read of an answer
    rest: float = 5.0  # for a body that is refused already, so that the answer can be read
    connections: int = 400
    from_one_address: int = 200


PATIENCE = Patience()
# A proxy on this machine, whose connections are those of many.
_HERE = frozenset({"127.0.0.1", "::1"})


class PatientProtocol(H11Protocol):
    """HTTP/1.1 whose patience ends."""

    patience = PATIENCE

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.waiting_since = time.monotonic()
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait("headers", self.patience.headers)
        self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        for name in list(self._timers):
            self._came(name)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        state = self.conn.their_state
        if state is h11.IDLE:
            self._wait("headers", self.patience.headers)
        else:
            self._came("headers")
        if state is not h11.SEND_BODY:
            self._came("rest")

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self.waiting_since = time.monotonic()
        if self.conn.their_state is h11.SEND_BODY:
            self._wait("rest", self.patience.rest)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait("reading", self.patience.reading)

    def resume_writing(self) -> None:
        self._came("reading")
        super().resume_writing()

    @property
    def keeps_waiting(self) -> bool:
        """Return whether the server waits for the other side: for headers, a body, or a reader."""
        if self.cycle is None or self.cycle.response_complete or "reading" in self._timers:
            return True
        return bool(self.cycle.more_body)

    def _wait(self, name: str, seconds: float) -> None:
        """End the connection in so many seconds; more of the same does not begin anew."""
        if name not in self._timers and not self.transport.is_closing():
            self._timers[name] = self.loop.call_later(seconds, self.transport.abort)

    def _came(self, name: str) -> None:
        if (timer := self._timers.pop(name, None)) is not None:
            timer.cancel()

    def _make_room(self) -> None:
        """End the connection that has kept the server waiting longest, where there are too many."""
        crowd = [one for one in self.connections if isinstance(one, PatientProtocol)]
        if len(crowd) <= self.patience.connections:
            host = self.client[0] if self.client else ""
            crowd = [one for one in crowd if one.client and one.client[0] == host]
            if host in _HERE or len(crowd) <= self.patience.from_one_address:
                return
        waiting = [one for one in crowd if one.keeps_waiting and not one.transport.is_closing()]
        if waiting:
            min(waiting, key=lambda one: one.waiting_since).transport.abort()
