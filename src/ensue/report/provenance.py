"""Where a run came from, in words: the command that made it and the environment it was made in."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# A run may record more than a reader wants; the rest is in run.json.
MOST_ROWS = 200
MOST_CHARACTERS = 1_000


def command_of(run: Mapping[str, Any]) -> str:
    """Return the command that made a run: as it was recorded, or put together from what was asked.

    Put together, it names every setting, so that it asks the same even after a default has changed.
    """
    asked = run["asked"] if isinstance(run.get("asked"), dict) else run
    command = run.get("command") or asked.get("command")
    if isinstance(command, str):
        return command
    if isinstance(command, list):
        return shlex.join(str(word) for word in command)
    words = ["ensue", "run", str(asked.get("benchmark", "")), *_model_words(run, asked)]
    for option, value in _options(run, asked).items():
        if isinstance(value, (str, int)):
            words += [f"--{option}", str(value)]
    settings = asked.get("settings")
    for name, value in settings.items() if isinstance(settings, dict) else ():
        # An empty list cannot be asked for: it is what a setting is when nobody names it.
        if value == []:
            continue
        words += ["--set", f"{name}={_as_setting(value)}"]
    return shlex.join(words)


def _model_words(run: Mapping[str, Any], asked: Mapping[str, Any]) -> list[str]:
    """Name the model so that it loads again: a short name or hub id as it is, a folder or a file by its path."""
    name, card = model_name(asked), run.get("model")
    source = str(card.get("source", "")) if isinstance(card, dict) else ""
    if isinstance(card, dict) and card.get("kind") == "human":
        return ["--model", f"human:{source}"]
    if "/" not in source or source.startswith(("hub ", "PyPI ")):
        return ["--model", name]
    path = Path(source)
    own = path.stem if path.suffix == ".gguf" else path.name
    return ["--model", source, *([] if name == own else ["--name", name])]


def model_name(about: Mapping[str, Any]) -> str:
    """Return the model's name, whether a run or a question has it alone or with its card."""
    model = about.get("model", "")
    return str(model.get("name", "") if isinstance(model, dict) else model)


def _options(run: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    data, identity = run.get("data"), asked.get("model_identity")
    source = data.get("source") if isinstance(data, dict) else asked.get("data")
    return {
        # The documents that come with the package are what a run without --data reads.
        "data": None if source == "bundled" else source,
        "limit": asked.get("limit"),
        "seed": asked.get("seed"),
        "dtype": identity.get("dtype") if isinstance(identity, dict) else None,
    }


def _as_setting(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return "none" if value is None else str(value)


def environment_rows(run: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return `run.json` as headed groups of names and values, however deep it is nested."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for key, value in run.items():
        # The command and the signature have a section of their own.
        if key in ("command", "signature"):
            continue
        if isinstance(value, dict) and value:
            groups.setdefault(str(key), []).extend(_flattened(value, ""))
        else:
            groups.setdefault("run", []).append((str(key), _shown(value)))
    left = MOST_ROWS
    shortened = []
    for heading, rows in groups.items():
        if left > 0:
            shortened.append((heading, rows[:left]))
            left -= len(rows)
    return shortened


def _flattened(value: Mapping[str, Any], prefix: str) -> list[tuple[str, str]]:
    rows = []
    for key, inner in value.items():
        if isinstance(inner, dict) and inner:
            rows += _flattened(inner, f"{prefix}{key}.")
        else:
            rows.append((f"{prefix}{key}", _shown(inner)))
    return rows


def _shown(value: Any) -> str:
    if value is None or value in ({}, []):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    # A joiner of one space would be invisible.
    text = repr(text) if text != text.strip() else text
    return text if len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS] + "…"
