"""The losses of the discourse-aware encoder (section 4 of the DiscoEval paper) and everything that can be set."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from ensue.errors import EnsueError
from ensue.train.loop import LoopSettings, Precision, Schedule

Positions = Literal["share", "exact"]

# What each loss predicts from a sentence's vector; a loss is the sum of its terms.
TERMS = {
    "nsp": ("before", "after"),
    "nl": ("level",),
    "spp": ("sentence", "paragraph"),
    "sdt": ("section", "document"),
}
ABOUT = {
    "nsp": "the words of the sentences before and after",
    "nl": "how deep in the table of contents it stands",
    "spp": "its position in the paragraph, and the paragraph's in the document",
    "sdt": "the words of its section's title and of the document's",
}
# Wikipedia has up to seven nesting levels, the lead among them.
LEVELS = 7
_EPOCHS = 10


@dataclass(frozen=True)
class EncoderSettings:
    """One training of an encoder: losses with their weights, sizes, batches and the loop.

    The defaults are those of the authors' released code: 300 units throughout, decoders of two hidden layers,
    50,000 words, sentences cut at 200. `positions` is how SPP names a position: its share of the whole in
    `position_classes` equal classes, or exactly, the last class holding all later ones. `loop.steps` is 0 where
    `epochs` decides.
    """

    losses: dict[str, float]
    loop: LoopSettings
    epochs: int = 0
    vocabulary: int = 50_000
    embedding: int = 300
    dimension: int = 300
    hidden: int = 300
    dropout: float = 0.0
    batch: int = 256
    max_words: int = 200
    positions: Positions = "share"
    position_classes: int = 20
    dev_share: float = 0.05
    vectors: str = ""

    @property
    def terms(self) -> tuple[str, ...]:
        """What is predicted."""
        return tuple(term for loss in self.losses for term in TERMS[loss])


def make_settings(
    *, losses: str, loop: dict[str, Any], steps: int | None, epochs: int | None, **others: Any
) -> EncoderSettings:
    """Settings from what was asked; what will not do is one sentence."""
    if steps is not None and epochs is not None:
        raise EnsueError("Give --steps or --epochs, not both.")
    _one_of("schedule", loop["schedule"], get_args(Schedule))
    _one_of("precision", loop["precision"], get_args(Precision))
    _one_of("positions", others.get("positions", "share"), get_args(Positions))
    if not 0 < others.get("dev_share", 0.05) < 1:
        raise EnsueError(f"--dev-share {others['dev_share']} will not do: it lies between 0 and 1.")
    return EncoderSettings(
        losses=parse_losses(losses),
        loop=LoopSettings(steps=steps or 0, **loop),
        epochs=0 if steps else epochs or _EPOCHS,
        **others,
    )


def parse_losses(text: str) -> dict[str, float]:
    """Losses and their weights, in the paper's order.

    >>> parse_losses("spp=0.5,nsp")
    {'nsp': 1.0, 'spp': 0.5}
    """
    found: dict[str, float] = {}
    for piece in filter(None, (each.strip().lower() for each in text.split(","))):
        name, equals, value = piece.partition("=")
        if name not in TERMS:
            raise EnsueError(f"There is no loss {name!r}; there are {', '.join(TERMS)}.")
        if name in found:
            raise EnsueError(f"--losses names {name} twice.")
        try:
            found[name] = float(value) if equals else 1.0
        except ValueError:
            raise EnsueError(
                f"--losses {piece} will not do: a weight is a number, as in {name}=0.5."
            ) from None
        if not (math.isfinite(found[name]) and found[name] > 0):
            raise EnsueError(f"--losses {piece} will not do: a weight is above 0.")
    if not found:
        raise EnsueError(f"--losses is empty; choose among {', '.join(TERMS)}.")
    return {name: found[name] for name in TERMS if name in found}


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise EnsueError(f"--{name} {value} will not do: it is one of {', '.join(known)}.")
