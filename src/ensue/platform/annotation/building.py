"""Make the items of a project: rows of the database from what its kind builds, in a process of its own.

What an annotator must not see of an item (its identity, gold values, who may be given it) is its `secret`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ensue.benchmarks import settings as reading
from ensue.benchmarks.people.checking import unwanted
from ensue.benchmarks.people.kind import WorkItem, kind, settings_of
from ensue.errors import EnsueError
from ensue.platform.refusals import Invalid

_LONGEST_GROUP, _LONGEST_STAGE = 200, 40


def build(
    name: str,
    data: str | None,
    settings: Mapping[str, Any],
    seed: int,
    files: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Build a project of a kind: its settings, title, instructions and the rows of its items.

    `files` are those that settings name, by setting, where they lie elsewhere than the settings say.
    """
    try:
        found = kind(name)
        resolved = reading.resolve(name, settings_of(found), {**found.preset(data), **settings})
        built = found.build(data, {**resolved, **(files or {})}, seed)
    except EnsueError as error:
        raise Invalid(str(error)) from None
    if not any(item.phase == "work" and not item.control for item in built.items):
        raise Invalid(f"There is no work in {built.source or data}.")
    rows = [row_of(item, resolved["labels"]) for item in built.items]
    title, source, notes = built.title[:200], built.source, list(built.notes)
    texts = {"title": title, "instructions": built.instructions, "source": source, "notes": notes}
    return {**texts, "settings": resolved, "items": rows}


def row_of(item: WorkItem, labels: int) -> dict[str, Any]:
    """Return an item as the database has it; work is wanted of so many people, all else of everybody."""
    if len(item.group) > _LONGEST_GROUP or len(item.stage) > _LONGEST_STAGE:
        raise Invalid(f"The group {item.group[:40]!r} or stage {item.stage[:40]!r} of an item is too long.")
    if unwanted(item.group + item.stage):
        raise Invalid("The group of an item has a control character in it.")
    for_all = item.control or item.phase != "work"
    secret = {
        "key": dict(item.key),
        "gold": None if item.gold is None else dict(item.gold),
        "words": item.words,
        "wanted": item.wanted,
        "authors": list(item.authors),
        "among": list(item.among),
        "own": dict(item.secret),
    }
    return {
        "phase": item.phase,
        "group_name": item.group,
        "stage": item.stage,
        "form": item.form.as_dict(),
        "secret": secret,
        "is_control": item.control,
        "wanted": None if for_all else item.wanted or labels,
    }
