"""The web application: `create_app` puts together what guards, observes and answers requests.

A part of the platform (boards, annotation) has a module with `install(app, platform)`, which adds its routes
(`app.include_router`), its entries in the navigation (`app.state.navigation`) and its kinds of jobs; `PARTS` names
the modules.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from anyio.to_thread import current_default_thread_limiter
from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from ensue.errors import EnsueError
from ensue.platform.database.opening import DatabaseUnavailable
from ensue.platform.logs import tell
from ensue.platform.refusals import Refusal, TooMany, Unauthenticated
from ensue.platform.service import CHECKS_WAITING, Platform
from ensue.platform.web import observing, security
from ensue.platform.web.identity import guarded, identify_for_page
from ensue.platform.web.rendering import environment, render
from ensue.version import __version__

PARTS = (
    # First what is asked most, since routes are tried in this order.
    "ensue.platform.web.annotation_api",
    "ensue.platform.web.serving",
    "ensue.platform.web.board_pages",
    "ensue.platform.web.account_pages",
    "ensue.platform.web.account_api",
    "ensue.platform.web.board_api",
    "ensue.platform.web.submission_pages",
    "ensue.platform.web.organise_pages",
    "ensue.platform.web.try_api",
    "ensue.platform.web.try_pages",
    "ensue.platform.web.project_api",
    "ensue.platform.web.annotation_pages",
    "ensue.platform.web.project_new_pages",
    "ensue.platform.web.project_pages",
)
# Packages whose `templates` folder pages are taken from, before the foundation's own.
TEMPLATES: tuple[str, ...] = ()


def create_app(platform: Platform) -> FastAPI:
    """Return the application of a platform."""
    app = FastAPI(
        title="Ensue",
        version=__version__,
        description='Boards, submissions and accounts. Errors are `{"error": "one sentence"}`.',
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        dependencies=[Depends(guarded)],
        lifespan=_lifespan,
    )
    app.state.platform = platform
    app.state.counts = observing.Counts()
    app.state.rates = security.RateLimits(platform.clock)
    app.state.templates = environment(*TEMPLATES)
    app.state.navigation = []  # (address, words) of each part
    # A path, or the start of one where it ends in a slash, and the bytes taken there.
    app.state.larger_bodies = {}
    _answer_errors(app)
    # The last added is the outermost.
    app.add_middleware(observing.Observer, counts=app.state.counts, failed=_failed)
    app.add_middleware(security.Guard, largest=_largest(app), public_url=platform.settings.public_url)
    for part in PARTS:
        importlib.import_module(part).install(app, platform)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Run jobs while the application is served."""
    platform: Platform = app.state.platform
    # Those who wait for a file to be looked at leave as many threads for everybody else.
    current_default_thread_limiter().total_tokens = 2 * CHECKS_WAITING
    with platform.working():
        yield


def _largest(app: FastAPI) -> Callable[[str], int]:
    def largest(path: str) -> int:
        larger: dict[str, int] = app.state.larger_bodies
        found = (most for start, most in larger.items() if start == path or _is_below(path, start))
        return max(found, default=security.SMALL_BODY)

    return largest


def _is_below(path: str, start: str) -> bool:
    return start.endswith("/") and path.startswith(start)


def _answer_errors(app: FastAPI) -> None:
    app.add_exception_handler(EnsueError, _refused)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(OperationalError, _unavailable)
    app.add_exception_handler(PoolTimeout, _unavailable)


async def _refused(request: Request, error: Exception) -> Response:
    status = error.status if isinstance(error, Refusal) else 422
    more: dict[str, Any] = {}
    headers: dict[str, str] = {}
    if isinstance(error, DatabaseUnavailable):
        return await _unavailable(request, error)
    if isinstance(error, TooMany):
        more["retry_at"] = error.retry_at.isoformat()
        wait = (error.retry_at - request.app.state.platform.clock.now()).total_seconds()
        headers["Retry-After"] = str(max(1, round(wait)))
    if isinstance(error, Unauthenticated):
        headers["WWW-Authenticate"] = "Bearer"
    return await _answer(request, status, str(error), headers, **more)


async def _unavailable(request: Request, error: Exception) -> Response:
    tell("database unavailable", level=logging.ERROR, error=error)
    words = "The database cannot be reached; try again in a minute."
    return await _answer(request, 503, words, {"Retry-After": "60"})


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, Refusal):  # raised while the body was read
        return await _refused(request, error.__cause__)
    words = _SENTENCES.get(error.status_code) or f"{error.detail}."
    return await _answer(request, error.status_code, words, dict(error.headers or {}))


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:]) or "The body"
    # Without what was sent, which may be a password.
    return await _answer(request, 422, f"{place}: {str(first['msg']).rstrip('.').lower()}.")


async def _failed(request: Request, error: Exception) -> Response:
    request_id = request.state.request_id
    tell("failed", level=logging.ERROR, error=error, id=request_id)
    return await _answer(request, 500, f"The server failed; tell whoever runs it that it was {request_id}.")


async def _answer(
    request: Request, status: int, words: str, headers: dict[str, str] | None = None, **more: Any
) -> Response:
    """Answer with a sentence: in JSON to programs, as a page to browsers."""
    wants_page = "text/html" in request.headers.get("accept", "")
    if wants_page and not request.url.path.startswith(("/api/", "/internal/")):
        await identify_for_page(request)
        page = await run_in_threadpool(
            render, request, "error.html.j2", status=status, words=words, retry_at=more.get("retry_at")
        )
        page.headers.update(headers or {})
        return page
    return JSONResponse({"error": words, **more}, status, headers)


_SENTENCES = {
    404: "There is no such page.",
    405: "This address does not take that method.",
    400: "The request cannot be read.",
}
