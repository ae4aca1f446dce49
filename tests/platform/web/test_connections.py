"""Connections that trickle, stall or crowd, against a real server on a real socket: others are answered meanwhile."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import httpx
import pytest
import uvicorn

from ensue.platform.service import Platform
from ensue.platform.web.app import create_app
from ensue.platform.web.connections import Patience, PatientProtocol
from ensue.platform.web.server import _bound

REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


@contextmanager
def served(platform: Platform, patience: Patience) -> Iterator[tuple[str, int]]:
    """Serve a platform in a thread; give where."""

    class Impatient(PatientProtocol):
        pass

    Impatient.patience = patience
    listener = _bound("127.0.0.1", 0)
    config = uvicorn.Config(
        create_app(platform), http=Impatient, log_config=None, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield listener.getsockname()
    finally:
        server.should_exit = True
        thread.join()


def is_closed(connection: socket.socket) -> bool:
    """Wait for the other side to close a connection; False where it does not."""
    with suppress(ConnectionResetError):
        try:
            while connection.recv(1 << 16):
                pass
        except TimeoutError:
            return False
    return True


def connect(stack: ExitStack, place: tuple[str, int]) -> socket.socket:
    connection = stack.enter_context(socket.create_connection(place))
    connection.settimeout(20)
    return connection


def until(holds: Callable[[], bool]) -> bool:
    for _ in range(400):
        if holds():
            return True
        time.sleep(0.05)
    return False


def status(place: tuple[str, int]) -> int:
    return httpx.get(f"http://{place[0]}:{place[1]}/healthz", timeout=20, trust_env=False).status_code


def test_small_answers_are_sent_at_once() -> None:
    with _bound("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        # asyncio sets TCP_NODELAY on a socket that is known to be TCP, and 40 ms are lost otherwise.
        assert accepted.proto == socket.IPPROTO_TCP
        accepted.close()


def test_headers_that_never_end_are_given_up_and_others_are_answered(platform: Platform) -> None:
    with served(platform, Patience(headers=0.5)) as place, ExitStack() as stack:
        silent = connect(stack, place)
        half = connect(stack, place)
        half.sendall(REQUEST)
        trickling = connect(stack, place)

        def trickle() -> bool:
            """Send a header again and again; True once that is of no use any more."""
            try:
                trickling.sendall(b"X-More: 1\r\n")
            except OSError:
                return True
            return False

        trickling.sendall(REQUEST)
        assert until(trickle)
        assert is_closed(silent)
        assert is_closed(half)
        assert status(place) == 200


def test_a_connection_that_was_used_has_no_longer_for_its_next_headers(platform: Platform) -> None:
    with served(platform, Patience(headers=0.5)) as place, ExitStack() as stack:
        connection = connect(stack, place)
        connection.sendall(REQUEST + b"\r\n")
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
        connection.sendall(REQUEST)
        assert is_closed(connection)


def test_one_connection_too_many_ends_the_one_that_waited_longest(platform: Platform) -> None:
    with served(platform, Patience(headers=60, connections=20)) as place, ExitStack() as stack:
        idle = [connect(stack, place) for _ in range(20)]
        for connection in idle:
            connection.sendall(REQUEST)
        time.sleep(0.2)
        for _ in range(5):
            assert status(place) == 200
        assert is_closed(idle[0])
        late = idle[-1]
        late.sendall(b"\r\n")
        assert late.recv(1 << 16).startswith(b"HTTP/1.1 200")


def test_one_address_has_so_many_and_a_proxy_on_this_machine_more(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience = Patience(headers=60, from_one_address=5)
    with served(platform, patience) as place, ExitStack() as stack:
        kept = [connect(stack, place) for _ in range(12)]
        time.sleep(0.2)
        for connection in kept:
            connection.sendall(REQUEST + b"\r\n")
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
    monkeypatch.setattr("ensue.platform.web.connections._HERE", frozenset())
    with served(platform, patience) as place, ExitStack() as stack:
        kept = [connect(stack, place) for _ in range(6)]
        assert is_closed(kept[0])
        kept[-1].sendall(REQUEST + b"\r\n")
        assert kept[-1].recv(1 << 16).startswith(b"HTTP/1.1 200")


def test_an_answer_that_nobody_reads_is_given_up(platform: Platform) -> None:
    with served(platform, Patience(reading=0.5)) as place, ExitStack() as stack:
        connection = stack.enter_context(socket.socket())
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(place)
        ask = b"GET /static/ensue.css HTTP/1.1\r\nHost: localhost\r\n\r\n"
        connection.settimeout(0.2)

        def ask_again() -> bool:
            """Ask for more and read nothing; True once the connection is gone."""
            try:
                connection.sendall(ask * 50)
            except TimeoutError:
                return False
            except OSError:
                return True
            return False

        assert until(ask_again)
        assert status(place) == 200


def test_a_body_that_is_refused_is_not_read_to_its_end(platform: Platform) -> None:
    with served(platform, Patience(rest=0.5)) as place, ExitStack() as stack:
        connection = connect(stack, place)
        connection.sendall(
            b"POST /api/v1/me/tokens HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\n"
            b"Content-Type: application/json\r\nContent-Length: 5000000000\r\n\r\n"
        )
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 413")

        def send_on() -> bool:
            try:
                connection.sendall(bytes(100_000))
            except OSError:
                return True
            return False

        assert until(send_on)
        assert status(place) == 200
