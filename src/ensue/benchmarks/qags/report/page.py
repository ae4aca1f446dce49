"""The pages of QAGS: of runs, every metric against people; of one summary, its doubts and every question."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ensue.benchmarks.qags.inspecting import CONSISTENT, Inspection
from ensue.benchmarks.qags.measures import QAGS, TO_BEAT
from ensue.benchmarks.qags.report.table import (
    SetSheet,
    ablation_tables,
    printed_figures,
    questions_table,
    runs_table,
    set_sheets,
    set_table,
)
from ensue.report.figure import Figure, fraction
from ensue.report.page import Page, environment, run_names, write_page
from ensue.report.results import read_beside, read_results, read_run

COMPARISONS_FILE = "comparisons.jsonl"
_COMPARED = {"set": str, "a": str, "b": str, "kind": str, "difference": float}
_PACKAGE = "ensue.benchmarks.qags.report"
# More of a source than this is not read on a page that is about its summary.
MOST_SOURCE = 20_000


def qags_facts(folders: Sequence[Path], annotations: Path | None) -> dict[str, Any]:
    """Return what the template needs; nothing where the run has no rows that are known."""
    results = [read_results(folder) for folder in folders]
    sheets = set_sheets(results[0], read_beside(folders[0], COMPARISONS_FILE, _COMPARED))
    if not sheets:
        return {}
    names = run_names(folders, results)
    sections = [(sheet.title, _agreement_words(sheet), set_table(sheet)) for sheet in sheets]
    sections += [(title, "", table) for title, table in ablation_tables(results[0]).items()]
    if len(folders) > 1:
        models = [_models(folder) for folder in folders]
        sections.append(("By what asks and answers", "", runs_table(names, models, results)))
    return {
        "names": names,
        "tiles": _tiles(sheets),
        "sections": sections,
        "to_beat": TO_BEAT,
        "limit": read_run(folders[0]).get("asked", {}).get("limit"),
    }


def _agreement_words(sheet: SetSheet) -> str:
    if sheet.alpha is None:
        return ""
    interval = "" if sheet.alpha.low is None else f" (95 % interval {sheet.alpha.interval(2)})"
    printed = printed_figures(sheet.name, "alpha").get("workers")
    beside = "" if printed is None else f"; published: {fraction(printed, 2)}"
    return f"Workers agree at α = {sheet.alpha.text(2)}{interval}{beside}."


def _tiles(sheets: Sequence[SetSheet]) -> list[tuple[Figure, str, str]]:
    """Return QAGS on the sets of the paper, or the baseline where there is no QAGS."""
    tiles = []
    for sheet in sheets:
        name = QAGS if sheet.figure(QAGS) else TO_BEAT
        figure = sheet.figure(name)
        if figure is not None and not sheet.level:
            what = "share ranked right" if "accuracy" in sheet.kinds else "correlation with people (Pearson)"
            tiles.append((figure, f"{name} on {sheet.title}: {what}", _beaten_words(sheet)))
    return tiles


def _beaten_words(sheet: SetSheet) -> str:
    """Say whether QAGS beats the baseline; nothing where either is not there."""
    ours, baseline = sheet.figure(QAGS), sheet.figure(TO_BEAT)
    if ours is None or baseline is None:
        return ""
    p = next(row.p for row in sheet.rows if row.measure == QAGS)
    side = "above" if ours.value > baseline.value else "below"
    return f"{side} {TO_BEAT}{'' if p is not None and p <= 0.05 else ', not significantly'}"


def _models(folder: Path) -> tuple[str, str]:
    asked = read_run(folder).get("asked", {})
    return str(asked.get("model", "")), str(asked.get("settings", {}).get("answerer", ""))


def write_inspection(found: Inspection, output: str | Path, models: str, source: str) -> Path:
    """Write the page of `ensue qags` and return where it is."""
    facts = _inspected(found, source) | {"models": models}
    return write_page(_PACKAGE, "qags_inspection.html.j2", facts, output)


def inspection_html(found: Inspection, source: str) -> Markup:
    """Return a summary with its doubts and questions, for a page that has `qags_inspection.css`."""
    template = environment(_PACKAGE).get_template("qags_inspected.html.j2")
    return Markup(template.render(_inspected(found, source)))


def _inspected(found: Inspection, source: str) -> dict[str, Any]:
    return {
        "found": found,
        "questions": questions_table(found),
        "source": source[:MOST_SOURCE],
        "source_left_out": max(0, len(source) - MOST_SOURCE),
        "consistent": CONSISTENT,
        "doubts": sum(piece.inconsistent for piece in found.pieces),
    }


PAGE = Page(_PACKAGE, "qags.html.j2", qags_facts, takes_runs=True)
