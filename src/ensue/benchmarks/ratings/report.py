"""The table and page of runs on rated texts: how each measure correlates with what people say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ensue.benchmarks.coherence.report import Figures, Section, Told, cells, main_cells, page_of
from ensue.report.results import Results
from ensue.report.table import Column, Table

_CAPTION = (
    "total and per token: log-likelihood of the text; worst sentence: the least that a sentence gains, a token, from "
    "the text before it; tokens: the length of the text, to hold the others against. Intervals are over groups."
)


def tables(results: Results, folder: Path | None = None) -> list[Table]:
    """Return the table of a run; none where nothing was correlated."""
    figures = Figures(results)
    rows = [row["settings"] for row in results["metrics"] if row["metric"] == "spearman"]
    made = []
    if rows:
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
            caption=_CAPTION,
        )
        last = None
        for settings in rows:
            found = [figures.get("ratings", kind, settings) for kind in ("spearman", "pearson", "kendall")]
            table.add(
                str(settings["measure"]).replace("_", " "),
                settings.get("level", ""),
                *main_cells(found[0], 2),
                *(cells(one, 2)[0] for one in found[1:]),
                None if found[0] is None else found[0].n,
                section=settings["measure"] != last and last is not None,
            )
            last = settings["measure"]
        made.append(table)
    auc = figures.get("ratings", "auc", {"measure": "gain of a sentence"})
    if auc is not None:
        marks = Table(
            [Column("sentences that readers marked: AUC"), Column("95 % interval"), Column("sentences")]
        )
        marks.add(*main_cells(auc), auc.n)
        made.append(marks)
    return made


def tell(folders: Sequence[Path], results: Results) -> Told | None:
    """Return what the page says of a run."""
    made = tables(results)
    if not made:
        return None
    model = results.get("model", "")
    headings = ("By measure", "Where readers stumble")
    return Told(
        f"Does {model} find coherent what people do?",
        "Texts that people rated, measured by the model: the higher the correlation, the more they agree.",
        [Section(heading, "", None, table) for heading, table in zip(headings, made, strict=False)],
    )


PAGE = page_of(tell)
