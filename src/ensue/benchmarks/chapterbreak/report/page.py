"""The page of ChapterBreak runs: which pictures and tables it has, and what they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ensue.benchmarks.chapterbreak.annotation import (
    breakdown,
    longest_results,
    read_annotations,
    run_examples,
    write_sheet,
)
from ensue.benchmarks.chapterbreak.report.rows import (
    PACKAGE,
    PUBLISHED_SPLITS,
    Panel,
    RunRows,
    boundary_panels,
    item_facts,
    longest,
    negatives_panels,
    peoples,
    published_models,
    run_rows,
    split_words,
    splits,
    suffix_panels,
)
from ensue.benchmarks.chapterbreak.report.table import (
    failures_table,
    hardest_table,
    has_other_data,
    models_table,
    peoples_table,
    split_table,
    transitions_table,
)
from ensue.benchmarks.published import citation
from ensue.errors import EnsueError
from ensue.report.page import Page
from ensue.report.results import Results, read_items, read_results
from ensue.report.svg import Picture, drawn_twice

MOST_ROWS = 300


def chapterbreak_facts(folders: Sequence[Path], annotations: Path | None) -> dict[str, Any]:
    """Return all that the page of the runs needs; nothing where the first run has no results of the known form."""
    results = [read_results(folder) for folder in folders]
    every = run_rows(folders, results)
    if not every[0].rows:
        return {}
    people = {run.name: one for run, one in zip(every, results, strict=True) if peoples(one)}
    runs = [run for run in every if run.name not in people]
    for run in runs:
        if not run.rows:
            raise EnsueError(
                f"{run.folder} has no ChapterBreak accuracies, so it cannot be drawn beside others."
            )
    first = runs[0]
    ends = {split: row for split in splits([first]) if (row := longest(first, split)) is not None}
    chance, hardest = item_facts(read_items(first.folder), ends.values())
    return {
        "runs": runs,
        "ends": ends,
        "chance": chance,
        "sections": [_section(runs, split, chance, _levels(people, split)) for split in splits(runs)],
        "people": [peoples_table(one) for one in people.values()],
        "perplexity_picture": _perplexity_picture(runs, chance),
        "models": models_table(runs),
        "other_data": has_other_data(runs),
        "hardest": hardest_table(hardest) if hardest else None,
        "citation": citation(PACKAGE),
        "split_words": split_words,
        **_annotation_facts(runs, annotations),
    }


def _levels(people: Mapping[str, Results], split: str) -> dict[str, float]:
    """Return the accuracy of people on a split, by what their run is called."""
    return {
        name: row.accuracy.value for name, one in people.items() for row in peoples(one) if row.split == split
    }


def _section(
    runs: Sequence[RunRows], split: str, chance: float, levels: Mapping[str, float]
) -> dict[str, Any]:
    """Return all that the page says of one split; people are a line across, since they read no tokens."""
    present = [run for run in runs if run.of(split)]

    def picture(name: str, panels: Sequence[Panel], length: str, height: float) -> Picture | None:
        drawn = levels if name == "boundaries" else {}
        return _lengths_picture(name, panels, split, chance, length, height, drawn) if panels else None

    return {
        "name": split,
        "boundaries": picture("boundaries", boundary_panels(present, split), "prefix", 3.7),
        "negatives": picture("negatives", negatives_panels(present, split), "prefix", 3.0),
        "suffixes": picture("suffixes", suffix_panels(present, split), "suffix", 2.7),
        "table": split_table(runs, split, MOST_ROWS),
        "rows_left_out": max(0, sum(len(run.of(split)) for run in present) - MOST_ROWS),
        "with_published": split in PUBLISHED_SPLITS,
    }


def _lengths_picture(
    name: str,
    panels: Sequence[Panel],
    split: str,
    chance: float,
    length: str,
    height: float,
    levels: Mapping[str, float],
) -> Picture:
    # Drawing needs matplotlib, which takes half a second to import; what only reads does without it.
    from ensue.benchmarks.chapterbreak.report.plots import PublishedPoint, lengths_plot

    marks = [
        PublishedPoint(model.name, model.length, accuracy)
        for model in published_models()
        if model.length and (accuracy := model.value("accuracy", split)) is not None
    ]
    return drawn_twice(
        lambda width: lengths_plot(
            panels,
            marks,
            levels,
            # Names of splits are the user's and might not do as names in SVG.
            name=f"{name}-{split.encode().hex()}",
            length=lambda row: int(getattr(row, length)),
            axis=f"{length}, tokens",
            chance=chance,
            height=height,
            width=width,
        )
    )


def _perplexity_picture(runs: Sequence[RunRows], chance: float) -> Picture | None:
    from ensue.benchmarks.chapterbreak.report.plots import PublishedPoint, RunPoint, perplexity_plot

    # Named wherever it is not the paper's own or there is more than one.
    several = splits(runs) != ["pg19"]
    points = [
        RunPoint(f"{run.name}, {split_words(split)}" if several else run.name, row.perplexity, row)
        for run in runs
        for split in splits([run])
        if (row := longest(run, split)) is not None and row.perplexity is not None
    ]
    if not points:
        return None
    marks = [
        PublishedPoint(f"{model.name}, PG-19", perplexity, accuracy)
        for model in published_models()
        if (perplexity := model.value("word_perplexity", "pg19")) is not None
        and (accuracy := model.value("accuracy", "pg19")) is not None
    ]
    return drawn_twice(lambda width: perplexity_plot(points, marks, chance=chance, width=width))


def _annotation_facts(runs: Sequence[RunRows], path: Path | None) -> dict[str, Any]:
    if path is None:
        return {"annotations": None}
    read = read_annotations(path)
    found = breakdown(read.transitions, {run.name: longest_results(read_items(run.folder)) for run in runs})
    if not found.measured:
        names = " and ".join(str(run.folder) for run in runs)
        raise EnsueError(
            f"No example annotated in {path} is a chapter break with in-book negatives in {names}; "
            f"the annotations must be of the same data."
        )
    return {
        "annotations": read,
        "breakdown": found,
        "transitions": transitions_table(read.transitions.values()),
        "failures": failures_table(found, runs),
    }


def _write_sheet(run: Path, sheet: Path) -> int:
    """Write an empty sheet to annotate the run's transitions in."""
    examples = run_examples(read_items(run))
    if not examples:
        raise EnsueError(f"{run} has no chapter breaks to annotate.")
    return write_sheet(examples, sheet)


PAGE = Page(
    "ensue.benchmarks.chapterbreak.report",
    "chapterbreak.html.j2",
    chapterbreak_facts,
    takes_runs=True,
    takes_annotations=True,
    write_sheet=_write_sheet,
)
