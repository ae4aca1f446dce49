"""Anybody's own annotation: a project.toml that says what is shown and asked, over a file of JSON lines.

```toml
title = "Which summary is better?"
instructions = "instructions.md"        # a file beside this one, in Markdown; or the words themselves
data = "pairs.jsonl"

[settings]                              # as with --set, which comes first
labels = 3

[[panels]]
id = "first"
title = "Summary A"
text = "{one}"                          # columns of a line in braces; `sentences = "{list}"` for a list of texts

[[fields]]
id = "better"
type = "preference"                     # every type of form.py
label = "Which of them would you rather read?"
left = "first"
right = "second"
tie = true
random = true                           # sides by chance; the export says which panel was where
```

A line may have `id`, `group`, `phase` (training, qualification, work), `control`, `gold` (values by field) and
`words` (said after a training item); its other columns are for the panels.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

from ensue.benchmarks.people.checking import as_listed, check_answer, in_words, is_number
from ensue.benchmarks.people.form import Form
from ensue.benchmarks.people.keys import COLUMN, file_problems, part_problems
from ensue.benchmarks.people.kind import PHASES, Built, Plain, Reads, WorkItem
from ensue.errors import EnsueError
from ensue.jsonl import read_lines, read_toml

_LONGEST = 1_000_000  # characters of one form
_MOST_ITEMS = 200_000
# What a line says of its item; nothing (null) is as good as no such column.
_ABOUT = ("id", "group", "phase", "control", "gold", "words")
_OTHER_SIDE = {"left": "right", "right": "left"}


class Custom(Plain):
    """The kind `custom`."""

    name = "custom"
    about = "your own questions over a file of JSON lines, described in a project.toml"
    reads = Reads("A project.toml, and beside it the JSON lines and the page of instructions that it names.")

    def preset(self, data: str | None) -> Mapping[str, Any]:
        """Return the settings that the project.toml makes."""
        settings: Mapping[str, Any] = _read(data)[1].get("settings", {})
        return settings

    def build(self, data: str | None, settings: Mapping[str, Any], seed: int) -> Built:
        path, said = _read(data)
        file = _beside(path, said["data"])
        least = max(float(said.get("minimum_seconds", 0)), float(settings.get("minimum_seconds", 0)))
        items, ids = [], set()
        for number, row in read_lines(file):
            place = f"{file}, line {number}"
            item = _item(said, row, place, number, random.Random(f"{seed}/{number}"), least)
            if item.key["id"] in ids:
                raise EnsueError(f"{place}: the id {item.key['id']!r} is there already.")
            ids.add(item.key["id"])
            items.append(item)
            if len(items) > _MOST_ITEMS:
                raise EnsueError(f"{file} has more than {_MOST_ITEMS:,} lines; divide it.")
        if not any(item.phase == "work" and not item.control for item in items):
            raise EnsueError(f"{file} has no work: every line is for training, qualification or control.")
        return Built(said["title"], _instructions(path, said), items, source=str(path))


def _read(data: str | None) -> tuple[Path, dict[str, Any]]:
    if data is None:
        raise EnsueError("A custom project needs --data: its project.toml.")
    path = Path(data).expanduser()
    path = path / "project.toml" if path.is_dir() else path
    said = read_toml(path)
    for problem in file_problems(said):
        raise EnsueError(_sentence(f"{path}: {problem}"))
    return path, said


def _sentence(words: str) -> str:
    return words if words.endswith("?") else f"{words}."


def _beside(path: Path, name: str) -> Path:
    """Return a file in the folder of the project.toml; nothing outside it is read."""
    folder = path.parent.resolve()
    if "\0" in name:
        raise EnsueError(f"{path} names {name!r}, which is no file's name.")
    found = (folder / name).resolve()
    if not found.is_relative_to(folder):
        raise EnsueError(f"{path} names {name}, which is not in its folder.")
    return found


def _instructions(path: Path, said: Mapping[str, Any]) -> str:
    words: str = said.get("instructions", "")
    if words.endswith(".md") and "\n" not in words:
        try:
            return _beside(path, words).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            raise EnsueError(f"{path} names {words}, which cannot be read.") from None
    return words


def _item(
    said: Mapping[str, Any],
    row: Mapping[str, Any],
    place: str,
    number: int,
    chance: random.Random,
    least: float,
) -> WorkItem:
    panels = [_filled(panel, row, place) for panel in said.get("panels", ())]
    fields = [_filled(one, row, place) for one in said.get("fields", ())]
    for part, tables in (("panels", panels), ("fields", fields)):
        for problem in part_problems(part, tables):
            raise EnsueError(_sentence(f"{place}: {problem}"))
    sides, swapped = {}, set()
    for one in fields:
        if one.pop("random", False) and {"left", "right"} <= one.keys():
            if chance.random() < 0.5:
                one["left"], one["right"] = one["right"], one["left"]
                swapped.add(str(one.get("id")))
            sides[str(one.get("id"))] = {"left": one["left"], "right": one["right"]}
    for one in fields:
        when = one.get("when")
        if isinstance(when, dict) and str(when.get("field")) in swapped:
            one["when"] = {**when, "equals": _other_side(when.get("equals"))}
    try:
        form = Form.of({"panels": panels, "fields": fields, "minimum_seconds": least})
    except EnsueError as error:
        raise EnsueError(f"{place}: {error}") from None
    if sum(len(panel.whole) for panel in form.panels) > _LONGEST:
        raise EnsueError(f"{place} has more than {_LONGEST:,} characters to read.")
    about = {name: row[name] for name in _ABOUT if row.get(name) is not None}
    for name in ("id", "group", "words"):
        if not (isinstance(given := about.get(name, ""), str) or is_number(given)):
            raise EnsueError(f"{place} has {name} = {in_words(given)}, where a text is expected.")
    phase, control = about.get("phase", "work"), about.get("control", False)
    if phase not in PHASES:
        raise EnsueError(f"{place}: the phase {in_words(phase)} is none of {', '.join(PHASES)}.")
    if control not in (True, False):
        raise EnsueError(f"{place} has control = {in_words(control)}, where true or false is expected.")
    gold = about.get("gold")
    if gold is not None:
        for problem in check_answer(form, gold, final=False):
            raise EnsueError(f"{place}, gold: {problem}")
        gold = _gold(form, gold, swapped) or None
    if gold is None and (control or phase != "work"):
        raise EnsueError(f"{place} is for {'control' if control else phase} and has no gold values.")
    key = {"id": str(about.get("id", number))} | ({"sides": sides} if sides else {})
    words, group = str(about.get("words", "")), str(about.get("group", ""))
    return WorkItem(form, key, phase, group, control=bool(control), gold=gold, words=words)


def _gold(form: Form, gold: Mapping[str, Any], swapped: Set[str]) -> dict[str, Any]:
    """Return gold values as answers are: sides as people see them, several options in the order of the form."""
    found = {one.id: as_listed(one, gold[one.id]) for one in form.fields if gold.get(one.id) is not None}
    return {id: _other_side(value) if id in swapped else value for id, value in found.items()}


def _other_side(value: Any) -> Any:
    return _OTHER_SIDE.get(value, value) if isinstance(value, str) else value


def _filled(part: Any, row: Mapping[str, Any], place: str) -> Any:
    """Return a part of the form with the columns of a line in place of their names in braces."""
    if isinstance(part, dict):
        return {key: _filled(value, row, place) for key, value in part.items()}
    if isinstance(part, list):
        return [_filled(value, row, place) for value in part]
    if not isinstance(part, str):
        return part
    whole = COLUMN.fullmatch(part)
    if whole:  # a column that is no text stays what it is
        return _column(row, whole[1], place)
    return COLUMN.sub(lambda found: str(_column(row, found[1], place)), part)


def _column(row: Mapping[str, Any], name: str, place: str) -> Any:
    if name not in row:
        raise EnsueError(f"{place} has no column {name!r}, which the project.toml shows.")
    return row[name]


KIND = Custom()
