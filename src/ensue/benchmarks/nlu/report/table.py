"""GLUE and SuperGLUE runs as a table for the terminal: a line a task, a block a split, diagnostics apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ensue.benchmarks.nlu.examples import DEV
from ensue.benchmarks.nlu.report.fits import dev_spreads, trainings
from ensue.benchmarks.nlu.report.scores import (
    Answer,
    Diagnosis,
    Figure,
    Line,
    Measure,
    Sheet,
    Spread,
    phenomena,
)
from ensue.benchmarks.nlu.report.sheets import sheet_of
from ensue.report.results import read_fits
from ensue.report.table import Column, Table

# Short: the whole must fit a terminal of 80 columns.
_METRICS = {
    "accuracy": "acc.",
    "f1": "F1",
    "f1a": "F1a",
    "em": "EM",
    "mcc": "MCC",
    "r3": "R3",
    "pearson": "r",
    "spearman": "ρ",
    "gender_parity": "GPS",
}
# A list of templates may be long; more than these are counted, and the report has them.
_MOST_WAYS = 12


def tables(results: Mapping[str, Any], folder: Path | None = None) -> list[Table]:
    """Return the table of a run; with its folder, the spread of several trainings is shown too."""
    sheet = sheet_of(results)
    if sheet is None:
        return []
    trained = dev_spreads(trainings(read_fits(folder))) if folder else {}
    table = Table(
        [
            *(Column(heading, words=True) for heading in ("task", "split", "measure")),
            *(Column(heading) for heading in ("value", "score", "95 %\ninterval", "n")),
        ],
        title=f"{sheet.title} · {sheet.name}",
        caption=" ".join(_caption(sheet, trained)),
    )
    for place, block in enumerate(sheet.blocks):
        before = len(table.rows)
        for line in [*block.lines, *([block.total] if block.total else [])]:
            _add(table, line, trained, section=place > 0 and len(table.rows) == before)
    before = len(table.rows)
    for line in sheet.diagnostics:
        _add(table, line, trained, section=len(table.rows) == before)
    return [table]


def phenomena_tables(results: Mapping[str, Any]) -> list[Table]:
    """Return a table for each tagged diagnostic set of a run, a line a category and a tag below it."""
    sheet = sheet_of(results)
    return [_phenomena_table(diagnosis) for diagnosis in sheet.diagnoses] if sheet else []


def _phenomena_table(diagnosis: Diagnosis) -> Table:
    way = f", {diagnosis.way}" if diagnosis.way else ""
    table = Table(
        [
            Column("phenomenon", words=True),
            *(Column(heading) for heading in (_METRICS[diagnosis.metric], "95 %\ninterval", "n")),
        ],
        title=f"{diagnosis.task} by phenomenon, {diagnosis.split}{way}",
        caption="Where all answers or all labels are alike there is no correlation, which counts as 0.",
    )
    order = {place: number for number, place in enumerate(phenomena())}
    for place, figure in sorted(diagnosis.figures.items(), key=lambda one: order[one[0]]):
        table.add(
            f"  {place.tag}" if place.tag else place.category or "all",
            value_words(figure.value),
            _interval(figure),
            figure.n,
            tone="" if place.tag else "strong",
        )
    return table


def _add(table: Table, line: Line, trained: Mapping[tuple[str, str], Spread], *, section: bool) -> None:
    """A line, below it each of several answers and the spread of several trainings."""
    spread = line.spread
    # A diagnostic has no score of its own, but several answers to it lie apart by something.
    scored = line.kind != "diagnostic" or spread
    table.add(
        line.name + (" *" if line.part else ""),
        line.split,
        measure_words(line.measures) or "mean",
        "/".join(value_words(line.mean(measure)) for measure in line.measures) or line.short_covers,
        value_words(line.value) if scored else "",
        _deviation(spread) if spread else _interval(line.only),
        line.answers[0].main.n,
        tone="strong" if line.kind == "total" else "",
        section=section,
    )
    several = line.answers if spread else []
    for answer in several[:_MOST_WAYS]:
        best = spread is not None and answer.way == spread.best_way
        _add_answer(table, line.split, answer, "best" if best else "")
    if len(several) > _MOST_WAYS:
        table.add(f"  {len(several) - _MOST_WAYS} more", line.split, *[""] * 5, tone="quiet")
    for answer in line.answers if line.split == DEV else []:
        if found := trained.get((line.name, answer.way)):
            words = f"  {found.of} trainings" + (f", {answer.way}" if answer.way else "")
            cells = ("", value_words(found.mean), _deviation(found), "")
            table.add(words, line.split, f"best {value_words(found.best)}", *cells, tone="quiet")


def _add_answer(table: Table, split: str, answer: Answer, mark: str) -> None:
    table.add(
        f"  {answer.way}",
        split,
        mark,
        "/".join(value_words(figure.value) for figure in answer.measures.values()),
        "" if answer.score is None else value_words(answer.score.value),
        _interval(answer.main),
        answer.main.n,
        tone="quiet",
    )


def measure_words(measures: Sequence[Measure], names: Mapping[str, str] = _METRICS) -> str:
    """The measures as the papers head their columns.

    >>> measure_words([Measure("accuracy", "m"), Measure("accuracy", "mm")])
    'acc. m/mm'
    >>> measure_words([Measure("f1a"), Measure("em")])
    'F1a/EM'
    """
    if measures and all(measure.section for measure in measures):
        sections = "/".join(measure.section for measure in measures)
        return f"{names.get(measures[0].metric, measures[0].metric)} {sections}"
    return "/".join(names.get(measure.metric, measure.metric) for measure in measures)


def value_words(value: float, digits: int = 3) -> str:
    """A fraction with a true minus, and none before a zero.

    >>> value_words(-0.25), value_words(-0.0001)
    ('−0.250', '0.000')
    """
    shown = f"{value:.{digits}f}"
    return shown.replace("-", "−" if float(shown) else "")


def _deviation(spread: Spread) -> str:
    return f"±{spread.sd:.3f}"


def _interval(figure: Figure | None) -> str:
    if figure is None or figure.low is None or figure.high is None:
        return "–"
    return f"{value_words(figure.low)}–{value_words(figure.high)}"


def _caption(sheet: Sheet, trained: Mapping[tuple[str, str], Spread]) -> Iterable[str]:
    splits = [block.split for block in sheet.blocks]
    if splits:
        yield f"Scored on {' and on '.join(splits)}; a score is the mean of a task’s measures."
    covered = [f"{block.total.covers} on {block.split}" for block in sheet.blocks if block.total]
    if covered:
        yield f"The {sheet.title} score covers {' and '.join(covered)}."
    starred = [line for line in all_lines(sheet) if line.part]
    # What the score covers has been said of the tasks in it.
    untold = [
        f"{line.name} {line.part} on {line.split}"
        for line in starred
        if f"({line.part})" not in " ".join(covered)
    ]
    if starred:
        yield f"* judged on a part of the published split{': ' if untold else ''}{'; '.join(untold)}."
    yield from without_words(sheet)
    if sheet.limit:
        yield f"Only the first {sheet.limit:,} examples of each split."
    if sheet.constant:
        yield f"Throughout: {constant_words(sheet)}."
    if any(line.spread for line in all_lines(sheet)):
        yield "Of several answers: mean ± sd, then each; the best is the best on this very split, so it flatters."
    if trained:
        yield "Of several trainings: mean ± sd on dev; the best on dev answers, so its dev score flatters."
    if sheet.diagnostics:
        parity = any(Measure("gender_parity") in line.measures for line in sheet.diagnostics)
        yield (
            f"Diagnostics have no score; their interval is that of the first measure"
            f"{'; GPS is gender parity' if parity else ''}."
        )


def without_words(sheet: Sheet) -> Iterable[str]:
    """Sentences that name the tasks without a figure."""
    if sheet.missing:
        yield f"Missing, for want of files: {', '.join(sheet.missing)}."
    if sheet.unlearnt:
        yield f"Could not be learnt or asked here: {', '.join(sheet.unlearnt)}."
    if sheet.unjudged:
        yield f"Without labels to judge by: {', '.join(sheet.unjudged)}."


def constant_words(sheet: Sheet) -> str:
    """How all answers were made alike."""
    return ", ".join(f"{str(key).replace('_', ' ')} {value}" for key, value in sheet.constant.items())


def all_lines(sheet: Sheet) -> list[Line]:
    """Every line of a run, scores of benchmarks among them."""
    return [
        *(line for block in sheet.blocks for line in [*block.lines, *([block.total] if block.total else [])]),
        *sheet.diagnostics,
    ]
