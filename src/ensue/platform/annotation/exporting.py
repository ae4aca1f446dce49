"""What a project has found out, as JSON lines and CSV; the form is that of `benchmarks.people.export`.

Annotators are pseudonyms everywhere but in the CSV of bonuses, which is what another site pays by.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, select

from ensue.benchmarks.people.export import DIGEST, MARK, VERSION, Export, digest_of
from ensue.platform.annotation.following import STANDING
from ensue.platform.annotation.projects import Project
from ensue.platform.boards.exports import plain_cell
from ensue.platform.database.schema import answer_history, answers, assignments, participants, project_items

COLUMNS = (
    "annotator",
    "phase",
    "group",
    "stage",
    "control",
    "right",
    "hasty",
    "state",
    "seconds",
    "elapsed",
    "saved_at",
)


def lines(connection: Connection, project: Project) -> Iterator[dict[str, Any]]:
    """Yield the lines of an export, read twice: the first has a digest of all of them."""
    head = _head(connection, project)
    yield {**head, DIGEST: digest_of(head, _answers(connection, project))}
    yield from _answers(connection, project)


def export_of(connection: Connection, project: Project) -> Export:
    """Return an export as benchmarks read it."""
    return Export.of(_head(connection, project), _answers(connection, project), project.name)


def history_lines(connection: Connection, project: Project) -> Iterator[dict[str, Any]]:
    """Yield everything that was ever saved, drafts too, in the order it came."""
    query = (
        select(answer_history, participants.c.pseudonym, project_items.c.secret)
        .join(assignments, assignments.c.id == answer_history.c.assignment_id)
        .join(participants, participants.c.id == assignments.c.participant_id)
        .join(project_items, project_items.c.id == assignments.c.item_id)
        .where(assignments.c.project_id == project.id)
        .order_by(answer_history.c.number)
    )
    for row in connection.execute(query):
        said = {"key": row.secret["key"], "annotator": row.pseudonym, "values": row.given}
        yield {**said, "final": row.is_final, "seq": row.seq, "saved_at": row.saved_at.isoformat()}


def as_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return answers as a table: a column for each part of the key and each value; no cell begins a formula.

    A value that is called as a column of ours is, `seconds` say, has `values.` before its name.
    """
    found = list(rows)
    keys = list(dict.fromkeys(f"key.{name}" for row in found for name in row["key"]))
    values = list(dict.fromkeys(name for row in found for name in row["values"]))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    called = [f"values.{name}" if name in {*keys, *COLUMNS} else name for name in values]
    writer.writerow([plain_cell(name) for name in (*keys, *COLUMNS, *called)])
    for row in found:
        said = {f"key.{name}": value for name, value in row["key"].items()}
        cells = [said.get(name) for name in keys] + [row[name] for name in COLUMNS]
        cells += [row["values"].get(name) for name in values]
        writer.writerow([_cell(cell) for cell in cells])
    return text.getvalue()


def bonuses(connection: Connection, project: Project) -> str:
    """Return what is to be paid on top, as CSV: to whom by the other site's id, or by pseudonym without one."""
    from ensue.benchmarks.people import numbers  # with numpy, which a server at rest does without

    cents = numbers.bonuses(export_of(connection, project), project.load_kind())
    query = select(participants.c.pseudonym, participants.c.external_id)
    known = connection.execute(query.where(participants.c.project_id == project.id)).all()
    ids = {row.pseudonym: str(plain_cell(row.external_id or row.pseudonym)) for row in known}
    return numbers.bonus_csv(cents, ids)


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return plain_cell(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def _head(connection: Connection, project: Project) -> dict[str, Any]:
    query = select(
        participants.c.pseudonym, participants.c.phase, participants.c.state, participants.c.reason
    )
    there = query.where(participants.c.project_id == project.id, participants.c.state != "deleted")
    people = [
        {"annotator": row.pseudonym, "phase": row.phase, "state": row.state, "reason": row.reason}
        for row in connection.execute(there.order_by(participants.c.consented_at, participants.c.id))
    ]
    fields: dict[str, str] = {}
    wanted: dict[str, int] = {}
    items = select(project_items.c.form, project_items.c.stage, project_items.c.wanted)
    for row in connection.execute(items.where(project_items.c.project_id == project.id)):
        fields |= {one["id"]: one["type"] for one in row.form["fields"]}
        if row.wanted is not None:
            wanted[row.stage] = wanted.get(row.stage, 0) + row.wanted
    return {
        "ensue": MARK,
        "version": VERSION,
        "project": project.name,
        "kind": project.kind,
        "title": project.title,
        "settings": project.settings,
        "seed": project.seed,
        "source": project.source,
        "state": project.state,
        "answers": connection.execute(_counted(project)).scalar_one(),
        "participants": people,
        "fields": fields,
        "wanted": wanted,
    }


def _final(project: Project) -> tuple[ColumnElement[bool], ...]:
    """Return what makes an answer one of an export."""
    states = assignments.c.state.in_(("answered", "void"))
    return assignments.c.project_id == project.id, states, answers.c.is_final


def _counted(project: Project) -> Select[int]:
    joined = select(func.count()).select_from(answers)
    return joined.join(assignments, assignments.c.id == answers.c.assignment_id).where(*_final(project))


def _answers(connection: Connection, project: Project) -> Iterator[dict[str, Any]]:
    query = (
        select(
            project_items.c.secret,
            project_items.c.phase,
            project_items.c.group_name,
            project_items.c.stage,
            project_items.c.is_control,
            participants.c.pseudonym,
            answers,
            assignments.c.is_right,
            assignments.c.is_hasty,
            STANDING.label("state"),
        )
        .join(assignments, assignments.c.id == answers.c.assignment_id)
        .join(participants, participants.c.id == assignments.c.participant_id)
        .join(project_items, project_items.c.id == assignments.c.item_id)
        .where(*_final(project))
        .order_by(project_items.c.position, answers.c.saved_at, assignments.c.id)
    )
    for row in connection.execute(query):
        yield {
            "key": row.secret["key"],
            "phase": row.phase,
            "group": row.group_name,
            "stage": row.stage,
            "control": row.is_control,
            "annotator": row.pseudonym,
            "values": row.given,
            "gold": row.secret["gold"],
            "right": row.is_right,
            "hasty": row.is_hasty,
            "state": row.state,
            "seconds": row.active_ms / 1000,
            "elapsed": row.elapsed_ms / 1000,
            "saved_at": row.saved_at.isoformat(),
        }
