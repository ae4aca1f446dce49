"""What organisers may ask of their annotation projects: `/api/v1`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Body, FastAPI, Request
from pydantic import BaseModel, Field, ValidationError
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.responses import JSONResponse, Response, StreamingResponse

from ensue.benchmarks import settings as reading
from ensue.benchmarks.people.kind import described, kind, kinds, settings_of
from ensue.platform.accounts import User
from ensue.platform.annotation import exporting, looking, overview
from ensue.platform.annotation.answering import Answering
from ensue.platform.annotation.making import Upload, make
from ensue.platform.annotation.projects import Project, Wanted, no_project
from ensue.platform.refusals import Forbidden, Invalid, NotFound
from ensue.platform.service import Platform
from ensue.platform.uploads import GivenFile
from ensue.platform.web.account_api import REFUSALS, Problem
from ensue.platform.web.annotation_api import ThePart
from ensue.platform.web.answers import MISSING
from ensue.platform.web.identity import Organiser, ThePlatform, signed_in

router = APIRouter(prefix="/api/v1", tags=["annotation projects"])
_LARGEST = 60_000_000
_FILES = 10
_REFUSED: dict[int | str, dict[str, Any]] = {**REFUSALS, **MISSING, 409: {"model": Problem}}


class NewProject(BaseModel):
    """A project without data of its own; with data, the same as fields of a multipart form, and its files."""

    kind: str = Field(max_length=60)
    name: str = Field(max_length=60)
    title: str = Field("", max_length=200)
    settings: dict[str, Any] = Field(default_factory=dict)
    seed: int = Field(0, ge=0, le=2**53)


class State(BaseModel):
    """open, paused or closed."""

    state: str = Field(max_length=20)


class TopUp(BaseModel):
    """How many people answer each item from now on."""

    labels: int = Field(ge=1, le=1000)


def install(app: FastAPI, platform: Platform) -> None:
    app.state.larger_bodies["/api/v1/projects"] = _LARGEST
    app.include_router(router)


@router.get("/annotation-kinds", responses=_REFUSED)
def list_kinds(user: Organiser) -> list[dict[str, Any]]:
    """List the kinds of projects with their settings."""
    return [described(name) for name in sorted(kinds())]


@router.get("/projects", responses=_REFUSED)
def list_projects(platform: ThePlatform, part: ThePart, user: Organiser) -> list[dict[str, Any]]:
    """List the caller's projects; an admin's are all of them."""
    with platform.database.reading() as connection:
        found = part.projects.all(connection)
        return [overview.facts(project) for project in found if project.belongs_to(user)]


@router.post("/projects", status_code=201, responses=_REFUSED)
async def create(request: Request, platform: ThePlatform, part: ThePart) -> Response:
    """Make a project, a draft until it is opened: of JSON, or of a multipart form with its data (files, one zip).

    A file of the form that is called as a setting which names a file is that file.
    """
    user = await run_in_threadpool(signed_in, request)
    if not user.may("organiser"):
        raise Forbidden("Only those with the role organiser may do this.")
    if request.headers.get("content-type", "").startswith("multipart/form-data"):
        async with request.form(max_files=_FILES, max_fields=20, max_part_size=200_000) as form:
            fields = {key: value for key, value in form.items() if isinstance(value, str)}
            wanted, upload = _read(fields), _upload(_read(fields).kind, form)
            made = await run_in_threadpool(_create, platform, user, wanted, upload)
    else:
        wanted = _read(await _body(request))
        made = await run_in_threadpool(_create, platform, user, wanted, Upload())
    return JSONResponse(made, 201)


async def _body(request: Request) -> Mapping[str, Any]:
    try:
        found = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise Invalid("The body is no JSON.") from None
    if not isinstance(found, dict):
        raise Invalid("The body is no object.")
    return found


def _read(fields: Mapping[str, Any]) -> NewProject:
    """Read what is wanted; in a form, settings are JSON."""
    given = {key: value for key, value in fields.items() if key in NewProject.model_fields}
    try:
        if isinstance(given.get("settings"), str):
            given["settings"] = json.loads(given["settings"] or "{}")
        return NewProject(**given)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise Invalid(f"{place}: {first['msg'].rstrip('.').lower()}.") from None
    except (ValueError, RecursionError):
        raise Invalid("The settings are no JSON.") from None


def _upload(name: str, form: FormData) -> Upload:
    """Return the files of a form: those that a setting of the kind names, and the data."""
    settings = settings_of(kind(name)) if name in kinds() else {}
    naming = {key for key, one in settings.items() if reading.is_file(one.read)}
    files, named = [], {}
    for field, one in form.multi_items():
        if isinstance(one, UploadFile) and one.filename:
            given = GivenFile(one.filename, one.file)
            if field in naming:
                named[field] = given
            else:
                files.append(given)
    return Upload(files, named)


def _create(platform: Platform, user: User, wanted: NewProject, upload: Upload) -> dict[str, Any]:
    new = Wanted(wanted.name, wanted.kind, settings=wanted.settings, seed=wanted.seed, title=wanted.title)
    project, notes = make(platform, new, upload, by=user.id)
    return {**overview.facts(project), "notes": notes}


@router.get("/projects/{name}", responses=_REFUSED)
def show(platform: ThePlatform, part: ThePart, user: Organiser, name: str) -> dict[str, Any]:
    """Return a project with how far it is and who is at work on it."""
    with platform.database.reading() as connection:
        project = own(connection, part, user, name)
        return overview.facts(project) | overview.overview(connection, project, platform.clock)


@router.get("/projects/{name}/overview", responses=_REFUSED)
def show_overview(platform: ThePlatform, part: ThePart, user: Organiser, name: str) -> dict[str, Any]:
    """Return how far a project is, who is at work on it, and what its answers say so far."""
    with platform.database.reading() as connection:
        return overview.overview(connection, own(connection, part, user, name), platform.clock)


@router.get("/projects/{name}/items/{place}", responses=_REFUSED)
def show_item(platform: ThePlatform, part: ThePart, user: Organiser, name: str, place: int) -> dict[str, Any]:
    """Return an item, by its place from 1 on, as people see it, and what is right."""
    with platform.database.reading() as connection:
        found = looking.item_at(connection, own(connection, part, user, name), place)
    if found is None:
        raise NotFound(f"{name} has no item {place}.")
    return found


@router.post("/projects/{name}/state", responses=_REFUSED)
def set_state(
    platform: ThePlatform, part: ThePart, user: Organiser, name: str, given: Annotated[State, Body()]
) -> dict[str, Any]:
    """Open, pause or close a project."""
    _check(platform, part, user, name)
    return overview.facts(part.projects.set_state(name, given.state, by=user.id))


@router.post("/projects/{name}/top-up", responses=_REFUSED)
def top_up(
    platform: ThePlatform, part: ThePart, user: Organiser, name: str, given: Annotated[TopUp, Body()]
) -> dict[str, Any]:
    """Have each item answered by more people."""
    _check(platform, part, user, name)
    return overview.facts(part.projects.top_up(name, given.labels, by=user.id))


@router.delete("/projects/{name}", status_code=204, responses=_REFUSED)
def delete(platform: ThePlatform, part: ThePart, user: Organiser, name: str) -> Response:
    """Delete a project with everybody's answers."""
    _check(platform, part, user, name)
    part.projects.delete(name, by=user.id)
    return Response(status_code=204)


@router.post("/projects/{name}/participants/{pseudonym}/exclude", responses=_REFUSED)
def exclude(
    platform: ThePlatform, part: ThePart, user: Organiser, name: str, pseudonym: str
) -> dict[str, Any]:
    """Take somebody off a project; their work is void and done again by others."""
    _check(platform, part, user, name)
    return {"annotator": pseudonym, "void": part.people.exclude(name, pseudonym, by=user.id)}


@router.delete("/projects/{name}/participants/{pseudonym}", status_code=204, responses=_REFUSED)
def forget(platform: ThePlatform, part: ThePart, user: Organiser, name: str, pseudonym: str) -> Response:
    """Delete a person's answers and everything stored about them."""
    _check(platform, part, user, name)
    part.people.forget(name, pseudonym, by=user.id)
    return Response(status_code=204)


@router.get("/projects/{name}/export", responses=_REFUSED, response_class=Response)
def export(
    platform: ThePlatform, part: ThePart, user: Organiser, name: str, history: bool = False
) -> Response:
    """Return the final answers as JSON lines, or everything that was ever saved (`history`)."""
    _check(platform, part, user, name)

    def lines() -> Iterator[str]:
        with platform.database.reading() as connection:
            project = part.projects.find(connection, name)
            rows = exporting.history_lines if history else exporting.lines
            for row in rows(connection, project):
                yield json.dumps(row, ensure_ascii=False) + "\n"

    return _file(StreamingResponse(lines(), media_type="application/jsonl; charset=utf-8"), f"{name}.jsonl")


@router.get("/projects/{name}/export.csv", responses=_REFUSED, response_class=Response)
def export_csv(platform: ThePlatform, part: ThePart, user: Organiser, name: str) -> Response:
    """Return the final answers as a table."""
    with platform.database.reading() as connection:
        project = own(connection, part, user, name)
        rows = exporting.lines(connection, project)
        next(rows)
        text = exporting.as_csv(rows)
    return _file(Response(text, media_type="text/csv; charset=utf-8"), f"{name}.csv")


@router.get("/projects/{name}/bonuses.csv", responses=_REFUSED, response_class=Response)
def bonuses(platform: ThePlatform, part: ThePart, user: Organiser, name: str) -> Response:
    """Return who is to be paid how much beyond the agreed, by the other site's ids; nothing is paid here."""
    with platform.database.reading() as connection:
        text = exporting.bonuses(connection, own(connection, part, user, name))
    return _file(Response(text, media_type="text/csv; charset=utf-8"), f"{name}-bonuses.csv")


def _file(response: Response, name: str) -> Response:
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def own(connection: Connection, part: Answering, user: User, name: str) -> Project:
    """Return a project that a user keeps; another's is not found."""
    project = part.projects.find(connection, name)
    if not project.belongs_to(user):
        raise no_project(name)
    return project


def _check(platform: Platform, part: Answering, user: User, name: str) -> None:
    with platform.database.reading() as connection:
        own(connection, part, user, name)
