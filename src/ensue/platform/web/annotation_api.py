"""What somebody at work on an annotation project may ask: `/api/v1`."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, FastAPI, Header, Request
from pydantic import BaseModel, Field
from sqlalchemy import Connection
from starlette.responses import JSONResponse, Response

from ensue.platform.annotation import work
from ensue.platform.annotation.answering import Answering, Given, Unanswered
from ensue.platform.annotation.assigning import Waiting, no_assignment
from ensue.platform.annotation.people import Entering, Participant
from ensue.platform.annotation.projects import Project, no_project
from ensue.platform.service import Platform
from ensue.platform.web import participants, security
from ensue.platform.web.account_api import REFUSALS, Problem
from ensue.platform.web.answers import MISSING
from ensue.platform.web.identity import MaybeCaller, ThePlatform

router = APIRouter(prefix="/api/v1", tags=["annotation"])
_LONGEST = 9_007_199_254_740_991  # the largest whole number that a browser counts to
_REFUSED: dict[int | str, dict[str, Any]] = {**REFUSALS, **MISSING, 409: {"model": Problem}}


class Enter(BaseModel):
    """Somebody who comes in, by the link's key and, from another site, with what it says of them."""

    key: str = Field("", max_length=200)
    external_id: str = Field("", max_length=1000)
    study_id: str = Field("", max_length=1000)
    session_id: str = Field("", max_length=1000)
    consent: bool = False


class In(BaseModel):
    """Somebody who is in; `csrf` is what further calls by the cookie send as `x-csrf-token`."""

    pseudonym: str
    phase: str
    state: str
    csrf: str


class Welcome(BaseModel):
    """What somebody reads before they take part; `consent` is Markdown, empty for the server's own words."""

    name: str
    title: str
    consent: str
    contact: str
    state: str
    needs_key: bool


class Item(BaseModel):
    """What is shown and asked, as `ensue.benchmarks.people.form` says."""

    form: dict[str, Any]
    phase: str
    group: str
    stage: str


class Work(BaseModel):
    """Something to do, with what was saved of it; `feedback` comes after a training item."""

    id: str
    item: Item
    lease_until: str
    place: int
    state: str
    answer: dict[str, Any] | None
    feedback: dict[str, Any] | None


class Standing(BaseModel):
    """Where somebody stands in a project."""

    pseudonym: str
    phase: str
    state: str
    reason: str | None
    done: int
    left: int
    total: int
    completion: dict[str, str] | None
    current: str | None
    consented: bool
    project: dict[str, str]


class Save(BaseModel):
    """What somebody said so far, or in the end (`final`); times in milliseconds as the browser counted them."""

    values: dict[str, Any]
    final: bool = False
    seq: int = Field(ge=0, le=_LONGEST)
    active_ms: int = Field(0, ge=0, le=_LONGEST)
    elapsed_ms: int = Field(0, ge=0, le=_LONGEST)


class Saved(BaseModel):
    """What was saved; `seq` is that of the last save that counts, `final` whether this is answered."""

    seq: int
    saved_at: str
    lease_until: str
    final: bool
    feedback: dict[str, Any] | None


class Lease(BaseModel):
    """Until when something is one's own."""

    lease_until: str


class Listed(BaseModel):
    """Something that one was given."""

    id: str
    place: int
    state: str
    phase: str


def install(app: FastAPI, platform: Platform) -> None:
    part = Answering(platform)
    app.state.annotation = part
    platform.accounts.on_deletion.append(part.people.unlink)
    platform.regularly += [part.assigning.free_abandoned, platform.database.drop_left]
    app.add_exception_handler(Unanswered, _unanswered)
    app.include_router(router)


async def _unanswered(request: Request, error: Exception) -> Response:
    assert isinstance(error, Unanswered)
    return JSONResponse({"error": str(error), "problems": error.problems}, error.status)


async def the_part(request: Request) -> Answering:
    """Return what the routes share; not a plain function, which would be run in another thread."""
    part: Answering = request.app.state.annotation
    return part


ThePart = Annotated[Answering, Depends(the_part)]


@router.get("/projects/{name}/welcome", responses=MISSING)
def welcome(platform: ThePlatform, part: ThePart, user: MaybeCaller, name: str, key: str = "") -> Welcome:
    """Return what somebody reads before they take part."""
    with platform.database.reading() as connection:
        project = part.projects.find(connection, name)
    if not part.people.may_enter(project, user, key):
        raise no_project(name)
    told = {key: str(project.settings[key]) for key in ("consent", "contact")}
    needs_key = user is None or not user.may("annotator")
    return Welcome(name=name, title=project.title, state=project.state, needs_key=needs_key, **told)


@router.post("/projects/{name}/enter", status_code=201, response_model=In, responses=_REFUSED)
def enter(
    request: Request, part: ThePart, user: MaybeCaller, name: str, given: Annotated[Enter, Body()]
) -> Response:
    """Take part in a project; the answer sets the cookie of somebody from outside."""
    request.app.state.rates.take("enter", security.address(request))
    with part.database.reading() as connection:
        cookie = participants.cookie_of(request, part.projects.find(connection, name).id)
    found = part.people.enter(name, Entering(**given.model_dump()), user, cookie)
    told = {key: getattr(found.participant, key) for key in ("pseudonym", "phase", "state")}
    response = JSONResponse({**told, "csrf": security.form_token(request)}, 201)
    participants.remember(request, response, found)
    return response


@router.get("/projects/{name}/me", responses=_REFUSED)
def me(request: Request, part: ThePart, name: str) -> Standing:
    """Return where the caller stands in a project."""
    with part.database.reading() as connection:
        project, participant = _at_work(request, connection, part, name)
        return Standing(**work.standing(connection, part.assigning, project, participant))


@router.post(
    "/projects/{name}/assignments",
    status_code=201,
    response_model=Work,
    responses={**_REFUSED, 200: {"description": "nothing yet: `waiting` says why"}, 204: {}},
)
def take(request: Request, part: ThePart, name: str) -> Response:
    """Take the next item, or the one that the caller has; 204 where nothing is left."""
    with part.database.reading() as connection:
        _, participant = _at_work(request, connection, part, name)
    found = part.assigning.take(participant.id)
    if found is None:
        return Response(status_code=204)
    if isinstance(found, Waiting):
        return JSONResponse({"waiting": found.words}, 200, {"Retry-After": "15"})
    with part.database.reading() as connection:
        assignment = part.assigning.own(connection, participant.id, found)
        return JSONResponse(work.shown(connection, assignment), 201)


@router.get("/projects/{name}/assignments", responses=_REFUSED)
def list_own(request: Request, part: ThePart, name: str) -> list[Listed]:
    """List what the caller was given, in that order."""
    with part.database.reading() as connection:
        _, participant = _at_work(request, connection, part, name)
        return [Listed(**one) for one in work.listed(connection, participant)]


@router.get("/assignments/{assignment}", responses=_REFUSED)
def show(request: Request, part: ThePart, assignment: str) -> Work:
    """Return something that the caller was given."""
    with part.database.reading() as connection:
        participant = _whose(request, connection, part, assignment)
        own = part.assigning.own(connection, participant.id, assignment)
        return Work(**work.shown(connection, own))


@router.put("/assignments/{assignment}/answer", response_model=Saved, responses=_REFUSED)
def save(
    request: Request,
    part: ThePart,
    assignment: str,
    given: Annotated[Save, Body()],
    idempotency_key: Annotated[str, Header(max_length=200)],
) -> Response:
    """Save an answer or a draft of one; the same key again is the same save."""
    with part.database.reading() as connection:
        participant = _whose(request, connection, part, assignment)
    told = part.save(participant.id, assignment, idempotency_key, Given(**dict(given)))
    return JSONResponse(told)


@router.post("/assignments/{assignment}/heartbeat", responses=_REFUSED)
def heartbeat(request: Request, part: ThePart, assignment: str) -> Lease:
    """Say that the caller is still at work on something."""
    with part.database.reading() as connection:
        participant = _whose(request, connection, part, assignment)
    return Lease(lease_until=part.assigning.heartbeat(participant.id, assignment).isoformat())


@router.post("/assignments/{assignment}/release", responses=_REFUSED)
def release(request: Request, part: ThePart, assignment: str) -> dict[str, str]:
    """Give something back that is not answered."""
    with part.database.reading() as connection:
        participant = _whose(request, connection, part, assignment)
    part.assigning.release(participant.id, assignment)
    return {"state": "released"}


def _at_work(
    request: Request, connection: Connection, part: Answering, name: str
) -> tuple[Project, Participant]:
    project = part.projects.find(connection, name)
    return project, participants.entered(request, connection, part.people, project)


def _whose(request: Request, connection: Connection, part: Answering, assignment: str) -> Participant:
    """Return who asks for an assignment; to whom it is not theirs, it is not there."""
    found = participants.worker_of(request, connection, part, assignment)
    if found is None:
        raise no_assignment()
    return found
