"""Later stages: what a kind makes of what was said in a group, and what becomes of items that it no longer makes.

Whoever is taken off a project takes along what was made of their words: an item that the answers which count do not
lead to any more is wanted of nobody, and whoever holds it loses it. What was answered of it stays, superseded: it is
paid and counts for nothing else (`STANDING`), unless the same item should be made again.
"""

from __future__ import annotations

import logging
from typing import Any

from sqlalchemy import Connection, and_, case, select, update

from ensue.benchmarks.people.export import SUPERSEDED
from ensue.benchmarks.people.form import Form
from ensue.benchmarks.people.kind import Done
from ensue.platform.annotation.building import row_of
from ensue.platform.annotation.projects import Project, add_items
from ensue.platform.database.schema import answers, assignments, participants, project_items
from ensue.platform.logs import tell

# How an assignment stands in every count and export, where it is joined with its item.
STANDING = case(
    (and_(assignments.c.state == "answered", project_items.c.wanted == 0), SUPERSEDED),
    else_=assignments.c.state,
)


def revise(connection: Connection, project: Project, group: str) -> None:
    """Have the later stages of a group be those that its answers lead to. The project is locked."""
    try:
        with connection.begin_nested():
            _revise(connection, project, group)
    except Exception as error:
        # What somebody wrote is kept, whatever a kind makes of it.
        tell("a later stage was not made", level=logging.ERROR, error=error, project=project.id)


def revise_after(connection: Connection, project: Project, participant_id: str) -> None:
    """Revise every group that somebody worked in whose work is void now. The project is locked."""
    if not project.load_kind().follows:
        return
    theirs = (
        assignments.c.participant_id == participant_id,
        assignments.c.state == "void",
        project_items.c.group_name != "",
    )
    query = select(project_items.c.group_name).join(assignments, assignments.c.item_id == project_items.c.id)
    for group in sorted(set(connection.execute(query.where(*theirs)).scalars())):
        revise(connection, project, group)


def _revise(connection: Connection, project: Project, group: str) -> None:
    labels = int(project.settings["labels"])
    made = [
        row_of(item, labels)
        for item in project.load_kind().follow(group, _done(connection, project.id, group))
    ]
    for row in made:
        row["secret"]["made"] = True
    by_id = {str(row["secret"]["key"].get("id")): row for row in made}
    here = (project_items.c.project_id == project.id, project_items.c.group_name == group)
    for there in connection.execute(
        select(project_items.c.id, project_items.c.wanted, project_items.c.secret).where(*here)
    ).all():
        if not there.secret.get("made"):
            continue
        again = by_id.get(str(there.secret["key"].get("id")))
        if again is None and there.wanted != 0:
            _withdraw(connection, there.id)
        elif again is not None and there.wanted == 0:
            mine = project_items.c.id == there.id
            values: dict[str, Any] = {name: again[name] for name in ("form", "secret", "wanted")}
            connection.execute(update(project_items).where(mine).values(**values))
    add_items(connection, project.id, made)


def _withdraw(connection: Connection, item_id: str) -> None:
    connection.execute(update(project_items).where(project_items.c.id == item_id).values(wanted=0))
    held = (assignments.c.item_id == item_id, assignments.c.state == "leased")
    connection.execute(update(assignments).where(*held).values(state="expired"))


def _done(connection: Connection, project_id: str, group: str) -> list[Done]:
    """Return every final answer of a group, in the order they were given."""
    query = (
        select(
            project_items.c.secret,
            project_items.c.stage,
            participants.c.pseudonym,
            answers.c.given,
            answers.c.active_ms,
            project_items.c.position,
            project_items.c.form,
        )
        .join(assignments, assignments.c.item_id == project_items.c.id)
        .join(answers, answers.c.assignment_id == assignments.c.id)
        .join(participants, participants.c.id == assignments.c.participant_id)
        .where(
            project_items.c.project_id == project_id,
            project_items.c.group_name == group,
            assignments.c.state == "answered",
        )
        .order_by(assignments.c.answered_at, assignments.c.id)
    )
    return [
        Done(
            row.secret["key"],
            row.stage,
            row.pseudonym,
            row.given,
            row.active_ms / 1000,
            row.position,
            Form.of(row.form),
            row.secret["own"],
        )
        for row in connection.execute(query)
    ]
