"""The page of Shuffle Test runs: accuracy by block size and domain, beside the published figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ensue.benchmarks.shuffle.published import citation
from ensue.benchmarks.shuffle.report.rows import (
    MOST_DOMAINS,
    BlockRow,
    block_rows,
    published_lines,
    tally_domains,
)
from ensue.report.page import Page
from ensue.report.results import read_items, read_results
from ensue.report.svg import Picture, drawn_twice


def shuffle_facts(folders: Sequence[Path], annotations: Path | None) -> dict[str, Any]:
    """Return what the page shows of a run."""
    blocks = block_rows(read_results(folders[0]))
    if not blocks:
        return {}
    tally = tally_domains(read_items(folders[0]))
    domains = tally.domains
    return {
        "blocks": blocks,
        "accuracy_picture": _accuracy_picture(blocks),
        "domain_rows": tally.rows() if len(domains) > 1 else [],
        "domains_left_out": max(0, len(domains) - MOST_DOMAINS),
        "documents": max((row.documents or 0 for row in blocks), default=0),
        "citation": citation(),
    }


def _accuracy_picture(blocks: Sequence[BlockRow]) -> Picture | None:
    if not any(row.block_size is not None for row in blocks):
        return None
    # Drawing needs matplotlib, which takes half a second to import; reports without pictures do without it.
    from ensue.benchmarks.shuffle.report.plots import accuracy_plot

    lines = published_lines()
    return drawn_twice(lambda width: accuracy_plot(blocks, lines, width=width))


PAGE = Page("ensue.benchmarks.shuffle.report", "shuffle.html.j2", shuffle_facts)
