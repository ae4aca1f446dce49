"""Options of the discourse-aware encoder, and its losses (section 4 of the DiscoEval paper)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from ensue.errors import EnsueError, hint
from ensue.train import options

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


@dataclass(frozen=True, kw_only=True)
class EncoderOptions(options.TrainingOptions):
    """Train a sentence encoder to tell a sentence's neighbours and its place in the document."""

    # The defaults are those of the authors' released code. SPP names a position by its share of the whole, in
    # `position_classes` equal classes, or exactly, the last class holding all later ones.
    trains: ClassVar[str] = "ensue.train.encoder.train:train_encoder"
    apart: ClassVar[tuple[str, ...]] = ("steps",)
    order: ClassVar[str] = (
        "losses loop epochs vocabulary embedding dimension hidden dropout batch max_words positions position_classes "
        "dev_share vectors"
    )

    data: Annotated[
        list[str],
        typer.Option(help="WikiText, MediaWiki dump, Markdown, HTML, novels; file or folder. Repeatable."),
    ]
    losses: Annotated[str, typer.Option(help="Of nsp, nl, spp, sdt; a weight as in nl=0.5 (default 1).")] = (
        "nsp"
    )
    dev_share: Annotated[
        float, typer.Option(help="Share of the documents whose loss decides when to stop.")
    ] = 0.05
    vocabulary: Annotated[int, typer.Option(min=2, help="Words known, the most frequent ones.")] = 50_000
    embedding: Annotated[int, typer.Option(min=1, help="Width of word vectors.")] = 300
    dimension: Annotated[
        int, typer.Option(min=1, help="GRU units in each direction; vectors are twice as wide.")
    ] = 300
    hidden: Annotated[int, typer.Option(min=1, help="Width of the decoders' hidden layers.")] = 300
    dropout: Annotated[float, typer.Option(min=0, max=0.9, help="Dropout in the decoders.")] = 0.0
    vectors: Annotated[
        Path | None, typer.Option(help="Word vectors to start from, in GloVe's text format.")
    ] = None
    max_words: Annotated[int, typer.Option(min=1, help="Words at which sentences are cut.")] = 200
    positions: Annotated[
        str,
        typer.Option(help="SPP's classes: share of the whole, or exact."),
        options.OneOf(("share", "exact")),
    ] = "share"
    position_classes: Annotated[int, typer.Option(min=2)] = 20
    batch: Annotated[int, typer.Option(min=1, help="Sentences a batch and process.")] = 256
    steps: options.Steps = None
    epochs: Annotated[int | None, typer.Option(min=1, help="Maximum number of epochs (default 10).")] = None
    learning_rate: options.LearningRate = 1e-3
    warmup: options.Warmup = 0
    schedule: options.Schedule = "constant"
    weight_decay: options.WeightDecay = 0.0
    evaluate_every: options.EvaluateEvery = 500
    patience: options.Patience = 5
    workers: options.Workers = None
    corpora: options.Corpora = None

    def __post_init__(self) -> None:
        super().__post_init__()
        options.check_one_way(self.steps, self.epochs)
        if not 0 < self.dev_share < 1:
            raise EnsueError(f"Invalid --dev-share {self.dev_share}: expected a number between 0 and 1.")
        parse_losses(self.losses)

    @property
    def title(self) -> str:
        return "encoder " + "+".join(self.weights)

    @cached_property
    def weights(self) -> dict[str, float]:
        """The losses with their weights, in the paper's order."""
        return parse_losses(self.losses)

    @property
    def terms(self) -> tuple[str, ...]:
        """What is predicted."""
        return tuple(term for loss in self.weights for term in TERMS[loss])

    @property
    def passes(self) -> int:
        """How many epochs are trained; 0 where steps decide."""
        return 0 if self.steps else self.epochs or _EPOCHS

    def resolved(self) -> dict[str, Any]:
        vectors = str(self.vectors) if self.vectors else ""
        return {"losses": self.weights, "epochs": self.passes, "vectors": vectors}

    def remark(self) -> str:
        """Say on what a finished training was done, and what of its sources was left out."""
        from ensue.backends.hf.loading import RECORD
        from ensue.jsonl import read_object

        corpora = read_object(self.output / RECORD)["corpora"]
        parts = [
            f"{corpora[name]['sentences']:,} sentences of {corpora[name]['documents']:,}"
            for name in ("train", "dev")
        ]
        skipped = ", ".join(f"{reason}: {count:,}" for reason, count in corpora["all"]["skipped"].items())
        return f"trained on {parts[0]} documents, held out {parts[1]}; left out: {skipped or 'nothing'}"


def parse_losses(text: str) -> dict[str, float]:
    """Return losses and their weights, in the paper's order.

    >>> parse_losses("spp=0.5,nsp")
    {'nsp': 1.0, 'spp': 0.5}
    """
    found: dict[str, float] = {}
    for piece in filter(None, (each.strip().lower() for each in text.split(","))):
        name, equals, value = piece.partition("=")
        if name not in TERMS:
            raise EnsueError(f"There is no loss {name!r}; {hint(name, TERMS)}")
        if name in found:
            raise EnsueError(f"--losses names {name} twice.")
        try:
            found[name] = float(value) if equals else 1.0
        except ValueError:
            raise EnsueError(f"Invalid --losses {piece}: a weight is a number, as in {name}=0.5.") from None
        if not (math.isfinite(found[name]) and found[name] > 0):
            raise EnsueError(f"Invalid --losses {piece}: a weight is above 0.")
    if not found:
        raise EnsueError(f"--losses is empty; choose among {', '.join(TERMS)}.")
    return {name: found[name] for name in TERMS if name in found}
