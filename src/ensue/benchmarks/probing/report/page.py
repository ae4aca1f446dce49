"""The page of DiscoEval and SentEval runs: which pictures and tables it has, and what they hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.probing.report.sheet import ProbingSheet, TaskLine, read_sheet
from ensue.benchmarks.probing.report.systems import ablations, paper_layers, systems_of
from ensue.benchmarks.probing.report.table import ablation_table, sets_table, systems_table, tasks_table
from ensue.errors import EnsueError
from ensue.report.page import Page, run_names
from ensue.report.results import read_items, read_results
from ensue.report.svg import Picture, drawn_twice
from ensue.report.table import Table

MOST_TILES = 4
_ABLATIONS = {
    "SP": "Sentence position without its context",
    "DC": "Discourse coherence without a hidden layer",
}


class ShownRun(NamedTuple):
    """What the page shows of one run alone."""

    sheet: ProbingSheet
    heat: Picture | None
    tasks: Table
    sets: Table | None


class ShownProtocol(NamedTuple):
    """The runs under one protocol, which share a table with nothing made by another."""

    protocol: str
    heading: str
    systems: Table | None
    picture: Picture | None
    runs: list[ShownRun]
    ablations: dict[str, Table]


def probing_facts(folders: Sequence[Path], annotations: Path | None) -> dict[str, Any]:
    """Return all that the page needs; nothing where the first run has no results of the known form."""
    results = [read_results(folder) for folder in folders]
    names = run_names(folders, results)
    by_protocol: dict[str, list[ProbingSheet]] = {}
    for folder, each, name in zip(folders, results, names, strict=True):
        sheet = read_sheet(each, name)
        if sheet is None:
            if folder == folders[0]:
                return {}
            raise EnsueError(f"{folder} has no dev or test figures, so it cannot be shown beside others.")
        by_protocol.setdefault(sheet.protocol, []).append(sheet)
    guessing = most_frequent(read_items(folders[0]))
    first = next(iter(by_protocol.values()))[0]
    return {
        "suite": first.suite,
        "names": names,
        "tiles": _tiles(first),
        "protocols": [_protocol(chosen, names[0], guessing) for chosen in by_protocol.values()],
        "paper_layers": paper_layers(first.suite),
        # No tokens are scored, and to say that there were none would puzzle.
        "results": {key: value for key, value in results[0].items() if key != "tokens" or value},
    }


def _tiles(sheet: ProbingSheet) -> list[TaskLine]:
    """Return the most telling lines: the average, else groups, else tasks."""
    there = [line for line in sheet.lines if line.test is not None]
    if sheet.suite.name == "discoeval" and there[-1:] and there[-1].kind == "average":
        return there[-1:]
    groups = [line for line in there if line.kind == "group"]
    return (groups or there)[:MOST_TILES]


def _protocol(sheets: Sequence[ProbingSheet], first: str, guessing: Mapping[str, float]) -> ShownProtocol:
    # Drawing needs matplotlib, which takes half a second to import; what only reads does without it.
    from ensue.benchmarks.probing.report.plots import heat_map, systems_plot

    systems, protocol = systems_of(sheets), sheets[0].protocol
    name = protocol or "own"

    def heat(sheet: ProbingSheet, number: int) -> Picture:
        return drawn_twice(lambda width: heat_map(sheet, name=f"heat-{name}-{number}", width=width))

    return ShownProtocol(
        protocol,
        "Beside the published systems" if systems.published else "The columns of the paper’s table 2",
        systems_table(systems, sheets) if systems.columns else None,
        drawn_twice(lambda width: systems_plot(systems, name=f"systems-{name}", width=width))
        if systems.published and systems.columns
        else None,
        [
            ShownRun(
                sheet,
                heat(sheet, number) if sheet.several_layers else None,
                tasks_table(sheet, guessing if sheet.name == first else None, wide=True),
                sets_table(sheet),
            )
            for number, sheet in enumerate(sheets)
        ],
        {_ABLATIONS[each.task]: ablation_table(each, sheets[0]) for each in ablations(sheets)},
    )


def most_frequent(items: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return what always giving the most frequent label of a task's test split would score."""
    labels: dict[str, Counter[str]] = {}
    for item in items:
        outputs = item.get("outputs")
        if item["settings"].get("split") == "test" and isinstance(outputs, dict) and "label" in outputs:
            # Each layer has every example once, so shares stay the same however many layers there are.
            labels.setdefault(item["task"], Counter())[str(outputs["label"])] += 1
    return {task: max(found.values()) / found.total() for task, found in labels.items()}


PAGE = Page("ensue.benchmarks.probing.report", "probing.html.j2", probing_facts, takes_runs=True)
