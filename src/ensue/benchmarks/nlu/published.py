"""The figures that the GLUE and SuperGLUE chapters print, to be shown beside measured ones."""

from __future__ import annotations

import math
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from ensue.errors import EnsueError

SUITES = ("glue", "superglue")
HUMAN = "human"


class PublishedRow(NamedTuple):
    """One printed figure, as a fraction, under the task and metric names of a run's rows.

    `split` says what it was measured on. A benchmark's average is the task `GLUE` or `SuperGLUE` with the metric
    `score`. Figures of the diagnostic by phenomenon carry its `category` and, where it is a fine one, its `tag`.
    """

    table: str
    split: str
    group: str
    system: str
    task: str
    metric: str
    value: float
    category: str = ""
    tag: str = ""


def published(suite: str) -> list[PublishedRow]:
    """Every printed figure of a suite.

    >>> [row.value for row in published("glue") if row.group == "human"]
    [0.8]
    """
    return [
        PublishedRow(
            table=table["table"],
            split=column.get("split", table["split"]),
            group=line["group"],
            system=line["system"],
            task=column["task"],
            metric=column["metric"],
            value=value,
            category=column.get("category", ""),
            tag=column.get("tag", ""),
        )
        for table in _data(suite)["tables"]
        for line in table["rows"]
        for column, value in zip(table["columns"], line["values"], strict=True)
        if not math.isnan(value)
    ]


def human(suite: str) -> list[PublishedRow]:
    """The human figures of a suite.

    >>> {row.metric: row.value for row in human("superglue") if row.task == "CB"}
    {'f1': 0.958, 'accuracy': 0.989}
    """
    return [row for row in published(suite) if row.group == HUMAN]


def citation(suite: str) -> str:
    """The paper, as one line."""
    return str(_data(suite)["citation"])


@cache
def _data(suite: str) -> dict[str, Any]:
    if suite not in SUITES:
        raise EnsueError(
            f"There are no published figures of {suite!r}; there are those of {', '.join(SUITES)}."
        )
    text = files(f"ensue.benchmarks.{suite}").joinpath("published.toml").read_text("utf-8")
    return tomllib.loads(text)
