"""What the server tells of itself: a line of JSON a request, and counts for Prometheus; no secrets, no labels.

A request is named by its route (`/invitations/{secret}`), never by its path or query, which may hold a secret.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ensue.platform.database.schema import new_id
from ensue.platform.logs import tell

_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Counts:
    """Requests by route, method and status, and how long they took."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.slower: Counter[float] = Counter()  # how many took at most so long
        self.count, self.seconds = 0, 0.0
        self.begun = time.time()

    def add(self, route: str, method: str, status: int, seconds: float) -> None:
        with self._lock:
            self.requests[route, method, status] += 1
            self.count += 1
            self.seconds += seconds
            for bound in _BOUNDS:
                if seconds <= bound:
                    self.slower[bound] += 1

    def lines(self) -> Iterable[str]:
        """Yield the counts in Prometheus's text format."""
        with self._lock:
            requests, slower = sorted(self.requests.items()), dict(self.slower)
            count, seconds = self.count, self.seconds
        yield "# TYPE ensue_requests_total counter"
        for (route, method, status), number in requests:
            yield f"ensue_requests_total{labels(route=route, method=method, status=status)} {number}"
        yield "# TYPE ensue_request_seconds histogram"
        for bound in _BOUNDS:
            yield f"ensue_request_seconds_bucket{labels(le=bound)} {slower.get(bound, 0)}"
        yield f"ensue_request_seconds_bucket{labels(le='+Inf')} {count}"
        yield f"ensue_request_seconds_sum {seconds:.6f}"
        yield f"ensue_request_seconds_count {count}"
        yield "# TYPE ensue_start_time_seconds gauge"
        yield f"ensue_start_time_seconds {self.begun:.3f}"


def labels(**values: Any) -> str:
    """Return labels as Prometheus writes them.

    >>> labels(route="/boards/{board}", status=200)
    '{route="/boards/{board}",status="200"}'
    """
    quoted = (f"{name}={json.dumps(str(value), ensure_ascii=False)}" for name, value in values.items())
    return "{" + ",".join(quoted) + "}"


class Observer:
    """ASGI: give each request an id, count it, log it when it is answered, and answer it where the code failed."""

    def __init__(
        self, app: ASGIApp, counts: Counts, failed: Callable[[Request, Exception], Awaitable[Response]]
    ) -> None:
        self.app, self.counts, self.failed = app, counts, failed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, request_id = time.perf_counter(), new_id()
        scope.setdefault("state", {})["request_id"] = request_id
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            await self.app(scope, receive, sending)
        except Exception as error:
            answer = await self.failed(Request(scope), error)
            if not status:
                await answer(scope, receive, sending)
        finally:
            seconds = time.perf_counter() - begun
            route = getattr(scope.get("route"), "path", "none")
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self.counts.add(route, method, status, seconds)
            user = getattr(scope["state"].get("user"), "id", None)
            tell(
                "request",
                id=request_id,
                method=method,
                route=route,
                status=status,
                ms=round(1000 * seconds, 1),
                user=user,
            )


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
