"""The figures of the Shuffle Test paper (Laban et al., 2021), to be shown beside measured ones."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple


class PublishedRow(NamedTuple):
    """One accuracy the paper prints, as a fraction.

    `domain` is "WSJ", "Legal", "Reddit" or "Overall" (the paper's average over the three); `table` is the
    number of the paper's table. Table 1 has no block sizes: it shuffles single sentences, block size 1.
    """

    model: str
    domain: str
    block_size: int
    accuracy: float
    table: int
    human: bool


def published() -> list[PublishedRow]:
    """Every figure of the paper's tables 1 and 2, human rows included.

    >>> [row.accuracy for row in published() if row.human]
    [0.975, 0.945, 0.93, 0.96, 0.94]
    """
    data = _data()
    first, second = data["table_1"], data["table_2"]
    rows = [
        PublishedRow(line["model"], domain, first["block_size"], accuracy, 1, line.get("human", False))
        for line in first["rows"]
        for domain, accuracy in line["accuracy"].items()
    ]
    rows += [
        PublishedRow(line["model"], line["domain"], size, accuracy, 2, line.get("human", False))
        for line in second["rows"]
        for size, accuracy in zip(second["block_sizes"], line["accuracy"], strict=True)
    ]
    return rows


def published_series(model: str, domain: str, table: int = 2) -> dict[int, float]:
    """The accuracies of one model on one domain by block size; empty where the paper has none.

    >>> published_series("GPT2-medium", "Reddit")[5]
    0.538
    """
    return {
        row.block_size: row.accuracy
        for row in published()
        if (row.model, row.domain, row.table) == (model, domain, table)
    }


def citation() -> str:
    """The paper, as one line."""
    return str(_data()["citation"])


@cache
def _data() -> dict[str, Any]:
    text = files("ensue.benchmarks.shuffle").joinpath("published.toml").read_text("utf-8")
    return tomllib.loads(text)
