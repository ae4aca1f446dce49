"""Options of a training as dataclasses, from which the commands of `ensue train` are made; without torch."""

from __future__ import annotations

from dataclasses import MISSING, asdict, dataclass, fields, replace
from functools import cache
from math import inf
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, get_args, get_type_hints

import typer

from ensue import console, lazy
from ensue.errors import EnsueError, hint
from ensue.progress import Progress
from ensue.train import TRAINERS

if TYPE_CHECKING:
    from ensue.train.loop import Fitted


class OneOf(NamedTuple):
    """The values an option may have."""

    values: tuple[str, ...]


Accumulate = Annotated[int, typer.Option(min=1, help="Batches per optimiser step.")]
Corpora = Annotated[Path | None, typer.Option(help="Where prepared texts are kept between trainings.")]
Dropout = Annotated[float, typer.Option(min=0, max=0.9)]
EvaluateEvery = Annotated[int, typer.Option(min=1, help="Steps between evaluations.")]
LearningRate = Annotated[float, typer.Option(min=0)]
Output = Annotated[Path, typer.Option(help="Folder for the model, its log and its checkpoints.")]
Patience = Annotated[int, typer.Option(min=1, help="Early stopping: evaluations without a better dev loss.")]
Precision = Annotated[
    str, typer.Option(help="auto (bf16 on a GPU), no, bf16 or fp16."), OneOf(("auto", "no", "bf16", "fp16"))
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint.")]
Schedule = Annotated[
    str,
    typer.Option(help="Schedule after the warm-up: inverse-sqrt, linear or constant."),
    OneOf(("inverse-sqrt", "linear", "constant")),
]
# What all that draw take, torch's multiplied by the steps included.
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Random seed.")]
Steps = Annotated[int | None, typer.Option(min=1, help="Maximum number of steps.")]
Warmup = Annotated[int, typer.Option(min=0, help="Warm-up steps of the learning rate.")]
WeightDecay = Annotated[float, typer.Option(min=0)]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes that read (default: all cores).")]


@dataclass(frozen=True)
class LoopSettings:
    """How the loop trains; steps are optimiser steps."""

    steps: int
    learning_rate: float = 1e-4
    warmup: int = 4000
    schedule: str = "inverse-sqrt"
    weight_decay: float = 0.01
    clip: float = 1.0
    accumulate: int = 1
    evaluate_every: int = 500
    patience: int = 5
    log_every: int = 20
    seed: int = 0
    precision: str = "auto"
    device: str = "auto"

    def counted(self, batches: int, processes: int, epochs: int) -> LoopSettings:
        """Return the settings with epochs of so many batches counted out in steps, unless steps were asked for."""
        steps = max(batches // (self.accumulate * processes), 1) * epochs
        return replace(self, steps=self.steps or steps)

    def spread(
        self, batches: int, processes: int, epochs: int, *, warmup_share: float, evaluate_every: int | None
    ) -> LoopSettings:
        """Return the same with the rate rising over a share of the steps, and an evaluation after each epoch where
        none was asked for."""
        loop = self.counted(batches, processes, epochs)
        every = evaluate_every or max(loop.steps // epochs, 1)
        return replace(loop, warmup=round(warmup_share * loop.steps), evaluate_every=every)


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """What every trainer is asked.

    A field annotated with `typer.Option` is an option of the command, with its help and its bounds; any other is for
    callers from Python. The docstring of a subclass is the help of its command.
    """

    # The function that trains, as `module:object`: it takes the options and a Progress or None, and returns a Fitted.
    trains: ClassVar[str]
    # Options that the record keeps beside the settings, and those that it does not keep as they are.
    beside: ClassVar[tuple[str, ...]] = ("data",)
    apart: ClassVar[tuple[str, ...]] = ()
    # The order of the settings in the record, and so on the page of a training; what is not named comes last.
    order: ClassVar[str] = ""

    output: Output
    accumulate: Accumulate = 1
    precision: Precision = "auto"
    device: console.Device = "auto"
    seed: Seed = 0
    resume: Resume = False
    log_every: int = 20

    def __post_init__(self) -> None:
        """Refuse what lies out of bounds."""
        for name, (low, high, known) in _bounds(type(self)).items():  # type: ignore[arg-type]
            value = getattr(self, name)
            option = f"--{name.replace('_', '-')}"
            if known and value not in known:
                raise EnsueError(f"Invalid {option} {value}: expected one of {', '.join(known)}.")
            if value is None or known:
                continue
            if not isinstance(value, (int, float)) or not abs(value) < inf:
                raise EnsueError(f"Invalid {option} {value}: expected a number.")
            if (low is not None and value < low) or (high is not None and value > high):
                words = f"at least {low}" if high is None else f"a number from {low} to {high}"
                raise EnsueError(f"Invalid {option} {value}: expected {words}.")

    @property
    def title(self) -> str:
        """What is trained, in a word or two."""
        raise NotImplementedError

    @property
    def loop(self) -> LoopSettings:
        """How the loop trains; 0 steps where epochs decide."""
        given = {name: getattr(self, name, None) for name in _LOOP}
        return LoopSettings(**{"steps": 0, **{name: v for name, v in given.items() if v is not None}})

    def resolved(self) -> dict[str, Any]:
        """Return the settings that are made from several options, or from what was left out."""
        return {}

    def asked(self) -> dict[str, Any]:
        """Return all that the outcome depends on, as the record keeps it and a resumed training compares it."""
        left_out = {*_LOOP, "output", "resume", "workers", "corpora", *self.beside, *self.apart}
        own = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in left_out}
        settings = {**own, **self.resolved(), "loop": asdict(self.loop)}
        ordered = {name: settings[name] for name in (*self.order.split(), *settings)}
        return {"settings": ordered, **{name: getattr(self, name) for name in self.beside}}

    def remark(self) -> str:
        """Say more of a finished training; nothing by default."""
        return ""


_LOOP = tuple(field.name for field in fields(LoopSettings))


def hints_of(options: type[TrainingOptions]) -> dict[str, Any]:
    """Return the annotated type of each option that the command has, the trainer's own before those of all."""
    hints = get_type_hints(options, include_extras=True)
    common = [field.name for field in fields(TrainingOptions)]
    names = [field.name for field in fields(options) if field.name not in common]
    return {name: hints[name] for name in (*names, *common) if _option(hints[name]) is not None}


def _option(hint: Any) -> Any:
    found = (each for each in getattr(hint, "__metadata__", ()) if isinstance(each, typer.models.OptionInfo))
    return next(found, None)


@cache
def _bounds(options: type[TrainingOptions]) -> dict[str, tuple[Any, Any, tuple[str, ...]]]:
    """Return the lowest and highest value of each option, and the values it may have."""
    found = {}
    for name, kind in hints_of(options).items():
        known = next((each.values for each in kind.__metadata__ if isinstance(each, OneOf)), ())
        info = _option(kind)
        if known or info.min is not None or info.max is not None:
            found[name] = (info.min, info.max, known)
    return found


def check_one_way(steps: int | None, epochs: int | None) -> None:
    """Refuse steps and epochs together."""
    if steps is not None and epochs is not None:
        raise EnsueError("Give --steps or --epochs, not both.")


def lasting_name(model: str, base_name: str = "") -> str:
    """Return what an adapter finds its model by: a short name or hub id, or a folder by its full path."""
    path = Path(model).expanduser()
    return base_name or (str(path.resolve()) if path.is_dir() else model)


def names_in(text: str) -> tuple[str, ...]:
    """Return names that are divided by commas.

    >>> names_in("query, value,")
    ('query', 'value')
    """
    return tuple(filter(None, (name.strip() for name in text.split(","))))


def train(trainer: str, *, progress: Progress | None = None, **options: Any) -> Fitted:
    """Train a model as `ensue train TRAINER` does, and leave it in the folder `output`.

    `trainer` is suffixlm, encoder, qa, qg, grid, lm, coherence, reader or summarizer; the options are those of the
    command, with underscores, and are checked before anything is read. A training that was stopped goes on with
    `resume=True`. The best step and its figures on held-out data are returned.

    >>> import ensue
    >>> ensue.train("encoder", data=["pages"], output="model", steps=10, epochs=1)
    Traceback (most recent call last):
    ensue.errors.EnsueError: Give --steps or --epochs, not both.
    """
    if trainer not in TRAINERS:
        raise EnsueError(f"There is no trainer {trainer!r}; {hint(trainer, TRAINERS)}")
    found: type[TrainingOptions] = lazy.load(TRAINERS[trainer])
    known = {field.name: field for field in fields(found)}
    if wrong := [name for name in options if name not in known]:
        raise EnsueError(f"The {trainer} trainer has no option {wrong[0]!r}; {hint(wrong[0], sorted(known))}")
    if missing := [name for name, one in known.items() if one.default is MISSING and name not in options]:
        raise EnsueError(f"The {trainer} trainer needs {' and '.join(missing)}.")
    hints = get_type_hints(found)
    given = {name: _as_hinted(value, hints[name]) for name, value in options.items()}
    return start(found(**given), progress)


def _as_hinted(value: Any, kind: Any) -> Any:
    """Return an option's value of its type, where it is given as one text: a path, or a list of one."""
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    if isinstance(value, str) and Path in kinds:
        return Path(value)
    return [value] if isinstance(value, str) and list[str] in kinds else value


def start(options: TrainingOptions, progress: Progress | None = None) -> Fitted:
    """Train with the trainer that the options name."""
    from ensue.backends.hf.loading import need_torch

    need_torch("Training")
    fitted: Fitted = lazy.load(options.trains)(options, progress)
    return fitted
