"""Options of a SuffixLM, and its variants A to E (appendix D of the ChapterBreak paper)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args

import typer

from ensue.errors import EnsueError
from ensue.text.works.readers import Headings
from ensue.train import options

if TYPE_CHECKING:
    from ensue.backends.suffixlm.model import Attention, Shape

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
_POOLINGS = ("cls", "mean")
# The most steps the paper trains for.
_STEPS, _FROZEN_STEPS = 120_000, 60_000
# The options that are the shape of the network.
_SHAPE = ("dimension", "inner", "heads", "layers", "dropout", "similarity", "segment_tokens")


@dataclass(frozen=True, kw_only=True)
class SuffixOptions(options.TrainingOptions):
    """Train a SuffixLM: it learns which segment comes next in a book."""

    # `in_book` windows of a batch come from one work, so that each prediction meets far segments of its own book
    # among the negatives; `others`, `earlier` and `spare` say what is a negative (see `objective.Negatives`).
    trains: ClassVar[str] = "ensue.train.suffixlm.train:train_suffixlm"
    beside: ClassVar[tuple[str, ...]] = ("data", "dev")
    apart: ClassVar[tuple[str, ...]] = (*_SHAPE, "segments", "pooling", "dev_only", "headings")
    order: ClassVar[str] = (
        "variant encoder shape loop batch in_book others earlier spare horizon segment_dropout token_dropout "
        "break_weight exclude"
    )

    data: Annotated[
        str, typer.Option(help="Works to train on: Gutenberg texts, TEI or JSON novels, AO3 dumps.")
    ]
    dev: Annotated[str, typer.Option(help="Works whose loss decides when to stop.")]
    variant: Annotated[str, typer.Option(help="A, B, C, D or E (appendix D of the paper).")] = "E"
    encoder: Annotated[str, typer.Option(help="A BERT- or RoBERTa-style checkpoint.")] = "minilm"
    pooling: Annotated[
        str,
        typer.Option(help="cls, mean, or auto (as the encoder states, else cls)."),
        options.OneOf(("auto", *_POOLINGS)),
    ] = "auto"
    similarity: Annotated[
        str,
        typer.Option(help="dot (the paper) or cosine with a learned scale."),
        options.OneOf(("dot", "cosine")),
    ] = "dot"
    exclude: Annotated[
        Path | None, typer.Option(help="File of training works to leave out, one id a line.")
    ] = None
    dev_only: Annotated[Path | None, typer.Option(help="File of the dev works to use, one id a line.")] = None
    headings: Annotated[
        str,
        typer.Option(help="How chapters are found in plain text: robust or paper."),
        options.OneOf(get_args(Headings)),
    ] = "robust"
    dimension: Annotated[int, typer.Option(min=8, help="Width of the Transformer over segments.")] = 768
    inner: Annotated[int, typer.Option(min=8, help="Width of its feed-forward layers.")] = 2048
    heads: Annotated[int, typer.Option(min=1)] = 8
    layers: Annotated[int, typer.Option(min=1)] = 6
    dropout: options.Dropout = 0.1
    segment_dropout: Annotated[
        float | None,
        typer.Option(min=0, max=0.9, help="Segments hidden in training (default: as the variant)."),
    ] = None
    token_dropout: Annotated[
        float, typer.Option(min=0, max=0.9, help="Tokens hidden from the encoder in training.")
    ] = 0.0
    segment_tokens: Annotated[int, typer.Option(min=8, help="Tokens a segment, special ones included.")] = 128
    segments: Annotated[int, typer.Option(min=2, help="Segments a window: 80 are 10,240 tokens.")] = 80
    batch: Annotated[int, typer.Option(min=1, help="Windows a batch and process.")] = 16
    in_book: Annotated[int, typer.Option(min=1, help="Windows of one work in a batch.")] = 2
    others: Annotated[
        bool, typer.Option("--others/--no-others", help="Segments of other works are negatives too.")
    ] = True
    earlier: Annotated[
        bool, typer.Option("--earlier/--no-earlier", help="Earlier segments of the work are negatives too.")
    ] = True
    spare: Annotated[int, typer.Option(min=0, help="Segments after the next one that are no negatives.")] = 0
    horizon: Annotated[int, typer.Option(min=1, help="Predict segments up to N ahead.")] = 1
    break_weight: Annotated[
        float, typer.Option(min=0, help="Weight of predictions across a chapter break.")
    ] = 1.0
    steps: Annotated[
        int | None, typer.Option(min=1, help="Default: 120,000; 60,000 with a frozen encoder.")
    ] = None
    learning_rate: options.LearningRate = 1e-4
    warmup: options.Warmup = 4000
    schedule: options.Schedule = "inverse-sqrt"
    weight_decay: options.WeightDecay = 0.01
    evaluate_every: options.EvaluateEvery = 500
    patience: options.Patience = 5
    workers: options.Workers = None
    corpora: options.Corpora = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variant.upper() not in VARIANTS:
            raise EnsueError(f"There is no variant {self.variant!r}; there are {', '.join(VARIANTS)}.")
        if self.dimension % self.heads:
            raise EnsueError(f"--dimension {self.dimension} does not divide into {self.heads} heads.")

    @property
    def title(self) -> str:
        return f"SuffixLM-{self.variant.upper()}"

    @property
    def kind(self) -> Variant:
        """The variant and what it chooses."""
        return VARIANTS[self.variant.upper()]

    @property
    def loop(self) -> options.LoopSettings:
        most = _FROZEN_STEPS if self.kind.trained == "none" else _STEPS
        return replace(super().loop, steps=self.steps or most)

    @cached_property
    def shape(self) -> Shape:
        """The shape of the network; the pooling of `auto` is looked up in the encoder's folder."""
        from ensue.backends.suffixlm.model import Shape

        pooling = _stated_pooling(self.encoder) if self.pooling == "auto" else self.pooling
        sizes: dict[str, Any] = {name: getattr(self, name) for name in _SHAPE}
        return Shape(
            **sizes,
            max_segments=self.segments,
            attention=self.kind.attention,
            pooling=pooling,  # type: ignore[arg-type]
        )

    @property
    def hidden_segments(self) -> float:
        """The share of segments hidden in training."""
        return self.kind.segment_dropout if self.segment_dropout is None else self.segment_dropout

    def resolved(self) -> dict[str, Any]:
        return {
            "variant": self.variant.upper(),
            "shape": asdict(self.shape),
            "segment_dropout": self.hidden_segments,
            "exclude": ids_in(self.exclude) or [],
        }

    def asked(self) -> dict[str, Any]:
        return {**super().asked(), "dev_only": sorted(ids_in(self.dev_only) or [])}


def ids_in(path: Path | None) -> list[str] | None:
    """Read a file of ids, where there is one."""
    from ensue.text.io.rows import read_ids

    return list(read_ids(path)) if path else None


def _stated_pooling(encoder: str) -> str:
    """Return what a sentence-transformers folder says of itself; the first token's state (the paper) otherwise."""
    from ensue.backends.hf.encoder import stated_pooling
    from ensue.backends.names import pull_model
    from ensue.fetch.catalog import catalog

    folder = pull_model(catalog()[encoder]) if encoder in catalog() else Path(encoder).expanduser()
    if not (folder / "modules.json").is_file():
        return "cls"
    found, _ = stated_pooling(folder)
    return found if found in _POOLINGS else "cls"
