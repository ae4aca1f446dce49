"""The benchmarks by name: the folders beside this file that have one, and those of other packages by entry point."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from ensue.benchmarks.base import Benchmark
from ensue.errors import EnsueError

_GROUP = "ensue.benchmarks"


@cache
def _own() -> dict[str, Benchmark]:
    """The folders that export a `benchmark`; each says where its parts are and imports none of them."""
    modules = [
        importlib.import_module(f"{__package__}.{found.name}")
        for found in pkgutil.iter_modules([str(Path(__file__).parent)])
        if found.ispkg
    ]
    entries = [module.benchmark for module in modules if hasattr(module, "benchmark")]
    return {entry.name: entry for entry in entries}


def _others() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=_GROUP) if point.name not in _own()}


def names() -> list[str]:
    """Return the names of all benchmarks."""
    return sorted({*_own(), *_others()})


def find(name: str) -> Benchmark:
    """Return the benchmark of that name."""
    if name in _own():
        return _own()[name]
    if name in _others():
        point = _others()[name]
        found = point.load()
        if not isinstance(found, Benchmark):
            raise EnsueError(
                f"The benchmark {name} of {point.value} is {type(found).__name__}, where an "
                f"ensue.benchmarks.base.Benchmark is expected."
            )
        return found
    close = difflib.get_close_matches(name, names(), n=1)
    hint = f"did you mean {close[0]}?" if close else f"there is {', '.join(names())}."
    raise EnsueError(f"There is no benchmark {name!r}; {hint}")


def every() -> list[Benchmark]:
    """Return all benchmarks, by name."""
    return [find(name) for name in names()]
