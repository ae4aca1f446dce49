"""What a training says of itself in its folder: what was asked, on what, on which machine, and how it ended."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ensue.errors import EnsueError

RECORD = "training.json"
# Where a training keeps its prepared corpus, unless told otherwise.
CORPUS = "corpus"


def check_folder(output: Path, asked: Mapping[str, Any], resume: bool) -> None:
    """Refuse a folder that holds anything but this training, to be resumed, or the corpus prepared for it."""
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnsueError(f"{output} cannot be a folder: {error.strerror}.") from error
    record = output / RECORD
    if not record.exists():
        if {path.name for path in output.iterdir()} - {CORPUS}:
            raise EnsueError(f"{output} is not empty and holds no training; choose another --output.")
        return
    if not resume:
        raise EnsueError(
            f"{output} holds a training; add --resume to go on with it, or choose another --output."
        )
    if _asked(record) != json.loads(json.dumps(asked)):
        raise EnsueError(f"{output} holds a training with other settings or data; choose another --output.")


def begin_record(output: Path, asked: Mapping[str, Any]) -> None:
    """Say what is trained, once it can begin; a training that goes on has said it."""
    if not (output / RECORD).exists():
        write_record(output, {"asked": asked, "started": time.strftime("%Y-%m-%dT%H:%M:%S%z")})


def write_record(output: Path, value: Mapping[str, Any]) -> None:
    """Write the record whole or not at all."""
    part = output / f".{RECORD}.part"
    part.write_text(json.dumps(value, indent=2) + "\n", "utf-8")
    part.replace(output / RECORD)


def content_digest(files: Iterable[str | Path]) -> str:
    """A digest of what is in some files, by which a training knows its data again wherever it lies."""
    found = hashlib.sha256()
    for name in files:
        with Path(name).open("rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()


def _asked(record: Path) -> Any:
    try:
        return json.loads(record.read_text("utf-8")).get("asked")
    except (OSError, ValueError, AttributeError) as error:
        raise EnsueError(f"{record} is no record of a training: choose another --output.") from error
