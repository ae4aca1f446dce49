"""The tables of intruder runs: a row a kind of edit and rule, by position, and by domain."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ensue.benchmarks.intruder.edits import KINDS
from ensue.benchmarks.intruder.judging import CALIBRATED, PEOPLE, POSITIONS, UNTOUCHED
from ensue.benchmarks.intruder.rules import EVERY_RULE
from ensue.report.figure import Figure
from ensue.report.results import Results
from ensue.report.table import Cell, Column, Content, Table, blank_on_page, figure_cell

TASK = "intruder"
# A corpus with a domain per site would make a table nobody reads.
MOST_DOMAINS = 24
_ORDER = (*EVERY_RULE, CALIBRATED, PEOPLE)
# What a terminal shows where it is among the rules; seven rules of five kinds are no table to read there.
_SHOWN = ("following", CALIBRATED, PEOPLE)


PEOPLES_CAPTION = (
    "hit rate: texts in which most marked the edited sentence, more than any other; one person: how often a person "
    "marks it; false alarms: how often a person marks a sentence of an untouched text; rank: of the edited sentence "
    "by how many marked it. Nobody read a document twice."
)


class Figures:
    """The figures of a task, found by metric, kind, rule and position."""

    def __init__(self, results: Mapping[str, Any], task: str = TASK) -> None:
        self._found = {
            (row["metric"], s.get("kind"), s.get("rule"), s.get("position")): Figure.of(row)
            for row in results["metrics"]
            if row["task"] == task and (s := row["settings"]) is not None
        }

    def get(
        self, metric: str, kind: str, rule: str | None = None, position: str | None = None
    ) -> Figure | None:
        return self._found.get((metric, kind, rule, position))

    @property
    def kinds(self) -> list[str]:
        """The kinds of edits, in the order in which they are explained; a kind that is not ours comes last."""
        there = {kind for _, kind, _, _ in self._found if kind not in (None, UNTOUCHED)}
        return sorted(there, key=lambda kind: (KINDS.index(kind) if kind in KINDS else len(KINDS), kind))

    @property
    def rules(self) -> list[str]:
        there = {rule for _, _, rule, _ in self._found if rule is not None}
        return sorted(there, key=lambda rule: (_ORDER.index(rule) if rule in _ORDER else len(_ORDER), rule))


def rate_of(results: Mapping[str, Any]) -> str:
    """Return the false-alarm rate that was asked for, as the run's signature has it."""
    found = re.search(r"\bfalse-alarms:(\S+)", str(results.get("signature", "")))
    return found[1] if found else "the rate"


def tables(results: Results, folder: Path | None = None) -> list[Table]:
    """Return the table of a run; none where it has no hit rates."""
    figures = Figures(results)
    if not figures.kinds:
        return []
    table = rules_table(figures, rate_of(results))
    table.title = f"Intruder · {results.get('model', '')}"
    table.caption = (
        f"hit rate: documents in which the edited sentence follows least by the rule; at {rate_of(results)}: and is "
        f"below a threshold fitted on other, untouched documents for {rate_of(results)} false alarms; false alarms: "
        "untouched documents with a sentence below it; AUC: how often an edited document's lowest sentence is below "
        "an untouched one's; rank: of the edited sentence, 1 the lowest."
    )
    if figures.rules == [PEOPLE]:
        table.caption = PEOPLES_CAPTION
    if any(not row.in_terminal for row in table.rows):
        table.caption += " All rules: --format markdown, or the page (--report)."
    whole = whole_table(figures)
    if whole.rows:
        whole.caption = (
            "whole text preferred: documents that the model finds better untouched than edited, by its rating or by "
            "the mean log-likelihood per token after the first sentence. Chance is 0.5."
        )
    return [table, whole] if whole.rows else [table]


def whole_table(figures: Figures) -> Table:
    """Return how often the untouched text is preferred as a whole, by kind of edit."""
    table = Table(
        [
            Column("kind", words=True),
            Column("whole text\npreferred"),
            Column("95 %\ninterval"),
            Column("documents"),
        ]
    )
    for kind in figures.kinds:
        found = figures.get("accuracy", kind)
        if found is not None:
            table.add(kind, *_with_interval(found, strong=True), found.n)
    return table


def rules_table(figures: Figures, rate: str) -> Table:
    """Return hit rates, false alarms, AUC and rank by kind of edit and rule, chance last.

    A terminal has the rule that verdicts go by and the verdicts themselves, unless neither is there.
    """
    shown = [rule for rule in figures.rules if rule in _SHOWN] or figures.rules
    table = Table(
        [
            Column("kind", words=True),
            Column("rule", words=True),
            Column("hit\nrate"),
            Column("95 % interval", in_terminal=False),
            Column("one\nperson", wide="hit rate of one person")
            if figures.rules == [PEOPLE]
            else Column(f"at\n{rate}", wide=f"hit rate at {rate} false alarms"),
            Column("95 %\ninterval"),
            Column("false\nalarms"),
            Column("95 % interval", in_terminal=False),
            Column("AUC"),
            Column("95 % interval", in_terminal=False),
            Column("rank", in_terminal=False),
            Column("documents", in_terminal=False),
        ]
    )
    for kind in figures.kinds:
        label: Content = kind
        for rule in figures.rules:
            at = figures.get("hit_rate_at", kind, rule)
            if at is None:
                continue
            alarms, auc = figures.get("false_alarms", UNTOUCHED, rule), figures.get("auc", kind, rule)
            first = label is kind
            rank = figures.get("rank", kind, rule)
            table.add(
                label,
                rule,
                *_with_interval(figures.get("hit_rate", kind, rule)),
                *_with_interval(at, strong=True),
                *_with_interval(alarms),
                *_with_interval(auc),
                None if rank is None else Cell(rank.text(1), value=rank.value),
                at.n,
                section=first,
                in_terminal=rule in shown,
            )
            label = blank_on_page(kind)
        chance = figures.get("chance", kind)
        if chance is not None:
            table.add(label, "chance", chance.value, *[""] * 8, chance.n, tone="quiet")
    return table


def _with_interval(figure: Figure | None, *, strong: bool = False) -> list[Content]:
    if figure is None:
        return [None, None]
    return [Cell(figure.text(), "strong" if strong else "", value=figure.value), figure.interval(2)]


def positions_table(figures: Figures) -> Table:
    """Return hit rates at the rate of false alarms by where in a document the edit is."""
    table = Table([Column("kind", words=True), Column("rule", words=True), *map(Column, POSITIONS)])
    for kind in figures.kinds:
        label: Content = kind
        for rule in figures.rules:
            found = [figures.get("hit_rate_at", kind, rule, position) for position in POSITIONS]
            if any(found):
                table.add(label, rule, *map(figure_cell, found), section=label is kind)
                label = blank_on_page(kind)
    return table


def domains_of(results: Mapping[str, Any]) -> list[str]:
    """Return the domains that a run tells apart, those with the most documents first."""
    sizes: dict[str, int] = {}
    for row in results["metrics"]:
        if row["metric"] == "chance" and row["task"].startswith(f"{TASK}/"):
            domain = row["task"].removeprefix(f"{TASK}/")
            sizes[domain] = max(sizes.get(domain, 0), row["n"])
    return sorted(sizes, key=lambda domain: (-sizes[domain], domain))


def domains_table(results: Mapping[str, Any], rule: str) -> Table:
    """Return hit rates at the rate of false alarms by domain and kind, by one rule, for the largest domains."""
    kinds = Figures(results).kinds
    table = Table(
        [Column("domain", words=True), *map(Column, kinds), Column("false alarms"), Column("documents")]
    )
    for domain in sorted(domains_of(results)[:MOST_DOMAINS]):
        figures = Figures(results, f"{TASK}/{domain}")
        alarms = figures.get("false_alarms", UNTOUCHED, rule)
        table.add(
            domain or "unnamed",
            *(figure_cell(figures.get("hit_rate_at", kind, rule), digits=2) for kind in kinds),
            figure_cell(alarms, digits=2),
            None if alarms is None else alarms.n,
        )
    return table
