"""Talks HTTP to an OpenAI-compatible server: its address, its key, and what to do when it falters."""

from __future__ import annotations

import os
import random
import re
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

import httpx

from ensue.errors import EnsueError, RunFailed

T = TypeVar("T")

_PASSING = frozenset({429, 500, 502, 503, 504})
# What stands in for a server while it is started anew.
_ABSENT = frozenset({502, 503})
_LONGEST_WAIT = 60.0
# Seconds in which a server can be started anew with another model.
_UNSEEN = 10.0
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


class Address(NamedTuple):
    """Where a server is: the API's root without credentials, the model asked for, a login if given, and whether
    its chat is meant."""

    root: str
    model: str | None
    login: tuple[str, str] | None
    chat: bool = False


class Rejected(Exception):
    """The server refused a request for good; `words` is what it said, on one line."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(f"{status}: {words}")
        self.status = status
        self.words = words


class CutShort(Exception):
    """A reply that is not whole, to be asked for again; the message completes "the server …"."""


class GaveUp(RunFailed):
    """Every try failed."""


class _Faltered(Exception):
    """One try failed in a way that may pass: `what` completes "the server …", `hint` says what may help."""

    def __init__(self, what: str, hint: str, pause: float | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.pause = pause


def parse_address(url: str) -> Address:
    """Parse `http(s)://host[:port][/v1[/completions | /chat/completions]][#model]`.

    >>> parse_address("http://localhost:8000#my-model").root
    'http://localhost:8000/v1'
    """
    try:
        split = urlsplit(url.strip())
        split.port  # noqa: B018 (raises ValueError for a port that is no number)
        login = (unquote(split.username), unquote(split.password or "")) if split.username else None
        host = split.netloc.rpartition("@")[2]
        httpx.URL(f"{split.scheme}://{host}{split.path}")
    except (ValueError, httpx.InvalidURL):
        raise EnsueError(
            "The endpoint's URL cannot be read; write it as http://host:port/v1#model."
        ) from None
    if split.scheme not in ("http", "https") or not split.hostname:
        raise EnsueError("An endpoint's URL begins with http:// or https:// and names a host.")
    if split.query:
        raise EnsueError(f"The URL of {host} must not hold a query; give a key in ENSUE_API_KEY.")
    path = split.path.rstrip("/")
    chat = path.endswith("/chat/completions")
    bare = path.removesuffix("/completions").removesuffix("/chat" if chat else "")
    if bare == path and not re.search(r"/v\d+$", path):
        bare = f"{path}/v1"
    return Address(f"{split.scheme}://{host}{bare}", unquote(split.fragment) or None, login, chat)


class CompletionsClient:
    """Asks one server, again where that may help; safe to use from many threads.

    While `halt` is set nothing is tried a second time. `losses` counts how often the server was gone, broke off or
    was not asked for long: who answers after that may be another model.
    """

    def __init__(
        self,
        address: Address,
        *,
        api_key: str | None,
        connections: int,
        timeout: float,
        retries: int,
        backoff: float,
    ) -> None:
        self.root = address.root
        # Where servers keep what is not OpenAI's: beside the API, not under it.
        self.beside = re.sub(r"/v\d+$", "", address.root)
        self._timeout = timeout
        self._retries = retries
        self._backoff = backoff
        self.halt = threading.Event()
        self.losses = 0
        self._counting = threading.Lock()
        self._last = time.monotonic()
        if api_key is None and address.login is None:
            api_key = os.environ.get("ENSUE_API_KEY") or os.environ.get("OPENAI_API_KEY")
        key = (api_key or "").strip()
        if not (key.isascii() and key.isprintable()):
            raise EnsueError(f"The API key for {self.root} holds characters that HTTP cannot carry.")
        # Some put a token where the user's name goes, so a name without a password is a secret too.
        user, password = address.login or ("", "")
        self._secrets = [secret for secret in (key, password or user) if secret]
        self._http = httpx.Client(
            auth=address.login if not key else None,
            headers={"Authorization": f"Bearer {key}"} if key else None,
            timeout=httpx.Timeout(timeout, connect=min(timeout, 10.0)),
            verify=_certificates(),
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
        )

    def close(self) -> None:
        """Hang up."""
        self._http.close()

    def ask(
        self,
        path: str,
        read: Callable[[Any], T],
        body: Mapping[str, Any] | None = None,
        *,
        native: bool = False,
    ) -> T:
        """Return what `read` makes of the server's reply to a GET, or with a body to a POST.

        A path lies under the API's root, or with `native` beside it. A try that falters, or whose reply `read` raises
        CutShort of, is made again as often as is allowed.
        """
        failures: list[_Faltered] = []
        while True:
            try:
                return self._once((self.beside if native else self.root) + path, read, body)
            except _Faltered as failure:
                failures.append(failure)
            pause = failures[-1].pause
            if pause is None:
                pause = self._backoff * 2 ** (len(failures) - 1) * random.uniform(0.5, 1.0)
            if len(failures) > self._retries or self.halt.wait(min(pause, _LONGEST_WAIT)):
                raise self._surrender(failures) from None

    def _once(self, url: str, read: Callable[[Any], T], body: Mapping[str, Any] | None) -> T:
        try:
            reply = self._fetch("POST" if body else "GET", url, body)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            self._lose_sight()
            reason = self._tidy(str(error)) or "no answer"
            raise _Faltered(f"could not be reached ({reason})", "see that the server is up") from error
        except httpx.TimeoutException as error:
            what = f"did not answer within {self._timeout:g} s"
            raise _Faltered(what, "lower --concurrency or raise --timeout") from error
        except httpx.RequestError as error:
            self._lose_sight()
            raise _Faltered("broke off its reply", "see the server's log") from error
        if reply.status_code in _PASSING and not self._for_good(reply):
            if reply.status_code in _ABSENT:
                self._lose_sight()
            busy = reply.status_code in (429, 503)
            hint = "lower --concurrency or try later" if busy else "see the server's log"
            raise _Faltered(f"answered {reply.status_code}", hint, _retry_after(reply.headers))
        if reply.status_code in (401, 403):
            raise EnsueError(
                f"{self.root} answered {reply.status_code}: put a valid key for it in ENSUE_API_KEY."
            )
        if reply.status_code == 404:
            said = f" ({words})" if (words := self._words(reply)) else ""
            raise EnsueError(f"{url} answered 404{said}; check the URL and the model's name.")
        if not reply.is_success:
            raise Rejected(reply.status_code, self._words(reply))
        try:
            answer = reply.json()
        except ValueError as error:
            raise _Faltered("sent a reply that is not JSON", "check the URL") from error
        try:
            return read(answer)
        except CutShort as error:
            # Some call an error a success.
            told = isinstance(answer, dict) and answer.get("error")
            said = f" ({self._words_of(answer)})" if told else ""
            raise _Faltered(f"{error}{said}", "see the server's log") from error

    def _fetch(self, method: str, url: str, body: Mapping[str, Any] | None) -> httpx.Response:
        """Return the whole of a reply, which may come in pieces but not for longer than is allowed."""
        now = time.monotonic()
        until, pieces = now + self._timeout, []
        if now - self._last > _UNSEEN:
            self._lose_sight()
        with self._http.stream(method, url, json=body) as reply:
            for piece in reply.iter_raw():
                pieces.append(piece)
                if time.monotonic() > until:
                    raise httpx.ReadTimeout("it has begun a reply and not ended it")
        self._last = time.monotonic()
        return httpx.Response(
            reply.status_code, headers=reply.headers, content=b"".join(pieces), request=reply.request
        )

    def _lose_sight(self) -> None:
        with self._counting:
            self.losses += 1

    def _for_good(self, reply: httpx.Response) -> bool:
        """Return whether a 500 is a refusal: llama.cpp and old vLLM answer so to options they do not know."""
        return reply.status_code == 500 and bool(
            re.search(r"\becho\b|log_?probs|not supported|unsupported", self._words(reply), re.IGNORECASE)
        )

    def _words(self, reply: httpx.Response) -> str:
        """Return what a server says of a failure, on one line of at most 200 characters."""
        if reply.is_redirect:
            return f"moved to {reply.headers.get('location', 'another place')}"
        try:
            said = reply.json()
        except ValueError:
            said = "" if "html" in reply.headers.get("content-type", "") else reply.text
        return self._words_of(said)

    def _words_of(self, said: Any) -> str:
        for key in ("error", "message", "detail"):
            said = said.get(key, said) if isinstance(said, dict) else said
        return self._tidy(said if isinstance(said, str) else str(said))

    def _tidy(self, words: str) -> str:
        """Make the words of others fit for one of our sentences, without secrets they may repeat."""
        for secret in self._secrets:
            words = words.replace(secret, "***")
        return " ".join(words.split())[:200].rstrip(" .")

    def _surrender(self, failures: list[_Faltered]) -> GaveUp:
        count = len(failures)
        times = f"{_NUMBERS[count] if count < len(_NUMBERS) else count} time{'s' if count > 1 else ''}"
        kinds = list(dict.fromkeys(failure.what for failure in failures))
        said = f"{kinds[0]} {times}" if len(kinds) == 1 else f"failed {times} ({', '.join(kinds)})"
        return GaveUp(f"{self.root} {said}; {failures[-1].hint}.")


@cache
def _certificates() -> ssl.SSLContext:
    """Return the certificates to trust, which take long enough to read that once is best."""
    return httpx.create_ssl_context()


def _retry_after(headers: httpx.Headers) -> float | None:
    """Return the seconds a server asks to wait, given as a number or as a date; None if it does not say."""
    asked = headers.get("retry-after", "")
    with suppress(ValueError):
        return max(float(asked), 0.0)
    with suppress(ValueError):
        when = parsedate_to_datetime(asked)
        return max((when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds(), 0.0)
    return None
