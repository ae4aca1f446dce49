"""Options of an entity-grid model."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from ensue.backends.grid.grid import MENTIONS, GridForm
from ensue.errors import EnsueError
from ensue.train import options

KINDS = ("linear", "neural")
RANKERS = ("svm", "logistic")
_GRID = ("roles", "salience", "properties", "mentions")
# Options that one kind has no use for, and so does not record.
_LINEAR = ("longest", "ranker", "penalties", "folds")
_NEURAL = ("embedding", "filters", "window", "dropout", "batch", "epochs", "margin")


@dataclass(frozen=True, kw_only=True)
class GridOptions(options.TrainingOptions):
    """Train an entity grid to tell a text from its shuffled versions."""

    trains: ClassVar[str] = "ensue.train.grid.train:train_grid"
    beside: ClassVar[tuple[str, ...]] = ("data", "only", "exclude")
    apart: ClassVar[tuple[str, ...]] = (*_GRID, *_LINEAR, *_NEURAL, "block_size")
    order: ClassVar[str] = "kind grid block_size shuffles max_sentences limit split encoding dev_share"

    data: Annotated[
        list[str],
        typer.Option(help="English documents, as the Shuffle Test reads them; file or folder. Repeatable."),
    ]
    only: Annotated[Path | None, typer.Option(help="File of the documents to use, one id a line.")] = None
    exclude: Annotated[Path | None, typer.Option(help="File of documents to leave out, one id a line.")] = (
        None
    )
    kind: Annotated[
        str,
        typer.Option(help="linear (shares of transitions, ranked) or neural (convolution over the grid)."),
        options.OneOf(KINDS),
    ] = "linear"
    roles: Annotated[
        bool, typer.Option("--roles/--no-roles", help="Distinguish subjects, objects and other mentions.")
    ] = True
    salience: Annotated[
        int, typer.Option(min=0, help="Count entities with N mentions or more separately; 0: all together.")
    ] = 2
    properties: Annotated[
        bool,
        typer.Option(
            "--properties/--no-properties",
            help="Also count entities by properties: proper, person, place, plural …",
        ),
    ] = False
    mentions: Annotated[
        str,
        typer.Option(help="What is an entity: heads of noun phrases, all nouns, or pronouns as well."),
        options.OneOf(tuple(MENTIONS)),
    ] = "nouns"
    block_size: Annotated[str, typer.Option(help="Sentences a block of shuffled versions, as in 1,2.")] = "1"
    shuffles: Annotated[int, typer.Option(min=1, help="Shuffled versions a document and block size.")] = 20
    max_sentences: Annotated[
        int, typer.Option(min=2, help="Keep only the first N sentences of a document.")
    ] = 20
    limit: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of documents from each source.")
    ] = None
    split: Annotated[
        str,
        typer.Option(help="Text is divided into sentences or lines."),
        options.OneOf(("sentences", "lines")),
    ] = "sentences"
    encoding: Annotated[str, typer.Option(help="Encoding of files that are not UTF-8.")] = "utf-8"
    dev_share: Annotated[float, typer.Option(help="Share of the documents it is not trained on.")] = 0.1
    longest: Annotated[int, typer.Option(min=2, max=4, help="linear: sentences a transition at most.")] = 2
    ranker: Annotated[str, typer.Option(help="linear: svm or logistic."), options.OneOf(RANKERS)] = "svm"
    penalties: Annotated[
        str, typer.Option(help="linear: values of C, of which cross-validation chooses.")
    ] = "0.00001,0.0001,0.001,0.01,0.1,1,10"
    folds: Annotated[int, typer.Option(min=2, help="linear: folds of training documents.")] = 5
    embedding: Annotated[int, typer.Option(min=1, help="neural: width of a cell's vector.")] = 50
    filters: Annotated[int, typer.Option(min=1, help="neural: filters.")] = 100
    window: Annotated[int, typer.Option(min=1, help="neural: sentences each filter sees.")] = 4
    dropout: Annotated[float, typer.Option(min=0, max=0.9, help="neural: dropout.")] = 0.5
    margin: Annotated[float, typer.Option(min=0, help="neural: how much higher the original must score.")] = (
        1.0
    )
    batch: Annotated[int, typer.Option(min=1, help="neural: pairs a batch and process.")] = 32
    epochs: Annotated[int, typer.Option(min=1, help="neural: maximum number of epochs.")] = 10
    learning_rate: options.LearningRate = 1e-3
    weight_decay: options.WeightDecay = 0.0
    evaluate_every: options.EvaluateEvery = 100
    patience: options.Patience = 5
    warmup: int = 0
    schedule: str = "constant"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.dev_share < 1:
            raise EnsueError(f"Invalid --dev-share {self.dev_share}: expected a number between 0 and 1.")
        if not self.sizes or not self.values:
            raise EnsueError("--block-size and --penalties need one number at least.")

    @property
    def title(self) -> str:
        return f"{self.kind} entity grid"

    @property
    def form(self) -> GridForm:
        """What the grid tells apart."""
        return GridForm(**{name: getattr(self, name) for name in _GRID})

    @property
    def sizes(self) -> list[int]:
        """The block sizes."""
        return [int(number) for number in _numbers("--block-size", self.block_size, whole=True)]

    @property
    def values(self) -> list[float]:
        """The values of C to choose from."""
        return _numbers("--penalties", self.penalties)

    def resolved(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in (_LINEAR if self.kind == "linear" else _NEURAL)}
        if self.kind == "linear":
            own["penalties"] = self.values
        return {"grid": asdict(self.form), "block_size": self.sizes, **own}

    def asked(self) -> dict[str, Any]:
        from ensue.train.documents import ChosenIds

        return {**super().asked(), **ChosenIds.read(self.only, self.exclude)._asdict()}

    def remark(self) -> str:
        """Say on what a finished training was done, and what of its sources was left out."""
        from ensue.backends.hf.loading import RECORD
        from ensue.jsonl import read_object

        corpora = read_object(self.output / RECORD)["corpora"]
        train, dev = corpora["train"], corpora["dev"]
        skipped = ", ".join(f"{reason}: {count:,}" for reason, count in corpora["skipped"].items())
        return (
            f"trained on {train['pairs']:,} pairs of {train['documents']:,} documents, held out {dev['pairs']:,} of "
            f"{dev['documents']:,}; left out: {skipped or 'nothing'}"
        )


def _numbers(option: str, text: str, *, whole: bool = False) -> list[float]:
    try:
        found = [float(int(each)) if whole else float(each) for each in options.names_in(text)]
    except ValueError:
        raise EnsueError(f"Invalid {option} {text}: expected numbers divided by commas.") from None
    if bad := [number for number in found if not (math.isfinite(number) and number > 0)]:
        raise EnsueError(f"Invalid {option} {text}: {bad[0]:g} is not above 0.")
    return list(dict.fromkeys(found))
