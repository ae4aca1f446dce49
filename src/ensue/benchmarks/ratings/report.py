"""The table and page of runs on rated texts: how each measure correlates with what people say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ensue.benchmarks.coherence.report import Figures, Findings, Section, cells, main_cells, page_of
from ensue.report.figure import Figure
from ensue.report.results import Results
from ensue.report.table import Column, Table

_LIKELIHOODS = (
    "total and per token: log-likelihood of the text; worst sentence: the least that a sentence gains, a token, from "
    "the text before it; tokens: the length of the text, to hold the others against. Intervals are over groups."
)
_RATINGS = (
    "model rating: what the model makes of the text; sentences: how many it has, to hold that against. Intervals are "
    "over groups."
)
_PAIRS = (
    "Texts of one group that people rate differently: of how many pairs the measure says which is better; where it "
    "says the same of both, it is half right. Chance is 0.5."
)


def tables(results: Results, folder: Path | None = None) -> list[Table]:
    """Return the tables of a run; none where nothing was correlated."""
    return list(_by_heading(results).values())


def _by_heading(results: Results) -> dict[str, Table]:
    """Return the tables that have rows, each under its heading on the page."""
    made = {
        "By measure": _measures_table(results),
        "Which of two texts is better": _pairs_table(results),
        "Where readers stumble": _marks_table(results),
    }
    return {heading: table for heading, table in made.items() if table.rows}


def _measures_table(results: Results) -> Table:
    figures = Figures(results)
    rows = [row["settings"] for row in results["metrics"] if row["metric"] == "spearman"]
    rated = any(settings["measure"] == "model_rating" for settings in rows)
    table = Table(
        [
            Column("measure", words=True),
            Column("over", words=True),
            Column("Spearman"),
            Column("95 %\ninterval"),
            Column("Pearson"),
            Column("Kendall"),
            Column("n"),
        ],
        title=f"Ratings · {results.get('model', '')}",
        caption=_RATINGS if rated else _LIKELIHOODS,
    )
    last = None
    for settings in rows:
        found = [figures.get("ratings", kind, settings) for kind in ("spearman", "pearson", "kendall")]
        table.add(
            _words(settings),
            settings.get("level", ""),
            *main_cells(found[0], 2),
            *(cells(one, 2)[0] for one in found[1:]),
            None if found[0] is None else found[0].n,
            section=settings["measure"] != last and last is not None,
        )
        last = settings["measure"]
    return table


def _pairs_table(results: Results) -> Table:
    table = Table(
        [
            Column("measure", words=True),
            Column("agrees with people"),
            Column("95 % interval"),
            Column("pairs"),
        ],
        caption=_PAIRS,
    )
    for row in results["metrics"]:
        if (row["metric"], row["settings"].get("level")) == ("accuracy", "pairs"):
            table.add(_words(row["settings"]), *main_cells(Figure.of(row)), row["n"])
    return table


def _marks_table(results: Results) -> Table:
    table = Table(
        [Column("sentences that readers marked: AUC"), Column("95 % interval"), Column("sentences")]
    )
    for row in results["metrics"]:
        if row["metric"] == "auc":
            table.add(*main_cells(Figure.of(row)), row["n"])
    return table


def _words(settings: Mapping[str, Any]) -> str:
    return str(settings["measure"]).replace("_", " ")


def findings(folders: Sequence[Path], results: Results) -> Findings | None:
    """Return what the page says of a run."""
    made = _by_heading(results)
    if not made:
        return None
    model = results.get("model", "")
    return Findings(
        f"Does {model} find coherent what people do?",
        "Texts that people rated, measured by the model: the higher the correlation, the more they agree.",
        [Section(heading, table.caption, None, table) for heading, table in made.items()],
    )


PAGE = page_of(findings)
