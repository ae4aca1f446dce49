"""The table, page and picture of ordering runs: how near the orders found come to those that were written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ensue.benchmarks.coherence.report import (
    Figures,
    Findings,
    Section,
    domain_of,
    main_cells,
    page_of,
    runs_by_name,
    sections_beside,
)
from ensue.report.figure import Figure
from ensue.report.results import Results, read_items
from ensue.report.svg import Picture, drawn_twice
from ensue.report.table import Cell, Column, Table

_CAPTION = (
    "tau: Kendall's, 0 for an order like any other; perfect: documents put in order wholly; LCS: longest common "
    "subsequence, edits: edit distance, both as shares of the sentences; in place: sentences in their own place; "
    "found: documents of which the search found an order the model thinks no worse than the one written."
)


def tables(results: Results, folder: Path | None = None) -> list[Table]:
    """Return the table of a run; none where it has no tau."""
    figures = Figures(results)
    tasks = figures.tasks("ordering", "kendall_tau")
    if not tasks:
        return []
    table = Table(
        [
            Column("domain", words=True),
            Column("tau", wide="Kendall's tau"),
            Column("95 %\ninterval"),
            Column("perfect"),
            Column("LCS"),
            Column("edits"),
            Column("in\nplace"),
            Column("in place by chance", in_terminal=False),
            Column("found", wide="no worse than the written order"),
            Column("docs", wide="documents"),
        ],
        title=f"Ordering · {results.get('model', '')}",
        caption=_CAPTION,
    )
    for place, task in enumerate(tasks):
        tau = figures.get(task, "kendall_tau")
        table.add(
            domain_of(task, "ordering"),
            *main_cells(tau, 2),
            *(
                _cell(figures.get(task, metric))
                for metric in (
                    "perfect",
                    "lcs",
                    "edit_distance",
                    "positional_accuracy",
                    "chance_positional",
                    "accuracy_search",
                )
            ),
            None if tau is None else tau.n,
            section=place == 1,
        )
    return [table]


def _cell(figure: Figure | None) -> Cell | None:
    """Return a figure without its interval, for which there is no room."""
    return None if figure is None else Cell(figure.text(2), value=figure.value)


def _orders(item: Mapping[str, Any]) -> Sequence[Sequence[int]]:
    """Return the order that was found, or everybody's where people were asked."""
    outputs = item["outputs"]
    orders: Sequence[Sequence[int]] = outputs["orders"] if "orders" in outputs else [outputs["order"]]
    return orders


def tau_by_length(items: Iterable[Mapping[str, Any]]) -> dict[int, float]:
    """Return the mean tau of documents of each number of sentences."""
    found: dict[int, list[float]] = {}
    for item in items:
        found.setdefault(len(_orders(item)[0]), []).append(item["scores"]["kendall_tau"])
    return {count: sum(each) / len(each) for count, each in sorted(found.items())}


def in_place(items: Iterable[Mapping[str, Any]]) -> dict[int, float]:
    """Return for each place from the first on how often it holds the sentence that was written there."""
    found: dict[int, list[bool]] = {}
    for item in items:
        for order in _orders(item):
            for place, number in enumerate(order):
                found.setdefault(place + 1, []).append(place == number)
    return {place: sum(each) / len(each) for place, each in sorted(found.items())}


def _picture(lines: Mapping[str, Mapping[int, float]], chance: float) -> Picture:
    # Drawing needs matplotlib, which takes half a second to import.
    from ensue.benchmarks.coherence.report.plots import lines_plot

    said = ". ".join(
        f"{name}: " + ", ".join(f"{value:.2f} at {place}" for place, value in line.items())
        for name, line in lines.items()
    )
    places = sorted({place for line in lines.values() for place in line})
    return drawn_twice(
        lambda width: lines_plot(
            lines,
            {"chance": dict.fromkeys(places, chance)},
            x="place in the document",
            y="share in their own place",
            name="places",
            about=f"Sentences in their own place. {said}.",
            width=width,
        )
    )


def findings(folders: Sequence[Path], results: Results) -> Findings | None:
    """Return what the page says of a run; others, such as people's, are lines beside it."""
    made = tables(results)
    if not made:
        return None
    items = list(read_items(folders[0]))
    chance = sum(item["outputs"]["chance_positional"] for item in items) / max(1, len(items))
    model = results.get("model", "")
    runs = {name: list(read_items(folder)) for name, folder in runs_by_name(folders).items()}
    taus = {name: tau_by_length(some) for name, some in runs.items()}
    lengths = Table([Column("sentences"), *(Column("mean tau" if len(taus) == 1 else name) for name in taus)])
    for count in sorted({count for line in taus.values() for count in line}):
        lengths.add(count, *(line.get(count) for line in taus.values()))
    by = "people think best" if any("orders" in item["outputs"] for item in items) else "the model finds best"
    return Findings(
        f"Does {model} find the order of sentences?",
        f"The sentences of {len(items)} documents were shuffled and put into the order that {by}.",
        [
            Section(
                "How near the orders come",
                _CAPTION,
                _picture({name: in_place(some) for name, some in runs.items()}, chance),
                made[0],
            ),
            *sections_beside(folders, tables),
            Section("By the number of sentences", "" if len(taus) == 1 else "Mean tau.", None, lengths),
        ],
    )


PAGE = page_of(findings, takes_runs=True)
