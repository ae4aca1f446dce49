"""The benchmarks by name, imported when asked for; other packages add theirs by entry point."""

from __future__ import annotations

import difflib
import importlib
from importlib.metadata import entry_points

from ensue.benchmarks.base import Benchmark
from ensue.errors import EnsueError

_OWN = {
    "chapterbreak": "ensue.benchmarks.chapterbreak.task:benchmark",
    "discoeval": "ensue.benchmarks.discoeval.task:benchmark",
    "glue": "ensue.benchmarks.glue.task:benchmark",
    "qags": "ensue.benchmarks.qags.task:benchmark",
    "senteval": "ensue.benchmarks.senteval.task:benchmark",
    "shuffle": "ensue.benchmarks.shuffle.task:benchmark",
    "squality": "ensue.benchmarks.squality.task:benchmark",
    "superglue": "ensue.benchmarks.superglue.task:benchmark",
}
_GROUP = "ensue.benchmarks"


def names() -> list[str]:
    """All benchmark names, without importing any."""
    return sorted({*_OWN, *(point.name for point in entry_points(group=_GROUP))})


def find(name: str) -> Benchmark:
    """The benchmark of that name."""
    if name in _OWN:
        module, _, attribute = _OWN[name].partition(":")
        return getattr(importlib.import_module(module), attribute)  # type: ignore[no-any-return]
    for point in entry_points(group=_GROUP):
        if point.name == name:
            return point.load()  # type: ignore[no-any-return]
    close = difflib.get_close_matches(name, names(), n=1)
    hint = f"did you mean {close[0]}?" if close else f"there is {', '.join(names())}."
    raise EnsueError(f"There is no benchmark {name!r}; {hint}")
