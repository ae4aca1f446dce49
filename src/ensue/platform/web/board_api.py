"""What programs may ask of boards and submissions: `/api/v1`."""

from __future__ import annotations

from typing import Annotated, Any

import anyio.to_thread
from fastapi import APIRouter, Depends, FastAPI, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.responses import JSONResponse, Response

from ensue.platform.boards import exports, labels
from ensue.platform.boards.baselines import Baselines
from ensue.platform.boards.board import Board, Boards
from ensue.platform.boards.handed import Problems
from ensue.platform.boards.submissions import Submissions
from ensue.platform.boards.views import Views
from ensue.platform.logs import tell
from ensue.platform.refusals import Invalid
from ensue.platform.service import Platform
from ensue.platform.web.account_api import REFUSALS, Problem
from ensue.platform.web.answers import (
    MISSING,
    UPLOAD,
    Accepted,
    BoardFacts,
    Problematic,
    Publication,
    QuotaUsed,
    ShownBoard,
    Spent,
    Submission,
)
from ensue.platform.web.board_pages import json_of, show
from ensue.platform.web.identity import Caller, MaybeCaller, ThePlatform, signed_in

router = APIRouter(prefix="/api/v1", tags=["boards"])
_FIELDS = 40  # of one form
_FIELD_BYTES = 200_000
_OVERHEAD = 2_000_000  # of a body beyond its file


class BoardPart:
    """What the routes of boards and submissions share."""

    def __init__(self, platform: Platform) -> None:
        self.boards, self.submissions = Boards(platform), Submissions(platform)
        self.views = Views(self.boards, platform.queue)
        # Uploads wait here, not in the threads that answer everybody else.
        self.uploading = anyio.CapacityLimiter(2 * platform.settings.checks_at_once)


def install(app: FastAPI, platform: Platform) -> None:
    app.state.board_part = BoardPart(platform)
    baselines = Baselines(app.state.board_part.boards)
    app.state.larger_bodies["/api/v1/boards/"] = platform.settings.largest_upload + _OVERHEAD
    platform.at_start += [
        lambda: labels.tidy(platform.home, platform.database),
        lambda: tell("boards made", count=baselines.make_bundled()),
    ]
    app.add_exception_handler(Problems, _problems)
    app.include_router(router)


async def _problems(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problems)
    return JSONResponse({"error": str(error), "problems": error.problems}, error.status)


async def the_part(request: Request) -> BoardPart:
    """Return what the routes share; not a plain function, which would be run in another thread."""
    part: BoardPart = request.app.state.board_part
    return part


ThePart = Annotated[BoardPart, Depends(the_part)]


# Boards


@router.get("/boards")
def list_boards(platform: ThePlatform, part: ThePart) -> list[BoardFacts]:
    """List the boards."""
    with platform.database.reading() as connection:
        return [_facts(board) for board in part.boards.all(connection, listed=True)]


@router.get(
    "/boards/{board}.csv", responses={**MISSING, 200: {"content": {"text/csv": {}}}}, response_class=Response
)
def show_csv(request: Request, platform: ThePlatform, board: str, date: str = "") -> Response:
    """Return a board as a table: a row for each submission and baseline."""
    text = exports.as_csv(show(request, board, date))
    return Response(text, media_type="text/csv; charset=utf-8")


@router.get("/boards/{board}", responses=MISSING, response_model=ShownBoard)
def show_board(request: Request, platform: ThePlatform, board: str, date: str = "") -> Response:
    """Return a board: its columns and what is published on it, the best first, without a score last.

    With a date, as it stood at the end of that day in UTC.
    """
    return json_of(show(request, board, date))


@router.get("/boards/{board}/quota", responses={401: {"model": Problem}, **MISSING})
def quota(platform: ThePlatform, part: ThePart, user: Caller, board: str) -> QuotaUsed:
    """Return what the caller has used of a board's quota today and this month, in UTC."""
    with platform.database.reading() as connection:
        found = part.boards.find(connection, board)
        used = part.submissions.quota(connection, user.id, found)
    return QuotaUsed(
        day=used.day,
        month=used.month,
        quota_day=found.quota_day,
        quota_month=found.quota_month,
        retry_at=used.retry_at.isoformat() if used.retry_at else None,
    )


def _facts(board: Board) -> BoardFacts:
    told = {name: getattr(board, name) for name in BoardFacts.model_fields if name in Board._fields}
    labels_at = board.labels_at.isoformat() if board.labels_at else None
    return BoardFacts(
        **{**told, "labels_at": labels_at, "takes": board.suffix, "is_open": board.takes_submissions}
    )


# Submissions


@router.post(
    "/boards/{board}/submissions",
    status_code=201,
    response_model=Accepted,
    responses={
        **REFUSALS,
        **MISSING,
        400: {"model": Problem},
        409: {"model": Problem},
        413: {"model": Problem},
        422: {"model": Problematic},
        429: {"model": Spent},
        503: {"model": Problem},
    },
    openapi_extra={
        "requestBody": {"required": True, "content": {"multipart/form-data": {"schema": UPLOAD}}},
        "parameters": [
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": False,
                "description": "the same key again is the same submission",
                "schema": {"type": "string", "maxLength": 200},
            }
        ],
    },
)
async def submit(request: Request, platform: ThePlatform, part: ThePart, board: str) -> Response:
    """Hand in predictions. They are checked first: what cannot be graded is refused and uses no quota."""
    # Who may not is told so before the body is read.
    user = await run_in_threadpool(signed_in, request)
    await run_in_threadpool(_find, platform, part, board)
    request.app.state.rates.take("upload", user.id)
    async with request.form(max_files=1, max_fields=_FIELDS, max_part_size=_FIELD_BYTES) as form:
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise Invalid("There is no file; send one as the field 'file' of a multipart form.")
        given = {name: value for name, value in form.items() if isinstance(value, str)}
        key = request.headers.get("idempotency-key")

        def accept() -> dict[str, Any]:
            made = part.submissions.hand_in(user, board, file.file, file.filename or "", given, key)
            with platform.database.reading() as connection:
                return part.views.show(connection, user, made)

        found = await anyio.to_thread.run_sync(accept, limiter=part.uploading)
    answer = {name: found[name] for name in Accepted.model_fields}
    return JSONResponse(answer, 201, {"Location": f"/api/v1/submissions/{found['id']}"})


def _find(platform: Platform, part: BoardPart, name: str) -> Board:
    with platform.database.reading() as connection:
        return part.boards.find(connection, name)


@router.get("/boards/{board}/submissions", responses={401: {"model": Problem}, **MISSING})
def list_on_board(platform: ThePlatform, part: ThePart, user: Caller, board: str) -> list[Submission]:
    """List what the caller handed in to a board, the newest first."""
    with platform.database.reading() as connection:
        found = part.views.own(connection, user, part.boards.find(connection, board))
    return [Submission(**one) for one in found]


@router.get("/submissions", responses={401: {"model": Problem}})
def list_own(platform: ThePlatform, part: ThePart, user: Caller) -> list[Submission]:
    """List what the caller handed in, the newest first."""
    with platform.database.reading() as connection:
        return [Submission(**one) for one in part.views.own(connection, user)]


@router.get("/submissions/{submission}", responses={401: {"model": Problem}, **MISSING})
def show_submission(platform: ThePlatform, part: ThePart, user: MaybeCaller, submission: str) -> Submission:
    """Return a submission: to its owner, and to everybody once it is published."""
    with platform.database.reading() as connection:
        return Submission(**part.views.show(connection, user, submission))


_CHANGES: dict[int | str, dict[str, Any]] = {**REFUSALS, **MISSING, 409: {"model": Problem}}


@router.post("/submissions/{submission}/publish", responses=_CHANGES)
def publish(
    platform: ThePlatform, part: ThePart, user: Caller, submission: str, how: Publication | None = None
) -> Submission:
    """Put a graded submission of the caller on its board."""
    anonymous = how.anonymous if how is not None else False
    part.submissions.publish(user, submission, anonymous=anonymous)
    return _shown(platform, part, user, submission)


@router.post("/submissions/{submission}/withdraw", responses=_CHANGES)
def withdraw(platform: ThePlatform, part: ThePart, user: Caller, submission: str) -> Submission:
    """Take a submission of the caller off its board."""
    part.submissions.withdraw(user, submission)
    return _shown(platform, part, user, submission)


@router.post("/submissions/{submission}/cancel", responses=_CHANGES)
def cancel(platform: ThePlatform, part: ThePart, user: Caller, submission: str) -> Submission:
    """Stop a submission of the caller that is not graded yet; the quota has it back."""
    part.submissions.cancel(user, submission)
    return _shown(platform, part, user, submission)


def _shown(platform: Platform, part: BoardPart, user: Any, submission: str) -> Submission:
    with platform.database.reading() as connection:
        return Submission(**part.views.show(connection, user, submission))
