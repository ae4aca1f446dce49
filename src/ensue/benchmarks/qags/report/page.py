"""The page of QAGS runs: which tables it has, and what they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.qags.baselines import TO_BEAT
from ensue.benchmarks.qags.measures import QAGS
from ensue.benchmarks.qags.published import citation, published_ablation, published_agreement
from ensue.benchmarks.qags.report.sheets import (
    TITLES,
    Cell,
    SetSheet,
    ablation_sheets,
    beaten_words,
    read_comparisons,
    set_sheets,
)
from ensue.report.page import Page, run_names
from ensue.report.results import read_results, read_run

_ABLATION_TITLES = {
    "questions": "Number of questions",
    "similarity": "How answers are compared",
    "filters": "Which questions are kept",
    "padding": "What fills up where too few are kept",
    "order": "Which of too many are kept",
}


class Tile(NamedTuple):
    """A figure in large type, and what it is."""

    figure: Cell
    words: str
    beside: str


class RunRow(NamedTuple):
    """One of several runs: what asked, what answered, and QAGS on each set."""

    name: str
    asks: str
    answers: str
    cells: dict[str, Cell]


def qags_facts(folders: Sequence[Path], annotations: Path | None) -> dict[str, Any]:
    """What the template needs; nothing where the run has no rows that are known."""
    results = [read_results(folder) for folder in folders]
    sheets = set_sheets(results[0], read_comparisons(folders[0]))
    if not sheets:
        return {}
    names = run_names(folders, results)
    others = [
        RunRow(name, *_models(folder), _main_cells(each))
        for name, folder, each in zip(names, folders, results, strict=True)
    ]
    varied = ablation_sheets(results[0])
    return {
        "names": names,
        "sheets": sheets,
        "tiles": _tiles(sheets),
        "to_beat": TO_BEAT,
        "qags": QAGS,
        "titles": TITLES,
        "agreement": published_agreement(),
        "ablations": [(_ABLATION_TITLES.get(one.name, one.name), one) for one in varied],
        "run_rows": others if len(others) > 1 else [],
        "published_models": [*published_ablation("answering"), *published_ablation("asking")],
        "citation": citation(),
        "limit": read_run(folders[0]).get("asked", {}).get("limit"),
    }


def _tiles(sheets: Sequence[SetSheet]) -> list[Tile]:
    """QAGS on the sets of the paper, or the baseline where there is no QAGS."""
    tiles = []
    for sheet in sheets:
        if sheet.level:
            continue
        name = QAGS if sheet.cell(QAGS) else TO_BEAT
        cell = sheet.cell(name)
        if cell is not None:
            what = "share ranked right" if sheet.main == "accuracy" else "correlation with people (Pearson)"
            tiles.append(Tile(cell, f"{name} on {sheet.title}: {what}", beaten_words(sheet)))
    return tiles


def _main_cells(results: Mapping[str, Any]) -> dict[str, Cell]:
    found = {}
    for sheet in set_sheets(results):
        cell = sheet.cell(QAGS)
        if cell is not None and sheet.level != "summary":
            found[sheet.name] = cell
    return found


def _models(folder: Path) -> tuple[str, str]:
    asked = read_run(folder).get("asked", {})
    settings = asked.get("settings", {})
    return str(asked.get("model", "")), str(settings.get("answerer", ""))


PAGE = Page("ensue.benchmarks.qags.report", "qags.html.j2", qags_facts, takes_runs=True)
