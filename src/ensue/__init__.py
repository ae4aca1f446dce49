"""Ensue: does the text follow? Measures whether language models follow text.

`ensue.report`, `ensue.train` and `ensue.benchmarks` are functions, and the packages of these names too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ensue.errors import EnsueError
from ensue.version import __version__

if TYPE_CHECKING:
    from ensue.backends.hf.tokenizer import load_tokenizer
    from ensue.backends.names import load_model
    from ensue.benchmarks.grading.board import grade
    from ensue.benchmarks.qags.commands import question as qags
    from ensue.benchmarks.registry import build
    from ensue.benchmarks.registry import every as benchmarks
    from ensue.execute.executor import RayExecutor
    from ensue.runs.compare import compare_runs as compare
    from ensue.runs.profile import profile
    from ensue.runs.report import write_report as report
    from ensue.runs.run import Run, run
    from ensue.runs.score import score
    from ensue.runs.sweep import sweep
    from ensue.train.options import train

__all__ = [
    "EnsueError",
    "RayExecutor",
    "Run",
    "__version__",
    "benchmarks",
    "build",
    "compare",
    "grade",
    "load_model",
    "load_tokenizer",
    "profile",
    "qags",
    "report",
    "run",
    "score",
    "sweep",
    "train",
]

# The public functions, imported when first used, so that `import ensue` stays instant.
HOMES = {
    "RayExecutor": "ensue.execute.executor:RayExecutor",
    "Run": "ensue.runs.run:Run",
    "benchmarks": "ensue.benchmarks.registry:every",
    "build": "ensue.benchmarks.registry:build",
    "compare": "ensue.runs.compare:compare_runs",
    "grade": "ensue.benchmarks.grading.board:grade",
    "load_model": "ensue.backends.names:load_model",
    "load_tokenizer": "ensue.backends.hf.tokenizer:load_tokenizer",
    "profile": "ensue.runs.profile:profile",
    "qags": "ensue.benchmarks.qags.commands:question",
    "report": "ensue.runs.report:write_report",
    "run": "ensue.runs.run:run",
    "score": "ensue.runs.score:score",
    "sweep": "ensue.runs.sweep:sweep",
    "train": "ensue.train.options:train",
}


def __dir__() -> list[str]:
    """Return what a notebook completes."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Return a public function, or the package of its name, which is called like it."""
    from ensue.lazy import load, package_called

    if name not in HOMES:
        raise AttributeError(f"module 'ensue' has no attribute {name!r}")
    return package_called(name) or load(HOMES[name])
