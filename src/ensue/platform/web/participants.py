"""Who is at work on a project: an account, or somebody from outside by the cookie of that project."""

from __future__ import annotations

import hashlib

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from ensue.platform.annotation.answering import Answering
from ensue.platform.annotation.people import Entered, Participant, People
from ensue.platform.annotation.projects import Project
from ensue.platform.refusals import Unauthenticated
from ensue.platform.web import security
from ensue.platform.web.identity import identify

DAYS = 60.0
_MOST_COOKIES = 50


def cookie_name(project_id: str) -> str:
    """Return what the cookie of a project is called; two projects in one browser do not meet."""
    return security.PARTICIPANT_COOKIE + hashlib.sha256(project_id.encode()).hexdigest()[:8]


def cookie_of(request: Request, project_id: str) -> str | None:
    """Return the cookie of a project that came with a request."""
    return request.cookies.get(cookie_name(project_id))


def participant_of(
    request: Request, connection: Connection, people: People, project: Project
) -> Participant | None:
    """Return who asks, as somebody at work on a project; None for who did not enter it."""
    cookie = cookie_of(request, project.id)
    if cookie and "authorization" not in request.headers:
        found = people.of_cookie(connection, project.id, cookie)
        if found is not None:
            return found
    user = identify(request)
    return None if user is None else people.of_user(connection, project.id, user.id)


def worker_of(
    request: Request, connection: Connection, part: Answering, assignment_id: str
) -> Participant | None:
    """Return who asks, as somebody at work on the project of an assignment; None for who did not enter it."""
    # Asked with every save. A cookie is worth something in its own project alone, whatever it is called.
    cookies = [
        value for name, value in request.cookies.items() if name.startswith(security.PARTICIPANT_COOKIE)
    ]
    if 0 < len(cookies) <= _MOST_COOKIES and "authorization" not in request.headers:
        found = part.people.of_cookies(connection, assignment_id, cookies)
        if found is not None:
            return found
    project = part.assigning.project_of(connection, assignment_id)
    return participant_of(request, connection, part.people, project)


def entered(request: Request, connection: Connection, people: People, project: Project) -> Participant:
    """Return who asks; refuse who did not enter the project."""
    found = participant_of(request, connection, people, project)
    if found is None:
        raise Unauthenticated("Enter the project first, by the link you were given.")
    return found


def remember(request: Request, response: Response, found: Entered) -> None:
    """Set the cookies of somebody who entered; the one that forms are tied to lives as long."""
    if found.cookie is not None:
        security.set_cookie(request, response, cookie_name(found.project.id), found.cookie, DAYS)
    if security.SESSION_COOKIE not in request.cookies:
        security.set_cookie(request, response, security.VISITOR_COOKIE, security.visitor(request), DAYS)
