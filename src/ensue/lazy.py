"""Objects named as `module:object` and imported when they are asked for, those of libraries of an extra too."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from ensue.errors import EnsueError


def load(reference: str) -> Any:
    """Import the object that a reference names, or the module.

    >>> load("math:sqrt")(16.0)
    4.0
    """
    module, _, attribute = reference.partition(":")
    found = importlib.import_module(module)
    return getattr(found, attribute) if attribute else found


def from_extra(reference: str, what: str, library: str, extra: str) -> Any:
    """Import what a reference names from a library of an extra, which `what` needs; say how to get it."""
    try:
        return load(reference)
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError)
        why = "is not installed" if missing else f"cannot be imported ({error})"
        raise EnsueError(f"{what} needs {library}, which {why}; run: pip install 'ensue[{extra}]'.") from None


class _CalledPackage(ModuleType):
    """A package whose name is a public function's too, so that `ensue.report(run)` and `ensue.report.table` work."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.__wrapped__(*args, **options)

    @property
    def __wrapped__(self) -> Any:
        """The function, which `help` and `inspect` look for here."""
        from ensue import HOMES

        return load(HOMES[self.__name__.rpartition(".")[2]])


def make_callable(package: str) -> None:
    """Let a package be called as the public function of its name."""
    sys.modules[package].__class__ = _CalledPackage


def package_called(name: str) -> Any:
    """Return the package that is called by a public name, None where there is none."""
    found = importlib.util.find_spec(f"ensue.{name}")
    return None if found is None else importlib.import_module(f"ensue.{name}")


_PROVIDED: dict[str, dict[str, str]] = {}


def provide(kind: str, name: str, reference: str) -> None:
    """Name what a layer implements for one below it, which must not import it."""
    _PROVIDED.setdefault(kind, {})[name] = reference


def provided(kind: str) -> Mapping[str, str]:
    """Return what was provided of a kind, by name."""
    return _PROVIDED.get(kind, {})
