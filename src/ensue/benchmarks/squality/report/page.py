"""The page of SQuALITY runs: systems beside published ones, examples, statistics, and metrics beside people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ensue.benchmarks.published import citation
from ensue.benchmarks.squality.report import table as tables
from ensue.errors import EnsueError
from ensue.report.page import Page, run_names
from ensue.report.results import read_beside, read_items, read_results, read_run
from ensue.report.table import Table

_AS_PEOPLE = (
    "A person’s summary is measured against the other three, a model’s against all four, which gives it a better "
    "chance of a good match. “All but one” measures everyone by the best of all references but one, on average over "
    "which is left out."
)


def squality_facts(folders: Sequence[Path], annotations: Path | None) -> dict[str, Any]:
    """Return all that the page needs beyond what every report has."""
    results = [read_results(folder) for folder in folders]
    kinds = {one["benchmark"] == tables.HUMAN_EVAL for one in results}
    if len(kinds) > 1:
        raise EnsueError(
            "Runs of squality and of squality/human-eval have no tables in common; report them apart."
        )
    names = run_names(folders, results)
    if kinds == {True}:
        found = tables.human_eval_tables(results[0], folders[0], tables.CORRELATIONS)
        sections = [_section(table) for table in found]
        return {"human_eval": True, "cited": citation(tables.PACKAGE), "sections": sections, "tiles": []}
    figures = tables.figures_of(results[0])
    tiles = [(title, figures[name]) for name, title in tables.TITLES.items() if name in figures]
    if not tiles:
        return {}
    asked = [read_run(folder).get("asked") or {} for folder in folders]
    encoders = [str((one.get("settings") or {}).get("bertscore_model", "")) for one in asked]
    systems = list(zip(names, results, strict=True))
    statistics = list(read_beside(folders[0], "statistics.jsonl"))
    return {
        "human_eval": False,
        "names": names,
        "tiles": tiles[:4],
        "oracles": [
            name for name, one in systems if "system:oracle" in str(one.get("signature", "")).split()
        ],
        "limits": [(name, one["limit"]) for name, one in zip(names, asked, strict=True) if one.get("limit")],
        "sections": [
            _section(tables.systems_table(systems, encoders)),
            ("As people are measured", _AS_PEOPLE, replace(tables.scores_table(systems), title="")),
        ],
        "shown": _shown(folders[0]),
        "statistics": tables.statistics_tables(statistics[0]) if statistics else [],
    }


def _section(table: Table) -> tuple[str, str, Table]:
    """Return a heading, words and a table: the heading is the table's title."""
    return table.title, "", replace(table, title="")


def _shown(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return the best, the middle and the worst item by ROUGE-1; none of people, whose texts are the data's."""
    items = [
        item
        for item in read_items(folder)
        if "summary" in (item.get("outputs") or {}) and "rouge1" in item["scores"]
    ]
    items.sort(key=lambda item: -item["scores"]["rouge1"])
    if len(items) < 3:
        return []
    return [("best", items[0]), ("middle", items[len(items) // 2]), ("worst", items[-1])]


PAGE = Page(f"{tables.PACKAGE}.report", "squality.html.j2", squality_facts, takes_runs=True)
