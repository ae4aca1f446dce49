"""The SentEval half of the DiscoEval paper's table 2 (Chen et al., 2019), to be shown beside measured figures.

The paper gives group averages only, no table by task. USS is a mean of Pearson correlations, SSS of two Pearson
correlations and an accuracy, SC and Probing of accuracies. SC's figures fit an average over eight tasks, SST5
among them. The figures themselves lie in one place, beside the other half of the table.
"""

from __future__ import annotations

from typing import NamedTuple

from ensue.benchmarks.discoeval.published import citation, published_senteval

__all__ = ["PublishedRow", "citation", "published", "published_line"]

_METRICS = {"USS": "pearson", "SSS": "average", "SC": "accuracy", "Probing": "accuracy"}


class PublishedRow(NamedTuple):
    """One average the paper prints, as a fraction; `ours` marks the encoders that the paper trains itself."""

    model: str
    task: str
    metric: str
    value: float
    ours: bool


def published() -> list[PublishedRow]:
    """Every SentEval figure of table 2, under the task and metric names of a run's rows."""
    return [
        PublishedRow(line.model, group, _METRICS[group], value, line.ours)
        for line in published_senteval()
        for group, value in line.groups.items()
    ]


def published_line(model: str) -> dict[str, float]:
    """A model's four averages by group; empty where the paper has none.

    >>> published_line("InferSent")
    {'USS': 0.634, 'SSS': 0.833, 'SC': 0.797, 'Probing': 0.718}
    """
    return {row.task: row.value for row in published() if row.model == model}
