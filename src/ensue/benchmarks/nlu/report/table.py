"""GLUE and SuperGLUE runs as tables: a line a task, a block a split, diagnostics apart; and how trainings went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ensue.benchmarks.nlu.examples import DEV
from ensue.benchmarks.nlu.report.scores import (
    Measure,
    RunScores,
    ScoreLine,
    Spread,
    dev_spreads,
    of_people,
    phenomena,
    scores_of,
    way_of_fit,
)
from ensue.benchmarks.nlu.scores import EACH, KAPPA
from ensue.report.figure import NONE, Figure, fraction, settings_text
from ensue.report.results import MetricRow, read_fits
from ensue.report.table import Cell, Column, Content, Table, blank_on_page

# Short for a terminal of 80 columns, and in full.
_METRICS = {
    "accuracy": ("acc.", "accuracy"),
    "f1": ("F1", "F1"),
    "f1a": ("F1a", "F1a"),
    "em": ("EM", "EM"),
    "mcc": ("MCC", "Matthews"),
    "r3": ("R3", "R3"),
    "pearson": ("r", "Pearson"),
    "spearman": ("ρ", "Spearman"),
    "gender_parity": ("GPS", "gender parity"),
}
_ONE_BY_ONE = (
    "The table above is of the majority's answers. Here each annotator is judged alone on what they labelled, and "
    "the mean over annotators shown."
)
# A list of templates may be long; more than these are counted, and the report has them.
_MOST_WAYS = 12
# More trainings than these are counted; fits.jsonl has them.
MOST_TRAININGS = 300


def tables(results: Mapping[str, Any], folder: Path | None = None) -> list[Table]:
    """Return the table of a run; with its folder, the spread of several trainings is shown too."""
    scores = scores_of(results)
    if scores is None:
        return []
    trained = dev_spreads(read_fits(folder)) if folder else {}
    people = people_table(results)
    return [task_table(scores, trained, most=_MOST_WAYS), *([] if people is None else [people])]


def people_table(results: Mapping[str, Any]) -> Table | None:
    """Return what annotators are worth one by one, and how far they agree; None for a run of no people."""
    found: dict[tuple[str, str], list[MetricRow]] = {}
    for row in results["metrics"]:
        if of_people(row) and row["value"] is not None:
            found.setdefault((row["task"], str(row["settings"].get("split", ""))), []).append(row)
    if not found:
        return None
    words = (Column(heading, words=True) for heading in ("task", "split", "measure"))
    figures = (Column(heading) for heading in ("value", "95 %\ninterval", "of"))
    table = Table([*words, *figures], title="One by one", caption=_ONE_BY_ONE)
    for (task, split), rows in found.items():
        for place, row in enumerate(sorted(rows, key=lambda one: one["metric"] == KAPPA)):
            figure, metric = Figure.of(row), row["metric"]
            many = row["settings"].get("annotators")
            category = row["settings"].get("category") or ""
            measure = "Fleiss’ κ" if metric == KAPPA else f"{metric_word(metric.removesuffix(EACH))} of one"
            table.add(
                blank_on_page(task) if place else task,
                split,
                f"{measure}, {category}" if category else measure,
                Cell(figure.text(), value=figure.value),
                _interval(figure),
                f"{figure.n} examples" if many is None else f"{many} {'person' if many == 1 else 'people'}",
            )
    return table


def task_table(
    scores: RunScores, trained: Mapping[tuple[str, str], Spread], *, most: int | None = None
) -> Table:
    """Return a run task by task, with each of several answers (`most` of a task) and trainings below it."""
    table = Table(
        [
            *(Column(heading, words=True) for heading in ("task", "split", "measure")),
            *(Column(heading) for heading in ("value", "score", "95 %\ninterval", "n")),
        ],
        title=f"{scores.title} · {scores.name}",
        caption=" ".join(_caption(scores, trained)),
    )
    blocks = [scores.on(split) for split in scores.splits]
    for lines in [*blocks, scores.diagnostics]:
        for place, line in enumerate(lines):
            _add_line(table, line, trained, most, section=place == 0 and bool(table.rows))
    return table


def _add_line(
    table: Table,
    line: ScoreLine,
    trained: Mapping[tuple[str, str], Spread],
    most: int | None,
    *,
    section: bool,
) -> None:
    """Add a line, below it each of several answers and the spread of several trainings."""
    spread = line.spread
    # A diagnostic has no score of its own, but several answers to it lie apart by something.
    scored = line.kind != "diagnostic" or spread
    table.add(
        line.name + (" *" if line.part else ""),
        line.split,
        _measures_cell(line),
        "/".join(fraction(line.mean(measure)) for measure in line.measures) or line.short_covers,
        Cell(fraction(line.value), value=line.value) if scored else "",
        _deviation(spread) if spread else _interval(line.only),
        line.answers[0].main.n,
        tone="strong" if line.kind == "total" else "",
        section=section,
    )
    several = line.answers if spread else []
    shown = several[:most]
    for answer in shown:
        table.add(
            f"  {answer.way}",
            line.split,
            "best" if spread and answer.way == spread.best_way else "",
            "/".join(fraction(figure.value) for figure in answer.measures.values()),
            "" if answer.score is None else answer.score,
            _interval(answer.main),
            answer.main.n,
            tone="quiet",
        )
    if len(several) > len(shown):
        table.add(f"  {len(several) - len(shown)} more", line.split, *[""] * 5, tone="quiet")
    for answer in line.answers if line.split == DEV else []:
        if found := trained.get((line.name, answer.way)):
            words = f"  {found.of} trainings" + (f", {answer.way}" if answer.way else "")
            cells = ("", fraction(found.mean), _deviation(found), "")
            table.add(words, line.split, f"best {fraction(found.best)}", *cells, tone="quiet")


def phenomena_tables(results: Mapping[str, Any]) -> list[Table]:
    """Return a table for each tagged diagnostic set of a run, a line a category and a tag below it."""
    scores, tables = scores_of(results), []
    for diagnosis in scores.diagnoses if scores else ():
        way = f", {diagnosis.way}" if diagnosis.way else ""
        headings = (_METRICS[diagnosis.metric][0], "95 %\ninterval", "n")
        table = Table(
            [Column("phenomenon", words=True), *map(Column, headings)],
            title=f"{diagnosis.task} by phenomenon, {diagnosis.split}{way}",
            caption="Where all answers or all labels are alike there is no correlation, which counts as 0.",
        )
        for place in phenomena():
            if figure := diagnosis.figures.get(place):
                name = f"  {place.tag}" if place.tag else place.category or "all"
                table.add(name, figure, _interval(figure), figure.n, tone="" if place.tag else "strong")
        tables.append(table)
    return tables


def trainings_table(fits: Sequence[Mapping[str, Any]]) -> Table:
    """Return how each training of a run went, as its `fits.jsonl` says."""
    left_out = len(fits) - MOST_TRAININGS
    headings = ("seed", "length", "best at", "learning rate", "dev score", "seconds")
    table = Table(
        [Column("task", words=True), *map(Column, headings), Column("", words=True)],
        caption=f"{left_out:,} more are in fits.jsonl." if left_out > 0 else "",
    )
    for fit in fits[:MOST_TRAININGS]:
        rate = fit.get("learning_rate", fit.get("last_learning_rate"))
        dev = _number(fit.get("dev_score"))
        table.add(
            ", ".join(filter(None, (str(fit["task"]), way_of_fit(fit)))),
            _formatted(fit.get("seed"), "d"),
            _counted(fit.get("epochs"), "epoch") or _counted(fit.get("updates"), "update") or NONE,
            _counted(fit.get("best_epoch"), "epoch") or _counted(fit.get("best_update"), "update") or NONE,
            _formatted(rate, ".3g"),
            Cell(fraction(dev), "strong", value=dev),
            _formatted(fit.get("seconds"), ".1f"),
            "answers" if fit.get("chosen") else "",
        )
    return table


def measure_words(measures: Sequence[Measure], *, long: bool = False) -> str:
    """Return the measures as the papers head their columns.

    >>> measure_words([Measure("accuracy", "m"), Measure("accuracy", "mm")])
    'acc. m/mm'
    >>> measure_words([Measure("f1a"), Measure("em")])
    'F1a/EM'
    """
    if measures and all(measure.section for measure in measures):
        sections = "/".join(measure.section for measure in measures)
        return f"{metric_word(measures[0].metric, long=long)} {sections}"
    return "/".join(metric_word(measure.metric, long=long) for measure in measures)


def metric_word(metric: str, *, long: bool = True) -> str:
    """Return what a metric is called."""
    return _METRICS.get(metric, (metric, metric))[long]


def _measures_cell(line: ScoreLine) -> Cell:
    """Return a line's measures, short but on a page."""
    from markupsafe import escape

    words, long = (measure_words(line.measures, long=long) or "mean" for long in (False, True))
    return Cell(words, html=escape(long))


def _deviation(spread: Spread) -> Cell:
    return Cell(f"±{spread.sd:.3f}", value=spread.sd)


def _interval(figure: Figure | None) -> str:
    if figure is None or figure.low is None or figure.high is None:
        return NONE
    return f"{fraction(figure.low)}–{fraction(figure.high)}"


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _formatted(value: Any, form: str) -> Content:
    return NONE if _number(value) is None else Cell(format(value, form), value=value)


def _counted(value: Any, noun: str) -> str:
    count = _number(value)
    if count is None:
        return ""
    shown = f"{count:,.0f}" if count.is_integer() else f"{count:,.2f}".rstrip("0")
    return f"{shown} {noun}{'' if count == 1 else 's'}"


def _caption(scores: RunScores, trained: Mapping[tuple[str, str], Spread]) -> Iterable[str]:
    if scores.splits:
        yield f"Scored on {' and on '.join(scores.splits)}; a score is the mean of a task’s measures."
    covered = [f"{line.covers} on {line.split}" for line in scores.lines if line.kind == "total"]
    if covered:
        yield f"The {scores.title} score covers {' and '.join(covered)}."
    starred = [line for line in scores.lines if line.part]
    # What the score covers has been said of the tasks in it.
    unsaid = [
        f"{line.name} {line.part} on {line.split}"
        for line in starred
        if f"({line.part})" not in " ".join(covered)
    ]
    if starred:
        yield f"* judged on a part of the published split{': ' if unsaid else ''}{'; '.join(unsaid)}."
    if scores.missing:
        yield f"Missing, for want of files: {', '.join(scores.missing)}."
    if scores.unlearnt:
        yield f"Could not be learnt or asked here: {', '.join(scores.unlearnt)}."
    if scores.unjudged:
        yield f"Without labels to judge by: {', '.join(scores.unjudged)}."
    if scores.limit:
        yield f"Only the first {scores.limit:,} examples of each split."
    if scores.constant:
        yield f"Throughout: {settings_text(scores.constant)}."
    if any(line.spread for line in scores.lines):
        yield "Of several answers: mean ± sd, then each; the best is the best on this very split, so it flatters."
    if trained:
        yield "Of several trainings: mean ± sd on dev; the best on dev answers, so its dev score flatters."
    if scores.diagnostics:
        parity = any(Measure("gender_parity") in line.measures for line in scores.diagnostics)
        yield (
            f"Diagnostics have no score; their interval is that of the first measure"
            f"{'; GPS is gender parity' if parity else ''}."
        )
