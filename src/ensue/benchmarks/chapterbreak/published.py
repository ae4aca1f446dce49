"""The figures of the ChapterBreak paper (Sun et al., 2022), to be shown beside measured ones."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

CHANCE = 1 / 6


class PublishedModel(NamedTuple):
    """A line of table 2: accuracies by split (fractions) at the longest input, in tokens.

    `perplexity` is that of PG-19's gold suffixes by words, None where the paper prints none; `subset` says
    that only a part of the examples was run.
    """

    model: str
    parameters: int
    sequence: int
    perplexity: float | None
    accuracy: dict[str, float]
    subset: bool


class PublishedPoint(NamedTuple):
    """An accuracy at a prefix length that the paper's text states."""

    model: str
    split: str
    prefix_tokens: int
    accuracy: float


class TransitionShare(NamedTuple):
    """The share of a category among annotated chapter transitions, and among those that every model missed."""

    aspect: str
    category: str
    all: float
    missed: float


class SplitSize(NamedTuple):
    """How many works and examples a split has of one boundary."""

    boundary: str
    split: str
    works: int
    examples: int


class Spread(NamedTuple):
    """The mean, least and most of a count."""

    mean: float
    min: int
    max: int


def published_models() -> list[PublishedModel]:
    """Table 2, line by line.

    >>> {row.model: row.accuracy["pg19"] for row in published_models()}["SuffixLM"]
    0.52
    """
    return [
        PublishedModel(
            row["model"],
            row["parameters"],
            row["sequence"],
            row.get("perplexity"),
            {split: row[split] for split in ("pg19", "ao3")},
            row.get("subset", False),
        )
        for row in _data()["table_2"]["rows"]
    ]


def published_points() -> list[PublishedPoint]:
    """The accuracies by prefix length that the text states."""
    return [PublishedPoint(**row) for row in _data()["figure_2"]["rows"]]


def subwords_per_word() -> dict[str, float]:
    """The ratios by which the paper turns subword perplexities into word perplexities."""
    return {row["model"]: row["ratio"] for row in _data()["subwords_per_word"]["rows"]}


def transition_shares() -> list[TransitionShare]:
    """Tables 1 and 5."""
    return [TransitionShare(**row) for row in _data()["transitions"]["rows"]]


def split_sizes() -> list[SplitSize]:
    """Table 4."""
    return [SplitSize(**row) for row in _data()["table_4"]["rows"]]


def work_statistics() -> dict[str, Spread]:
    """Table 3: chapters and words of the fan fiction the paper collected."""
    table = _data()["table_3"]
    return {name: Spread(**table[name]) for name in ("chapters", "words")}


def citation() -> str:
    """The paper, as one line."""
    return str(_data()["citation"])


@cache
def _data() -> dict[str, Any]:
    text = files("ensue.benchmarks.chapterbreak").joinpath("published.toml").read_text("utf-8")
    return tomllib.loads(text)
