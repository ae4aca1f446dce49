"""People who answer a project's items one after another, without a server: what a kind makes of their answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ensue.benchmarks.people.checking import check_answer, settled
from ensue.benchmarks.people.export import Export
from ensue.benchmarks.people.form import Form
from ensue.benchmarks.people.kind import Built, Done, Kind, WorkItem, settings_of
from ensue.benchmarks.settings import resolve

Answer = Callable[[WorkItem, str], Mapping[str, Any]]


def chosen(kind: Kind, **given: Any) -> dict[str, Any]:
    """All settings of a project, with these."""
    return resolve(kind.name, settings_of(kind), given)


def exported(
    kind: Kind,
    built: Built,
    people: Sequence[str],
    answer: Answer,
    settings: Mapping[str, Any],
    seconds: float = 60,
) -> Export:
    """Everybody answers all they may, in rounds, until nobody can; every answer is checked as a server does."""
    lines: list[dict[str, Any]] = []
    items = list(built.items)
    # What a database gives back is JSON.
    items = [_stored(item) for item in items]
    answered: dict[str, list[str]] = {item.key["id"]: [] for item in items}
    assert len(answered) == len(items), "two items have one id"
    going = True
    while going:
        going = False
        for person in people:
            item = next((item for item in items if _may(item, person, answered, settings)), None)
            if item is None:
                continue
            going = True
            values = answer(item, person)
            assert check_answer(item.form, values) == []
            answered[item.key["id"]].append(person)
            lines.append(_line(kind, item, person, values, seconds))
            if item.group:
                done = [
                    Done(
                        one.key,
                        one.stage,
                        line["annotator"],
                        line["values"],
                        seconds,
                        place,
                        one.form,
                        one.secret,
                    )
                    for line in lines
                    for place, one in enumerate(items)
                    if one.key["id"] == line["key"]["id"] and one.group == item.group
                ]
                for new in map(_stored, kind.follow(item.group, done)):
                    if new.key["id"] not in answered:
                        answered[new.key["id"]] = []
                        items.append(new)
    header = {
        "ensue": "annotation",
        "version": 1,
        "project": "test",
        "kind": kind.name,
        "settings": settings,
        "source": built.source,
        "participants": [
            {"annotator": name, "phase": "work", "state": "active", "reason": None} for name in people
        ],
        "fields": {one.id: one.type for item in items for one in item.form.fields},
    }
    return Export.of(json.loads(json.dumps(header)), json.loads(json.dumps(lines)))


def write_files(texts: Mapping[str, str], folder: Path) -> Path:
    """Write what a kind's `files` returns."""
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return folder


def _stored(item: WorkItem) -> WorkItem:
    return WorkItem(
        Form.of(json.loads(json.dumps(item.form.as_dict()))),
        json.loads(json.dumps(item.key)),
        item.phase,
        item.group,
        item.stage,
        item.control,
        json.loads(json.dumps(item.gold)),
        item.words,
        item.wanted,
        item.authors,
        item.among,
        json.loads(json.dumps(item.secret)),
    )


def _may(item: WorkItem, person: str, answered: Mapping[str, list[str]], settings: Mapping[str, Any]) -> bool:
    given = answered[item.key["id"]]
    if person in given or person in item.authors or (item.among and person not in item.among):
        return False
    everybody = item.control or item.phase != "work"
    return everybody or len(given) < (item.wanted or settings["labels"])


def _line(
    kind: Kind, item: WorkItem, person: str, values: Mapping[str, Any], seconds: float
) -> dict[str, Any]:
    return {
        "key": item.key,
        "phase": item.phase,
        "group": item.group,
        "stage": item.stage,
        "control": item.control,
        "annotator": person,
        "values": settled(item.form, values),
        "gold": item.gold,
        "right": None if item.gold is None else kind.right(item.gold, values),
        "state": "answered",
        "seconds": seconds,
    }
