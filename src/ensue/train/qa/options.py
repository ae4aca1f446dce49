"""Options of an answerer."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from ensue.errors import EnsueError
from ensue.train import options

if TYPE_CHECKING:
    from ensue.backends.hf.adapter import AdapterShape
    from ensue.backends.qa.answerer import Reading

# Adapters begin at nothing and bear large steps; whole encoders would forget what they know.
_RATE, _FULL_RATE = 1e-3, 5e-5
# With whole encoders the new head learns so many times as fast.
_FASTER = 20.0
_READING = ("max_length", "stride", "max_question", "max_answer")


@dataclass(frozen=True, kw_only=True)
class AnswererOptions(options.TrainingOptions):
    """Train a model to find the part of a text that answers a question, or to say that none does."""

    trains: ClassVar[str] = "ensue.train.qa.train:train_answerer"
    beside: ClassVar[tuple[str, ...]] = ("data", "extra", "about_data")
    apart: ClassVar[tuple[str, ...]] = (*_READING, "full", "rank", "alpha", "targets")
    order: ClassVar[str] = (
        "model loop reading adapter epochs batch dropout warmup_share head_faster dev_share test_share any_place"
    )

    data: Annotated[
        list[str], typer.Option(help="Questions in SQuAD's format, 1.1 or 2.0; .json or .jsonl. Repeatable.")
    ]
    extra: Annotated[
        list[str] | None,
        typer.Option(help="Further questions that are only trained on, as `ensue build squad` makes them."),
    ] = None
    model: Annotated[str, typer.Option("--model", "-m", help="The encoder to build on.")] = "minilm"
    full: Annotated[bool, typer.Option("--full", help="Train the whole encoder, not an adapter.")] = False
    rank: Annotated[int, typer.Option(min=1, help="Rank of the adapter.")] = 32
    alpha: Annotated[
        float | None, typer.Option(min=0, help="Its scale times its rank (default: 2 × rank).")
    ] = None
    targets: Annotated[str, typer.Option(help="Layers it adapts: all, or names such as query,value.")] = "all"
    dropout: Annotated[float, typer.Option(min=0, max=0.9, help="Dropout in the adapter.")] = 0.05
    max_length: Annotated[int, typer.Option(min=16, help="Tokens a row, question included.")] = 384
    stride: Annotated[int, typer.Option(min=0, help="Tokens that two windows share.")] = 128
    max_question: Annotated[int, typer.Option(min=1, help="Tokens at which questions are cut.")] = 64
    max_answer: Annotated[int, typer.Option(min=1, help="Tokens an answer has at most.")] = 30
    epochs: Annotated[int, typer.Option(min=1, help="Maximum number of epochs.")] = 4
    batch: Annotated[int, typer.Option(min=1, help="Rows a batch and process.")] = 32
    learning_rate: Annotated[float | None, typer.Option(min=0, help="Default: 1e-3; 5e-5 with --full.")] = (
        None
    )
    warmup_share: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the steps over which the learning rate warms up.")
    ] = 0.06
    schedule: options.Schedule = "linear"
    weight_decay: options.WeightDecay = 0.01
    dev_share: Annotated[
        float, typer.Option(help="Share of the articles that decide which step is kept.")
    ] = 0.1
    test_share: Annotated[float, typer.Option(help="Share of the articles it is measured on.")] = 0.1
    any_place: Annotated[
        bool,
        typer.Option(
            "--any-place",
            help="An answer counts wherever its words stand, for data whose answer_start is unreliable.",
        ),
    ] = False
    about_data: Annotated[
        str, typer.Option(help="What the model card says of the data: origin, licence.")
    ] = ""
    evaluate_every: Annotated[
        int | None, typer.Option(min=1, help="Steps between evaluations (default: an epoch).")
    ] = None
    patience: options.Patience = 5
    # How many times as fast as the encoder the head learns; by default 20 with `full`.
    head_faster: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.targets != "all" and not options.names_in(self.targets):
            raise EnsueError("--targets is empty; name layers such as query,value, or all.")

    @property
    def title(self) -> str:
        return "answerer"

    @property
    def loop(self) -> options.LoopSettings:
        default = _FULL_RATE if self.full else _RATE
        rate = default if self.learning_rate is None else self.learning_rate
        return replace(super().loop, learning_rate=rate, warmup=0, evaluate_every=self.evaluate_every or 0)

    def counted(self, batches: int, processes: int) -> options.LoopSettings:
        """Return the loop's settings with epochs counted out as steps."""
        share, every = self.warmup_share, self.evaluate_every
        return self.loop.spread(batches, processes, self.epochs, warmup_share=share, evaluate_every=every)

    @property
    def reading(self) -> Reading:
        """How texts are read."""
        from ensue.backends.qa.answerer import Reading

        return Reading(**{name: getattr(self, name) for name in _READING})

    @property
    def adapter(self) -> AdapterShape | None:
        """The shape of the adapter; None where the whole encoder learns."""
        from ensue.backends.hf.adapter import AdapterShape

        if self.full:
            return None
        targets = () if self.targets == "all" else options.names_in(self.targets)
        return AdapterShape(self.rank, 2.0 * self.rank if self.alpha is None else self.alpha, targets)

    @property
    def head_speed(self) -> float:
        """How many times as fast as the rest the head learns."""
        return self.head_faster or (_FASTER if self.full else 1.0)

    def resolved(self) -> dict[str, Any]:
        adapter = self.adapter and asdict(self.adapter)
        return {"reading": asdict(self.reading), "adapter": adapter, "head_faster": self.head_speed}

    def asked(self) -> dict[str, Any]:
        return {**super().asked(), "extra": self.extra or []}
