"""Options of a model that rates how coherent a text is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import typer

from ensue.errors import EnsueError
from ensue.train import options
from ensue.train.documents import DocumentOptions
from ensue.train.finetune.recipe import POOLS
from ensue.train.shuffling import Shuffling

LOSSES = ("binary", "ranking")


@dataclass(frozen=True, kw_only=True)
class CoherenceOptions(DocumentOptions):
    """Train a model to tell documents from their shuffled versions; it then rates how coherent a text is."""

    # Laban et al. (2021) train RoBERTa-large with 16 texts a batch at 1e-5; smaller encoders need larger steps.
    trains: ClassVar[str] = "ensue.train.coherence.train:train_coherence"
    rates: ClassVar[tuple[float, float]] = (0.0, 5e-4)
    order: ClassVar[str] = (
        "model loop adapter loss margin block_size shuffles max_sentences joiner epochs batch max_length pool "
        "dropout dev_share"
    )

    loss: Annotated[
        str,
        typer.Option(help="binary: original or shuffled; ranking: the original above the shuffled one."),
        options.OneOf(LOSSES),
    ] = "binary"
    margin: Annotated[
        float, typer.Option(min=0, help="ranking: how much higher the original must score.")
    ] = 1.0
    block_size: Annotated[
        str, typer.Option(help="Block sizes of shuffled texts, in sentences; several, separated by commas.")
    ] = "1"
    shuffles: Annotated[
        int, typer.Option(min=1, help="Shuffled versions of each document at each block size.")
    ] = 10
    max_sentences: Annotated[
        int, typer.Option(min=2, help="Keep only the first N sentences of a document.")
    ] = 20
    batch: Annotated[
        int, typer.Option(min=2, help="Texts a batch and process: pairs, so an even number.")
    ] = 16
    max_length: Annotated[
        int | None,
        typer.Option(min=8, help="Most tokens of a text (default: what the model takes, up to 512)."),
    ] = None
    pool: Annotated[
        str,
        typer.Option(help="A text's vector: auto (the model's own), cls, mean or last."),
        options.OneOf(("auto", *POOLS)),
    ] = "auto"
    dropout: Annotated[float, typer.Option(min=0, max=0.9, help="Dropout before the output.")] = 0.1
    epochs: Annotated[int, typer.Option(min=1, help="Maximum number of epochs.")] = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch % 2:
            raise EnsueError(f"Invalid --batch {self.batch}: texts come in pairs, so give an even number.")
        self.block_sizes  # noqa: B018  refuse what is no list of whole numbers

    @property
    def title(self) -> str:
        return "coherence model"

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """How many sentences stay together in the shuffled texts."""
        found = options.names_in(self.block_size)
        if not found or not all(size.isdecimal() and int(size) > 0 for size in found):
            raise EnsueError(
                f"Invalid --block-size {self.block_size!r}: expected whole numbers above 0, as in 1,2."
            )
        return tuple(dict.fromkeys(map(int, found)))

    @property
    def shuffling(self) -> Shuffling:
        """How documents are cut, joined and shuffled."""
        return Shuffling(self.block_sizes, self.shuffles, self.max_sentences, self.seed, self.joiner)

    def resolved(self) -> dict[str, Any]:
        return {**super().resolved(), "block_size": list(self.block_sizes)}
