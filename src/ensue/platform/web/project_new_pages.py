"""The organiser's page that makes an annotation project: choose a kind, hand in data, say what its settings are.

Its fields are made of the tables of settings that the command line reads. It works without scripts; with them, an
upload shows how far it is and a refusal leaves everything as it was filled in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple

import anyio.to_thread
from fastapi import APIRouter, FastAPI, Request
from markupsafe import Markup, escape
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.responses import JSONResponse, RedirectResponse, Response

from ensue.benchmarks import settings as reading
from ensue.benchmarks.base import Setting
from ensue.benchmarks.people.kind import COMMON, kind, kinds, settings_of
from ensue.errors import EnsueError
from ensue.platform.annotation.making import Upload, make
from ensue.platform.annotation.projects import Wanted
from ensue.platform.refusals import Forbidden, Invalid, NotFound, Refusal
from ensue.platform.service import Platform
from ensue.platform.uploads import MOST_FILES, GivenFile
from ensue.platform.web.identity import Organiser, ThePlatform, identify
from ensue.platform.web.rendering import render

router = APIRouter(include_in_schema=False)
_OVERHEAD = 2_000_000
_MADE_AT_ONCE = 2
_PREFIX = "set-"
_NO_KIND = "There is no such kind of project."
_LONG = {"consent"}  # what takes more than a line


def install(app: FastAPI, platform: Platform) -> None:
    app.state.larger_bodies["/projects/new/"] = platform.settings.largest_upload + _OVERHEAD
    app.state.templates.filters["code"] = code
    app.state.making = anyio.CapacityLimiter(_MADE_AT_ONCE)
    app.include_router(router)


class Input(NamedTuple):
    """A setting as a form asks for it."""

    key: str
    about: str
    default: str
    choices: tuple[str, ...]
    is_file: bool
    is_long: bool

    @property
    def field(self) -> str:
        """What the field is called in the form."""
        return f"{_PREFIX}{self.key}"

    @property
    def words(self) -> str:
        """What the field is called on the page."""
        return self.key.replace("_", " ")


def inputs(settings: Mapping[str, Setting]) -> Iterator[Input]:
    """Yield what a form asks for each setting."""
    for key, one in settings.items():
        choices, is_file = reading.choices_of(one.read), reading.is_file(one.read)
        yield Input(key, one.about, reading.written(one.default), choices, is_file, key in _LONG)


def code(words: str) -> Markup:
    """Set what stands between backticks as code.

    >>> str(code("a `b<c>` d"))
    'a <code>b&lt;c&gt;</code> d'
    """
    parts = [escape(part) for part in words.split("`")]
    return Markup("").join(Markup(f"<code>{part}</code>") if n % 2 else part for n, part in enumerate(parts))


@router.get("/projects/new")
def choose_page(request: Request, user: Organiser) -> Response:
    """The kinds of projects, to choose one."""
    known = [(name, kind(name).about) for name in sorted(kinds(), key=lambda name: (name == "custom", name))]
    return render(request, "project_kinds.html.j2", known=known)


@router.get("/projects/new/{name}")
def new_page(request: Request, user: Organiser, name: str) -> Response:
    """The form to make a project of a kind."""
    return _new_page(request, name, {})


def _new_page(
    request: Request, name: str, given: Mapping[str, str], *, status: int = 200, words: str = ""
) -> Response:
    if name not in kinds():
        raise NotFound(_NO_KIND)
    found = kind(name)
    known = settings_of(found)
    facts = {
        "kind": found,
        "given": given,
        "own": list(inputs({key: one for key, one in known.items() if key not in COMMON})),
        "common": list(inputs({key: one for key, one in known.items() if key in COMMON})),
        "most": request.app.state.platform.settings.largest_upload,
        "most_files": MOST_FILES,
    }
    return render(request, "project_new.html.j2", status=status, words=words, **facts)


@router.post("/projects/new/{name}")
async def create(request: Request, platform: ThePlatform, name: str) -> Response:
    """Make a project of a kind of what is handed in."""
    user = await run_in_threadpool(identify, request)
    if user is None:
        return RedirectResponse(f"/sign-in?next=/projects/new/{name}", 303)
    if not user.may("organiser"):
        raise Forbidden("Only those with the role organiser may do this.")
    if name not in kinds():
        raise NotFound(_NO_KIND)
    request.app.state.rates.take("upload", user.id)
    form = await request.form()
    given = {field: value for field, value in form.items() if isinstance(value, str)}
    wants_page = "text/html" in request.headers.get("accept", "")
    try:
        wanted, upload = _read(name, given), _upload(form)
        do = partial(make, platform, wanted, upload, by=user.id)
        project, _ = await anyio.to_thread.run_sync(do, limiter=request.app.state.making)
    except EnsueError as error:
        status = error.status if isinstance(error, Refusal) else 422
        if not wants_page:
            raise
        page = partial(_new_page, request, name, given, status=status, words=str(error))
        return await run_in_threadpool(page)
    address = f"/projects/{project.name}?done=made"
    return RedirectResponse(address, 303) if wants_page else JSONResponse({"location": address}, 201)


def _read(name: str, given: Mapping[str, str]) -> Wanted:
    """Read what is wanted; a setting that is left empty is as it is without it."""
    settings = {
        field.removeprefix(_PREFIX): value.strip().replace("\r\n", "\n")
        for field, value in given.items()
        if field.startswith(_PREFIX) and value.strip()
    }
    seed = given.get("seed", "").strip() or "0"
    if not (seed.isascii() and seed.isdecimal() and len(seed) < 16):
        raise Invalid("The seed is not a whole number.")
    title = given.get("title", "").strip()
    return Wanted(given.get("name", "").strip()[:61], name, settings=settings, seed=int(seed), title=title)


def _upload(form: FormData) -> Upload:
    """Return the data and the files that settings name; a browser sends an unnamed file for none."""
    sent = [
        (field, GivenFile(one.filename, one.file))
        for field, one in form.multi_items()
        if isinstance(one, UploadFile) and one.filename
    ]
    named = {
        field.removeprefix(_PREFIX): GivenFile(one.name.rpartition("/")[2], one.file)
        for field, one in sent
        if field.startswith(_PREFIX)
    }
    return Upload([one for field, one in sent if field in ("file", "folder")], named)
