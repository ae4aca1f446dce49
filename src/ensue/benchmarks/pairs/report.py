"""The table and page of runs on pairs: accuracy by phenomenon, and what the endings alone give away."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ensue.benchmarks.coherence.report import Figures, Findings, Section, cells, main_cells, page_of
from ensue.report.results import Results
from ensue.report.table import Column, Table

_CAPTION = (
    "accuracy: pairs whose good ending is likelier after the context (or rated higher), chance 0.5; by gain: pairs "
    "whose good ending gains more from the context; alone: pairs whose good ending is likelier without it, which "
    "should be near 0.5, or else its words give it away."
)


def tables(results: Results, folder: Path | None = None) -> list[Table]:
    """Return the table of a run; none where it has no accuracy."""
    figures = Figures(results)
    if figures.get("pairs", "accuracy") is None:
        return []
    table = Table(
        [
            Column("phenomenon", words=True),
            Column("accuracy"),
            Column("95 %\ninterval"),
            Column("by\ngain", wide="accuracy by gain"),
            Column("95 %\ninterval"),
            Column("alone", wide="accuracy without the context"),
            Column("pairs"),
            Column("groups", in_terminal=False),
        ],
        title=f"Pairs · {results.get('model', '')}",
        caption=_CAPTION,
    )
    phenomena = [
        row["settings"]["phenomenon"]
        for row in results["metrics"]
        if row["metric"] == "accuracy" and "phenomenon" in row["settings"]
    ]
    for place, name in enumerate(["", *phenomena]):
        settings = {"phenomenon": name} if name else {}
        accuracy = figures.get("pairs", "accuracy", settings)
        table.add(
            name or "all",
            *main_cells(accuracy),
            *cells(figures.get("pairs", "accuracy_gain", settings)),
            *cells(figures.get("pairs", "accuracy_alone", settings))[:1],
            None if accuracy is None else accuracy.n,
            None if accuracy is None else accuracy.clusters,
            section=place == 1,
        )
    return [table]


def findings(folders: Sequence[Path], results: Results) -> Findings | None:
    """Return what the page says of a run."""
    made = tables(results)
    if not made:
        return None
    model = results.get("model", "")
    return Findings(
        f"Does {model} know which ending follows?",
        "Each pair is a short text with two endings that differ in one thing; one of them follows.",
        [Section("By phenomenon", _CAPTION, None, made[0])],
    )


PAGE = page_of(findings)
