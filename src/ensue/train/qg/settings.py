"""Everything that can be set when a question generator is trained."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from ensue.backends.qg.generator import Adapter
from ensue.errors import EnsueError
from ensue.train.loop import LoopSettings, Precision, Schedule

_EPOCHS = 4


@dataclass(frozen=True)
class QuestionSettings:
    """One training: the model that learns, the shape of its adapter, batches, the split and the loop.

    Rank 6 on all linear layers of a model of 135 million parameters is 1.8 million weights, under 4 MB in half
    precision. `batch_tokens` counts padding; texts that make a row longer than `max_tokens` are left out and
    counted. `loop.steps` is 0 where `epochs` decides. `base_name` is what the adapter will look for its model by,
    where that is not the folder it was trained from.
    """

    model: str
    loop: LoopSettings
    adapter: Adapter = field(default_factory=Adapter)
    dropout: float = 0.05
    epochs: int = 0
    batch_tokens: int = 8192
    max_tokens: int = 512
    dev_share: float = 0.1
    test_share: float = 0.1
    base_name: str = ""

    @property
    def base(self) -> str:
        """The lasting name of the model: a short name or hub id, or a folder by its full path."""
        path = Path(self.model).expanduser()
        return self.base_name or (str(path.resolve()) if path.is_dir() else self.model)


def make_settings(
    *, loop: dict[str, Any], steps: int | None, epochs: int | None, adapter: dict[str, Any], **others: Any
) -> QuestionSettings:
    """Settings from what was asked; what will not do is one sentence."""
    if steps is not None and epochs is not None:
        raise EnsueError("Give --steps or --epochs, not both.")
    _one_of("schedule", loop["schedule"], get_args(Schedule))
    _one_of("precision", loop["precision"], get_args(Precision))
    if others.get("max_tokens", 512) > others.get("batch_tokens", 8192):
        raise EnsueError(
            f"--max-tokens {others['max_tokens']} is more than the {others['batch_tokens']} --batch-tokens: one "
            f"text must fit a batch."
        )
    return QuestionSettings(
        loop=LoopSettings(steps=steps or 0, **loop),
        epochs=0 if steps else epochs or _EPOCHS,
        adapter=Adapter(**adapter),
        **others,
    )


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise EnsueError(f"--{name} {value} will not do: it is one of {', '.join(known)}.")
