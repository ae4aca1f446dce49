"""The pages on which a visitor tries a text on a model; without scripts they load themselves again while it waits."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import RedirectResponse, Response

from ensue.platform.refusals import Refusal
from ensue.platform.service import Platform
from ensue.platform.trying.desk import FIELDS, KEPT, UNWATCHED, Desk, Offer, View, cleaned
from ensue.platform.web.account_pages import Text
from ensue.platform.web.rendering import render
from ensue.platform.web.try_api import ask

router = APIRouter(include_in_schema=False)
_MINUTE = timedelta(minutes=1)
# Made up for this page; the sentence about the tax belongs to another text.
EXAMPLE = {
    "profile": {
        "text": "The ferry left the island before dawn. Its lamps were lit, and the deck was wet with spray. Two"
        " fishermen stood at the rail and watched the harbour grow small. The new tax on imported steel comes into"
        " force in April. By noon the boat had reached the mainland, and the fishermen carried their baskets ashore."
    },
    "qags": {
        "source": "The town council of Ellery voted on Tuesday to close the old swimming pool in May. The building"
        " from 1968 needs a new roof, which would cost two million euros. Mayor Ruth Olsen said that a new pool will"
        " be built beside the school by 2029. Opponents collected four thousand signatures against the plan.",
        "summary": "Ellery closes its swimming pool in May because a new roof would cost two million euros. Mayor"
        " Tobias Brandt promised a new pool beside the school.",
    },
}
_STYLES = (
    ("ensue.report", "templates/following.css"),
    ("ensue.benchmarks.qags.report", "templates/qags_inspection.css"),
)


def install(app: FastAPI, platform: Platform) -> None:
    app.state.navigation.append(("/try", "Try it"))
    app.include_router(router)


@cache
def _style() -> str:
    return "".join(files(package).joinpath(path).read_text("utf-8") for package, path in _STYLES)


@router.get("/try/results.css")
def style() -> Response:
    """The style of results, which the pages that `--html` writes have, too."""
    return Response(_style(), media_type="text/css", headers={"Cache-Control": "public, max-age=3600"})


@router.get("/try")
def form(request: Request, kind: str = "profile", example: str = "") -> Response:
    """The form to try a text."""
    kind = kind if kind in FIELDS else "profile"
    return _form(request, kind, EXAMPLE[kind] if example else {})


def _form(
    request: Request, kind: str, given: dict[str, str], *, status: int = 200, words: str = ""
) -> Response:
    desk: Desk = request.app.state.desk
    offers = desk.offers()
    facts: dict[str, Any] = {
        "kind": kind,
        "models": [offer.model for offer in offers if offer.kind == kind],
        "fields": FIELDS[kind],
        "given": {"model": "", **dict.fromkeys(FIELDS[kind], ""), **given},
        "kept": KEPT // _MINUTE,
        "unwatched": UNWATCHED // _MINUTE,
    }
    return render(request, "try.html.j2", status=status, words=words, **facts)


@router.post("/try")
def send(
    request: Request,
    kind: Text = "",
    model: Text = "",
    text: Text = "",
    source: Text = "",
    summary: Text = "",
) -> Response:
    """Take a text."""
    desk: Desk = request.app.state.desk
    kind = kind if kind in FIELDS else "profile"
    given = {"text": text, "source": source, "summary": summary}
    try:
        made = ask(request, desk, Offer(kind, model), given)
    except Refusal as refusal:
        kept = {name: cleaned(value) for name, value in given.items()}
        return _form(request, kind, {**kept, "model": model}, status=refusal.status, words=str(refusal))
    return RedirectResponse(f"/try/{made}", 303)


@router.get("/try/{id}")
def show(request: Request, id: str) -> Response:
    """A text that is tried: its place and progress, then what was found."""
    desk: Desk = request.app.state.desk
    try:
        view = desk.look(id)
    except Refusal as refusal:
        return render(request, "tried.html.j2", status=refusal.status, view=None, words=str(refusal))
    html = view.result.html if view.result else ""
    return render(request, "tried.html.j2", words="", view=view, html=html, said=progress_words(view))


@router.post("/try/{id}/delete")
def delete(request: Request, id: str) -> Response:
    """Delete a text at once."""
    request.app.state.desk.forget(id)
    return RedirectResponse("/try", 303)


def progress_words(view: View) -> str:
    """Say how far a request is, as the page's script says it."""
    if view.state == "running":
        done, total, unit = view.progress
        far = f" {done:,} of {total:,} {unit}." if total else ""
        return f"It is being read now.{far}"
    if not view.attended:
        return "No worker with this model is connected at the moment; it waits for one to come back."
    return "It is next." if view.place == 1 else f"It waits in the queue, at place {view.place}."
