"""Make the items of a project: rows of the database from what its kind builds, in a process of its own.

What an annotator must not see of an item (its identity, gold values, who may be given it) is its `secret`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ensue.benchmarks import settings as reading
from ensue.benchmarks.grading.zips import printable
from ensue.benchmarks.people.aside import refuse_idle
from ensue.benchmarks.people.checking import LONGEST_TEXT, in_words, is_number, unwanted
from ensue.benchmarks.people.kind import WorkItem, kind, settings_of
from ensue.errors import EnsueError
from ensue.platform.refusals import Invalid
from ensue.text.documents import BUNDLED

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
        refuse_idle(found, resolved, built.items)
    except EnsueError as error:
        raise Invalid(str(error)) from None
    if not any(item.phase == "work" and not item.control for item in built.items):
        raise Invalid(f"There is no work in {built.source or data}.")
    rows = [row_of(item, resolved["labels"]) for item in built.items]
    refuse_unwanted(resolved)
    refuse_unwanted({"instructions": built.instructions})
    title, source, notes = built.title[:200], built.source, list(built.notes)
    if data is None and source == BUNDLED:
        notes.insert(0, "made of the few texts that come with Ensue, since no data were given (--data)")
    texts = {"title": title, "instructions": built.instructions, "source": source, "notes": notes}
    return {**texts, "settings": resolved, "items": rows}


def refuse_unwanted(settings: Mapping[str, Any]) -> None:
    """Refuse settings with characters that no database or page should be given, texts too long for a page, and what
    is no value."""
    for key, value in settings.items():
        values = value if isinstance(value, list | tuple) else (value,)
        if not all(isinstance(one, str | bool | None) or is_number(one) for one in values):
            raise Invalid(
                f"{printable(key)} has {in_words(value)}, where one value or a list of them is expected."
            )
        for text in (key, *values):
            if unwanted(str(text)):
                raise Invalid(f"{printable(key)} has a control character in it; leave it out.")
            if len(str(text)) > LONGEST_TEXT:
                raise Invalid(
                    f"{printable(key)} has {len(str(text)):,} characters; at most {LONGEST_TEXT:,} are taken."
                )


def _refuse_surrogates(item: WorkItem) -> None:
    """Refuse halves of characters, which JSON can write and nothing else."""
    try:
        json.dumps([item.form.as_dict(), item.key, item.gold, item.words], ensure_ascii=False).encode()
    except UnicodeEncodeError:
        id = printable(str(item.key.get("id")))
        raise Invalid(
            f"The item {id} holds half a character (\\ud800 to \\udfff), which no text may."
        ) from None


def row_of(item: WorkItem, labels: int) -> dict[str, Any]:
    """Return an item as the database has it; work is wanted of so many people, all else of everybody."""
    if len(item.group) > _LONGEST_GROUP or len(item.stage) > _LONGEST_STAGE:
        raise Invalid(f"The group {item.group[:40]!r} or stage {item.stage[:40]!r} of an item is too long.")
    if unwanted(item.group + item.stage):
        raise Invalid("The group of an item has a control character in it.")
    _refuse_surrogates(item)
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
