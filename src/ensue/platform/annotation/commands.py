"""Commands on annotation projects, as the command line hands them over: the platform and arguments of JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from ensue.atomic import write_atomic, write_json_lines
from ensue.platform.annotation import exporting, overview
from ensue.platform.annotation.people import People
from ensue.platform.annotation.projects import Projects, Wanted
from ensue.platform.database.schema import participants
from ensue.platform.refusals import Invalid
from ensue.platform.service import Command, Platform

# What is added to a project's link on Prolific, which puts the ids in.
PROLIFIC = "&PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"


def create(platform: Platform, arguments: dict[str, Any]) -> dict[str, Any]:
    """Make a project."""
    owner = arguments.pop("owner", None)
    by = _keeper(platform, owner) if owner else None
    project, notes = Projects(platform).create(Wanted(**arguments), by=by)
    with platform.database.reading() as connection:
        progress = overview.progress(connection, project, platform.clock)
    return {**overview.facts(project), "progress": progress, "notes": notes}


def _keeper(platform: Platform, email: str) -> str:
    """Return the id of who is to keep a project; refuse whom no page would show it to."""
    found = platform.accounts.find_email(email)
    if not found.may("organiser"):
        raise Invalid(
            f"{email} is no organiser, and would not find the project on the pages; ensue user change {email}"
            " --role organiser makes them one."
        )
    return found.id


def list_all(platform: Platform, arguments: dict[str, Any]) -> dict[str, Any]:
    """List every project with how far it is."""
    with platform.database.reading() as connection:
        found = []
        for project in Projects(platform).all(connection):
            progress = overview.progress(connection, project, platform.clock)
            mine = (participants.c.project_id == project.id, participants.c.state != "deleted")
            people = connection.execute(select(func.count()).select_from(participants).where(*mine)).scalar()
            found.append({**overview.facts(project), "progress": progress, "people": people})
    return {"projects": found}


def show(platform: Platform, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return a project with how far it is and who is at work on it, and with what came of it."""
    with platform.database.reading() as connection:
        project = Projects(platform).find(connection, arguments["name"])
        return overview.facts(project) | overview.overview(connection, project, platform.clock)


def set_state(platform: Platform, arguments: dict[str, Any]) -> dict[str, Any]:
    """Open, pause or close a project."""
    return overview.facts(Projects(platform).set_state(arguments["name"], arguments["state"]))


def link(platform: Platform, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the link that people are sent."""
    with platform.database.reading() as connection:
        project = Projects(platform).find(connection, arguments["name"])
    server = platform.home.server()
    base = platform.settings.public_url or (server["url"] if server else "http://127.0.0.1:8000")
    url = f"{base.rstrip('/')}{project.path}"
    return {"name": project.name, "state": project.state, "link": url, "prolific": url + PROLIFIC}


def export(platform: Platform, arguments: dict[str, Any]) -> dict[str, Any]:
    """Write what a project found out to a file of this machine."""
    path, form = Path(arguments["path"]), arguments["form"]
    with platform.database.reading() as connection:
        project = Projects(platform).find(connection, arguments["name"])
        if form == "history":
            write_json_lines(path, exporting.history_lines(connection, project))
        elif form == "csv":
            rows = exporting.lines(connection, project)
            next(rows)
            write_atomic(path, [exporting.as_csv(rows)])
        elif form == "bonuses":
            write_atomic(path, [exporting.bonuses(connection, project)])
        else:
            write_json_lines(path, exporting.lines(connection, project))
    return {"name": project.name, "path": str(path), "bytes": path.stat().st_size}


def exclude(platform: Platform, arguments: dict[str, Any]) -> dict[str, Any]:
    """Take somebody off a project."""
    count = People(platform).exclude(arguments["name"], arguments["annotator"])
    return {"annotator": arguments["annotator"], "void": count}


def forget(platform: Platform, arguments: dict[str, Any]) -> dict[str, Any]:
    """Delete what somebody said and what is known of them."""
    People(platform).forget(arguments["name"], arguments["annotator"])
    return {"annotator": arguments["annotator"]}


def top_up(platform: Platform, arguments: dict[str, Any]) -> dict[str, Any]:
    """Have each item answered by more people."""
    return overview.facts(Projects(platform).top_up(arguments["name"], arguments["labels"]))


def delete(platform: Platform, arguments: dict[str, Any]) -> dict[str, Any]:
    """Delete a project."""
    Projects(platform).delete(arguments["name"])
    return {"name": arguments["name"]}


ANNOTATION_COMMANDS: dict[str, Command] = {
    "annotate.create": create,
    "annotate.list": list_all,
    "annotate.show": show,
    "annotate.state": set_state,
    "annotate.link": link,
    "annotate.export": export,
    "annotate.exclude": exclude,
    "annotate.forget": forget,
    "annotate.top-up": top_up,
    "annotate.delete": delete,
}
