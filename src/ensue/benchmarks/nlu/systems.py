"""Systems that answer tasks: what each gives back, and where each way of answering lives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ensue import lazy
from ensue.benchmarks.base import NamedSystem, RunContext, Setting
from ensue.benchmarks.nlu.examples import Prediction, TaskData
from ensue.errors import EnsueError, hint
from ensue.models.protocols import Encoder, Generator, Model, Scorer

# What a run was asked to do, by the names of `--set`.
Settings = Mapping[str, Any]

# By mode, as `module:object`; imported when asked for. Those that train a network are provided by a layer above.
_MODES = {
    "majority": "ensue.benchmarks.nlu.baselines:majority",
    "hypothesis-only": "ensue.benchmarks.nlu.baselines:hypothesis_only",
    "human": "ensue.benchmarks.nlu.human:system",
    "prompt": "ensue.benchmarks.nlu.prompting.answering:prompt",
    "generate": "ensue.benchmarks.nlu.prompting.answering:generate",
    "frozen": "ensue.benchmarks.nlu.frozen:system",
}


def modes() -> tuple[str, ...]:
    """Return all ways of answering, those of this package first."""
    return tuple(_references())


def _references() -> dict[str, str]:
    return {**_MODES, **lazy.provided("mode")}


@dataclass(frozen=True)
class Answered:
    """What a system says about one task: predictions by split and example, for every example of the split.

    `settings` distinguishes several answers to one task (`{"template": "question"}`) and becomes part of the rows.
    `chances` may hold what it was sure of, by split and example, one number a label. `fits` says how each training
    went (seed, epochs, learning rate, dev score, seconds), one line each in the run's `fits.jsonl`. `outputs` may add
    to an item's outputs, by split and example (what a generator wrote); `notes` counts what was done to the inputs.
    """

    task: str
    predictions: Mapping[str, Mapping[str, Prediction]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    chances: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    fits: Sequence[Mapping[str, Any]] = ()
    outputs: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    notes: Mapping[str, int] = field(default_factory=dict)


class System(Protocol):
    """One way of answering; it must not look at the gold answers of any split but train, and of dev to choose."""

    # Settings of this way alone, beyond those of the benchmark (`mode`, `runs`); no key may be one of another way.
    settings: Mapping[str, Setting]

    def answer(
        self, model: Model, tasks: Sequence[TaskData], settings: Settings, seed: int, context: RunContext
    ) -> Iterator[Answered]:
        """Return answers as they come. A task it cannot answer (no training set) is left out, not guessed."""

    def signature(self, model: Model, settings: Settings) -> str:
        """Return the system's choices in a few words."""


def named(name: str) -> NamedSystem:
    """Return a system that learns from a task's training set, or guesses its most frequent label."""
    kind = {"most-frequent": "majority", "hypothesis-only": name}.get(name, "untrained")
    return NamedSystem.of(name, kind, architecture=name)


def mode_of(model: Model, asked: str | None) -> str:
    """Return the way a model answers when none was asked for."""
    if asked is not None:
        return asked
    if model.card.kind in ("majority", "hypothesis-only", "human"):
        return model.card.kind
    if model.card.kind == "untrained":
        return "train"
    for kind, mode in ((Scorer, "prompt"), (Encoder, "frozen"), (Generator, "generate")):
        if isinstance(model, kind):
            return mode
    raise EnsueError(f"{model.card.name} has no way of answering tasks; give a scorer or an encoder.")


def find(mode: str) -> System:
    """Return the system of a mode."""
    known = _references()
    if mode not in known:
        raise EnsueError(f"There is no mode {mode!r}; {hint(mode, known)}")
    found: System = lazy.load(known[mode])
    return found
