"""The five variants of the SuffixLM (appendix D of the ChapterBreak paper) and everything that can be set."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from ensue.backends.suffixlm.model import Attention, Pooling, Shape, Similarity
from ensue.errors import EnsueError
from ensue.train.loop import LoopSettings, Precision, Schedule

Trained = Literal["none", "last", "all"]


@dataclass(frozen=True)
class Variant:
    """What distinguishes a variant: what of the encoder is kept and trained, and how segments are attended."""

    about: str
    trained: Trained = "none"
    kept_layers: int | None = None
    attention: Attention = "softmax"
    segment_dropout: float = 0.0


VARIANTS = {
    "A": Variant("frozen encoder, causal Transformer over segment vectors"),
    "B": Variant("frozen encoder, attention weights uniform over the segments before", attention="average"),
    "C": Variant("as A, segments dropped from attention in training", segment_dropout=0.2),
    "D": Variant("as A, the encoder's last two layers trained", trained="last"),
    "E": Variant(
        "encoder truncated to its first two layers, all of it trained", trained="all", kept_layers=2
    ),
}
TRAINED_LAYERS = 2
# The most steps the paper trains for.
_STEPS, _FROZEN_STEPS = 120_000, 60_000


@dataclass(frozen=True)
class SuffixSettings:
    """One training: the variant, the encoder, the shape, the batches and the loop.

    `batch` counts windows of `shape.max_segments` segments; `in_book` of them come from one work, so that
    each prediction meets far segments of its own book among the negatives. `others`, `earlier` and `spare` say
    what is a negative (see `objective.Negatives`); a prediction is of a segment at most `horizon` ahead,
    drawn anew each time. `break_weight` weighs predictions of a chapter's first segment.
    """

    variant: str
    encoder: str
    shape: Shape
    loop: LoopSettings
    batch: int = 16
    in_book: int = 2
    others: bool = True
    earlier: bool = True
    spare: int = 0
    horizon: int = 1
    segment_dropout: float = 0.0
    token_dropout: float = 0.0
    break_weight: float = 1.0
    exclude: tuple[str, ...] = field(default=())


def make_settings(
    *,
    variant: str,
    encoder: str,
    pooling: str,
    shape: dict[str, Any],
    loop: dict[str, Any],
    segment_dropout: float | None,
    **others: Any,
) -> SuffixSettings:
    """Settings with the variant's own choices in place; what will not do is one sentence."""
    name = variant.upper()
    if name not in VARIANTS:
        raise EnsueError(f"There is no variant {variant!r}; there are {', '.join(VARIANTS)}.")
    chosen = VARIANTS[name]
    _one_of("pooling", pooling, ("auto", *get_args(Pooling)))
    _one_of("similarity", shape.get("similarity", "dot"), get_args(Similarity))
    _one_of("schedule", loop["schedule"], get_args(Schedule))
    _one_of("precision", loop["precision"], get_args(Precision))
    if shape["dimension"] % shape["heads"]:
        raise EnsueError(f"--dimension {shape['dimension']} does not divide into {shape['heads']} heads.")
    if pooling == "auto":
        pooling = _stated_pooling(encoder)
    steps = loop.pop("steps") or (_FROZEN_STEPS if chosen.trained == "none" else _STEPS)
    return SuffixSettings(
        variant=name,
        encoder=encoder,
        shape=Shape(**shape, attention=chosen.attention, pooling=pooling),  # type: ignore[arg-type]
        loop=LoopSettings(steps=steps, **loop),
        segment_dropout=chosen.segment_dropout if segment_dropout is None else segment_dropout,
        **others,
    )


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise EnsueError(f"--{name} {value} will not do: it is one of {', '.join(known)}.")


def _stated_pooling(encoder: str) -> str:
    """What a sentence-transformers folder says of itself; the first token's state (the paper) otherwise."""
    from ensue.backends.hf.encoder import stated_pooling
    from ensue.backends.pulling import pull_model
    from ensue.fetch.catalog import catalog

    folder = pull_model(catalog()[encoder]) if encoder in catalog() else Path(encoder).expanduser()
    if not (folder / "modules.json").is_file():
        return "cls"
    found, _ = stated_pooling(folder)
    return found if found in get_args(Pooling) else "cls"
