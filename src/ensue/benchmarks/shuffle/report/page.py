"""The page of Shuffle Test runs: accuracy by block size and domain, beside the published figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ensue.benchmarks.published import citation
from ensue.benchmarks.shuffle.report.table import (
    MOST_DOMAINS,
    PACKAGE,
    BlockRow,
    block_rows,
    blocks_table,
    domains_of,
    domains_table,
    published_series,
)
from ensue.report.page import Page
from ensue.report.results import Results, read_results
from ensue.report.svg import Picture, drawn_twice


def shuffle_facts(folders: Sequence[Path], annotations: Path | None) -> dict[str, Any]:
    """Return what the page shows of a run."""
    results = read_results(folders[0])
    blocks, domains = block_rows(results), domains_of(results)
    if not blocks:
        return {}
    return {
        "blocks": blocks,
        "blocks_table": blocks_table(blocks),
        "accuracy_picture": _accuracy_picture(blocks, [read_results(one) for one in folders[1:]]),
        "domains_table": domains_table(results) if domains else None,
        "domains_left_out": max(0, len(domains) - MOST_DOMAINS),
        "documents": max((row.accuracy.clusters or 0 for row in blocks), default=0),
        "ties": sum(row.ties or 0 for row in blocks),
        "pairs": sum(row.accuracy.n for row in blocks),
        "citation": citation(PACKAGE),
    }


def _accuracy_picture(blocks: Sequence[BlockRow], beside: Sequence[Results]) -> Picture | None:
    if not any(row.block_size is not None for row in blocks):
        return None
    # Drawing needs matplotlib, which takes half a second to import; reports without pictures do without it.
    from ensue.benchmarks.shuffle.report.plots import accuracy_plot

    series = {
        "Human, WSJ": published_series("Human", "shuffle/WSJ"),
        **{
            f"GPT2-medium, {domain}": published_series("GPT2-medium", f"shuffle/{domain}")
            for domain in ("Legal", "WSJ", "Reddit")
        },
    }
    others = {
        str(one["model"]): {
            row.block_size: row.accuracy.value for row in block_rows(one) if row.block_size is not None
        }
        for one in beside
    }
    return drawn_twice(lambda width: accuracy_plot(blocks, series, others, width=width))


PAGE = Page("ensue.benchmarks.shuffle.report", "shuffle.html.j2", shuffle_facts, takes_runs=True)
