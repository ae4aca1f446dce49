"""Runs and comparisons as tables: a benchmark's own where it has one, a row a metric elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ensue.benchmarks.comparing import in_common
from ensue.report.figure import Figure, p_value, settings_text, signed, signed_interval
from ensue.report.results import Results
from ensue.report.table import Cell, Column, Table, Tone
from ensue.runs.run import part_of, suite_of

if TYPE_CHECKING:
    from ensue.runs.compare import ComparedRow, Comparison


def metrics_tables(results: Results, folder: Path | None = None) -> list[Table]:
    """Return the tables of a run; its folder may have more to show (several trainings)."""
    tables = part_of(suite_of(results), "tables")
    return (tables and tables(results, folder)) or [plain_table(results)]


def plain_table(results: Results, most: int | None = None) -> Table:
    """Return a row a metric, `most` rows at the most, for any benchmark."""
    rows = results["metrics"][:most]
    with_settings = any(row["settings"] for row in rows)
    table = Table(
        [
            Column("task", words=True, fold=True),
            *([Column("settings", words=True, fold=True)] if with_settings else []),
            Column("metric", words=True, fold=True),
            *map(Column, ("value", "95 % interval", "items", "clusters")),
        ],
        title=f"{results.get('benchmark', '')} · {results.get('model', '')}",
    )
    for row in rows:
        settings, figure = [settings_text(row["settings"])] if with_settings else [], Figure.of(row)
        value = Cell(figure.text(), "strong", value=figure.value)
        cells = (value, figure.interval(), figure.n, figure.clusters)
        table.add(str(row["task"]), *settings, str(row["metric"]), *cells)
    return table


def counts_table(heading: str, counts: Mapping[str, int]) -> Table:
    """Return what was counted, a row each."""
    table = Table([Column(heading, words=True), Column("count")])
    for words, count in counts.items():
        table.add(words, count)
    return table


def comparison_table(comparison: Comparison) -> Table:
    """Return one row per metric and setting: both values, the difference a − b, its interval, p-values, counts.

    Rows in which no answer differs are left out and named, unless there are no others.
    """
    shown = [row for row in comparison.rows if not row.alike] or list(comparison.rows)
    only_sizes = all(list(row.settings) == ["block_size"] for row in shown)
    several_tasks = len({row.task for row in shown}) > 1
    same = {} if only_sizes else in_common([row.settings for row in shown])
    places = [_place_words(row, only_sizes, several_tasks, same) for row in shown]
    sizes = [_size_words(row) for row in shown]
    one_size = len(set(sizes)) == 1
    common = [
        # Rows in which no answer differs may be of other tasks.
        *([shown[0].task] if len({row.task for row in comparison.rows}) > 1 and not several_tasks else []),
        *([settings_text(same)] if same else []),
        *([sizes[0]] if one_size else []),
    ]
    columns = []
    if any(places):
        heading = "block\nsize" if only_sizes else "task" if several_tasks else "settings"
        longest = max(len(word) for place in places for word in place.split())
        columns.append(Column(heading, words=True, fold=True, min_width=min(longest, 12)))
    widest = max(len(word) for word in (*sizes, *(row.metric.partition("_")[0] for row in shown)))
    columns.append(Column("metric", words=True, fold=True, min_width=widest))
    table = Table(
        [*columns, *map(Column, ("a", "b", "a − b", "95 % interval", "p", "Holm"))],
        title=f"a: {_run_words(comparison.model_a, comparison.path_a)}\n"
        f"b: {_run_words(comparison.model_b, comparison.path_b)}",
        caption=f"{comparison.shared:,} shared items. p: paired test over whole clusters; Holm: p corrected for the "
        f"rows of the same metric; n: items (or groups, where a metric counts those)/clusters."
        + (f" All rows: {', '.join(common)}." if common else "")
        + _alike_words(comparison),
    )
    for row, place, size in zip(shown, places, sizes, strict=True):
        test = row.test
        tone: Tone = "" if row.adjusted_p > 0.05 else "good" if test.difference > 0 else "bad"
        table.add(
            *([place] if any(places) else []),
            # Beneath, since a column of its own would not fit a terminal of 80 columns.
            Cell(row.metric.replace("_", " "), below="" if one_size else size),
            row.value_a,
            row.value_b,
            Cell(signed(test.difference), tone, value=test.difference),
            signed_interval(test.low, test.high),
            Cell(p_value(test.p_value), value=test.p_value),
            Cell(p_value(row.adjusted_p), value=row.adjusted_p),
        )
    return table


def agreement_table(comparison: Comparison) -> Table:
    """Return the share scored the same, by metric and setting, of items that are right, wrong or undecided."""
    rows = [(row, row.same) for row in comparison.rows if row.same is not None]
    several_tasks = len({row.task for row, _ in rows}) > 1
    table = Table(
        [
            Column("settings", words=True, fold=True),
            Column("metric", words=True, fold=True),
            *map(Column, ("same score", "95 % interval", "items", "clusters")),
        ],
        title="Items that both runs score the same",
        caption="" if rows else "No metric here has items that are right or wrong.",
    )
    for row, same in rows:
        figure = Figure(*same)
        table.add(
            _place_words(row, False, several_tasks, {}),
            row.metric.replace("_", " "),
            Cell(figure.text(), "strong", value=figure.value),
            *(figure.interval(), figure.n, figure.clusters),
        )
    return table


def _place_words(row: ComparedRow, only_sizes: bool, several_tasks: bool, same: Mapping[str, Any]) -> str:
    """Return what tells a row from others of its metric."""
    own = {key: value for key, value in row.settings.items() if key not in same}
    # A name says what it is by itself (dev, rouge-1), a number does not.
    words = [
        str(value) if only_sizes or isinstance(value, str) else settings_text({key: value})
        for key, value in own.items()
    ]
    return " ".join([*([row.task] if several_tasks else []), *words])


def _size_words(row: ComparedRow) -> str:
    clusters = "" if row.test.clusters == row.test.n else f"/{row.test.clusters:,}"
    return f"n {row.test.n:,}{clusters}"


def _alike_words(comparison: Comparison) -> str:
    """Return which rows have the same answers in both runs, such as ties where nothing tied; none if all have."""
    alike = [row for row in comparison.rows if row.alike]
    if len(alike) == len(comparison.rows) or not alike:
        return ""
    differing = {row.metric for row in comparison.rows if not row.alike}
    names = list(dict.fromkeys(row.metric for row in alike if row.metric not in differing))
    rest = sum(row.metric in differing for row in alike)
    if rest:
        names.append(f"{rest:,} more row{'s' if rest > 1 else ''}")
    return f" Equal everywhere and not shown: {', '.join(names)}."


def _run_words(model: str, path: str) -> str:
    return f"{model} ({path})" if model else path
