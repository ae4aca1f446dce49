"""The page of intruder runs: what each rule finds, at which price, where, and some examples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.intruder.judging import PEOPLE, UNTOUCHED, tradeoff
from ensue.benchmarks.intruder.report.table import (
    MOST_DOMAINS,
    PEOPLES_CAPTION,
    Figures,
    domains_of,
    domains_table,
    positions_table,
    rate_of,
    rules_table,
    whole_table,
)
from ensue.benchmarks.intruder.rules import least_of
from ensue.errors import EnsueError
from ensue.report.page import Page, run_names
from ensue.report.results import read_beside, read_items, read_results
from ensue.report.svg import Picture, drawn_twice

# (false alarms, hit rate) at every threshold, by kind of edit and by rule.
Curves = dict[str, dict[str, list[tuple[float, float]]]]

# A document may be as long as a novel: of an example so many sentences on either side of a mark are shown.
_REACH = 20


class Line(NamedTuple):
    """A sentence of an example."""

    place: int
    text: str
    value: float | None
    edited: bool
    flagged: bool


class ShownText(NamedTuple):
    """A version of a document, with what was there before and what was found; `left_out` counts sentences far off."""

    document: str
    kind: str
    verdict: str
    right: bool
    before: list[str]
    lines: list[Line]
    left_out: int


def intruder_facts(folders: Sequence[Path], annotations: Path | None) -> dict[str, Any]:
    """Return what the page shows of a run."""
    results = read_results(folders[0])
    figures = Figures(results)
    if not figures.kinds:
        return {}
    beside = beside_of(folders)
    rule, rate = figures.rules[0], rate_of(results)
    domains = domains_of(results)
    rates = {kind: figures.get("hit_rate_at", kind, rule) for kind in figures.kinds}
    return {
        "rule": rule,
        "rate": rate,
        "rates": {kind: figure for kind, figure in rates.items() if figure is not None},
        "false_alarms": figures.get("false_alarms", UNTOUCHED, rule),
        "rules_table": rules_table(figures, rate),
        "whole_table": whole_table(figures),
        "curves_picture": _curves_picture(curves_of(read_items(folders[0])), rate, beside),
        "positions_table": positions_table(figures),
        "positions_picture": _positions_picture(figures, rule, beside),
        "people": rule == PEOPLE,
        "peoples_caption": PEOPLES_CAPTION,
        "beside": {name: rules_table(other, rate) for name, other in beside.items()},
        "domains_table": domains_table(results, rule) if domains else None,
        "domains_left_out": max(0, len(domains) - MOST_DOMAINS),
        "examples": [example_of(row) for row in read_beside(folders[0], "examples.jsonl")],
    }


def beside_of(folders: Sequence[Path]) -> dict[str, Figures]:
    """Return the figures of the other runs that are drawn beside the first, by name, such as people's."""
    results = [read_results(folder) for folder in folders]
    names = run_names(folders, results)
    found = {name: Figures(one) for name, one in list(zip(names, results, strict=True))[1:]}
    for name, figures in found.items():
        if not figures.kinds:
            raise EnsueError(f"{name} has no hit rates of the intruder, so it cannot be drawn beside others.")
    return found


def curves_of(items: Iterable[Mapping[str, Any]]) -> Curves:
    """Return the hit rate against false alarms of every kind and rule, over all thresholds."""
    untouched: dict[str, list[float]] = defaultdict(list)
    edited: dict[tuple[str, str], list[tuple[float, bool]]] = defaultdict(list)
    for item in items:
        kind = item["settings"]["kind"]
        for rule, values in item["outputs"]["values"].items():
            least = least_of(values)[0]
            if kind == UNTOUCHED:
                untouched[rule].append(least)
            else:
                edited[kind, rule].append((least, bool(item["scores"][f"{rule}/hit_rate"])))
    curves: Curves = {}
    for (kind, rule), found in edited.items():
        if untouched[rule]:
            curves.setdefault(kind, {})[rule] = tradeoff(found, untouched[rule])
    return curves


def example_of(row: Mapping[str, Any]) -> ShownText:
    """Return an example as a page shows it."""
    places, found = row["places"], row["flagged"]
    if row["kind"] == UNTOUCHED:
        verdict = "false alarm"
    elif row["right"]:
        verdict = "found"
    else:
        verdict = "missed: nothing stands out" if found is None else "missed: another sentence, or a tie"
    lines = [
        Line(place + 1, text, value, place in places, place == found)
        for place, (text, value) in enumerate(zip(row["sentences"], row["values"], strict=True))
    ]
    marked = [line.place for line in lines if line.edited or line.flagged]
    near = [line for line in lines if any(abs(line.place - place) <= _REACH for place in marked)]
    return ShownText(
        row["document"], row["kind"], verdict, row["right"], row["before"], near, len(lines) - len(near)
    )


def _curves_picture(curves: Curves, rate: str, beside: Mapping[str, Figures]) -> Picture | None:
    if not curves:
        return None
    # Drawing needs matplotlib, which takes half a second to import; reports without pictures do without it.
    from ensue.benchmarks.intruder.report.plots import curves_plot

    points = {
        kind: {
            name: (alarms.value, hit.value)
            for name, other in beside.items()
            if (alarms := other.get("false_alarms", UNTOUCHED, other.rules[0])) is not None
            and (hit := other.get("hit_rate_at", kind, other.rules[0])) is not None
        }
        for kind in curves
    }
    return drawn_twice(lambda width: curves_plot(curves, points, rate, width=width))


def _positions_picture(figures: Figures, rule: str, beside: Mapping[str, Figures]) -> Picture:
    from ensue.benchmarks.intruder.report.plots import positions_plot

    return drawn_twice(lambda width: positions_plot(figures, rule, beside, width=width))


PAGE = Page("ensue.benchmarks.intruder.report", "intruder.html.j2", intruder_facts, takes_runs=True)
