"""GLUE and SuperGLUE as benchmarks: read the tasks, let a system answer them, judge the answers."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import Outcome, Prepared, RunContext, Setting
from ensue.benchmarks.nlu import systems
from ensue.benchmarks.nlu.examples import TaskData, TaskSpec
from ensue.benchmarks.nlu.framing import with_held_out
from ensue.benchmarks.nlu.gathering import HubExamples, gather_hub, hub_splits
from ensue.benchmarks.nlu.human import annotated, each_rows, refuse_others
from ensue.benchmarks.nlu.judging import items
from ensue.benchmarks.nlu.scores import judged_rows
from ensue.benchmarks.nlu.suites import TITLES
from ensue.benchmarks.nlu.systems import Answered
from ensue.errors import EnsueError, hint
from ensue.models.protocols import Model
from ensue.report.results import Item


class ReadTask(Protocol):
    """Reads a task from a folder: all splits, or those that are wanted, and of each the first examples."""

    def __call__(
        self,
        folder: Path,
        spec: TaskSpec,
        limit: int | None = None,
        splits: Collection[str] | None = None,
    ) -> TaskData | None: ...


def _common() -> dict[str, Setting]:
    """Return the settings of every mode; which modes there are is known once a run is made."""
    names = systems.modes()
    return {
        "mode": Setting(
            None,
            f"how the model answers: {', '.join(names)} (none: what it can do best)",
            read.optional(read.one_of(*names)),
        ),
        "runs": Setting(1, "trainings a task, from --seed on; the best on dev answers", read.whole()),
    }


@dataclass(frozen=True)
class NluRun:
    """Tasks with their files read and the settings fixed; of `tasks` only the `asked` ones are judged."""

    suite: str
    source: str
    tasks: list[TaskData]
    asked: frozenset[str]
    missing: list[str]
    limit: int | None
    seed: int
    settings: dict[str, Any]

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256("\n".join(task.fingerprint for task in self.tasks).encode()).hexdigest()

    @property
    def dtype(self) -> str | None:
        """What the weights are loaded in where nothing else is asked for: those to be trained, whole."""
        return "float32" if self.settings["mode"] == "finetune" else None

    def evaluate(self, model: Model, context: RunContext) -> Outcome:
        """Let the system of the mode answer, and judge what it says."""
        mode = systems.mode_of(model, self.settings["mode"])
        system = systems.find(mode)
        _refuse_foreign(mode, self.settings)
        tasks = annotated(model, self.tasks) if mode == "human" else self.tasks
        answers = [
            one
            for one in system.answer(model, tasks, self.settings, self.seed, context)
            if one.task in self.asked
        ]
        if not answers and mode == "human":
            refuse_others(model, self.suite, self.asked)
        if not answers:
            raise EnsueError(
                f"{model.card.name} answered none of {', '.join(sorted(self.asked))} in mode {mode}: "
                f"there is no training set for them in {self.source}."
            )
        by_name = {task.spec.name: task for task in tasks}
        judged, metrics, phenomena = judged_rows(by_name, answers)
        notes = sum((found.notes for found in judged), Counter[str]())
        own = [(one.task, one.notes) for one in answers] + [(task.spec.name, task.notes) for task in tasks]
        for name, counts in own:
            notes.update({f"{name}: {words}": count for words, count in counts.items()})
        weights, choices = (
            model.card.identity.get("weights", "-")[:12],
            system.signature(model, self.settings),
        )
        signature = f"model:{model.card.signed_name} weights:{weights} mode:{mode} {choices} seed:{self.seed}"
        return Outcome(
            items=_items(answers, by_name),
            metrics=[*metrics, *phenomena, *(each_rows(model, tasks) if mode == "human" else ())],
            signature=signature.replace("  ", " "),
            skipped=self._skipped({one.task for one in answers}, mode),
            tokens=0,
            extras={"fits": [{"task": one.task, **fit} for one in answers for fit in one.fits]},
            notes=notes,
        )

    def _skipped(self, answered: set[str], mode: str) -> dict[str, int]:
        why = f"mode {mode} has no examples to learn it from or judge it by"
        return {
            **{f"task {name} left out, for want of files": 1 for name in self.missing},
            **{f"task {name} left out: {why}": 1 for name in sorted(self.asked - answered)},
        }


class NluTask:
    """Make and judge the items of a suite."""

    def __init__(
        self, name: str, specs: Sequence[TaskSpec], read_task: ReadTask, hub_examples: HubExamples
    ) -> None:
        self.name, self.specs = name, specs
        self.read_task, self._hub_examples = read_task, hub_examples

    def read_hub_task(self, name: str, spec: TaskSpec, limit: int | None = None) -> TaskData | None:
        """Return a task of a hub data set, None where it has no split of the task."""
        return gather_hub(name, spec, hub_splits(name, spec), self._hub_examples, limit)

    @property
    def settings(self) -> Mapping[str, Setting]:
        """The settings of all modes: which one it will be is known once the model is."""
        return _common() | {
            key: one for mode in systems.modes() for key, one in systems.find(mode).settings.items()
        }

    def select(self, task: str) -> list[TaskSpec]:
        """Return the task of a name, or all where the name is empty; capitals do not matter."""
        wanted = task.strip("/").lower()
        found = [spec for spec in self.specs if wanted in ("", spec.name.lower())]
        if found:
            return found
        close = hint(wanted, [spec.name for spec in self.specs])
        raise EnsueError(f"{TITLES[self.name]} has no task {task!r}; {close}")

    def prepare(
        self, task: str, data: str | None, limit: int | None, seed: int, settings: dict[str, Any]
    ) -> Prepared:
        asked = [spec for name in task.split(",") for spec in self.select(name)]
        # A diagnostic set is answered by another task's classifier, which has to be there to be trained.
        helpers = {spec.answered_by for spec in asked} - {spec.name for spec in asked}
        wanted = [spec for spec in self.specs if spec in asked or spec.name in helpers]
        if data is None:
            raise EnsueError(
                f"{self.name} needs --data: the folder that holds {wanted[0].name} and the rest."
            )
        folder = Path(data).expanduser()
        if folder.exists() or data.count("/") != 1:
            if not folder.is_dir():
                raise EnsueError(
                    f"{folder} is not a folder; {self.name} needs the one of the official download."
                )
            found = {spec.name: self.read_task(folder, spec, limit) for spec in wanted}
        else:
            found = {spec.name: self.read_hub_task(data, spec, limit) for spec in wanted}
        # A task that only helps another is not judged, so that all of its training set may be learnt from.
        tasks = [
            with_held_out(task) if task.spec in asked else task for task in found.values() if task is not None
        ]
        there = [spec.name for spec in asked if found[spec.name] is not None]
        if not there:
            raise EnsueError(f"{data} has no file of {', '.join(spec.name for spec in asked)}.")
        missing = [spec.name for spec in asked if found[spec.name] is None]
        return NluRun(self.name, str(data), tasks, frozenset(there), missing, limit, seed, settings)


def _items(answers: Sequence[Answered], by_name: Mapping[str, TaskData]) -> Iterator[Item]:
    for one in answers:
        for split in one.predictions:
            yield from items(by_name[one.task], one, split)


def _refuse_foreign(mode: str, settings: Mapping[str, Any]) -> None:
    """Refuse a setting of another way of answering, which would be passed over in silence."""
    own = {*_common(), *systems.find(mode).settings}
    for other in systems.modes():
        for key, setting in systems.find(other).settings.items():
            if key not in own and settings[key] != setting.default:
                raise EnsueError(
                    f"{key} is a setting of mode {other}, and this is mode {mode}; leave it out."
                )
