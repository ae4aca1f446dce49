"""A board as JSON, CSV and an Atom feed."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any
from xml.etree import ElementTree

from ensue.platform.boards.reading import Shown
from ensue.platform.boards.standing import Column, Row
from ensue.report.figure import Figure

_ATOM = "http://www.w3.org/2005/Atom"
_NEWEST = 50
# What a spreadsheet would take for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_json(shown: Shown) -> dict[str, Any]:
    """Return a board for programs. Values are fractions, rounded as the board says."""
    board = shown.board
    return {
        "board": board.name,
        "title": board.title,
        "suite": board.suite,
        "split": board.split,
        "rounding": board.rounding,
        "date": shown.on.isoformat() if shown.on else None,
        "labels_version": board.labels_version,
        "regraded": _regraded(shown),
        "withdrawn": shown.withdrawn,
        "covers": dict(shown.covers),
        "columns": [
            {"key": column.key, "task": column.task, "metric": column.metric, "settings": {**column.settings}}
            for column in shown.columns
        ],
        "rows": [_row(row, shown.columns) for row in shown.rows],
    }


def _row(row: Row, columns: Iterable[Column]) -> dict[str, Any]:
    entry = row.entry
    return {
        "rank": row.rank,
        "tied": row.is_tied,
        "id": entry.id,
        "kind": entry.kind,
        "system": entry.system,
        "team": entry.team,
        "score": _figure(entry.score),
        "metrics": {
            column.key: _figure(figure) for column, figure in zip(columns, entry.figures, strict=True)
        },
        "description": entry.description,
        "parameters": entry.parameters,
        "sharing": entry.sharing,
        "data": entry.data,
        "link": entry.link,
        "code": entry.code,
        "covers": entry.covers,
        "published_at": entry.published_at.isoformat(),
        "labels_version": entry.labels_version,
        "is_stale": entry.is_stale,
    }


def _regraded(shown: Shown) -> dict[str, Any] | None:
    if (found := shown.regrading) is None:
        return None
    told = found._asdict()
    return {"at": told.pop("at").isoformat(), "labels_version": told.pop("version"), **told}


def _figure(figure: Figure | None) -> dict[str, Any] | None:
    return figure and {"value": figure.value, "ci95": [figure.low, figure.high], "n": figure.n}


def as_csv(shown: Shown) -> str:
    """Return a board as a table, a row an entry; missing values are empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    heads = ["rank", "kind", "system", "team", "score", "score_low", "score_high"]
    facts = ["parameters", "sharing", "data", "link", "published_at", "id"]
    writer.writerow([*heads, *(column.key for column in shown.columns), *facts])
    for row in shown.rows:
        entry, score = row.entry, row.entry.score
        cells: list[Any] = [row.rank, entry.kind, entry.system, entry.team]
        cells += [score.value, score.low, score.high] if score else [None] * 3
        cells += [figure.value if figure else None for figure in entry.figures]
        cells += [entry.parameters, entry.sharing, entry.data, entry.link]
        cells += [entry.published_at.isoformat(), entry.id]
        writer.writerow([plain_cell(cell) for cell in cells])
    return buffer.getvalue()


def plain_cell(value: Any) -> Any:
    """Return a cell of a table that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def as_atom(shown: Shown, base: str, now: datetime) -> str:
    """Return the newest submissions of a board as a feed; `base` is the address of the server."""
    ElementTree.register_namespace("", _ATOM)
    board = shown.board
    address = f"{base}/boards/{board.name}"
    feed = ElementTree.Element(f"{{{_ATOM}}}feed")
    newest = sorted(shown.rows, key=lambda row: (row.entry.published_at, row.entry.id), reverse=True)
    _add(feed, "id", address)
    _add(feed, "title", f"{board.title}: submissions")
    _add(feed, "updated", max((_changed(row) for row in newest), default=now).isoformat())
    _add(feed, "link", rel="alternate", href=address)
    _add(feed, "link", rel="self", href=f"{address}.atom")
    for row in newest[:_NEWEST]:
        entry = row.entry
        place = ElementTree.SubElement(feed, f"{{{_ATOM}}}entry")
        _add(place, "id", f"{base}/submissions/{entry.id}")
        _add(
            place,
            "title",
            f"{entry.system}: {entry.score.text(board.rounding) if entry.score else 'partial'}",
        )
        _add(place, "updated", _changed(row).isoformat())
        _add(place, "published", entry.published_at.isoformat())
        _add(place, "link", rel="alternate", href=f"{base}/submissions/{entry.id}")
        _add(ElementTree.SubElement(place, f"{{{_ATOM}}}author"), "name", entry.team or "unnamed")
        _add(place, "category", term=entry.kind)
        _add(place, "summary", entry.description)
    return ElementTree.tostring(feed, encoding="unicode", xml_declaration=True)


def _changed(row: Row) -> datetime:
    """Return when what is said of an entry last changed: it was published, or graded again since."""
    return max(row.entry.published_at, row.entry.graded_at or row.entry.published_at)


def _add(parent: ElementTree.Element, name: str, text: str = "", **attributes: str) -> None:
    child = ElementTree.SubElement(parent, f"{{{_ATOM}}}{name}", attributes)
    if text:
        child.text = _NOT_XML.sub("", text)
