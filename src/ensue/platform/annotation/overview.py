"""What an organiser sees of a project: how far it is, who is at work on it, and what comes of it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, and_, case, func, or_, select

from ensue.platform.annotation import exporting
from ensue.platform.annotation.following import STANDING
from ensue.platform.annotation.projects import Project
from ensue.platform.clock import Clock
from ensue.platform.database.schema import answers, assignments, participants, project_items


def facts(project: Project) -> dict[str, Any]:
    """Return what an organiser is told of a project itself."""
    told = ("name", "kind", "title", "state", "settings", "source", "seed", "instructions")
    return {name: getattr(project, name) for name in told} | {
        "created_at": project.created_at.isoformat(),
        "path": project.path,
    }


def overview(connection: Connection, project: Project, clock: Clock) -> dict[str, Any]:
    """Return how far a project is, by phase, everybody at work on it, and what their answers say (`numbers`)."""
    from ensue.benchmarks.people import numbers  # with numpy, which a server at rest does without

    found = numbers.overview(exporting.export_of(connection, project), project.load_kind())
    return {
        "progress": progress(connection, project, clock),
        "people": people(connection, project),
        "numbers": found.as_dict(),
    }


def progress(connection: Connection, project: Project, clock: Clock) -> dict[str, Any]:
    """Return how many items, answers wanted, given and under way there are; training and so on are by person."""
    at_work = and_(assignments.c.state == "leased", assignments.c.lease_until > clock.now())
    query = (
        select(
            project_items.c.id,
            project_items.c.phase,
            project_items.c.stage,
            project_items.c.is_control,
            project_items.c.wanted,
            func.coalesce(func.sum(case((STANDING == "answered", 1), else_=0)), 0).label("answered"),
            func.coalesce(func.sum(case((at_work, 1), else_=0)), 0).label("leased"),
            func.coalesce(func.sum(case((assignments.c.state == "void", 1), else_=0)), 0).label("void"),
        )
        .join(assignments, assignments.c.item_id == project_items.c.id, isouter=True)
        .where(project_items.c.project_id == project.id)
        .group_by(project_items.c.id)
    )
    found: dict[str, dict[str, Any]] = {}
    for row in connection.execute(query):
        name = "control" if row.is_control else row.phase
        one = found.setdefault(
            name, {"items": 0, "whole": 0, "wanted": 0, "answered": 0, "leased": 0, "void": 0, "stages": {}}
        )
        there = row.wanted != 0  # not withdrawn
        one["items"] += there
        one["wanted"] += row.wanted or 0
        one["whole"] += bool(row.wanted) and row.answered >= row.wanted
        for key in ("answered", "leased", "void"):
            one[key] += int(getattr(row, key))
        if row.stage:
            stage = one["stages"].setdefault(row.stage, {"items": 0, "wanted": 0, "answered": 0})
            stage["items"] += there
            stage["wanted"] += row.wanted or 0
            stage["answered"] += int(row.answered)
    return found


def people(connection: Connection, project: Project) -> list[dict[str, Any]]:
    """Return everybody who takes or took part, with what they did; pseudonyms alone."""
    answered = STANDING == "answered"
    work = and_(answered, project_items.c.phase == "work", ~project_items.c.is_control)
    control = and_(or_(answered, assignments.c.state == "void"), project_items.c.is_control)
    zero = func.coalesce
    query = (
        select(
            participants.c.pseudonym,
            participants.c.phase,
            participants.c.state,
            participants.c.reason,
            participants.c.consented_at,
            zero(func.sum(case((work, 1), else_=0)), 0).label("answers"),
            zero(func.sum(case((assignments.c.state == "void", 1), else_=0)), 0).label("void"),
            zero(func.sum(case((control, 1), else_=0)), 0).label("controls"),
            zero(func.sum(case((and_(control, assignments.c.is_right.is_(False)), 1), else_=0)), 0).label(
                "missed"
            ),
            zero(func.sum(case((assignments.c.is_hasty, 1), else_=0)), 0).label("hasty"),
            zero(func.sum(answers.c.active_ms), 0).label("active_ms"),
            func.max(answers.c.saved_at).label("seen_at"),
        )
        .join(assignments, assignments.c.participant_id == participants.c.id, isouter=True)
        .join(project_items, project_items.c.id == assignments.c.item_id, isouter=True)
        .join(answers, answers.c.assignment_id == assignments.c.id, isouter=True)
        .where(participants.c.project_id == project.id, participants.c.state != "deleted")
        .group_by(participants.c.id)
        .order_by(participants.c.consented_at, participants.c.id)
    )
    counts = ("answers", "void", "controls", "missed", "hasty")
    return [
        {
            "annotator": row.pseudonym,
            "phase": row.phase,
            "state": row.state,
            "reason": row.reason,
            **{name: int(getattr(row, name)) for name in counts},
            "seconds": int(row.active_ms) / 1000,
            "entered_at": row.consented_at.isoformat(),
            "seen_at": row.seen_at and row.seen_at.isoformat(),
        }
        for row in connection.execute(query)
    ]
