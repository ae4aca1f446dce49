"""Published figures, one schema for all benchmarks, keyed as the metric rows of a run are.

A benchmark's `published.toml` has a `citation` and tables:

    [[tables]]
    table = "2"
    columns = [{ task = "SP/wiki", metric = "accuracy", settings = { layer = 4 } }, …]
    rows = [{ system = "BERT-Base", group = "ours", values = [0.53, nan, …] }, …]

A value that the paper does not print is nan and makes no figure. `settings` may stand at the table, a column or a
row; the narrower one wins. A row may state the `task` where columns state none. Whatever else a table or row has
(parameters, a note) is kept as `facts`. What is no figure by task and metric stands beside the tables and is read
with `facts_of`.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

_TABLE_KEYS = {"table", "columns", "rows", "settings"}
_ROW_KEYS = {"system", "group", "task", "values", "settings"}


class PublishedFigure(NamedTuple):
    """One printed figure, as a fraction, under the task, metric and settings of a run's rows."""

    system: str
    task: str
    metric: str
    value: float
    settings: Mapping[str, Any]
    table: str
    group: str = ""
    facts: Mapping[str, Any] = {}


@cache
def published(package: str) -> tuple[PublishedFigure, ...]:
    """Return every printed figure of a benchmark, table by table."""
    return figures_in(_data(package).get("tables", []))


def figures_in(tables: Iterable[Mapping[str, Any]]) -> tuple[PublishedFigure, ...]:
    """Return the figures of tables, each as above."""
    found = []
    for table in tables:
        about = {key: value for key, value in table.items() if key not in _TABLE_KEYS}
        for row in table["rows"]:
            facts = about | {key: value for key, value in row.items() if key not in _ROW_KEYS}
            for column, value in zip(table["columns"], row["values"], strict=True):
                if math.isnan(value):
                    continue
                settings = table.get("settings", {}) | column.get("settings", {}) | row.get("settings", {})
                found.append(
                    PublishedFigure(
                        row["system"],
                        row.get("task") or column["task"],
                        column["metric"],
                        value,
                        settings,
                        str(table["table"]),
                        row.get("group", ""),
                        facts,
                    )
                )
    return tuple(found)


def facts_of(package: str) -> Mapping[str, Any]:
    """Return what a benchmark's file says beside its tables."""
    return {key: value for key, value in _data(package).items() if key != "tables"}


def citation(package: str) -> str:
    """Return the paper of a benchmark's figures, as one line."""
    return str(_data(package)["citation"])


@cache
def _data(package: str) -> dict[str, Any]:
    return tomllib.loads(files(package).joinpath("published.toml").read_text("utf-8"))
