"""The figures that the SQuALITY chapter prints, to be shown beside measured ones."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

HUMAN = "human"
METRICS = ("rouge1", "rouge2", "rougeL", "meteor", "bertscore")
_QUESTIONS_RATED = 100


class RatingRow(NamedTuple):
    """One cell of table A.10 with both its numbers, on the scale of the ratings."""

    system: str
    property: str
    mean: float
    deviation: float
    n: int


class PublishedDataset(NamedTuple):
    """A line of table 5.2."""

    dataset: str
    examples: int
    document_words: int
    summary_words: int
    several_references: bool
    public: bool


class PublishedLengths(NamedTuple):
    """What the text says of lengths; deviations and extremes only where it does."""

    stories: int
    story_mean: float
    story_deviation: float
    story_least: int
    story_most: int
    summary_mean: float
    summary_deviation: float
    plot_mean: float
    other_mean: float
    compression: float


class PublishedCorrelation(NamedTuple):
    """A cell of table 5.6."""

    metric: str
    subset: str
    value: float
    significant: bool


class PublishedMeanAndMax(NamedTuple):
    """A line of table 5.7, the difference as printed."""

    metric: str
    mean: float
    max: float
    difference: float


class TrainingSettings(NamedTuple):
    """A line of table A.8."""

    system: str
    learning_rate: float
    warmup_ratio: float
    weight_decay: float
    label_smoothing: float


def published_datasets() -> list[PublishedDataset]:
    """Table 5.2."""
    return [PublishedDataset(**row) for row in _data()["table_5_2"]["rows"]]


def published_lengths() -> PublishedLengths:
    """The lengths that §5.4 states of version 1."""
    found = _data()["lengths"]
    story, summary = found["story_words"], found["summary_words"]
    return PublishedLengths(
        stories=found["stories"],
        story_mean=story["mean"],
        story_deviation=story["deviation"],
        story_least=story["least"],
        story_most=story["most"],
        summary_mean=summary["mean"],
        summary_deviation=summary["deviation"],
        plot_mean=found["plot_words"],
        other_mean=found["other_words"],
        compression=found["compression"],
    )


def published_sharing() -> dict[str, tuple[float, ...]]:
    """Table 5.3: shares of 1-grams to 4-grams by the text they are shared with."""
    return {row["text"]: tuple(row["shares"]) for row in _data()["table_5_3"]["rows"]}


def published_scores() -> dict[str, dict[str, float]]:
    """Table 5.4: each system's metrics.

    >>> published_scores()["human"]["rouge1"]
    0.466
    """
    return {row["system"]: {name: row[name] for name in METRICS} for row in _data()["table_5_4"]["rows"]}


def published_ratings() -> list[RatingRow]:
    """Tables 5.5 and A.10."""
    return [RatingRow(**row, n=_QUESTIONS_RATED) for row in _data()["table_a_10"]["rows"]]


def published_correlations() -> list[PublishedCorrelation]:
    """Table 5.6."""
    table = _data()["table_5_6"]
    return [
        PublishedCorrelation(row["metric"], subset, row[subset], subset in table["significant"])
        for row in table["rows"]
        for subset in ("model", HUMAN, "all")
    ]


def published_mean_and_max() -> list[PublishedMeanAndMax]:
    """Table 5.7."""
    return [PublishedMeanAndMax(**row) for row in _data()["table_5_7"]["rows"]]


def training_search() -> dict[str, list[float]]:
    """The grid of table A.8."""
    return {name: list(values) for name, values in _data()["table_a_8"]["search"].items()}


def training_settings() -> list[TrainingSettings]:
    """The settings that table A.8 says were best."""
    return [TrainingSettings(**row) for row in _data()["table_a_8"]["rows"]]


def crowdsourcing() -> dict[str, float]:
    """What was paid, in dollars, and how far people agreed."""
    return dict(_data()["crowdsourcing"])


def citation() -> str:
    """The paper, as one line."""
    return str(_data()["citation"])


@cache
def _data() -> dict[str, Any]:
    text = files("ensue.benchmarks.squality").joinpath("published.toml").read_text("utf-8")
    return tomllib.loads(text)
