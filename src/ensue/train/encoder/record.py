"""What a training says of itself in its folder: what was asked, on what, on which machine, and how it ended."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ensue.errors import EnsueError

RECORD = "training.json"


def open_folder(output: Path, asked: Mapping[str, Any], resume: bool) -> None:
    """An empty folder, or one that holds the same training and is to be resumed."""
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnsueError(f"{output} cannot be a folder: {error.strerror}.") from error
    record = output / RECORD
    plain = json.loads(json.dumps(asked))
    if record.exists():
        if not resume:
            raise EnsueError(
                f"{output} holds a training; add --resume to go on with it, or choose another --output."
            )
        if _asked(record) != plain:
            raise EnsueError(
                f"{output} holds a training with other settings or data; choose another --output."
            )
    elif any(output.iterdir()):
        raise EnsueError(f"{output} is not empty and holds no training; choose another --output.")
    else:
        write_record(output, {"asked": plain, "started": time.strftime("%Y-%m-%dT%H:%M:%S%z")})


def write_record(output: Path, value: Mapping[str, Any]) -> None:
    """Write the record whole or not at all."""
    part = output / f".{RECORD}.part"
    part.write_text(json.dumps(value, indent=2) + "\n", "utf-8")
    part.replace(output / RECORD)


def corpus_in_words(output: Path) -> str:
    """On what a finished training was done, and what of its sources was left out."""
    corpora = json.loads((output / RECORD).read_text("utf-8"))["corpora"]
    parts = [
        f"{corpora[name]['sentences']:,} sentences of {corpora[name]['documents']:,}"
        for name in ("train", "dev")
    ]
    skipped = ", ".join(f"{reason}: {count:,}" for reason, count in corpora["all"]["skipped"].items())
    return f"trained on {parts[0]} documents, held out {parts[1]}; left out: {skipped or 'nothing'}"


def _asked(record: Path) -> Any:
    try:
        return json.loads(record.read_text("utf-8")).get("asked")
    except (OSError, ValueError, AttributeError) as error:
        raise EnsueError(f"{record} is no record of a training: choose another --output.") from error
