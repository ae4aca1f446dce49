"""QAGS for the terminal: a run's metrics by set, one summary's questions, and the summary with its doubts marked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ensue.benchmarks.qags.baselines import TO_BEAT
from ensue.benchmarks.qags.inspect import CONSISTENT, Inspection
from ensue.benchmarks.qags.measures import QAGS
from ensue.benchmarks.qags.report.sheets import Cell as SetCell
from ensue.benchmarks.qags.report.sheets import SetSheet, set_sheets
from ensue.report.table import Cell, Column, Table

if TYPE_CHECKING:
    from rich.console import RenderableType

# Short, and figures in two lines, so that five sets stand beside each other in 80 columns.
_HEADINGS = {
    "cnndm": "CNN/DM",
    "xsum": "XSum",
    "falke": "Falke",
    "summeval": "SummEval",
    "realsumm": "REALSumm",
}
MOST_COLUMNS = 5
_SHORT = {"pearson": "r", "accuracy": "right"}


def tables(results: Mapping[str, Any], folder: Path | None = None) -> list[Table]:
    """Return the table of a run: a line a metric, a column a set, each figure with its interval below."""
    found = set_sheets(results)
    # Two levels of two collections do not fit 80 columns; the report has both.
    sheets = [sheet for sheet in found if sheet.level != "summary"] if len(found) > MOST_COLUMNS else found
    caption = (
        f"r: Pearson’s correlation with people; right: share of triplets ranked right, ties wrong. Below: 95 % "
        f"interval. {TO_BEAT} is the baseline to beat."
    ) + (" The report has the level of summaries too." if len(sheets) < len(found) else "")
    table = Table(
        [Column("metric", words=True), *(Column(_heading(sheet)) for sheet in sheets)],
        title=f"QAGS · {results.get('model', '')}",
        caption=caption,
    )
    measured = [row.measure for sheet in sheets for row in sheet.rows if row.cells]
    for name in dict.fromkeys(measured):
        cells = [_figure(sheet.cell(name)) for sheet in sheets]
        table.add(name, *cells, tone="strong" if name in (QAGS, TO_BEAT) else "")
    return [table]


def questions_table(found: Inspection) -> Table:
    """Return each question with both answers; those that agree little stand out."""
    table = Table(
        [
            *(
                Column(heading, words=True, fold=True)
                for heading in ("question", "summary answers", "source answers")
            ),
            Column("alike"),
        ]
    )
    for line in found.lines:
        table.add(
            line.question + ("  (fills up)" if line.padded else ""),
            line.by_summary or Cell("no answer", "quiet"),
            line.by_source or Cell("no answer", "quiet"),
            Cell(f"{line.similarity:.2f}", value=line.similarity),
            tone="bad" if line.by_summary and line.similarity < CONSISTENT else "",
        )
    if found.removed:
        table.caption = "Filters took out: " + ", ".join(
            f"{why} {count}" for why, count in found.removed.items()
        )
        if any(line.padded for line in found.lines):
            table.caption += "; what fills up was drawn from these"
    return table


def marked_summary(found: Inspection) -> RenderableType:
    """The summary; what the source does not bear out stands in brackets, so that colour is not needed."""
    from rich.text import Text

    text = Text()
    for piece in found.pieces:
        if piece.inconsistent:
            text.append(f"[{piece.text}]", style="bold red")
        else:
            text.append(piece.text, style="green" if piece.similarity is not None else "")
    return text


def _heading(sheet: SetSheet) -> str:
    name = _HEADINGS.get(sheet.name, sheet.name)
    kind = _SHORT.get(sheet.main, sheet.main)
    return f"{name}\n{sheet.level + ' ' if sheet.level else ''}{kind}"


def _figure(cell: SetCell | None) -> Cell | None:
    if cell is None:
        return None
    below = "" if cell.low is None or cell.high is None else f"{_short(cell.low)}–{_short(cell.high)}"
    return Cell(f"{cell.value:.3f}", below=below, value=cell.value)


def _short(value: float) -> str:
    """Two digits without the nought before the point, for which there is no room.

    >>> _short(-0.123), _short(1.0)
    ('−.12', '1.0')
    """
    words = f"{abs(value):.2f}".removeprefix("0")
    return ("−" if value < 0 and float(words) else "") + ("1.0" if words == "1.00" else words)
