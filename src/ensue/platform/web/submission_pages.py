"""The pages of submissions: handing one in, following it, publishing it; without scripts they do all the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import anyio.to_thread
from fastapi import APIRouter, FastAPI, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.responses import RedirectResponse, Response

from ensue.platform.accounts import User
from ensue.platform.boards.handed import Problems
from ensue.platform.boards.reading import board_columns
from ensue.platform.boards.standing import diagnostics
from ensue.platform.database.schema import new_id
from ensue.platform.refusals import Invalid, Refusal
from ensue.platform.service import Platform
from ensue.platform.web.account_pages import Text
from ensue.platform.web.board_api import BoardPart, ThePart
from ensue.platform.web.identity import Caller, MaybeCaller, ThePlatform, identify, the_platform
from ensue.platform.web.rendering import parsed, render
from ensue.report.figure import Figure

router = APIRouter(include_in_schema=False)
_FIELDS = ("system", "description", "parameters", "sharing", "data", "link", "affiliation", "code", "email")
_OVERHEAD = 2_000_000
_DONE = {
    "published": "It is published and on the board.",
    "withdrawn": "It is off the board; you alone see it.",
    "cancelled": "It is cancelled, and the quota has it back.",
}


def install(app: FastAPI, platform: Platform) -> None:
    # Nothing else under this address takes a body at all.
    app.state.larger_bodies["/boards/"] = platform.settings.largest_upload + _OVERHEAD
    app.state.templates.filters["figure"] = figure
    app.include_router(router)


def figure(row: Mapping[str, Any]) -> Figure | None:
    """Return a metric row, rounded already, as a figure."""
    return None if row["value"] is None else Figure.of(row)


# Handing in


@router.get("/boards/{name}/submit")
def submit_page(
    request: Request, platform: ThePlatform, part: ThePart, user: MaybeCaller, name: str
) -> Response:
    """The form to hand something in."""
    if user is None:
        with platform.database.reading() as connection:
            part.boards.find(connection, name)
        return RedirectResponse(f"/sign-in?next=/boards/{name}/submit", 303)
    given = {"affiliation": user.affiliation, "email": user.email}
    return _submit_page(request, platform, part, user, name, given)


def _submit_page(
    request: Request,
    platform: Platform,
    part: BoardPart,
    user: User,
    name: str,
    given: Mapping[str, str],
    *,
    status: int = 200,
    words: str = "",
    problems: Sequence[Mapping[str, Any]] = (),
) -> Response:
    with platform.database.reading() as connection:
        board = part.boards.find(connection, name)
        quota = part.submissions.quota(connection, user.id, board)
    facts: dict[str, Any] = {
        "board": board,
        "quota": quota,
        "given": {field: given.get(field, "") for field in _FIELDS},
        # One form is one submission, however often it is sent.
        "key": given.get("key") or new_id(),
        "most": platform.settings.largest_upload,
    }
    return render(request, "submit.html.j2", status=status, words=words, problems=problems, **facts)


@router.post("/boards/{name}/submit")
async def submit(request: Request, platform: ThePlatform, part: ThePart, name: str) -> Response:
    """Hand something in with a form."""
    user = await run_in_threadpool(identify, request)
    if user is None:
        return RedirectResponse(f"/sign-in?next=/boards/{name}/submit", 303)
    request.app.state.rates.take("upload", user.id)
    form = await request.form()
    given = {field: value for field, value in form.items() if isinstance(value, str)}
    again = partial(_submit_page, request, platform, part, user, name, given)
    file = form.get("file")
    try:
        if not isinstance(file, UploadFile) or not file.filename:
            raise Invalid("Choose a file with your predictions.")
        hand_in = partial(part.submissions.hand_in, user, name, file.file, file.filename, given)
        made = await anyio.to_thread.run_sync(hand_in, given.get("key"), limiter=part.uploading)
    except Problems as found:
        page = partial(again, status=found.status, words=str(found), problems=found.problems)
        return await run_in_threadpool(page)
    except Refusal as refusal:
        return await run_in_threadpool(partial(again, status=refusal.status, words=str(refusal)))
    return RedirectResponse(f"/submissions/{made}", 303)


# Following


@router.get("/submissions")
def own(request: Request, platform: ThePlatform, part: ThePart, user: MaybeCaller) -> Response:
    """Everything that the user handed in."""
    if user is None:
        return RedirectResponse("/sign-in?next=/submissions", 303)
    with platform.database.reading() as connection:
        boards = {board.name: board for board in part.boards.all(connection)}
        found = part.views.own(connection, user)
        quotas = [
            (board, part.submissions.quota(connection, user.id, board))
            for board in boards.values()
            if board.takes_submissions
        ]
    return render(request, "submissions.html.j2", found=found, boards=boards, quotas=quotas)


@router.get("/submissions/{id}")
def show(request: Request, part: ThePart, user: MaybeCaller, id: str, done: str = "") -> Response:
    """One submission: to its owner everything, to others what is published."""
    return _show(request, part, user, id, done=_DONE.get(done, ""))


def _show(request: Request, part: BoardPart, user: User | None, id: str, **said: Any) -> Response:
    platform = the_platform(request)
    with platform.database.reading() as connection:
        found = part.views.show(connection, user, id)
        board = part.boards.find(connection, found["board"])
        main, columns = board_columns(connection, board.id)
    shown, scores = request.app.state.reader.show(board.name), found["scores"]
    facts = {
        "one": found,
        "entry": {**found, "published_at": parsed(found["published_at"])},
        "board": board,
        "main": (main.task, main.metric),
        "row": next((row for row in shown.rows if row.entry.id == id), None),
        "is_own": "email" in found,
        "regrading": shown.regrading,
        "columns": columns,
        "past": [
            (
                {**one, "graded_at": parsed(one["graded_at"])},
                None if one["score"] is None else Figure(one["score"]),
                [column.find(one["metrics"], board.rounding) for column in columns],
            )
            for one in reversed(found["history"])
        ],
        "heat": diagnostics(scores["diagnostics"], board.rounding) if scores else {},
        "digits": board.rounding,
    }
    return render(request, "submission.html.j2", **said, **facts)


# Publishing


@router.post("/submissions/{id}/publish")
def publish(
    request: Request, platform: ThePlatform, part: ThePart, user: Caller, id: str, anonymous: Text = ""
) -> Response:
    do = partial(part.submissions.publish, user, id, anonymous=bool(anonymous))
    return _change(request, platform, part, user, id, do, "published")


@router.post("/submissions/{id}/withdraw")
def withdraw(request: Request, platform: ThePlatform, part: ThePart, user: Caller, id: str) -> Response:
    do = partial(part.submissions.withdraw, user, id)
    return _change(request, platform, part, user, id, do, "withdrawn")


@router.post("/submissions/{id}/cancel")
def cancel(request: Request, platform: ThePlatform, part: ThePart, user: Caller, id: str) -> Response:
    do = partial(part.submissions.cancel, user, id)
    return _change(request, platform, part, user, id, do, "cancelled")


def _change(
    request: Request,
    platform: Platform,
    part: BoardPart,
    user: User,
    id: str,
    do: partial[None],
    done: str,
) -> Response:
    try:
        do()
    except Refusal as refusal:
        if refusal.status == 404:
            raise
        return _show(request, part, user, id, status=refusal.status, words=str(refusal))
    return RedirectResponse(f"/submissions/{id}?done={done}", 303)
