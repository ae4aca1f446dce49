"""What programs may ask of models: texts that are tried, and the workers that have the models. `/api/v1`."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, FastAPI, Query, Request
from markupsafe import Markup
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from ensue.platform.refusals import Forbidden
from ensue.platform.service import Platform
from ensue.platform.trying import results
from ensue.platform.trying.desk import FIELDS, LEASE, Desk, Offer, Progress, View
from ensue.platform.web import security
from ensue.platform.web.account_api import REFUSALS, Problem
from ensue.platform.web.identity import from_command_line, signed_in

router = APIRouter(prefix="/api/v1")
_LARGEST_RESULT = 16_000_000
_LOOKED_FOR = 0.1  # seconds between two looks for something to do
Kind = Literal["profile", "qags"]


class Offered(BaseModel):
    """What a worker does: `profile` (a text sentence by sentence) or `qags` (a summary against its source)."""

    kind: Kind
    model: str = Field(min_length=1, max_length=200)


class Trials(BaseModel):
    """What can be tried now; `fields` are the texts of each kind and the most characters of each."""

    offers: list[Offered]
    fields: dict[str, dict[str, int]]


class Trial(BaseModel):
    """A text to try: of a `profile` the text, of `qags` the source and its summary."""

    kind: Kind
    model: str = Field(max_length=200)
    text: str = ""
    source: str = ""
    summary: str = ""


class Made(BaseModel):
    """A text that was taken; whoever has its id can read what is found."""

    id: str


class Found(BaseModel):
    """A text that is tried. `place` in the queue is 1 for the next; `attended` is whether a worker has the model."""

    id: str
    kind: Kind
    model: str
    state: Literal["waiting", "running", "done", "failed"]
    place: int | None
    done: int
    total: int
    unit: str
    attended: bool
    reason: str | None
    result: dict[str, Any] | None
    gone_at: str | None


class Connecting(BaseModel):
    """A worker that connects."""

    offers: list[Offered] = Field(min_length=1, max_length=20)


class Connected(BaseModel):
    """A worker that is connected; it is lost once nothing is heard of it for `lease_seconds`."""

    id: str
    lease_seconds: float


class Lease(BaseModel):
    """Something to do: the texts of one request."""

    lease: str
    kind: Kind
    model: str
    texts: dict[str, str]


class Beat(BaseModel):
    """How far a worker is; `total` is 0 where nobody knows."""

    done: int = Field(0, ge=0, le=10**12)
    total: int = Field(0, ge=0, le=10**12)
    unit: str = Field("", max_length=40)


class Handed(BaseModel):
    """What came of a request: a result, or the reason why there is none."""

    result: dict[str, Any] | list[Any] | None = None
    reason: str | None = Field(None, min_length=1, max_length=500)


class Kept:
    """A result as it is kept until it is deleted: for programs, and as a part of a page."""

    def __init__(self, found: dict[str, Any], html: Markup) -> None:
        self.found, self.html = found, html


def install(app: FastAPI, platform: Platform) -> None:
    app.state.desk = Desk(platform.clock)
    app.state.larger_bodies["/api/v1/workers/"] = _LARGEST_RESULT
    app.include_router(router)


async def the_desk(request: Request) -> Desk:
    """Return the desk; not a plain function, which would be run in another thread."""
    desk: Desk = request.app.state.desk
    return desk


TheDesk = Annotated[Desk, Depends(the_desk)]


async def a_worker(request: Request) -> None:
    """Refuse everybody but organisers, and whoever could read the home's server.json."""
    if request.headers.get("authorization", "").startswith("Home "):
        await from_command_line(request)
        return
    user = await run_in_threadpool(signed_in, request)
    if not user.may("organiser"):
        raise Forbidden("Only those with the role organiser may connect workers.")


_MISSING: dict[int | str, dict[str, Any]] = {404: {"model": Problem}, 422: {"model": Problem}}
_WORKERS: dict[int | str, dict[str, Any]] = {401: {"model": Problem}, 403: {"model": Problem}, **_MISSING}


# Visitors


@router.get("/tries", tags=["try"])
async def list_offers(desk: TheDesk) -> Trials:
    """List what can be tried now: what the workers have that are connected."""
    offers = [Offered(**offer._asdict()) for offer in desk.offers()]
    return Trials(offers=offers, fields={kind: dict(fields) for kind, fields in FIELDS.items()})


@router.post(
    "/tries",
    tags=["try"],
    status_code=201,
    responses={403: REFUSALS[403], 422: REFUSALS[422], 429: REFUSALS[429], 503: {"model": Problem}},
)
async def try_text(request: Request, desk: TheDesk, wanted: Trial) -> Made:
    """Have a text tried. It is kept in memory alone and deleted soon after it is done."""
    return Made(id=ask(request, desk, Offer(wanted.kind, wanted.model), wanted.model_dump()))


def ask(request: Request, desk: Desk, offer: Offer, texts: dict[str, str]) -> str:
    """Take a text of a visitor, counted by where it comes from."""
    here = security.address(request)
    request.app.state.rates.take("try", here)
    return desk.ask(offer, texts, here)


@router.get("/tries/{id}", tags=["try"], responses=_MISSING)
async def show_trial(desk: TheDesk, id: str) -> Found:
    """Return how far a text is and, once it is done, what was found."""
    return found_of(desk.look(id))


@router.delete("/tries/{id}", tags=["try"], status_code=204, responses={403: {"model": Problem}, **_MISSING})
async def delete_trial(desk: TheDesk, id: str) -> Response:
    """Delete a text and what was found."""
    desk.forget(id)
    return Response(status_code=204)


def found_of(view: View) -> Found:
    return Found(
        id=view.id,
        **view.offer._asdict(),
        state=view.state,  # type: ignore[arg-type]
        place=view.place,
        **view.progress._asdict(),
        attended=view.attended,
        reason=view.reason,
        result=view.result.found if view.result else None,
        gone_at=view.gone_at.isoformat() if view.gone_at else None,
    )


# Workers


@router.post(
    "/workers",
    tags=["workers"],
    status_code=201,
    dependencies=[Depends(a_worker)],
    responses={**_WORKERS, 503: {"model": Problem}},
)
async def connect(desk: TheDesk, worker: Connecting) -> Connected:
    """Connect a worker; for organisers."""
    id = desk.connect([Offer(one.kind, one.model) for one in worker.offers])
    return Connected(id=id, lease_seconds=LEASE.total_seconds())


@router.delete(
    "/workers/{worker}",
    tags=["workers"],
    status_code=204,
    dependencies=[Depends(a_worker)],
    responses=_WORKERS,
)
async def disconnect(desk: TheDesk, worker: str) -> Response:
    """Let a worker go; what it was doing waits for another."""
    desk.disconnect(worker)
    return Response(status_code=204)


@router.post(
    "/workers/{worker}/next",
    tags=["workers"],
    dependencies=[Depends(a_worker)],
    response_model=Lease,
    responses={**_WORKERS, 204: {"description": "There is nothing to do."}},
)
async def take_next(
    request: Request, desk: TheDesk, worker: str, wait: Annotated[float, Query(ge=0, le=30)] = 20
) -> Response | Lease:
    """Lease the next request, waiting up to `wait` seconds for one."""
    until = time.monotonic() + wait
    stopping = getattr(request.app.state, "stopping", lambda: False)
    while True:
        # One whose worker is gone would have to wait until the lease is over.
        if await request.is_disconnected():
            return Response(status_code=204)
        leased = desk.take(worker)
        if leased is not None:
            return Lease(lease=leased.lease, **leased.offer._asdict(), texts=dict(leased.texts))
        if time.monotonic() >= until or stopping():
            return Response(status_code=204)
        await asyncio.sleep(_LOOKED_FOR)


@router.put(
    "/workers/{worker}/leases/{lease}",
    tags=["workers"],
    status_code=204,
    dependencies=[Depends(a_worker)],
    responses=_WORKERS,
)
async def beat(desk: TheDesk, worker: str, lease: str, said: Beat) -> Response:
    """Say that a worker lives and how far it is; 404 where the request is not its own any more."""
    desk.beat(worker, lease, Progress(said.done, said.total, said.unit))
    return Response(status_code=204)


@router.post(
    "/workers/{worker}/leases/{lease}/result",
    tags=["workers"],
    status_code=204,
    dependencies=[Depends(a_worker)],
    responses={**_WORKERS, 413: {"model": Problem}},
)
def hand_over(request: Request, worker: str, lease: str, handed: Handed) -> Response:
    """Hand over what came of a request."""
    desk: Desk = request.app.state.desk
    if handed.reason is not None:
        desk.fail(worker, lease, handed.reason)
        return Response(status_code=204)
    leased = desk.leased(worker, lease)
    found = results.read(leased.offer.kind, handed.result, leased.texts)
    html = results.html(leased.offer.kind, found, leased.texts)
    desk.finish(worker, lease, Kept(results.as_dict(found), html))
    return Response(status_code=204)
