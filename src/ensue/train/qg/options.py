"""Options of a question generator."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from ensue import console
from ensue.errors import EnsueError
from ensue.train import options

if TYPE_CHECKING:
    from ensue.backends.qg.generator import Adapter

_EPOCHS = 4


@dataclass(frozen=True, kw_only=True)
class QuestionerOptions(options.TrainingOptions):
    """Train a question generator: it asks what a marked part of a text answers."""

    # Rank 6 on all linear layers of a model of 135 million parameters is 1.8 million weights, under 4 MB in half
    # precision. `batch_tokens` counts padding.
    trains: ClassVar[str] = "ensue.train.qg.train:train_questioner"
    apart: ClassVar[tuple[str, ...]] = ("steps", "rank", "alpha", "targets", "statement")
    order: ClassVar[str] = (
        "model loop adapter dropout epochs batch_tokens max_tokens dev_share test_share base_name"
    )

    data: Annotated[
        list[str],
        typer.Option(help="Questions in SQuAD's format; unanswerable ones are left out. Repeatable."),
    ]
    model: console.ModelName = "smollm2"
    base_name: Annotated[
        str, typer.Option(help="Name of the base model to store in the adapter (default: as --model).")
    ] = ""
    rank: Annotated[int, typer.Option(min=1, help="Rank of the adapter.")] = 6
    alpha: Annotated[float, typer.Option(min=0, help="Its strength; alpha / rank scales it.")] = 12.0
    targets: Annotated[str, typer.Option(help="Names of the layers it adapts, separated by commas.")] = (
        "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj"
    )
    dropout: Annotated[float, typer.Option(min=0, max=0.9, help="Dropout in the adapter.")] = 0.05
    dev_share: Annotated[
        float, typer.Option(help="Share of the articles whose loss decides when to stop.")
    ] = 0.1
    test_share: Annotated[
        float, typer.Option(min=0, help="Share of the articles that the model card measures on.")
    ] = 0.1
    batch_tokens: Annotated[int, typer.Option(min=32, help="Tokens a batch and process.")] = 8192
    max_tokens: Annotated[
        int, typer.Option(min=16, help="Longest text with answer and question; longer ones are left out.")
    ] = 512
    steps: options.Steps = None
    epochs: Annotated[int | None, typer.Option(min=1, help="Maximum number of epochs (default 4).")] = None
    learning_rate: options.LearningRate = 1e-3
    warmup: options.Warmup = 50
    schedule: options.Schedule = "linear"
    weight_decay: options.WeightDecay = 0.0
    evaluate_every: options.EvaluateEvery = 100
    patience: options.Patience = 5
    statement: Annotated[
        str, typer.Option("--data-statement", help="What the data is and its licence, for the model card.")
    ] = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        options.check_one_way(self.steps, self.epochs)
        if self.max_tokens > self.batch_tokens:
            raise EnsueError(
                f"--max-tokens {self.max_tokens} is more than the {self.batch_tokens} --batch-tokens: one text must "
                f"fit a batch."
            )

    @property
    def title(self) -> str:
        return "question generator"

    @property
    def passes(self) -> int:
        """How many epochs are trained; 0 where steps decide."""
        return 0 if self.steps else self.epochs or _EPOCHS

    @property
    def adapter(self) -> Adapter:
        """The shape of the adapter."""
        from ensue.backends.qg.generator import Adapter

        return Adapter(self.rank, self.alpha, options.names_in(self.targets))

    @property
    def base(self) -> str:
        """What the adapter finds its model by."""
        return options.lasting_name(self.model, self.base_name)

    def resolved(self) -> dict[str, Any]:
        return {"adapter": asdict(self.adapter), "epochs": self.passes}
