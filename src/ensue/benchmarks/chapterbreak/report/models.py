"""The paper's table 2 with measured runs in it: models, their perplexities and their accuracies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ensue.benchmarks.chapterbreak.published import published_models
from ensue.benchmarks.chapterbreak.report.rows import RunFacts, longest, splits

PUBLISHED_SPLITS = ("pg19", "ao3")


class Figure(NamedTuple):
    """One number of the table; `partly` where the paper measured a subset only."""

    value: float
    low: float | None = None
    high: float | None = None
    partly: bool = False


class ModelRow(NamedTuple):
    """One model; figures by kind (perplexity or accuracy) and split."""

    name: str
    published: bool
    parameters: int | None
    length: int | None
    figures: dict[tuple[str, str], Figure]

    def figure(self, kind: str, split: str) -> float | None:
        """A figure as a bare number."""
        found = self.figures.get((kind, split))
        return None if found is None else found.value


class ModelsTable(NamedTuple):
    """The rows, and the columns in which any row has a figure; `other_data` where no run is of the paper's data."""

    rows: list[ModelRow]
    columns: list[tuple[str, str]]
    other_data: bool


def models_table(runs: Sequence[RunFacts]) -> ModelsTable:
    """The paper's models, then the runs at their longest prefixes."""
    rows = [*published_rows(), *(_measured_row(run) for run in runs)]
    present = splits(runs)
    columns = [
        (kind, split)
        for split in dict.fromkeys([*PUBLISHED_SPLITS, *present])
        for kind in ("perplexity", "accuracy")
        if any((kind, split) in row.figures for row in rows)
    ]
    return ModelsTable(rows, columns, not set(present) & set(PUBLISHED_SPLITS))


def published_rows() -> list[ModelRow]:
    """The paper's models."""
    rows = []
    for model in published_models():
        figures = {
            ("accuracy", split): Figure(value, partly=model.subset) for split, value in model.accuracy.items()
        }
        if model.perplexity is not None:
            figures["perplexity", "pg19"] = Figure(model.perplexity)
        rows.append(ModelRow(model.model, True, model.parameters, model.sequence, figures))
    return rows


def _measured_row(run: RunFacts) -> ModelRow:
    figures: dict[tuple[str, str], Figure] = {}
    lengths = []
    for split in splits([run]):
        cell = longest(run, split)
        # The paper's table is of chapter breaks with negatives from the same book.
        if cell is None or (cell.boundary, cell.negatives) != ("chapter", "in-book"):
            continue
        lengths.append(cell.prefix)
        figures["accuracy", split] = Figure(cell.accuracy, cell.low, cell.high)
        if cell.perplexity is not None:
            figures["perplexity", split] = Figure(cell.perplexity)
    return ModelRow(run.name, False, None, max(lengths, default=None), figures)
