"""Finds tasks of a suite by name, whatever its capitals, and says what was meant where there is none."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from ensue.benchmarks.nlu.examples import TaskSpec
from ensue.errors import EnsueError


def choose(suite: str, specs: Sequence[TaskSpec], task: str) -> list[TaskSpec]:
    """The task of that name, or all where the name is empty."""
    wanted = task.strip("/").lower()
    found = [spec for spec in specs if wanted in ("", spec.name.lower())]
    if found:
        return found
    known = {spec.name.lower(): spec.name for spec in specs}
    close = difflib.get_close_matches(wanted, known, n=1)
    hint = f"did you mean {known[close[0]]}?" if close else f"there is {', '.join(known.values())}."
    raise EnsueError(f"{suite} has no task {task!r}; {hint}")
