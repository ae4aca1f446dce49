"""GLUE and SuperGLUE by name: what each is called, its tasks, and how its files are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ensue.benchmarks import registry
from ensue.errors import EnsueError, hint

if TYPE_CHECKING:
    from ensue.benchmarks.nlu.examples import TaskSpec
    from ensue.benchmarks.nlu.task import NluTask

TITLES = {"glue": "GLUE", "superglue": "SuperGLUE"}


def suite_of(name: str) -> NluTask:
    """Return the benchmark of a suite, with its tasks and readers."""
    if name not in TITLES:
        raise EnsueError(f"There is no suite {name!r}; {hint(name, TITLES)}")
    return cast("NluTask", registry.find(name).load_task())


def specs_of(name: str) -> tuple[TaskSpec, ...]:
    """Return the tasks of a suite, in the order of its tables."""
    return tuple(suite_of(name).specs)
