"""The pages that everybody may read: the boards at a glance, a board, its diagnostics, and a board as a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, FastAPI, Request
from markupsafe import Markup
from starlette.responses import Response

from ensue.platform.boards import exports, standing
from ensue.platform.boards.board import Boards
from ensue.platform.boards.reading import Reader, Shown, end_of, read_diagnostics
from ensue.platform.boards.standing import Column, Row
from ensue.platform.refusals import Invalid
from ensue.platform.service import Platform
from ensue.platform.web import chart as charts
from ensue.platform.web.identity import ThePlatform
from ensue.platform.web.rendering import render

router = APIRouter(include_in_schema=False)
PAGE = 100  # rows at once
_TOP = 3


def install(app: FastAPI, platform: Platform) -> None:
    app.state.reader = Reader(Boards(platform))
    app.state.navigation.append(("/", "Boards"))
    app.state.templates.filters["shade"] = standing.shade
    app.state.templates.filters["breakable"] = breakable
    app.state.templates.globals["fewest"] = standing.FEWEST
    app.include_router(router)


def breakable(words: str) -> Markup:
    """Return words that may be broken after a slash, where a column is narrow.

    >>> breakable("Intervals/Numbers")
    Markup('Intervals/<wbr>Numbers')
    """
    return Markup("/<wbr>").join(words.split("/"))


@router.get("/")
def home(request: Request) -> Response:
    """The boards at a glance."""
    reader: Reader = request.app.state.reader
    cards = [shown.once("card", partial(_card, request, shown)) for shown in reader.listed()]
    return render(request, "home.html.j2", cards=cards)


def _card(request: Request, shown: Shown) -> Markup:
    handed_in = [entry for entry in shown.entries if not entry.is_baseline]
    card = {
        "board": shown.board,
        "tasks": list(dict.fromkeys(column.task for column in shown.columns)),
        "top": [row for row in shown.rows if row.entry.score][:_TOP],
        "count": len(handed_in),
        "baselines": len(shown.rows) - len(handed_in),
        "newest": max((entry.published_at for entry in handed_in), default=None),
    }
    return _part(request, "card.html.j2", card=card)


def _part(request: Request, template: str, **facts: Any) -> Markup:
    """Return a part of a page that is the same whoever reads it."""
    return Markup(request.app.state.templates.get_template(template).render(facts))


# A board as a file; before its page, whose address would take the ending for a part of the name


@router.get("/boards/{name}.json")
def board_json(request: Request, platform: ThePlatform, name: str, date: str = "") -> Response:
    return json_of(show(request, name, date))


def json_of(shown: Shown) -> Response:
    """Return a board as JSON."""
    return Response(
        shown.once("json", lambda: json.dumps(exports.as_json(shown))), media_type="application/json"
    )


@router.get("/boards/{name}.csv")
def board_csv(request: Request, platform: ThePlatform, name: str, date: str = "") -> Response:
    shown = show(request, name, date)
    text = shown.once("csv", partial(exports.as_csv, shown))
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


@router.get("/boards/{name}.atom")
def board_atom(request: Request, platform: ThePlatform, name: str) -> Response:
    base = platform.settings.public_url.rstrip("/") or str(request.base_url).rstrip("/")
    text = exports.as_atom(show(request, name, ""), base, platform.clock.now())
    return Response(text, media_type="application/atom+xml")


# The pages of a board


class View(NamedTuple):
    """What of a board a page shows: which rows, in which order."""

    q: str = ""
    sort: str = ""  # a column; with a minus before it, the largest first
    date: str = ""
    page: int = 1
    chart: str = ""  # the column whose best is drawn over time; the score where it is none

    def address(self, **changed: Any) -> str:
        """Return the query of the same view but for what is changed."""
        view = self._replace(page=1)._replace(**changed)
        kept = {key: value for key, value in view._asdict().items() if value and (key, value) != ("page", 1)}
        return f"?{urlencode(kept)}" if kept else "?"


@router.get("/boards/{name}")
def board(
    request: Request,
    platform: ThePlatform,
    name: str,
    q: str = "",
    sort: str = "",
    date: str = "",
    page: int = 1,
    chart: str = "",
) -> Response:
    """One board: its table, and the best score over time, or the best of one column."""
    shown = show(request, name, date)
    keys = [column.key for column in shown.columns]
    chart = chart if chart in keys else ""
    view, rows = _viewed(shown, View(q[:200], sort[:200], date, page, chart))
    until = end_of(shown.on) if shown.on else platform.clock.now()
    facts = _facts(shown, view, rows)
    facts["heads"] = list(_heads(shown.columns, view))
    column = shown.columns[keys.index(chart)] if chart else None
    of = f"{column.heading} {column.words}" if column else "score"
    draw = partial(
        charts.draw, shown.entries, until, shown.board.rounding, keys.index(chart) if chart else None, of
    )
    facts["chart"] = shown.once(("chart", chart, until.date()), draw)
    facts |= {"charted": of, "columns": shown.columns}
    facts["table_row"] = partial(_table_row, request, shown)
    return render(request, "board.html.j2", **facts)


def _table_row(request: Request, shown: Shown, row: Row) -> Markup:
    """Return a row of the table, which is the same however the table is sorted."""

    facts = {"row": row, "entry": row.entry, "digits": shown.board.rounding, "width": len(shown.columns) + 4}
    return shown.once(row.entry.id, partial(_part, request, "row.html.j2", **facts))


@router.get("/boards/{name}/diagnostics")
def board_diagnostics(
    request: Request,
    platform: ThePlatform,
    name: str,
    q: str = "",
    date: str = "",
    page: int = 1,
    part: str = "",
) -> Response:
    """The diagnostics of a board: systems by coarse categories or, of one category, by its fine ones."""
    shown = show(request, name, date)
    view, rows = _viewed(shown, View(q[:200], "", date, page))
    facts = _facts(shown, view, rows)
    ids = [row.entry.id for row in facts["rows"]]
    with platform.database.reading() as connection:
        read = partial(read_diagnostics, connection, ids, shown.board.rounding, shown.on)
        found = shown.once(("diagnostics", view.page), read) if not view.q else read()
    known = standing.phenomena(found.values())
    categories = list(dict.fromkeys(one.category for one in known if one.tag))
    part = part if part in categories else ""
    heads = [one for one in known if (one.category == part and one.tag if part else not one.tag)]
    drawn = {"figures": found, "heads": heads, "digits": facts["digits"], "rows": facts["rows"]}
    draw = partial(_part, request, "heat.html.j2", **drawn)
    facts["heat"] = draw if view.q else partial(shown.once, ("heat", view.page, part), draw)
    return render(request, "diagnostics.html.j2", **facts, heads=heads, categories=categories, part=part)


def show(request: Request, name: str, day: str) -> Shown:
    """Return a board as it is, or as it was at the end of a day."""
    shown: Shown = request.app.state.reader.show(name, _day(day))
    return shown


def _day(text: str) -> date | None:
    if not text:
        return None
    try:
        found = date.fromisoformat(text)
    except ValueError:
        raise Invalid("The date is not of the form 2026-11-16.") from None
    # The day after must exist, too.
    if not 1970 <= found.year <= 9000:
        raise Invalid("The date lies in no year that a board knows.")
    return found


def _viewed(shown: Shown, view: View) -> tuple[View, list[Row]]:
    """Return the rows of a view, sorted and searched, and the view as far as it makes sense."""
    by = view.sort.removeprefix("-")
    if by not in standing.sortable(shown.columns):
        by, view = "", view._replace(sort="")
    rows = standing.search(shown.rows, view.q)
    if by:
        rows = standing.arrange(rows, shown.columns, by, descending=view.sort.startswith("-"))
    last = max(1, -(-len(rows) // PAGE))
    return view._replace(page=min(max(view.page, 1), last)), rows


def _facts(shown: Shown, view: View, rows: list[Row]) -> dict[str, Any]:
    begin = (view.page - 1) * PAGE
    return {
        "board": shown.board,
        "on": shown.on,
        "regrading": shown.regrading,
        "withdrawn": shown.withdrawn,
        "view": view,
        "rows": rows[begin : begin + PAGE],
        "begin": begin,
        "matching": len(rows),
        "total": len(shown.rows),
        "last_page": max(1, -(-len(rows) // PAGE)),
        "covers": shown.covers,
        "digits": shown.board.rounding,
    }


class Head(NamedTuple):
    """The head of a column: its words, and what a press on it sorts by."""

    key: str
    words: str
    group: str
    value: str
    aria: str  # how the table is sorted by it now, empty where it is not
    below: Head | None = None  # what else stands in the same column


def _heads(columns: list[Column], view: View) -> Iterator[Head]:
    team = _head(view, "team", "Team", "", largest_first=False)
    yield _head(view, "system", "System", "", largest_first=False)._replace(below=team)
    yield _head(view, standing.SCORE, "Score", "", largest_first=True)
    for column in columns:
        yield _head(view, column.key, column.words, column.heading, largest_first=True)
    yield _head(view, "published", "Published", "", largest_first=True)


def _head(view: View, key: str, words: str, group: str, *, largest_first: bool) -> Head:
    # Unsorted, a board stands by its score.
    now = view.sort or f"-{standing.SCORE}"
    aria = {key: "ascending", f"-{key}": "descending"}.get(now, "")
    first, second = (f"-{key}", key) if largest_first else (key, f"-{key}")
    return Head(key, words, group, second if now == first else first, aria)
