"""The organiser's pages: make a board of what is uploaded, give it labels, change, open and close it, take it home.

A board is changed by who made it and by admins. Everything works without scripts; with them, an upload shows how far
it is, and what is wrong with it is said on the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from os import fstat
from typing import Any, BinaryIO, TypeVar

import anyio.to_thread
from fastapi import APIRouter, FastAPI, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

from ensue.errors import EnsueError
from ensue.platform.accounts import User
from ensue.platform.boards import keeping
from ensue.platform.boards.baselines import Baselines
from ensue.platform.boards.board import Wanted, may_change
from ensue.platform.boards.exporting import zipped_board
from ensue.platform.boards.labels import take_definition
from ensue.platform.refusals import Invalid, NotFound, Refusal
from ensue.platform.service import Platform
from ensue.platform.uploads import MOST_FILES, GivenFile, laid_out
from ensue.platform.web.board_api import BoardPart, ThePart
from ensue.platform.web.identity import Organiser, ThePlatform, the_platform
from ensue.platform.web.rendering import render

T = TypeVar("T")
router = APIRouter(include_in_schema=False)
_OVERHEAD = 2_000_000
_MOST_TOML = 1_000_000
_PIECE = 1 << 18
_NUMBERS = {"quota_day": "The quota a day", "quota_month": "The quota a month", "rounding": "The rounding"}
_BEFORE = {
    "name": "",
    "suite": "",
    "title": "",
    "about": "",
    "split": "",
    "tasks": "",
    "settings": "",
    "partial": "",
    "quota_day": "2",
    "quota_month": "6",
    "rounding": "3",
}
_DONE = {
    "made": "The board is made and takes submissions.",
    "saved": "Saved.",
    "opened": "The board takes submissions.",
    "closed": "The board takes no more submissions; what is on it stays.",
    "labels": "The labels are replaced; everything that was graded is graded again.",
    "same": "These are the labels that the board has already; nothing is changed.",
    "regraded": "Everything that was graded is graded again.",
    "baselines": "The baselines are on the board.",
}


def install(app: FastAPI, platform: Platform) -> None:
    app.state.templates.globals["may_change"] = may_change
    app.state.larger_bodies["/organise/"] = platform.settings.largest_upload + _OVERHEAD
    app.include_router(router)


def _suites() -> list[str]:
    """Return the benchmarks that a board can be of."""
    from ensue.benchmarks import registry

    return [one.name for one in registry.every() if one.grader is not None]


# All boards of an organiser


@router.get("/organise")
def overview(request: Request, platform: ThePlatform, part: ThePart, user: Organiser) -> Response:
    """The boards that the user may change."""
    with platform.database.reading() as connection:
        boards = part.boards.kept_by(connection, user)
        found = [(board, keeping.counts(connection, board.id)) for board in boards]
    return render(request, "organise.html.j2", found=found)


# A new board


@router.get("/organise/new")
def new_page(request: Request, platform: ThePlatform, user: Organiser) -> Response:
    """The form of a new board."""
    return _new_page(request, _BEFORE)


def _new_page(request: Request, given: Mapping[str, str], *, status: int = 200, words: str = "") -> Response:
    facts = {
        "given": {field: given.get(field, before) for field, before in _BEFORE.items()},
        "suites": _suites(),
        "most": request.app.state.platform.settings.largest_upload,
        "most_files": MOST_FILES,
    }
    return render(request, "organise_new.html.j2", status=status, words=words, **facts)


@router.post("/organise/new")
async def create(request: Request, platform: ThePlatform, part: ThePart, user: Organiser) -> Response:
    """Make a board of what was uploaded."""
    form = await _form(request, user)
    said = {"partial": "", **_texts(form)}
    make = partial(_create, platform, part, user, said, *_files(form))
    return await _uploaded(request, part, make, partial(_new_page, request, said))


def _create(
    platform: Platform,
    part: BoardPart,
    user: User,
    said: Mapping[str, str],
    zipped: GivenFile | None,
    files: Sequence[GivenFile],
) -> str:
    suite = said.get("suite", "").strip() or None
    numbers = {key: _number(said.get(key, _BEFORE[key]), words) for key, words in _NUMBERS.items()}
    with laid_out(platform, zipped, files) as folder:
        toml = take_definition(folder)
        if suite is None and toml is None:
            raise Invalid("The upload has no board.toml at its top; add one, or choose a benchmark.")
        if suite is not None and toml is not None:
            raise Invalid(
                f"The upload has a board.toml, so it is no {suite}; choose your own data, or leave it out."
            )
        wanted = Wanted(
            said.get("name", "").strip(),
            suite=suite,
            toml=toml,
            split=said.get("split", "").strip() or None,
            tasks=[task.strip() for task in said.get("tasks", "").split(",") if task.strip()],
            settings=_settings(said.get("settings", "")),
            partial=bool(said.get("partial")),
            title=said.get("title", "").strip(),
            about=said.get("about", "").strip(),
            **numbers,
        )
        made = part.boards.create(wanted, folder, by=user.id)
    return f"/organise/{made.name}?done=made"


def _settings(words: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in words.split():
        key, equals, value = pair.partition("=")
        if not equals or not key or key in found:
            raise Invalid(f"The setting {pair[:60]!r} is not of the form key=value, or comes twice.")
        found[key.replace("-", "_")] = value
    return found


def _number(text: str, words: str) -> int:
    if not (text.strip().isascii() and text.strip().isdecimal() and len(text.strip()) < 10):
        raise Invalid(f"{words} is not a whole number.")
    return int(text)


# One board


@router.get("/organise/{name}")
def board_page(request: Request, part: ThePart, user: Organiser, name: str, done: str = "") -> Response:
    """Everything that an organiser may do with a board."""
    return _board_page(request, part, user, name, done=_DONE.get(done, ""))


def _board_page(request: Request, part: BoardPart, user: User, name: str, **said: Any) -> Response:
    platform = the_platform(request)
    with platform.database.reading() as connection:
        board = part.boards.find_kept(connection, user, name)
        facts: dict[str, Any] = {
            "board": board,
            "counts": keeping.counts(connection, board.id),
            "handed_in": keeping.handed_in(connection, board.id),
            "acts": keeping.acts(connection, board.id),
        }
    facts |= {"most": platform.settings.largest_upload, "most_files": MOST_FILES, "listed": keeping.LISTED}
    facts["address"] = f"{_base(request, platform)}/boards/{board.name}"
    return render(request, "organise_board.html.j2", **said, **facts)


def _base(request: Request, platform: Platform) -> str:
    return platform.settings.public_url.rstrip("/") or str(request.base_url).rstrip("/")


@router.post("/organise/{name}/settings")
async def change(
    request: Request, platform: ThePlatform, part: ThePart, user: Organiser, name: str
) -> Response:
    """Change a board's words, quotas and rounding, and whether it is listed."""
    said = _texts(await _form(request, user))

    def do() -> str:
        values: dict[str, Any] = {key: said[key] for key in ("title", "about") if key in said}
        values |= {key: _number(said[key], words) for key, words in _NUMBERS.items() if key in said}
        part.boards.change(name, {**values, "is_listed": "listed" in said}, by=user.id)
        return "saved"

    return await _changed(request, platform, part, user, name, do)


@router.post("/organise/{name}/open")
async def open_board(
    request: Request, platform: ThePlatform, part: ThePart, user: Organiser, name: str
) -> Response:
    """Open a board for submissions."""
    return await _changed(request, platform, part, user, name, partial(_open, part, user, name, is_open=True))


@router.post("/organise/{name}/close")
async def close_board(
    request: Request, platform: ThePlatform, part: ThePart, user: Organiser, name: str
) -> Response:
    """Have a board take no more submissions."""
    return await _changed(
        request, platform, part, user, name, partial(_open, part, user, name, is_open=False)
    )


def _open(part: BoardPart, user: User, name: str, *, is_open: bool) -> str:
    part.boards.change(name, {"is_open": is_open}, by=user.id)
    return "opened" if is_open else "closed"


@router.post("/organise/{name}/labels")
async def give_labels(
    request: Request, platform: ThePlatform, part: ThePart, user: Organiser, name: str
) -> Response:
    """Give a board other labels; every standing submission is graded again."""
    zipped, files = _files(await _form(request, user))

    def do() -> str:
        with platform.database.reading() as connection:
            board = part.boards.find_kept(connection, user, name)
        with laid_out(platform, zipped, files) as folder:
            toml, own = take_definition(folder), str(board.definition.get("toml", ""))
            if toml is not None and toml.strip() != own.strip():
                raise Invalid(
                    "The board.toml in the upload is not the board's own; leave it out, or make a new board with it."
                )
            made = part.submissions.replace_labels(name, folder, by=user.id)
        return "same" if made["labels_version"] == board.labels_version else "labels"

    return await _changed(request, platform, part, user, name, do)


@router.post("/organise/{name}/regrade")
async def regrade(
    request: Request, platform: ThePlatform, part: ThePart, user: Organiser, name: str
) -> Response:
    """Grade everything again with the labels that a board has."""

    def do() -> str:
        part.submissions.regrade(name, by=user.id)
        return "regraded"

    return await _changed(request, platform, part, user, name, do)


@router.post("/organise/{name}/baselines")
async def import_baselines(
    request: Request, platform: ThePlatform, part: ThePart, user: Organiser, name: str
) -> Response:
    """Put baselines on a board: those of a file, or what is known of its benchmark where none is sent."""
    file, _ = _files(await _form(request, user))

    def do() -> str:
        baselines = Baselines(part.boards)
        if file is None:
            baselines.import_published(name)
        else:
            try:
                baselines.import_file(name, file.file.read(_MOST_TOML).decode())
            except UnicodeDecodeError:
                raise Invalid("The file of baselines is not text in UTF-8.") from None
        return "baselines"

    return await _changed(request, platform, part, user, name, do)


@router.post("/organise/{name}/export")
def export(platform: ThePlatform, part: ThePart, user: Organiser, name: str) -> Response:
    """Everything of a board but its labels, as a zip."""
    with platform.database.reading() as connection:
        board = part.boards.find_kept(connection, user, name)
    file = zipped_board(platform, board.name)
    day = f"{platform.clock.now():%Y-%m-%d}"
    headers = {"Content-Disposition": f'attachment; filename="{board.name}-{day}.zip"'}
    headers["Content-Length"] = str(fstat(file.fileno()).st_size)
    return StreamingResponse(_pieces(file), media_type="application/zip", headers=headers)


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while piece := file.read(_PIECE):
            yield piece


# What forms send, and what they are answered


async def _form(request: Request, user: User) -> FormData:
    request.app.state.rates.take("upload", user.id)
    return await request.form()


def _texts(form: FormData) -> dict[str, str]:
    return {name: value for name, value in form.items() if isinstance(value, str)}


def _files(form: FormData) -> tuple[GivenFile | None, list[GivenFile]]:
    """Return the zip and the files of the folder that were chosen; a browser sends an unnamed file for none."""
    file, *_ = [*_given(form, "file"), None]
    return file, _given(form, "folder")


def _given(form: FormData, field: str) -> list[GivenFile]:
    sent = [one for one in form.getlist(field) if isinstance(one, UploadFile)]
    return [GivenFile(one.filename, one.file) for one in sent if one.filename]


async def _changed(
    request: Request, platform: Platform, part: BoardPart, user: User, name: str, do: Callable[[], str]
) -> Response:
    """Change a board that the user may change, and show it."""

    def checked() -> str:
        with platform.database.reading() as connection:
            part.boards.find_kept(connection, user, name)
        return f"/organise/{name}?done={do()}"

    page = partial(_board_page, request, part, user, name)
    return await _uploaded(request, part, checked, page)


async def _uploaded(
    request: Request, part: BoardPart, do: Callable[[], str], page: Callable[..., Response]
) -> Response:
    """Do something with what was sent and lead to the address it returns; a page says why it was not done."""
    wants_page = "text/html" in request.headers.get("accept", "")
    try:
        address = await anyio.to_thread.run_sync(do, limiter=part.uploading)
    except EnsueError as error:
        status = error.status if isinstance(error, Refusal) else 422
        if not wants_page or status in {403, NotFound.status}:
            raise
        return await run_in_threadpool(partial(page, status=status, words=str(error)))
    if not wants_page:
        return JSONResponse({"location": address}, 201)
    return RedirectResponse(address, 303)
