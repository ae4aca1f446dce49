"""The items of a project one by one, as its organiser looks through them: what people see, and what is right."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, case, func, or_, select

from ensue.platform.annotation.projects import Project
from ensue.platform.database.schema import project_items

# As people meet them, but for controls, which come among the work and stand behind it here.
_ORDER = (
    case({"training": 0, "qualification": 1}, value=project_items.c.phase, else_=2),
    project_items.c.is_control,
    project_items.c.position,
)
_MOST_ITEMS = 10**9  # more than any database counts to is no place
_SHOWN = tuple(
    project_items.c[name] for name in ("phase", "group_name", "stage", "form", "secret", "is_control")
)


def count(connection: Connection, project: Project) -> int:
    """Return how many items there are; those withdrawn are none."""
    query = select(func.count()).select_from(project_items).where(*_there(project))
    return int(connection.execute(query).scalar_one())


def item_at(connection: Connection, project: Project, place: int) -> dict[str, Any] | None:
    """Return the item at a place, from 1 on, with its gold answer; None where there is none."""
    if not 1 <= place <= _MOST_ITEMS:
        return None
    query = select(*_SHOWN).where(*_there(project)).order_by(*_ORDER).limit(1).offset(place - 1)
    row = connection.execute(query).first()
    if row is None:
        return None
    return {
        "place": place,
        "id": str(row.secret["key"].get("id", "")),
        "phase": row.phase,
        "control": row.is_control,
        "group": row.group_name,
        "stage": row.stage,
        "form": row.form,
        "gold": row.secret["gold"],
        "words": row.secret["words"],
    }


def place_of(connection: Connection, project: Project, id: str) -> int | None:
    """Return the place of the item that exports and numbers call so."""
    query = select(project_items.c.secret).where(*_there(project)).order_by(*_ORDER)
    for place, secret in enumerate(connection.execute(query).scalars(), 1):
        if str(secret["key"].get("id", "")) == id:
            return place
    return None


def _there(project: Project) -> tuple[ColumnElement[bool], ...]:
    wanted = project_items.c.wanted
    return (project_items.c.project_id == project.id, or_(wanted.is_(None), wanted != 0))
