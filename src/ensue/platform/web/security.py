"""What guards every request: headers, cookies, tokens against forged forms, limits on bodies and on how often."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import math
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ensue.platform.clock import Clock
from ensue.platform.refusals import Forbidden, TooLarge, TooMany, TooSlow
from ensue.platform.service import Platform

SESSION_COOKIE = "ensue_session"
VISITOR_COOKIE = "ensue_visitor"
PARTICIPANT_COOKIE = "ensue_participant_"  # and a mark of the project
SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
# Bodies of this many bytes are taken anywhere; more only where a route says so (`largest_body`).
SMALL_BODY = 1_000_000
# A body may take this many seconds, and more the more has come: so many bytes a second at least.
_PATIENCE = 60.0
_SLOWEST = 10_000.0

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Guard:
    """ASGI: add the headers, refuse what another site sends, and stop bodies that are too large."""

    def __init__(self, app: ASGIApp, largest: Callable[[str], int], public_url: str) -> None:
        self.app, self.largest = app, largest
        self.public_origin = _origin(public_url)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["method"] == "HEAD":  # what GET answers; the server keeps the body to itself
            scope = {**scope, "method": "GET"}
        await self.app(scope, self._counted(scope, receive), self._with_headers(scope, send))

    def _with_headers(self, scope: Scope, send: Send) -> Send:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                # What one user sees is nobody else's, unless a route says otherwise.
                headers.setdefault("Cache-Control", "no-store")
                if scope.get("scheme") == "https" or self.public_origin.startswith("https:"):
                    headers.setdefault("Strict-Transport-Security", "max-age=31536000")
            await send(message)

        return sending

    def _counted(self, scope: Scope, receive: Receive) -> Receive:
        most, taken = self.largest(scope["path"]), 0
        sentence = f"The body is larger than {most / 1e6:,.0f} MB, the most taken here."

        begun, whole = time.monotonic(), False

        async def receiving() -> Message:
            nonlocal taken, whole
            if whole:  # what is waited for now is that the other side goes away
                return await receive()
            # What the header says is enough to refuse; what comes is counted all the same.
            length = Headers(scope=scope).get("content-length", "0")
            if not length.isdecimal() or len(length) > 15 or int(length) > most:
                raise TooLarge(sentence)
            left = begun + _PATIENCE + taken / _SLOWEST - time.monotonic()
            try:
                message = await asyncio.wait_for(receive(), max(left, 0.001))
            except TimeoutError:
                raise TooSlow("The body came too slowly; try again.") from None
            whole = not message.get("more_body", False)
            taken += len(message.get("body", b""))
            if taken > most:
                raise TooLarge(sentence)
            return message

        return receiving


def is_small(request: Request) -> bool:
    """Return whether a request says that its body is one that is taken anywhere."""
    if "transfer-encoding" in request.headers:
        return False
    length = request.headers.get("content-length", "0")
    return length.isdecimal() and len(length) <= 15 and int(length) <= SMALL_BODY


def check_origin(request: Request, public_url: str) -> None:
    """Refuse a request that changes something and that a browser sends for another site."""
    if request.headers.get("sec-fetch-site", "none") not in {"same-origin", "none"}:
        raise Forbidden("This request comes from another site.")
    origin = request.headers.get("origin")
    if origin is None:
        return
    own = {_origin(public_url), f"{request.url.scheme}://{request.headers.get('host', '')}"}
    if origin not in own:
        raise Forbidden("This request comes from another site.")


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""


# Cookies


def is_secure(request: Request, platform: Platform) -> bool:
    """Return whether users reach this server by https."""
    return request.url.scheme == "https" or platform.settings.public_url.startswith("https:")


def set_cookie(request: Request, response: Response, name: str, value: str, days: float) -> None:
    """Set a cookie that scripts cannot read and other sites do not send."""
    secure = is_secure(request, request.app.state.platform)
    age = int(days * 86_400)
    response.set_cookie(name, value, max_age=age, path="/", secure=secure, httponly=True, samesite="lax")


def visitor(request: Request) -> str:
    """Return the secret that this browser's forms are tied to: its session, or one made for it now."""
    found = request.cookies.get(SESSION_COOKIE) or request.cookies.get(VISITOR_COOKIE)
    if found:
        return found
    if not hasattr(request.state, "new_visitor"):
        request.state.new_visitor = secrets.token_urlsafe(24)
    return str(request.state.new_visitor)


def remember_visitor(request: Request, response: Response) -> None:
    """Set the cookie of a browser that was given a form."""
    if hasattr(request.state, "new_visitor"):
        set_cookie(request, response, VISITOR_COOKIE, request.state.new_visitor, 1)


def form_token(request: Request) -> str:
    """Return what a form or a script must send along to show that it is ours."""
    key = request.app.state.platform.home_key
    return hmac.new(key, b"form:" + visitor(request).encode("utf-8", "replace"), hashlib.sha256).hexdigest()


async def check_form_token(request: Request) -> None:
    """Refuse a change asked for by a browser that does not send the token of our forms."""
    sent = request.headers.get("x-csrf-token")
    # Who was given no form is refused before the body, which may be large, is read.
    held = SESSION_COOKIE in request.cookies or VISITOR_COOKIE in request.cookies
    if held and sent is None:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind in {"application/x-www-form-urlencoded", "multipart/form-data"}:
            value = (await request.form()).get("csrf")
            sent = value if isinstance(value, str) else None
    if not held or sent is None or not hmac.compare_digest(sent.encode(), form_token(request).encode()):
        raise Forbidden("The form is out of date; load the page again and repeat.")


# How often


class Rate(NamedTuple):
    """So many in so long."""

    most: int
    seconds: float


RATES = {
    "sign-in by address": Rate(20, 300),
    "sign-in by account": Rate(10, 300),  # from one address: nobody is locked out by another
    "sign-in from anywhere": Rate(100, 300),
    "sign-up": Rate(10, 3600),
    "upload": Rate(120, 60),
    "invitation": Rate(60, 3600),
    "try": Rate(20, 600),
    "enter": Rate(1000, 600),  # a class at work behind one address
}


class RateLimits:
    """Count what each caller did of late; as exact as one process can be, and of bounded size."""

    _MOST = 20_000

    def __init__(self, clock: Clock, rates: dict[str, Rate] | None = None) -> None:
        self.clock, self.rates = clock, dict(rates or RATES)
        self._times: OrderedDict[tuple[str, str], list[datetime]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, kind: str, caller: str) -> None:
        """Count one; refuse where the caller has had as many as there may be."""
        rate, now = self.rates[kind], self.clock.now()
        since = now - timedelta(seconds=rate.seconds)
        with self._lock:
            # A clock that was set back leaves times in the future, which are not held against anybody.
            times = [time for time in self._times.pop((kind, caller), []) if since < time <= now]
            refused = len(times) >= rate.most
            if not refused:
                times.append(now)
            self._times[(kind, caller)] = times
            while len(self._times) > self._MOST:
                self._times.popitem(last=False)
            oldest = times[0]
        if refused:
            retry_at = oldest + timedelta(seconds=rate.seconds)
            minutes = math.ceil(max((retry_at - now).total_seconds(), 1) / 60)
            raise TooMany(f"Too many attempts; try again in {minutes} min.", retry_at)


def limit_sign_in(request: Request, email: str) -> None:
    """Count an attempt to sign in; refuse where there were too many."""
    rates: RateLimits = request.app.state.rates
    account, here = email.strip().lower()[:254], address(request)
    rates.take("sign-in by address", here)
    rates.take("sign-in by account", f"{account} {here}")
    rates.take("sign-in from anywhere", account)


def address(request: Request) -> str:
    """Return where a request comes from, as far as the server knows."""
    return request.client.host if request.client else "nowhere"
