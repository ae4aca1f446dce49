"""The page of `ensue qags`: one summary with its doubts marked, and every question with both answers."""

from __future__ import annotations

from pathlib import Path

from ensue.benchmarks.qags.inspect import CONSISTENT, Inspection
from ensue.report.page import write_page

# More of a source than this is not read on a page that is about its summary.
MOST_SOURCE = 20_000


def write_inspection(found: Inspection, output: str | Path, models: str, source: str) -> Path:
    """Write the page and say where it is."""
    facts = {
        "found": found,
        "models": models,
        "source": source[:MOST_SOURCE],
        "source_left_out": max(0, len(source) - MOST_SOURCE),
        "consistent": CONSISTENT,
        "doubts": sum(piece.inconsistent for piece in found.pieces),
    }
    return write_page("ensue.benchmarks.qags.report", "qags_inspection.html.j2", facts, output)
