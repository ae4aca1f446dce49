"""Shuffle Test runs as a table: a row a block size, the published figures beside."""

from __future__ import annotations

from pathlib import Path

from ensue.benchmarks.shuffle.report.rows import block_rows
from ensue.report.figure import interval
from ensue.report.results import Results
from ensue.report.table import Cell, Column, Table


def tables(results: Results, folder: Path | None = None) -> list[Table]:
    """Return the table of a run; none where it has no accuracy by block size."""
    rows = block_rows(results)
    if not rows:
        return []
    # Short words on two lines: the whole must fit a terminal of 80 columns.
    table = Table(
        [
            Column("block\nsize"),
            Column("accuracy"),
            Column("95 %\ninterval"),
            Column("per\ntoken", wide="accuracy per token"),
            Column("ties"),
            Column("pairs"),
            Column("docs", wide="documents"),
            Column("publ.\nhuman", wide="published: human, WSJ", published=True),
            Column("publ.\nGPT2-med", wide="published: GPT2-medium, average", published=True),
        ],
        title=f"Shuffle Test · {results.get('model', '')}",
        caption="publ.: published by Laban et al. (2021), table 2, on other documents; "
        "human on WSJ, GPT2-medium averaged over three domains. Chance is 0.5.",
    )
    for row in rows:
        table.add(
            row.label,
            Cell(f"{row.accuracy:.3f}", "strong", value=row.accuracy),
            interval(row.low, row.high),
            row.per_token,
            None if row.ties is None else round(row.ties * row.n),
            row.n,
            row.documents,
            row.human,
            row.gpt2,
        )
    return [table]
