"""Documents to train on: read from several sources, chosen by id, some of them held out."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import typer

from ensue import console
from ensue.errors import EnsueError
from ensue.text.documents import Document, read_documents
from ensue.text.io.rows import read_ids
from ensue.train import options
from ensue.train.finetune.recipe import rate_for

if TYPE_CHECKING:
    from ensue.backends.hf.adapter import AdapterShape
    from ensue.train.loop import Fitted


@dataclass(frozen=True, kw_only=True)
class DocumentOptions(options.TrainingOptions):
    """What every training of a pretrained model on documents is asked."""

    beside: ClassVar[tuple[str, ...]] = ("data", "only", "exclude", "about_data")
    apart: ClassVar[tuple[str, ...]] = ("lora", "full", "alpha")
    # The learning rate where none is asked for: of whole models, and of adapters, which bear larger steps.
    rates: ClassVar[tuple[float, float]]

    model: console.ModelName
    data: Annotated[
        list[str],
        typer.Option(help="Documents: JSON lines, text files, a folder, a hub data set. Repeatable."),
    ]
    only: Annotated[Path | None, typer.Option(help="File of the documents to use, one id a line.")] = None
    exclude: Annotated[Path | None, typer.Option(help="File of documents to leave out, one id a line.")] = (
        None
    )
    text_column: Annotated[
        str | None, typer.Option(help="Column of the text, where it has another name.")
    ] = None
    language: Annotated[str, typer.Option(help="Language of the texts, for the splitter (ISO 639).")] = "en"
    encoding: Annotated[str, typer.Option(help="Encoding of the files.")] = "utf-8"
    joiner: Annotated[str, typer.Option(help="What stands between two sentences.")] = " "
    dev_share: Annotated[
        float, typer.Option(help="Share of the documents that decide which step is kept.")
    ] = 0.1
    about_data: Annotated[
        str, typer.Option(help="What the model card says of the data: origin, licence.")
    ] = ""
    full: Annotated[bool, typer.Option("--full", help="Train all weights (the default).")] = False
    lora: Annotated[
        int | None, typer.Option(min=1, help="Train an adapter of this rank instead; the folder is small.")
    ] = None
    alpha: Annotated[
        float | None, typer.Option(min=0, help="Its scale times its rank (default: 2 × rank).")
    ] = None
    base_name: Annotated[
        str, typer.Option(help="Name of the base model to store in the adapter (default: as --model).")
    ] = ""
    learning_rate: Annotated[
        float | None, typer.Option(min=0, help="Default: by what is trained, see the docs.")
    ] = None
    warmup_share: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the steps over which the learning rate warms up.")
    ] = 0.06
    schedule: options.Schedule = "linear"
    weight_decay: options.WeightDecay = 0.01
    evaluate_every: Annotated[
        int | None, typer.Option(min=1, help="Steps between evaluations (default: an epoch).")
    ] = None
    patience: options.Patience = 3
    batch: Annotated[int, typer.Option(min=1, help="Texts a batch and process.")] = 8
    epochs: Annotated[int, typer.Option(min=1, help="Maximum number of epochs.")] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.data:
            raise EnsueError("There is nothing to train on: name documents with --data.")
        if not 0 < self.dev_share < 1:
            raise EnsueError(f"Invalid --dev-share {self.dev_share}: expected a number between 0 and 1.")
        if self.full and self.lora is not None:
            raise EnsueError("Give --full or --lora, not both.")

    @property
    def adapter(self) -> AdapterShape | None:
        """The shape of the adapter; None where all weights learn."""
        from ensue.backends.hf.adapter import AdapterShape

        if self.lora is None:
            return None
        return AdapterShape(self.lora, 2.0 * self.lora if self.alpha is None else self.alpha)

    @property
    def base(self) -> str:
        """What an adapter finds its model by."""
        return options.lasting_name(self.model, self.base_name)

    @property
    def learns(self) -> str:
        """What of the model learns, in words."""
        return "whole" if self.adapter is None else f"by an adapter of rank {self.adapter.rank}"

    @property
    def loop(self) -> options.LoopSettings:
        default = self.rates[0 if self.lora is None else 1]
        rate = default if self.learning_rate is None else self.learning_rate
        return replace(super().loop, learning_rate=rate, warmup=0, evaluate_every=self.evaluate_every or 0)

    def counted(self, batches: int, processes: int) -> options.LoopSettings:
        """Return the loop's settings with epochs counted out as steps."""
        share, every = self.warmup_share, self.evaluate_every
        return self.loop.spread(batches, processes, self.epochs, warmup_share=share, evaluate_every=every)

    def counted_for(self, width: int, batches: int, processes: int) -> options.LoopSettings:
        """Return the settings for an encoder of a width, which decides the learning rate where none is given."""
        loop = self.counted(batches, processes)
        return replace(loop, learning_rate=loop.learning_rate or rate_for(width))

    def recipe(self, unit: str, rate: float, fitted: Fitted) -> str:
        """Say in a sentence how was trained, for a model card."""
        return (
            f"{self.batch} {unit} × {self.accumulate} a step, AdamW, learning rate {rate:g} ({self.schedule} decay "
            f"after {100 * self.warmup_share:g} % warm-up), weight decay {self.weight_decay:g}, {self.epochs} "
            f"epochs, seed {self.seed}; best at step {fitted.best_step} of {fitted.steps}, {fitted.seconds:.0f} s."
        )

    def resolved(self) -> dict[str, Any]:
        return {"adapter": self.adapter and asdict(self.adapter)}

    def asked(self) -> dict[str, Any]:
        chosen = ChosenIds.read(self.only, self.exclude)._asdict()
        return {**super().asked(), "data": [str(source) for source in self.data], **chosen}


class ChosenIds(NamedTuple):
    """The documents to use, or to leave out, by id; None where all are used or none is left out."""

    only: list[str] | None
    exclude: list[str] | None

    @classmethod
    def read(cls, only: Path | None, exclude: Path | None) -> ChosenIds:
        """Read files of ids."""
        return cls(*(None if path is None else read_ids(Path(path).expanduser()) for path in (only, exclude)))

    def wants(self, document: str) -> bool:
        """Return whether to use a document."""
        return document not in (self.exclude or ()) and (self.only is None or document in self.only)

    def check(self, seen: Collection[str]) -> None:
        """Refuse ids that no document has."""
        if missing := [name for name in (*(self.only or ()), *(self.exclude or ())) if name not in seen]:
            raise EnsueError(f"There is no document {missing[0]!r} in --data; ids are those of the files.")


@dataclass(frozen=True)
class Sides:
    """Documents to learn from and held out, a digest of all of them, and what was left out."""

    train: list[Document]
    dev: list[Document]
    digest: str
    skipped: dict[str, int]

    def facts(self) -> dict[str, Any]:
        """Return what a record says of them."""
        return {
            "train": len(self.train),
            "dev": len(self.dev),
            "dev_ids": sorted(document.id for document in self.dev),
            "skipped": self.skipped,
        }


def read_sides(asked: DocumentOptions, fewest: int = 1) -> Sides:
    """Read the documents of all sources that have `fewest` sentences or more, and hold a share of them out."""
    found: list[Document] = []
    skipped: Counter[str] = Counter()
    digest = hashlib.sha256()
    chosen = ChosenIds.read(asked.only, asked.exclude)
    seen: set[str] = set()
    texts: set[tuple[str, ...]] = set()
    for source in asked.data:
        read = read_documents(
            source, text_column=asked.text_column, language=asked.language, encoding=asked.encoding
        )
        skipped.update(read.skipped)
        digest.update(bytes.fromhex(read.fingerprint))
        for document in read.items:
            if document.id in seen:
                raise EnsueError(
                    f"{source} has the document {document.id!r}, which another --data has already."
                )
            seen.add(document.id)
            if not chosen.wants(document.id):
                skipped["documents not asked for"] += 1
            elif len(document.sentences) < fewest:
                skipped[f"documents of fewer than {fewest} sentences"] += 1
            elif document.sentences in texts:
                # It might be on both sides.
                skipped["documents that are there twice"] += 1
            else:
                texts.add(document.sentences)
                found.append(document)
    chosen.check(seen)
    train, dev = held_out(found, asked.dev_share, asked.seed)
    return Sides(train, dev, digest.hexdigest(), dict(skipped))


def held_out(documents: Sequence[Document], share: float, seed: int) -> tuple[list[Document], list[Document]]:
    """Divide documents by a hash of the seed and their ids, at least one on each side, both in their order."""
    order = sorted(
        documents, key=lambda one: hashlib.sha256(f"{seed}:{one.id}".encode("utf-8", "replace")).digest()
    )
    count = max(round(len(order) * share), 1)
    if count >= len(order):
        raise EnsueError(
            f"Documents to train on: {len(order)}, too few to hold out {count}; name more --data."
        )
    dev = {one.id for one in order[:count]}
    return [one for one in documents if one.id not in dev], [one for one in documents if one.id in dev]
