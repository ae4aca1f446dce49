"""Who is asking: a user by session cookie or API token, or a visitor; and what each may do.

A route names what it needs as a dependency: `Caller` (a user), `MaybeCaller` (a user or None), `Annotator`,
`Organiser`, and `ThePlatform` for the platform itself.
"""

from __future__ import annotations

import hmac
from typing import Annotated

from fastapi import Depends
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from ensue.errors import EnsueError
from ensue.platform.accounts import User
from ensue.platform.refusals import Forbidden, NotFound, Unauthenticated
from ensue.platform.service import Platform
from ensue.platform.web import security

_UNASKED = object()


def the_platform(request: Request) -> Platform:
    """Return the platform that serves a request."""
    platform: Platform = request.app.state.platform
    return platform


def identify(request: Request) -> User | None:
    """Return who is asking, looked up once a request; an API token that is not valid is refused."""
    found = getattr(request.state, "user", _UNASKED)
    if found is _UNASKED:
        found = _look_up(request)
        request.state.user = found
    return found if isinstance(found, User) else None


def _look_up(request: Request) -> User | None:
    accounts = the_platform(request).accounts
    authorization = request.headers.get("authorization")
    if authorization is not None:
        kind, _, token = authorization.partition(" ")
        if kind.lower() != "bearer" or not token.strip():
            raise Unauthenticated("The Authorization header is not of the form 'Bearer TOKEN'.")
        return accounts.of_token(token.strip())
    cookie = request.cookies.get(security.SESSION_COOKIE)
    return accounts.of_session(cookie) if cookie else None


def signed_in(request: Request) -> User:
    """Return who is asking; refuse visitors."""
    user = identify(request)
    if user is None:
        raise Unauthenticated("Sign in first, or send an API token (Authorization: Bearer TOKEN).")
    return user


class _Needs:
    def __init__(self, role: str) -> None:
        self.role = role

    def __call__(self, request: Request) -> User:
        user = signed_in(request)
        if not user.may(self.role):
            raise Forbidden(f"Only those with the role {self.role} may do this.")
        return user


async def _platform(request: Request) -> Platform:
    """Return the platform; not a plain function, which would be run in another thread."""
    return the_platform(request)


ThePlatform = Annotated[Platform, Depends(_platform)]
MaybeCaller = Annotated[User | None, Depends(identify)]
Caller = Annotated[User, Depends(signed_in)]
Annotator = Annotated[User, Depends(_Needs("annotator"))]
Organiser = Annotated[User, Depends(_Needs("organiser"))]


async def guarded(request: Request) -> None:
    """Check every request that would change something: it must not be one that another site had a browser send."""
    if "\x00" in request.url.path or "%00" in request.url.path:
        raise NotFound("There is no such page.")  # PostgreSQL takes no such text
    if request.method in security.SAFE or request.url.path.startswith("/internal/"):
        return
    if "authorization" in request.headers:
        return  # no browser sends one by itself, and the cookie is not looked at then
    platform = the_platform(request)
    security.check_origin(request, platform.settings.public_url)
    if not security.is_small(request) and await run_in_threadpool(identify, request) is None:
        # The token of a form lies in its body, which is not read for just anybody.
        raise Unauthenticated("Sign in first; so much is taken from users alone.")
    by_cookie = any(
        name == security.SESSION_COOKIE or name.startswith(security.PARTICIPANT_COOKIE)
        for name in request.cookies
    )
    if by_cookie or not request.url.path.startswith("/api/"):
        await security.check_form_token(request)


async def from_command_line(request: Request) -> None:
    """Refuse everybody but a command on this machine that could read the home's server.json."""
    sent = request.headers.get("authorization", "").encode()
    expected = getattr(request.app.state, "command_key", None)
    # A proxy before the server hands on what comes from anywhere.
    handed_on = any(name in request.headers for name in ("x-forwarded-for", "forwarded", "via"))
    if expected is None or handed_on or not hmac.compare_digest(sent, f"Home {expected}".encode()):
        raise NotFound("There is no such page.")


async def identify_for_page(request: Request) -> User | None:
    """Return who is asking, for a page that is shown whatever the token is worth and the database does."""
    try:
        return await run_in_threadpool(identify, request)
    except (EnsueError, SQLAlchemyError):
        request.state.user = None
        return None
