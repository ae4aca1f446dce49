"""The page of DiscoEval and SentEval runs: which pictures and tables it has, and what they hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.discoeval.published import citation
from ensue.benchmarks.probing.report.published import Ablation, SystemsTable, ablations, systems_table
from ensue.benchmarks.probing.report.sheets import (
    Figure,
    Line,
    MeanLayer,
    Sheet,
    common_layer,
    lines,
    mean_layer,
    run_names,
    sheets,
)
from ensue.benchmarks.probing.report.suites import by_domain, column_words, published_best_layers
from ensue.errors import EnsueError
from ensue.report.page import Page
from ensue.report.results import read_items, read_results
from ensue.report.svg import Picture, drawn_twice

MOST_TILES = 4


class SetRow(NamedTuple):
    """A set of an STS year, or the year itself, by both correlations."""

    year: str
    name: str
    pearson: Figure | None
    spearman: Figure | None


class SheetFacts(NamedTuple):
    """All that the page says of one run under one protocol."""

    sheet: Sheet
    lines: list[Line]
    also: dict[str, dict[str, Figure]]
    layer: int | None
    heat: Picture | None
    best: MeanLayer | None
    sets: list[SetRow]


class ProtocolFacts(NamedTuple):
    """The runs under one protocol, which share a table with nothing made by another."""

    protocol: str
    table: SystemsTable
    picture: Picture | None
    sheets: list[SheetFacts]
    ablations: list[Ablation]


def probing_facts(folders: Sequence[Path], annotations: Path | None) -> dict[str, Any]:
    """All that the page needs; nothing where the first run has no results of the known form."""
    results = [read_results(folder) for folder in folders]
    names = run_names(folders, results)
    found = [sheets(each, name) for each, name in zip(results, names, strict=True)]
    if not found[0]:
        return {}
    for folder, each in zip(folders, found, strict=True):
        if not each:
            raise EnsueError(f"{folder} has no dev or test figures, so it cannot be told beside others.")
    suite = found[0][0].suite
    by_protocol: dict[str, list[Sheet]] = {}
    for sheet in (sheet for each in found for sheet in each):
        by_protocol.setdefault(sheet.protocol, []).append(sheet)
    return {
        "suite": suite,
        "names": names,
        "tiles": _tiles(found[0][0]),
        "protocols": [_protocol(protocol, chosen) for protocol, chosen in by_protocol.items()],
        "guessing": most_frequent(read_items(folders[0])),
        "domains": by_domain(suite),
        "paper_layers": published_best_layers(suite),
        "citation": citation(),
        "column_words": column_words,
        # No tokens are scored, and to say that there were none would puzzle.
        "results": {key: value for key, value in results[0].items() if key != "tokens" or value},
    }


def _tiles(sheet: Sheet) -> list[Line]:
    """The most telling lines: the average, else groups, else tasks."""
    there = [line for line in lines(sheet) if line.test is not None]
    if sheet.suite.name == "discoeval" and there[-1:] and there[-1].kind == "average":
        return there[-1:]
    groups = [line for line in there if line.kind == "group"]
    return (groups or there)[:MOST_TILES]


def _protocol(protocol: str, chosen: Sequence[Sheet]) -> ProtocolFacts:
    # Drawing needs matplotlib, which takes half a second to import; what only reads does without it.
    from ensue.benchmarks.probing.report.plots import systems_plot

    table = systems_table(chosen)
    name = f"systems-{protocol or 'own'}"
    return ProtocolFacts(
        protocol=protocol,
        table=table,
        picture=drawn_twice(lambda width: systems_plot(table, name=name, width=width))
        if any(row.published for row in table.rows) and table.columns
        else None,
        sheets=[_sheet_facts(sheet, f"{protocol or 'own'}-{n}") for n, sheet in enumerate(chosen)],
        ablations=ablations(chosen),
    )


def _sheet_facts(sheet: Sheet, name: str) -> SheetFacts:
    from ensue.benchmarks.probing.report.plots import heat_map

    told = lines(sheet)
    also: dict[str, dict[str, Figure]] = {}
    for line in told:
        for (place, what), figure in sheet.also.items():
            if (place.name, place.split, place.layer) == (line.name, "test", line.layer) and " " not in what:
                also.setdefault(line.name, {})[what] = figure
    return SheetFacts(
        sheet=sheet,
        lines=told,
        also=also,
        layer=common_layer(sheet),
        heat=drawn_twice(lambda width: heat_map(sheet, told, name=f"heat-{name}", width=width))
        if sheet.several_layers
        else None,
        best=mean_layer(sheet),
        sets=_sets(sheet),
    )


def _sets(sheet: Sheet) -> list[SetRow]:
    """The sets of every STS year at the layer the run is told by, then the year: plain and weighted means."""
    layer = common_layer(sheet)
    rows: dict[tuple[str, str], dict[str, Figure]] = {}
    for (place, what), figure in sheet.also.items():
        name, _, metric = what.rpartition(" ")
        if place.layer == layer and place.split == "test" and name:
            rows.setdefault((place.name, "weighted by size" if name == "weighted" else name), {})[metric] = (
                figure
            )
    return [
        SetRow(year, name, found.get("pearson"), found.get("spearman"))
        for (year, name), found in rows.items()
    ]


def most_frequent(items: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """What always giving the most frequent label of a task's test split would score."""
    labels: dict[str, Counter[str]] = {}
    for item in items:
        outputs = item.get("outputs")
        if item["settings"].get("split") == "test" and isinstance(outputs, dict) and "label" in outputs:
            # Each layer has every example once, so shares stay the same however many layers there are.
            labels.setdefault(item["task"], Counter())[str(outputs["label"])] += 1
    return {task: max(found.values()) / found.total() for task, found in labels.items()}


PAGE = Page("ensue.benchmarks.probing.report", "probing.html.j2", probing_facts, takes_runs=True)
