"""Make benchmark data from raw works with the builder of a benchmark."""

from __future__ import annotations

import difflib
from typing import Any

from ensue import lazy
from ensue.benchmarks import registry
from ensue.errors import EnsueError


def build(name: str, *arguments: Any, **options: Any) -> Any:
    """Build data with the builder that `ensue build NAME` runs, and return what it says it built.

    Arguments and options are the builder's own: mostly the raw works and the folder to write.
    """
    builders = {
        known: builder for benchmark in registry.every() for known, builder in benchmark.builders.items()
    }
    if name not in builders:
        close = difflib.get_close_matches(name, builders, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there is {', '.join(sorted(builders))}."
        raise EnsueError(f"There is no builder {name!r}; {hint}")
    reference = builders[name].build
    if reference is None:
        raise EnsueError(f"{name} is built from the command line: ensue build {name} --help.")
    return lazy.load(reference)(*arguments, **options)
