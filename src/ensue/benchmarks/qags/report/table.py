"""What is said of QAGS runs as tables: every metric against people, set by set, beside what was published.

The terminal shows all sets beside each other, a page a table for each; `ensue qags` shows one summary's questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ensue.benchmarks.published import citation, published
from ensue.benchmarks.qags.inspecting import CONSISTENT, Inspection
from ensue.benchmarks.qags.measures import QAGS, TO_BEAT
from ensue.report.figure import Figure, count, signed, signed_interval
from ensue.report.table import Cell, Column, Table, figure_cell

if TYPE_CHECKING:
    from rich.console import RenderableType

PACKAGE = "ensue.benchmarks.qags"
TITLES = {
    "cnndm": "CNN/DM",
    "xsum": "XSum",
    "falke": "Falke’s triplets",
    "summeval": "SummEval",
    "realsumm": "REALSumm",
    "newsroom": "Newsroom",
    "own": "own project",
}
# The kinds of figure, the one that stands for a set first.
KINDS = {"pearson": "Pearson’s r", "spearman": "Spearman’s ρ", "kendall": "Kendall’s τ"}
RANKING_KINDS = {"accuracy": "ranked right", "accuracy_half_ties": "ties half right", "ties": "ties"}
MAIN_KINDS = ("pearson", "accuracy")
ABLATION_TITLES = {
    "questions": "Number of questions",
    "similarity": "How answers are compared",
    "filters": "Which questions are kept",
    "padding": "What fills up where too few are kept",
    "order": "Which of too many are kept",
}
# The paper's sets and ablations of QAGS, which have a column of published figures.
_PRINTED_SETS = ("cnndm", "xsum")
# In the terminal headings are short and figures in two lines, so that five sets stand beside each other.
MOST_COLUMNS = 5
# An interval beneath a figure is told well enough by two digits.
_cell = partial(figure_cell, below_digits=2, strong=True)
_SHORT = {"falke": "Falke", "pearson": "r", "accuracy": "right"}


class MeasureRow(NamedTuple):
    """A metric on a set; without `figures` it is only published.

    `against` is its main figure less that of the baseline to beat; `p` is corrected for the others (Holm).
    """

    measure: str
    figures: dict[str, Figure]
    published: float | None = None
    against: Figure | None = None
    p: float | None = None


class SetSheet(NamedTuple):
    """A set, or one level of a set that several systems wrote summaries for."""

    name: str
    level: str
    human: str
    kinds: Mapping[str, str]
    rows: list[MeasureRow]
    alpha: Figure | None

    @property
    def title(self) -> str:
        words = [TITLES.get(self.name, self.name)]
        if self.level:
            words.append(f"{self.level} level, {self.human.replace('_', ' ')}")
        return ": ".join(words)

    @property
    def main(self) -> str:
        """The kind of figure that stands for the set."""
        return next(iter(self.kinds))

    def figure(self, measure: str) -> Figure | None:
        return next((row.figures.get(self.main) for row in self.rows if row.measure == measure), None)


def set_sheets(results: Mapping[str, Any], comparisons: Iterable[Mapping[str, Any]] = ()) -> list[SetSheet]:
    """Return the run's figures set by set; none where its rows are not of the known form."""
    rows = [row for row in results["metrics"] if "ablation" not in row["settings"]]
    tests: dict[tuple[str, ...], Mapping[str, Any]] = {
        (*_place(row, row["set"]), row["a"], row["kind"]): row for row in comparisons if row["b"] == TO_BEAT
    }
    places = dict.fromkeys(
        _place(row["settings"], row["task"]) for row in rows if "measure" in row["settings"]
    )
    return [_sheet(place, rows, tests) for place in places]


def _place(settings: Mapping[str, Any], name: str) -> tuple[str, str, str]:
    return name, str(settings.get("level", "")), str(settings.get("human", ""))


def _sheet(
    place: tuple[str, str, str],
    rows: Sequence[Mapping[str, Any]],
    tests: Mapping[tuple[str, ...], Mapping[str, Any]],
) -> SetSheet:
    figures: dict[str, dict[str, Figure]] = {}
    alpha = None
    for row in rows:
        if row["metric"] == "alpha" and row["task"] == place[0]:
            alpha = Figure.of(row)
        elif "measure" in row["settings"] and _place(row["settings"], row["task"]) == place:
            figures.setdefault(str(row["settings"]["measure"]), {})[row["metric"]] = Figure.of(row)
    kinds = RANKING_KINDS if any("accuracy" in held for held in figures.values()) else KINDS
    main = next(iter(kinds))
    printed = printed_figures(place[0], main)
    found = []
    for name, held in figures.items():
        test = tests.get((*place, name, main))
        against = None if test is None else Figure(test["difference"], *(test.get("ci95") or ()))
        p = None if test is None else test.get("holm")
        found.append(MeasureRow(name, held, printed.pop(name, None), against, p))
    found += [MeasureRow(name, {}, value) for name, value in printed.items()]
    return SetSheet(*place, kinds, found, alpha)


def printed_figures(task: str, metric: str, ablation: str | None = None) -> dict[str, float]:
    """Return what the paper prints for a set by metric, or by setting of one thing about QAGS that it varies."""
    key = "measure" if ablation is None else "setting"
    return {
        one.settings.get(key, one.system): one.value
        for one in published(PACKAGE)
        if (one.task, one.metric, one.settings.get("ablation")) == (task, metric, ablation)
    }


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
    measured = [row.measure for sheet in sheets for row in sheet.rows if row.figures]
    for name in dict.fromkeys(measured):
        cells = [_short_cell(sheet.figure(name)) for sheet in sheets]
        table.add(name, *cells, tone="strong" if name in (QAGS, TO_BEAT) else "")
    return [table]


def _heading(sheet: SetSheet) -> str:
    name = _SHORT.get(sheet.name, TITLES.get(sheet.name, sheet.name))
    return f"{name}\n{sheet.level + ' ' if sheet.level else ''}{_SHORT.get(sheet.main, sheet.main)}"


def _short_cell(figure: Figure | None) -> Cell | None:
    if figure is None:
        return None
    low, high = figure.low, figure.high
    below = "" if low is None or high is None else f"{_short(low)}–{_short(high)}"
    return Cell(figure.text(), below=below, value=figure.value)


def _short(value: float) -> str:
    """Write two digits without the nought before the point, for which there is no room.

    >>> _short(-0.123), _short(1.0)
    ('−.12', '1.0')
    """
    words = f"{abs(value):.2f}".removeprefix("0")
    return ("−" if value < 0 and float(words) else "") + ("1.0" if words == "1.00" else words)


def set_table(sheet: SetSheet) -> Table:
    """Return one set's metrics: every kind of figure, the published one, and how far the baseline is beaten."""
    printed = any(row.published is not None for row in sheet.rows)
    kinds = [Column(heading) for heading in sheet.kinds.values()]
    columns = [Column("metric", words=True), kinds[0], *_printed_column(printed), *kinds[1:]]
    table = Table(
        [*columns, Column(f"less {TO_BEAT}"), Column("p (Holm)")], caption=_set_caption(sheet, printed)
    )
    for row in sheet.rows:
        name = Cell(row.measure, "strong" if row.measure in (QAGS, TO_BEAT) else "")
        cells: list[Cell | str | float] = [""] * len(kinds)
        if row.figures:
            cells = [_cell(row.figures.get(kind), strong=not place) for place, kind in enumerate(sheet.kinds)]
        beside = [] if not printed else [""] if row.published is None else [row.published]
        less: Cell | str | None = None if row.measure == TO_BEAT else ""
        if row.against is not None:
            low, high = row.against.low, row.against.high
            below = "" if low is None else signed_interval(low, high, 2)
            less = Cell(signed(row.against.value, 2), below=below, value=row.against.value)
        p = "" if row.p is None else row.p
        table.add(name, cells[0], *beside, *cells[1:], less, p, tone="" if row.figures else "quiet")
    return table


def _set_caption(sheet: SetSheet, printed: bool) -> str:
    what = "triplets" if "accuracy" in sheet.kinds else "systems" if sheet.level == "system" else "summaries"
    measured = [row for row in sheet.rows if row.figures]
    n = next(iter(measured[0].figures.values())).n if measured else None
    words = [] if n is None else [f"{count(n)} {what}."]
    words.append("Below each figure its 95 % interval, over whole articles.")
    if printed:
        words.append(f"Published: {citation(PACKAGE)}.")
    if len(measured) < len(sheet.rows):
        why = "" if "accuracy" in sheet.kinds else " (these summaries have no references)"
        words.append(f"Lines with nothing but a published figure were not measured in this run{why}.")
    return " ".join(words)


def _printed_column(there: bool) -> list[Column]:
    return [Column("published", published=True)] if there else []


def ablation_tables(results: Mapping[str, Any]) -> dict[str, Table]:
    """Return a table for each thing about QAGS that was varied; of a collection the system level counts."""
    found: dict[str, dict[str, dict[str, Figure]]] = {}
    for row in results["metrics"]:
        settings = row["settings"]
        if "ablation" in settings and settings.get("level") != "summary" and row["metric"] in MAIN_KINDS:
            held = found.setdefault(str(settings["ablation"]), {}).setdefault(str(settings["setting"]), {})
            held[row["task"]] = Figure.of(row)
    return {
        ABLATION_TITLES.get(name, name): _ablation_table(name, settings) for name, settings in found.items()
    }


def _ablation_table(name: str, settings: Mapping[str, Mapping[str, Figure]]) -> Table:
    sets = list(next(iter(settings.values())))
    printed = {task: printed_figures(task, "pearson", name) for task in sets}
    shown = {task for task in sets if printed[task].keys() & settings.keys()}
    columns = [Column("QAGS with", words=True)]
    for task in sets:
        columns += [Column(TITLES.get(task, task)), *_printed_column(task in shown)]
    table = Table(
        columns,
        caption="Counted anew from the same questions and answers. Pearson’s correlation; of triplets the share "
        "ranked right; of collections the correlation of systems.",
    )
    for setting, figures in settings.items():
        cells: list[Cell | str | float] = []
        for task in sets:
            cells.append(_cell(figures.get(task)))
            if task in shown:
                cells.append(printed[task].get(setting, ""))
        table.add(setting, *cells)
    return table


def runs_table(
    names: Sequence[str], models: Sequence[tuple[str, str]], runs: Sequence[Mapping[str, Any]]
) -> Table:
    """Return QAGS of several runs by what asked and what answered, and the paper's own models."""
    sheets = [[sheet for sheet in set_sheets(results) if sheet.level != "summary"] for results in runs]
    figures = [{one.name: one.figure(QAGS) for one in each if one.figure(QAGS)} for each in sheets]
    sets = list(figures[0])
    table = Table(
        [
            *(Column(heading, words=True) for heading in ("run", "asks", "answers")),
            *(Column(TITLES.get(name, name)) for name in sets),
        ],
        caption=f"Published: {citation(PACKAGE)}, tables 4.2 and 4.3.",
    )
    for name, both, held in zip(names, models, figures, strict=True):
        table.add(name, *both, *(_cell(held.get(one)) for one in sets))
    for ablation in ("answering", "asking"):
        printed = {task: printed_figures(task, "pearson", ablation) for task in _PRINTED_SETS}
        if any(task in sets for task in printed):
            for system in printed["cnndm"]:
                cells = [printed[one][system] if one in printed else "" for one in sets]
                table.add(system, "", "", *cells, tone="quiet")
    return table


def questions_table(found: Inspection) -> Table:
    """Return each question with both answers; those that agree little stand out."""
    caption = ""
    if found.removed:
        counts = ", ".join(f"{why} {number}" for why, number in found.removed.items())
        drawn = "; what fills up was drawn from these" if any(one.padded for one in found.lines) else ""
        caption = f"Filters took out: {counts}{drawn}"
    table = Table(
        [
            Column("question", words=True, fold=True),
            Column("summary answers", words=True, fold=True),
            Column("source answers", words=True, fold=True),
            Column("alike"),
        ],
        caption=caption,
    )
    for one in found.lines:
        table.add(
            one.question + ("  (fills up)" if one.padded else ""),
            one.by_summary or Cell("no answer", "quiet"),
            one.by_source or Cell("no answer", "quiet"),
            Cell(f"{one.similarity:.2f}", value=one.similarity),
            tone="bad" if one.by_summary and one.similarity < CONSISTENT else "",
        )
    return table


def marked_summary(found: Inspection) -> RenderableType:
    """Return the summary; what the source does not bear out stands in brackets, so that colour is not needed."""
    from rich.text import Text

    text = Text()
    for piece in found.pieces:
        if piece.inconsistent:
            text.append(f"[{piece.text}]", style="bold red")
        else:
            text.append(piece.text, style="green" if piece.similarity is not None else "")
    return text
