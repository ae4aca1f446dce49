"""The benchmarks by name: the folders beside this file that have one, and those of other packages by entry point."""

from __future__ import annotations

import importlib
import inspect
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ensue import lazy
from ensue.benchmarks.base import Benchmark
from ensue.errors import EnsueError, hint

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_GROUP = "ensue.benchmarks"


@cache
def _own() -> dict[str, Benchmark]:
    """Return the folders that state a `benchmark`; each says where its parts are and imports none of them."""
    found = sorted(Path(__file__).parent.glob("*/__init__.py"))
    # Folders that benchmarks share are not imported to find that they are none.
    stated = [path.parent.name for path in found if "\nbenchmark = " in path.read_text("utf-8")]
    modules = [importlib.import_module(f"{__package__}.{name}") for name in stated]
    return {module.benchmark.name: module.benchmark for module in modules}


def _others() -> dict[str, EntryPoint]:
    if not any(_mentioned_in(folder) for folder in dict.fromkeys(sys.path)):
        return {}
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=_GROUP) if point.name not in _own()}


@cache
def _mentioned_in(place: str) -> bool:
    """Say whether an installed package may name a benchmark: `importlib.metadata` takes longer than all the rest."""
    folder = Path(place or ".")
    if not folder.is_dir():
        return folder.exists()  # an archive, which is looked into properly
    there = (*folder.glob("*.dist-info/entry_points.txt"), *folder.glob("*.egg-info/entry_points.txt"))
    return any(_GROUP.encode() in path.read_bytes() for path in there)


def names() -> list[str]:
    """Return the names of all benchmarks."""
    return sorted({*_own(), *_others()})


def find(name: str) -> Benchmark:
    """Return the benchmark of that name."""
    if name in _own():
        return _own()[name]
    if name in _others():
        point = _others()[name]
        try:
            found = point.load()
        except Exception as error:  # whatever a package of others raises when it is imported
            raise EnsueError(
                f"The benchmark {name} of {point.value} cannot be imported ({type(error).__name__}: {error})."
            ) from error
        if not isinstance(found, Benchmark):
            raise EnsueError(
                f"The benchmark {name} of {point.value} is {type(found).__name__}, where an "
                f"ensue.benchmarks.base.Benchmark is expected."
            )
        return found
    raise EnsueError(f"There is no benchmark {name!r}; {hint(name, names())}")


def every() -> list[Benchmark]:
    """Return all benchmarks, by name."""
    return [found for name in names() if (found := _if_sound(name)) is not None]


@cache
def _if_sound(name: str) -> Benchmark | None:
    """Return a benchmark; None, said once, where a package's cannot be had, which must not stop all the others."""
    try:
        return find(name)
    except EnsueError as error:
        print(f"ensue: {error} It is left out.", file=sys.stderr, flush=True)
        return None


def build(name: str, *arguments: Any, **options: Any) -> Any:
    """Build data with the builder that `ensue build NAME` runs, and return what it says it built.

    Arguments and options are the builder's own: mostly the raw works and the folder to write.
    """
    builders = {known: builder for benchmark in every() for known, builder in benchmark.builders.items()}
    if name not in builders:
        raise EnsueError(f"There is no builder {name!r}; {hint(name, sorted(builders))}")
    reference = builders[name].build
    if reference is None:
        raise EnsueError(f"{name} is built from the command line: ensue build {name} --help.")
    function = lazy.load(reference)
    try:
        inspect.signature(function).bind(*arguments, **options)
    except TypeError as error:
        raise EnsueError(f"The builder {name} cannot be called so: {error}.") from None
    return function(*arguments, **options)
