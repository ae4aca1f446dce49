"""A run context as a run lends it, with its records in a folder or in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ensue.benchmarks.base import RunContext
from ensue.progress import Progress, ignore
from ensue.records import Records
from ensue.scoring.journal import Journal


@contextmanager
def run_context(folder: Path | None, progress: Progress | None = None) -> Iterator[RunContext]:
    with Records(None if folder is None else records_of(folder)) as records:
        yield RunContext(Journal(records), folder, progress or ignore, records=records)


def records_of(folder: Path) -> Path:
    return folder / "journal.jsonl"
