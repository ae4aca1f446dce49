"""The small models that come with the package: what asks and answers questions by default."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from ensue.errors import EnsueError


class Shipped(NamedTuple):
    """Where a model lies within `ensue.backends.adapters`, what it does, and the command that makes one."""

    folder: str
    does: str
    command: str
    about: str
    licence: str = "Apache-2.0"


SHIPPED = {
    "minilm-qa": Shipped(
        "qa", "answers questions", "ensue train qa", "answers for QAGS: an adapter and span head on minilm"
    ),
    "smollm2-qg": Shipped("qg", "asks questions", "ensue train qg", "asks for QAGS: an adapter on smollm2"),
}


def ships(name: str) -> bool:
    """Whether this installation has it."""
    return (_folder(name) / "config.json").is_file()


def shipped_folder(name: str) -> Path:
    """The folder of one of them; an installation without it is told what to do instead."""
    model = SHIPPED[name]
    if not ships(name):
        raise EnsueError(
            f"This installation has no {name}, the model that {model.does} by default; name a folder or another "
            f"model that {model.does}, or make one with {model.command}."
        )
    return _folder(name)


def _folder(name: str) -> Path:
    return Path(str(files("ensue.backends"))) / "adapters" / SHIPPED[name].folder
