"""Options of a language model that is fine-tuned on documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import typer

from ensue.train import options
from ensue.train.documents import DocumentOptions

OBJECTIVES = ("auto", "causal", "masked")


@dataclass(frozen=True, kw_only=True)
class LanguageOptions(DocumentOptions):
    """Fine-tune a language model on documents, or give an encoder a head that predicts masked words."""

    # Whole models forget what they know at large rates; adapters begin at nothing.
    trains: ClassVar[str] = "ensue.train.lm.train:train_language"
    rates: ClassVar[tuple[float, float]] = (5e-5, 5e-4)
    order: ClassVar[str] = "model objective loop adapter epochs batch row_tokens masked_share"

    objective: Annotated[
        str,
        typer.Option(help="causal, masked, or auto: causal for a causal model."),
        options.OneOf(OBJECTIVES),
    ] = "auto"
    row_tokens: Annotated[
        int | None,
        typer.Option(min=8, help="Tokens a row (default: the model's context, at most 2048)."),
    ] = None
    batch: Annotated[int, typer.Option(min=1, help="Rows a batch and process.")] = 8
    masked_share: Annotated[
        float, typer.Option(min=0.01, max=0.9, help="Share of the tokens that are predicted (masked only).")
    ] = 0.15
    dev_share: Annotated[
        float, typer.Option(help="Share of the documents that decide which step is kept.")
    ] = 0.05

    @property
    def title(self) -> str:
        return "language model"
