"""The pages of annotators: entering a project by its link, agreeing to take part, and the work itself.

The pages are the same for everybody; what is on them comes from the API (`annotation_api`), asked by the scripts in
`static/annotate`.
"""

from __future__ import annotations

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import RedirectResponse, Response

from ensue.platform.refusals import NotFound
from ensue.platform.service import Platform
from ensue.platform.web.annotation_api import ThePart
from ensue.platform.web.identity import MaybeCaller
from ensue.platform.web.markdown import rendered
from ensue.platform.web.participants import participant_of
from ensue.platform.web.rendering import render

router = APIRouter(include_in_schema=False)
CONSENT = """
You are asked to take part in a study: you read texts and answer questions about them.

- What you answer, and how long it takes you, is saved while you work.
- You are known to those who see the answers by a made-up name alone. An id that another site gave you is kept to
  have you paid and to know you again; it is in no published data.
- You can stop whenever you like, and come back with the same link in the same browser. You can have your answers
  deleted: tell whoever runs the study the name that the last page shows you.
"""
_SHUT = {
    "draft": "This project is not open yet. Come back later with the same link.",
    "paused": "This project is paused at the moment, and nobody can begin. Come back later with the same link.",
    "closed": "This project is closed. Thank you for your interest.",
}


def install(app: FastAPI, platform: Platform) -> None:
    app.include_router(router)


@router.get("/annotate/{name}")
def enter_page(request: Request, part: ThePart, user: MaybeCaller, name: str, key: str = "") -> Response:
    """The page that a link leads to: what is asked, and whether one agrees."""
    try:
        with part.database.reading() as connection:
            project = part.projects.find(connection, name)
            known = participant_of(request, connection, part.people, project)
    except NotFound:
        return _no_link(request)
    if known is None and not part.people.may_enter(project, user, key):
        # Whoever has no key is told no more than that of a project that is not there.
        return _no_link(request)
    consent = rendered(str(project.settings.get("consent") or CONSENT))
    words = _SHUT.get(project.state, "")
    return render(request, "annotation_enter.html.j2", project=project, consent=consent, words=words)


def _no_link(request: Request) -> Response:
    words = "This link leads nowhere. It may have been cut off: copy the whole of it, or ask whoever sent it to you."
    return render(request, "error.html.j2", status=404, words=words, retry_at=None)


@router.get("/annotate/{name}/work")
def work_page(request: Request, part: ThePart, name: str) -> Response:
    """The page on which the work is done."""
    try:
        with part.database.reading() as connection:
            project = part.projects.find(connection, name)
            known = participant_of(request, connection, part.people, project)
    except NotFound:
        return _no_link(request)
    if known is None:
        return RedirectResponse(f"/annotate/{project.name}", 303)
    return render(
        request, "annotation_work.html.j2", project=project, instructions=rendered(project.instructions)
    )
