"""Run the application: bind the port, say where it is, serve until stopped."""

from __future__ import annotations

import gc
import signal
import socket
import sys
from collections.abc import Callable

import uvicorn

from ensue.errors import EnsueError
from ensue.platform.logs import start_logging
from ensue.platform.service import Settings, opened
from ensue.platform.web.app import create_app
from ensue.platform.web.connections import PatientProtocol


def serve(settings: Settings, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve a platform until it is told to stop; `ready` is given its address once it can be asked."""
    with opened(settings) as platform, _bound(host, port) as listener:
        start_logging()
        app = create_app(platform)
        number = listener.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        url = f"http://{shown}:{number}"
        local = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, shown)
        app.state.command_key = platform.home.announce(f"http://{local}:{number}")
        config = uvicorn.Config(
            app,
            http=PatientProtocol,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="on",
            timeout_graceful_shutdown=10,
            timeout_keep_alive=15,  # whoever writes is saved every few seconds, on the same connection
            limit_concurrency=512,
        )
        gc.freeze()  # what is here now stays, and is not looked through again
        gc.enable()
        sys.setswitchinterval(0.001)  # who answers waits less for a thread that reads a large board
        signal.signal(signal.SIGTERM, _stop)
        try:
            # The port is bound and listening: whoever asks from here on waits until it is answered.
            ready(url)
            server = uvicorn.Server(config)
            # Whoever waits for something to happen is sent away, not waited for.
            app.state.stopping = lambda: server.should_exit
            server.run(sockets=[listener])
        except KeyboardInterrupt:
            pass  # uvicorn has stopped in order and passes the signal on
        finally:
            platform.home.withdraw()


def _stop(number: int, frame: object) -> None:
    """Stop as Ctrl-C does, so that everything open is closed."""
    raise KeyboardInterrupt


def _bound(host: str, port: int) -> socket.socket:
    """Return a socket that listens, or say why there is none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol by name: asyncio sends small answers at once (TCP_NODELAY) on sockets that say they are TCP alone.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(512)
    except OSError as error:
        listener.close()
        raise EnsueError(
            f"Port {port} of {host} cannot be used: {error.strerror}; give another --port."
        ) from None
    return listener
