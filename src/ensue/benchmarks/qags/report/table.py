"""QAGS for the terminal: a run's metrics by set, one summary's questions, and the summary with its doubts marked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ensue.benchmarks.qags.baselines import TO_BEAT
from ensue.benchmarks.qags.inspect import CONSISTENT, Inspection
from ensue.benchmarks.qags.measures import QAGS
from ensue.benchmarks.qags.report.sheets import Cell, SetSheet, set_sheets

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

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


def fill_qags(table: Table, results: Mapping[str, Any]) -> None:
    """A line a metric, a column a set: the main figure, and its interval below."""
    from rich.markup import escape

    found = set_sheets(results)
    # Two levels of two collections do not fit 80 columns; the report has both.
    sheets = [sheet for sheet in found if sheet.level != "summary"] if len(found) > MOST_COLUMNS else found
    table.title = f"QAGS · {escape(str(results.get('model', '')))}"
    table.caption = (
        f"r: Pearson’s correlation with people; right: share of triplets ranked right, ties wrong. Below: 95 % "
        f"interval. {TO_BEAT} is the baseline to beat."
    ) + (" The report has the level of summaries too." if len(sheets) < len(found) else "")
    table.add_column("metric", no_wrap=True)
    for sheet in sheets:
        table.add_column(_heading(sheet), justify="right", no_wrap=True)
    measured = [row.measure for sheet in sheets for row in sheet.rows if row.cells]
    for name in dict.fromkeys(measured):
        cells = [_figure(sheet.cell(name)) for sheet in sheets]
        table.add_row(escape(name), *cells, style="bold" if name in (QAGS, TO_BEAT) else None)


def questions_table(found: Inspection) -> Table:
    """Each question with both answers; those that agree little stand out."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("question", "summary answers", "source answers"):
        table.add_column(heading, overflow="fold")
    table.add_column("alike", justify="right", no_wrap=True)
    for line in found.lines:
        table.add_row(
            escape(line.question) + ("  [dim](fills up)[/dim]" if line.padded else ""),
            escape(line.by_summary) or "[dim]no answer[/dim]",
            escape(line.by_source) or "[dim]no answer[/dim]",
            f"{line.similarity:.2f}",
            style="red" if line.by_summary and line.similarity < CONSISTENT else None,
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


def _figure(cell: Cell | None) -> str:
    if cell is None:
        return "–"
    if cell.low is None or cell.high is None:
        return f"{cell.value:.3f}"
    return f"{cell.value:.3f}\n[dim]{_short(cell.low)}–{_short(cell.high)}[/dim]"


def _short(value: float) -> str:
    """Two digits without the nought before the point, for which there is no room.

    >>> _short(-0.123), _short(1.0)
    ('−.12', '1.0')
    """
    words = f"{abs(value):.2f}".removeprefix("0")
    return ("−" if value < 0 and float(words) else "") + ("1.0" if words == "1.00" else words)
