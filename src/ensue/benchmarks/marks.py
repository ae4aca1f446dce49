"""The mark of runs in which a model named its choice: by generation is another measure than by log-likelihood."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ensue.report.table import Table

BY = "generation"
# What the settings of rows and items say.
MARK = {"by": BY}


def is_marked(run: Mapping[str, Any]) -> bool:
    """Return whether what `run.json` says was asked is a choice by generation."""
    asked = run.get("asked")
    settings = asked.get("settings") if isinstance(asked, dict) else None
    return isinstance(settings, dict) and settings.get("by") == BY


def marked(table: Table, results: Mapping[str, Any]) -> Table:
    """Say in a table's title and below it that a run is by generation, where it is."""
    if any(row["settings"].get("by") == BY for row in results["metrics"]):
        table.title = f"{table.title} · by generation"
        table.caption = (
            "By generation: the model was asked to name its choice, which is not what log-likelihoods measure; not "
            f"to be compared with figures by log-likelihood. {table.caption}"
        )
    return table
