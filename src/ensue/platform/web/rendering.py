"""Pages made from templates: everything escaped, no inline script or style, one base for all."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from ensue.platform.web import security
from ensue.platform.web.identity import identify, the_platform
from ensue.version import __version__


def environment(*packages: str) -> Environment:
    """Return the templates of the foundation and of further packages, those before the foundation's own."""
    loaders = [PackageLoader(package) for package in (*packages, "ensue.platform.web")]
    made = Environment(
        loader=ChoiceLoader(loaders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["moment"] = moment
    made.filters["day"] = day
    made.filters["parsed"] = parsed
    made.globals["version"] = __version__
    return made


def moment(time: datetime | None) -> str:
    """Return a time as pages show it: `16 Nov 2026, 13:05 UTC`."""
    return f"{time.day} {time:%b %Y, %H:%M} UTC" if time else "never"


def day(time: date | None) -> str:
    """Return a day as pages show it: `16 Nov 2026`."""
    return f"{time.day} {time:%b %Y}" if time else "never"


def parsed(time: str | None) -> datetime | None:
    """Return a time that was written as text."""
    return datetime.fromisoformat(time) if time else None


def render(
    request: Request, template: str, *, status: int = 200, words: str = "", done: str = "", **facts: Any
) -> HTMLResponse:
    """Return a page. Templates know the user (or None), `csrf()` for their forms, and what is given: `words` of a
    refusal, what was `done`, and the facts.

    It reads the database, so call it from a route that is a plain function.
    """
    shown = {
        "request": request,
        "user": identify(request),
        "csrf": lambda: security.form_token(request),
        "settings": the_platform(request).settings,
        "parts": request.app.state.navigation,
        "status": status,
        "words": words,
        "done": done,
        **facts,
    }
    words = request.app.state.templates.get_template(template).render(shown)
    response = HTMLResponse(words, status_code=status)
    security.remember_visitor(request, response)
    return response
