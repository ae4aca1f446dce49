"""Small annotation projects, and people at work on them, for the tests of annotation."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.testclient import TestClient

from ensue.benchmarks.people import kind as kinds
from ensue.benchmarks.people.form import Field, Form, Panel, options
from ensue.benchmarks.people.kind import Built, Done, Plain, WorkItem
from ensue.platform.annotation.answering import Answering, Given
from ensue.platform.annotation.assigning import Waiting
from ensue.platform.annotation.building import row_of
from ensue.platform.annotation.people import Entering, Participant
from ensue.platform.annotation.projects import Project, Wanted
from ensue.platform.service import Platform
from ensue.platform.web.app import create_app

_KEYS = itertools.count()


def form(text: str = "It rains.", least: float = 0.0) -> Form:
    """Return a form that asks for yes or no, and for a word where one likes."""
    label = Field("label", "choice", "Does it rain?", options(("yes", "Yes"), ("no", "No")))
    why = Field("why", "text", "Why?", required=False)
    return Form((Panel("text", text=text),), (label, why), minimum_seconds=least)


def item(id: str, **facts: Any) -> WorkItem:
    """Return an item of a name; what is for training, qualification or control has the gold answer yes."""
    gold = {"label": "yes"} if facts.get("control") or facts.get("phase", "work") != "work" else None
    facts = {"gold": gold, "words": "It does.", **facts}
    least = facts.pop("least", 0.0)
    return WorkItem(form(f"This is {id}.", least), {"id": id}, **facts)


class Staged(Plain):
    """A kind of two stages: once two people wrote in a group, others read what they wrote."""

    name, about, follows = "staged", "for tests", True

    def build(self, data: str | None, settings: Mapping[str, Any], seed: int) -> Built:
        return Built("Staged", "", [item(f"{group}-write", group=group, stage="write") for group in "ab"])

    def follow(self, group: str, done: Sequence[Done]) -> Sequence[WorkItem]:
        written = [one for one in done if one.stage == "write"]
        if len(written) < 2:
            return ()
        who = tuple(one.annotator for one in written)
        return [item(f"{group}-read", group=group, stage="read", authors=who, wanted=1)]


STAGED = Staged()


class Chained(Plain):
    """A kind where whatever somebody writes is read by one other."""

    name, about, follows = "chained", "for tests", True

    def build(self, data: str | None, settings: Mapping[str, Any], seed: int) -> Built:
        return Built("Chained", "", [item(f"w-{group}", group=group, stage="write") for group in "ab"])

    def follow(self, group: str, done: Sequence[Done]) -> Sequence[WorkItem]:
        writers = [one.annotator for one in done if one.stage == "write"]
        return [
            item(f"r-{group}-{who}", group=group, stage="read", authors=(who,), wanted=1) for who in writers
        ]


CHAINED = Chained()


def make(platform: Platform, items: Sequence[WorkItem], kind: str = "custom", **settings: Any) -> Project:
    """Make a project of items and open it."""
    part = Answering(platform)
    known = kinds.settings_of(kinds.kind(kind))
    values = {key: one.default for key, one in known.items()} | settings
    rows = [row_of(one, values["labels"]) for one in items]
    built = {
        "title": "Rain",
        "instructions": "Say *yes* or no.",
        "settings": values,
        "items": rows,
        "source": "",
    }
    made = part.projects.insert(Wanted("rain", kind, seed=7), built)
    return part.projects.set_state(made.name, "open")


class Person:
    """Somebody at work on a project."""

    def __init__(self, platform: Platform, project: Project, id: str) -> None:
        self.platform, self.project, self.part = platform, project, Answering(platform)
        given = Entering(project.entry_key, id, "study", f"session of {id}", consent=True)
        self.entered = self.part.people.enter(project.name, given, None, None)
        self.id = self.entered.participant.id

    @property
    def now(self) -> Participant:
        with self.platform.database.reading() as connection:
            return self.part.people.get(connection, self.id)

    def take(self) -> str | Waiting | None:
        return self.part.assigning.take(self.id)

    def held(self) -> str:
        found = self.take()
        assert isinstance(found, str)
        return found

    def key_of(self, assignment: str) -> str:
        """Return the id of an assignment's item."""
        with self.platform.database.reading() as connection:
            own = self.part.assigning.own(connection, self.id, assignment)
            query = "SELECT secret FROM project_items WHERE id = :id"
            from sqlalchemy import JSON, text

            found = connection.execute(text(query).columns(secret=JSON), {"id": own.item_id}).scalar_one()
        return str(found["key"]["id"])

    def save(self, assignment: str, label: Any = "yes", *, seq: int = 1, key: str = "", **more: Any) -> Any:
        facts = {"final": True, "active_ms": 9000, "elapsed_ms": 9000, **more}
        values = facts.pop("values", {"label": label})
        key = key or f"key {next(_KEYS)}"
        return self.part.save(self.id, assignment, key, Given(values, seq=seq, **facts))

    def do(self, label: str = "yes") -> str | None:
        """Take one item and answer it; return its id, None where there is none."""
        found = self.take()
        if not isinstance(found, str):
            return None
        self.save(found, label)
        return self.key_of(found)

    def do_all(self, label: str = "yes") -> list[str]:
        found = []
        while (done := self.do(label)) is not None:
            found.append(done)
        return found


def people(platform: Platform, project: Project, count: int) -> list[Person]:
    return [Person(platform, project, f"worker-{number}") for number in range(count)]


class Browser:
    """Somebody at work through the API alone."""

    def __init__(self, platform: Platform, project: Project, id: str) -> None:
        self.client = TestClient(create_app(platform), raise_server_exceptions=False)
        self.project, self.headers = project, {}
        body = {"key": project.entry_key, "external_id": id, "session_id": f"s {id}", "consent": True}
        answer = self.post("enter", body)
        assert answer.status_code == 201, answer.text
        self.pseudonym = answer.json()["pseudonym"]
        self.headers = {"x-csrf-token": answer.json()["csrf"]}

    def post(self, what: str, body: Any = None) -> Any:
        return self.client.post(
            f"/api/v1/projects/{self.project.name}/{what}", json=body, headers=self.headers
        )

    def take(self) -> Any:
        return self.post("assignments")

    def save(self, assignment: str, body: Any, key: str | None = None) -> Any:
        headers = {**self.headers, "Idempotency-Key": key or f"key {next(_KEYS)}"}
        return self.client.put(f"/api/v1/assignments/{assignment}/answer", json=body, headers=headers)

    def get(self, path: str) -> Any:
        return self.client.get(f"/api/v1/{path}")


def said(label: str = "yes", *, seq: int = 1, final: bool = True, **more: Any) -> dict[str, Any]:
    """Return the body of a save."""
    facts = {"seq": seq, "final": final, "active_ms": 9000, "elapsed_ms": 9000}
    return {"values": {"label": label}, **facts, **more}
