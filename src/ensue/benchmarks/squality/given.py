"""Summaries that were written elsewhere, read from a file to be measured."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from ensue.benchmarks.nlu.files import Found, jsonl_rows
from ensue.benchmarks.squality.data import Example
from ensue.errors import EnsueError


def read_summaries(path: Path, examples: Sequence[Example], *, some: bool = False) -> list[str]:
    """The summary of every example, in their order, from rows with `id` (story/question, as in items.jsonl) and
    `summary`; one that is missing, unknown or there twice is named. `some` says that the examples are not all of a
    split, so that the file may well have others."""
    known = {one.id for one in examples}
    found: dict[str, str] = {}
    for row in jsonl_rows(Found(path)):
        name = row.text("id")
        if name in found:
            row.refuse(f"{name} was there before; leave one of the two")
        if name not in known and not some:
            row.refuse(f"{name} is no question of this split, such as {examples[0].id}")
        found[name] = row.any_text("summary")
    missing = [one.id for one in examples if one.id not in found]
    if missing:
        raise EnsueError(
            f"{path} has no summary for {len(missing)} of {len(examples)} questions, {missing[0]} among them; "
            f"an empty one counts, a missing one does not."
        )
    return [found[one.id] for one in examples]


def digest_of(path: Path) -> str:
    """What tells a file of summaries from another."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise EnsueError(f"{path} cannot be read: {error.strerror or error}.") from None
