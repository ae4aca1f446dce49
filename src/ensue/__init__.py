"""Ensue: does the text follow? Measures whether language models follow text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ensue.version import __version__

if TYPE_CHECKING:
    from ensue.backends.hf.tokenizer import load_tokenizer
    from ensue.backends.names import load_model
    from ensue.runs.compare import compare_runs as compare
    from ensue.runs.run import Run, run
    from ensue.runs.score import score

__all__ = ["Run", "__version__", "compare", "load_model", "load_tokenizer", "run", "score"]

_HOMES = {
    "load_model": "ensue.backends.names:load_model",
    "load_tokenizer": "ensue.backends.hf.tokenizer:load_tokenizer",
    "compare": "ensue.runs.compare:compare_runs",
    "run": "ensue.runs.run:run",
    "Run": "ensue.runs.run:Run",
    "score": "ensue.runs.score:score",
}


def __dir__() -> list[str]:
    """What a notebook completes, though most of it is not imported yet."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """The public functions, imported when first used, so that `import ensue` stays instant."""
    if name not in _HOMES:
        raise AttributeError(f"module 'ensue' has no attribute {name!r}")
    import importlib

    module, _, attribute = _HOMES[name].partition(":")
    return getattr(importlib.import_module(module), attribute)
