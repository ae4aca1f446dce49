"""Lists of works, by which train, development and test data are kept apart."""

from __future__ import annotations

from pathlib import Path

from ensue.text.io.rows import read_ids


class WorkList:
    """The ids in a file, and which of them no work has had so far; without a file there are none."""

    def __init__(self, path: Path | None) -> None:
        self.ids = frozenset(read_ids(path.expanduser())) if path else frozenset()
        self._waiting = set(self.ids)

    def saw(self, work: str) -> None:
        """A work with this id exists."""
        self._waiting.discard(work)

    @property
    def unmatched(self) -> int:
        return len(self._waiting)
