"""The pages of those who run annotation projects: all of them, following one and acting on it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from fastapi import APIRouter, FastAPI, Request
from sqlalchemy import Connection
from starlette.responses import RedirectResponse, Response

from ensue.platform.accounts import User
from ensue.platform.annotation import exporting, looking, overview
from ensue.platform.annotation.answering import Answering
from ensue.platform.annotation.commands import PROLIFIC
from ensue.platform.annotation.projects import Project
from ensue.platform.refusals import Forbidden, Invalid, Refusal
from ensue.platform.service import Platform
from ensue.platform.web.account_pages import Text
from ensue.platform.web.annotation_api import ThePart
from ensue.platform.web.annotation_pages import CONSENT
from ensue.platform.web.identity import Caller, MaybeCaller, ThePlatform, the_platform
from ensue.platform.web.markdown import rendered
from ensue.platform.web.project_api import own
from ensue.platform.web.rendering import parsed, render
from ensue.report.figure import Figure

router = APIRouter(include_in_schema=False)
_DONE = {
    "made": "The project is made. Nobody can enter it before you open it.",
    "open": "The project is open: whoever has the link can take part.",
    "paused": "The project is paused: nobody is given anything new.",
    "closed": "The project is closed.",
    "more": "Each item is wanted from more people now.",
    "excluded": "They are off the project; their work does not count and is done again.",
    "forgotten": "All that they said and that was known of them is deleted.",
}


def install(app: FastAPI, platform: Platform) -> None:
    app.state.templates.filters["seconds"] = seconds
    app.state.templates.filters["drawn"] = drawn
    app.state.templates.filters["with_interval"] = with_interval
    app.state.templates.filters["money"] = money
    app.include_router(router)


def seconds(value: float | None) -> str:
    """Write a time as people say it.

    >>> seconds(4.25), seconds(75), seconds(7_300), seconds(None)
    ('4.2 s', '1 min 15 s', '2 h 1 min', '–')
    """
    if value is None:
        return "–"
    if value < 60:
        return f"{value:.1f} s"
    whole = round(value)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def money(value: float | None, currency: str = "") -> str:
    """Write an amount, with the currency where the project names one.

    >>> money(1385.789, "USD"), money(4), money(None)
    ('1,385.79 USD', '4.00', '–')
    """
    return "–" if value is None else f"{value:,.2f} {currency}".rstrip()


def drawn(figure: dict[str, Any] | None, judged: int) -> str:
    """Write a figure of agreement with its interval, and of how much it is where that is not all that was judged."""
    if figure is None:
        return "–"
    found = Figure.of(figure)
    of = f", of {found.n:,}" if found.n != judged else ""
    return f"{found.text(2)} ({found.interval(2)}){of}"


def with_interval(numbers: dict[str, Any], name: str) -> str:
    """Write one of somebody's numbers with its interval."""
    if numbers[name] is None:
        return "–"
    found = Figure(numbers[name], *(numbers[f"{name}_ci95"] or (None, None)))
    return f"{found.text(2)} ({found.interval(2)})"


# All of them


@router.get("/projects")
def projects_page(request: Request, part: ThePart, user: MaybeCaller) -> Response:
    """The projects that the user runs, and those that the user may work on."""
    if user is None:
        return RedirectResponse("/sign-in?next=/projects", 303)
    if not user.may("annotator"):
        raise Forbidden("Only those with the role annotator may do this.")
    with part.database.reading() as connection:
        found = part.projects.all(connection)
        run = [(one, _far(connection, part, one)) for one in found if one.belongs_to(user)]
    there = [one for one in found if one.state == "open"]
    titles = Counter(one.title for one in there)
    alike = {one.name for one in there if titles[one.title] > 1}
    return render(request, "projects.html.j2", own=run, there=there, alike=alike)


def _far(connection: Connection, part: Answering, project: Project) -> dict[str, Any]:
    work = overview.progress(connection, project, part.clock).get("work", {})
    return {"wanted": 0, "answered": 0, **work}


# One of them


@router.get("/projects/{name}")
def project_page(request: Request, part: ThePart, user: MaybeCaller, name: str, done: str = "") -> Response:
    """How far a project is, who is at work on it, and what can be done about it."""
    if user is None:
        return RedirectResponse(f"/sign-in?next=/projects/{name}", 303)
    return _project_page(request, part, user, name, done=_DONE.get(done, ""))


def _project_page(request: Request, part: Answering, user: User, name: str, **said: Any) -> Response:
    platform = the_platform(request)
    with platform.database.reading() as connection:
        project = own(connection, part, user, name)
        progress = overview.progress(connection, project, platform.clock)
        people = overview.people(connection, project)
        notes = part.projects.notes(connection, project)
    base = platform.settings.public_url.rstrip("/") or str(request.base_url).rstrip("/")
    facts: dict[str, Any] = {
        "project": project,
        "progress": progress,
        "notes": notes,
        "people": [{**one, "seen": parsed(one["seen_at"])} for one in people],
        "link": base + project.path,
        "prolific": base + project.path + PROLIFIC,
        "labels": int(project.settings["labels"]),
    }
    return render(request, "project.html.j2", **said, **facts)


@router.get("/projects/{name}/numbers")
def numbers_page(request: Request, part: ThePart, user: MaybeCaller, name: str) -> Response:
    """How right people are, how far they agree, how long they take, and what an hour is paid."""
    if user is None:
        return RedirectResponse(f"/sign-in?next=/projects/{name}/numbers", 303)
    with part.database.reading() as connection:
        project = own(connection, part, user, name)
        export = exporting.export_of(connection, project)
    from ensue.benchmarks.people import numbers  # with numpy, which a server at rest does without

    found = numbers.overview(export, project.load_kind()).as_dict()
    facts: dict[str, Any] = {
        # Where later items are made of answers, what people disagree on goes by names of its own.
        "looked_up": not project.load_kind().follows,
        "answered": sum(1 for one in found["people"] if one["answers"]),
        "charts": [(one, histogram(one["bins"])) for one in found["times"]],
        "scores": numbers.scores_table(found["scores"]).to_html() if found["scores"] else "",
        "judged": any(one["accuracy"] is not None for one in found["people"]),
    }
    return render(request, "project_numbers.html.j2", project=project, found=found, **facts)


@router.get("/projects/{name}/items")
def items_page(
    request: Request, part: ThePart, user: MaybeCaller, name: str, at: str = "1", id: str = ""
) -> Response:
    """The items of a project one by one, as people see them, before and while they do."""
    if user is None:
        return RedirectResponse(f"/sign-in?next=/projects/{name}/items", 303)
    with part.database.reading() as connection:
        project = own(connection, part, user, name)
        count = looking.count(connection, project)
        place = int(at) if at.isdecimal() and len(at) < 9 else 1
        found = looking.place_of(connection, project, id) if id else place
        item = looking.item_at(connection, project, min(max(found or 1, 1), max(count, 1)))
    words = "" if found is not None else f"No item is called {id}; this is the first."
    facts: dict[str, Any] = {
        "project": project,
        "item": item,
        "count": count,
        "instructions": rendered(project.instructions),
        "consent": rendered(str(project.settings.get("consent") or CONSENT)),
    }
    return render(request, "project_items.html.j2", words=words, **facts)


class Bar(NamedTuple):
    """A bar of a histogram, in the units of its picture."""

    x: int
    y: float
    height: float
    answers: int
    words: str


def histogram(counts: Sequence[int]) -> list[Bar]:
    """Return the bars of how many answers took up to so long.

    >>> [bar.words for bar in histogram([1, 0, 3] + [0] * 8)][:3]
    ['≤ 5 s', '≤ 10 s', '≤ 20 s']
    """
    from ensue.benchmarks.people.numbers import BINS

    most = max(max(counts), 1)
    bars = []
    for place, (count, end) in enumerate(zip(counts, BINS, strict=True)):
        tall = round(100.0 * count / most, 1)
        words = f"> {_span(BINS[-2])}" if math.isinf(end) else f"≤ {_span(end)}"
        bars.append(Bar(place * 62, round(100.0 - tall, 1), tall, count, words))
    return bars


def _span(value: float) -> str:
    return f"{value:g} s" if value < 60 else f"{value / 60:g} min" if value < 3600 else f"{value / 3600:g} h"


# What can be done


@router.post("/projects/{name}/state")
def set_state(
    request: Request, platform: ThePlatform, part: ThePart, user: Caller, name: str, state: Text = ""
) -> Response:
    do = partial(part.projects.set_state, name, state, by=user.id)
    return _change(request, platform, part, user, name, do, state)


@router.post("/projects/{name}/top-up")
def top_up(
    request: Request, platform: ThePlatform, part: ThePart, user: Caller, name: str, labels: Text = ""
) -> Response:
    wanted = int(labels) if labels.isdecimal() and len(labels) < 6 else 0
    do = partial(part.projects.top_up, name, wanted, by=user.id)
    return _change(request, platform, part, user, name, do, "more")


@router.post("/projects/{name}/participants/{pseudonym}/exclude")
def exclude(
    request: Request, platform: ThePlatform, part: ThePart, user: Caller, name: str, pseudonym: str
) -> Response:
    do = partial(part.people.exclude, name, pseudonym, by=user.id)
    return _change(request, platform, part, user, name, do, "excluded")


@router.post("/projects/{name}/participants/{pseudonym}/delete")
def forget(
    request: Request,
    platform: ThePlatform,
    part: ThePart,
    user: Caller,
    name: str,
    pseudonym: str,
    sure: Text = "",
) -> Response:
    def do() -> None:
        if not sure:
            raise Invalid(f"Tick the box to delete everything of {pseudonym}.")
        part.people.forget(name, pseudonym, by=user.id)

    return _change(request, platform, part, user, name, do, "forgotten")


def _change(
    request: Request,
    platform: Platform,
    part: Answering,
    user: User,
    name: str,
    do: Callable[[], Any],
    done: str,
) -> Response:
    """Do something to a project of the user's, and show it as it is then."""
    with platform.database.reading() as connection:
        own(connection, part, user, name)
    try:
        do()
    except Refusal as refusal:
        if refusal.status == 404:
            raise
        return _project_page(request, part, user, name, status=refusal.status, words=str(refusal))
    return RedirectResponse(f"/projects/{name}?done={done}", 303)
