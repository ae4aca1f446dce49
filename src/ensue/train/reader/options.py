"""Options of a reader, a model that says which sentences of a text belong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import typer

from ensue.errors import EnsueError
from ensue.train import options
from ensue.train.documents import DocumentOptions
from ensue.train.reader.versions import Drawing


@dataclass(frozen=True, kw_only=True)
class ReaderOptions(DocumentOptions):
    """Train a model to tell which sentences of a text belong and which are of another document."""

    trains: ClassVar[str] = "ensue.train.reader.train:train_reader"
    rates: ClassVar[tuple[float, float]] = (0.0, 1e-3)
    order: ClassVar[str] = (
        "model loop adapter layers both_ways among versions hard nearest pool max_sentences epochs batch max_length "
        "max_sentence dev_share"
    )

    versions: Annotated[
        int, typer.Option(min=1, help="How often each document is cut anew and given other intruders.")
    ] = 6
    hard: Annotated[
        float,
        typer.Option(min=0, max=1, help="Share of intruders that are near in words to what they replace."),
    ] = 0.6
    nearest: Annotated[
        int, typer.Option(min=1, help="Draw such an intruder from the N nearest sentences.")
    ] = 8
    pool: Annotated[
        int, typer.Option(min=2, help="Documents of one domain that give each other intruders.")
    ] = 400
    max_sentences: Annotated[int, typer.Option(min=5, help="Most sentences of a window.")] = 32
    batch: Annotated[int, typer.Option(min=1, help="Windows a batch and process.")] = 32
    max_length: Annotated[int, typer.Option(min=32, help="Most tokens of a window.")] = 512
    max_sentence: Annotated[int, typer.Option(min=8, help="Most tokens of a sentence.")] = 128
    layers: Annotated[
        int, typer.Option(min=0, help="Use only the first N layers of the model; 0: all of them.")
    ] = 0
    both_ways: Annotated[
        int,
        typer.Option(min=0, help="Let the last N layers of a language model attend in both directions."),
    ] = 0
    among: Annotated[
        int, typer.Option(min=0, help="Width of two layers in which sentences see each other; 0: none.")
    ] = 0
    workers: options.Workers = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_sentence + 2 > self.max_length:
            raise EnsueError(
                f"Sentences of {self.max_sentence} tokens do not fit windows of {self.max_length}: lower "
                f"--max-sentence."
            )

    @property
    def title(self) -> str:
        return "reader"

    @property
    def drawing(self) -> Drawing:
        """How intruders are drawn."""
        return Drawing(self.versions, self.hard, self.nearest, self.pool, self.max_sentences, self.seed)
