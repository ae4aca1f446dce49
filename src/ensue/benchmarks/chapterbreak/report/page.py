"""The page of ChapterBreak runs: which pictures and tables it has, and what they hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.chapterbreak.annotation import (
    Annotations,
    definition,
    read_annotations,
    run_examples,
    write_sheet,
)
from ensue.benchmarks.chapterbreak.breakdown import (
    Breakdown,
    CategoryRow,
    Share,
    breakdown,
    longest_results,
    shares,
)
from ensue.benchmarks.chapterbreak.published import citation, transition_shares
from ensue.benchmarks.chapterbreak.report.models import PUBLISHED_SPLITS, models_table, published_rows
from ensue.benchmarks.chapterbreak.report.rows import (
    Cell,
    ItemFacts,
    Panel,
    RunFacts,
    boundary_panels,
    item_facts,
    longest,
    negatives_panels,
    run_facts,
    split_words,
    splits,
    suffix_panels,
)
from ensue.errors import EnsueError
from ensue.report.page import Page
from ensue.report.results import read_items, read_results
from ensue.report.svg import Picture, drawn_twice

MOST_ROWS = 300


class SplitFacts(NamedTuple):
    """All that the page says of one split."""

    name: str
    boundaries: Picture
    negatives: Picture | None
    suffixes: Picture | None
    rows: list[tuple[str, Cell]]
    rows_left_out: int
    several_negatives: bool
    several_suffixes: bool
    with_published: bool


class Aspect(NamedTuple):
    """One aspect of the annotation: its categories, and how the runs did on each."""

    name: str
    lines: list[CategoryLine]


class CategoryLine(NamedTuple):
    """One category with the paper's shares of it, among all transitions and among failures."""

    category: str
    definition: str
    share: Share
    row: CategoryRow
    table_1: float
    table_5: float


def chapterbreak_facts(folders: Sequence[Path], annotations: Path | None) -> dict[str, Any]:
    """All that the page of the runs needs; nothing where the first run has no results of the known form."""
    runs = run_facts(folders, [read_results(folder) for folder in folders])
    if not runs[0].cells:
        return {}
    for run in runs:
        if not run.cells:
            raise EnsueError(
                f"{run.folder} has no ChapterBreak accuracies, so it cannot be drawn beside others."
            )
    first = runs[0]
    ends = {split: cell for split in splits([first]) if (cell := longest(first, split)) is not None}
    of_items = item_facts(read_items(first.folder), ends.values())
    return {
        "runs": runs,
        "ends": ends,
        "chance": of_items.chance,
        "hardest": of_items.hardest,
        "split_facts": [_split_facts(runs, split, of_items) for split in splits(runs)],
        "perplexity_picture": _perplexity_picture(runs, of_items.chance),
        "models": models_table(runs),
        "citation": citation(),
        "split_words": split_words,
        **_annotation_facts(runs, annotations),
    }


def _split_facts(runs: Sequence[RunFacts], split: str, of_items: ItemFacts) -> SplitFacts:
    present = [run for run in runs if run.of(split)]
    rows = [(run.name, cell) for run in present for cell in run.of(split)]
    draw = _Drawing(split, of_items.chance)
    return SplitFacts(
        name=split,
        boundaries=draw.by_prefix("boundaries", boundary_panels(present, split)),
        negatives=draw.by_prefix("negatives", panels, 3.0)
        if (panels := negatives_panels(present, split))
        else None,
        suffixes=draw.by_suffix(panels) if (panels := suffix_panels(present, split)) else None,
        rows=rows[:MOST_ROWS],
        rows_left_out=max(0, len(rows) - MOST_ROWS),
        several_negatives=len({cell.negatives for _, cell in rows}) > 1,
        several_suffixes=len({cell.suffix for _, cell in rows}) > 1,
        with_published=split in PUBLISHED_SPLITS,
    )


class _Drawing(NamedTuple):
    split: str
    chance: float

    def by_prefix(self, name: str, panels: Sequence[Panel], height: float = 3.7) -> Picture:
        return self._draw(name, panels, "prefix", height)

    def by_suffix(self, panels: Sequence[Panel]) -> Picture:
        return self._draw("suffixes", panels, "suffix", 2.7)

    def _draw(self, name: str, panels: Sequence[Panel], length: str, height: float) -> Picture:
        # Drawing needs matplotlib, which takes half a second to import; what only reads does without it.
        from ensue.benchmarks.chapterbreak.report.plots import PublishedPoint, lengths_plot

        marks = [
            PublishedPoint(model.name, model.length, accuracy)
            for model in published_rows()
            if model.length and (accuracy := model.figure("accuracy", self.split)) is not None
        ]
        return drawn_twice(
            lambda width: lengths_plot(
                panels,
                marks,
                # Names of splits are the user's and might not do as names in SVG.
                name=f"{name}-{self.split.encode().hex()}",
                length=lambda cell: int(getattr(cell, length)),
                axis=f"{length}, tokens",
                chance=self.chance,
                height=height,
                width=width,
            )
        )


def _perplexity_picture(runs: Sequence[RunFacts], chance: float) -> Picture | None:
    from ensue.benchmarks.chapterbreak.report.plots import PublishedPoint, RunPoint, perplexity_plot

    # Named wherever it is not the paper's own or there is more than one.
    several = splits(runs) != ["pg19"]
    points = [
        RunPoint(f"{run.name}, {split_words(split)}" if several else run.name, cell.perplexity, cell)
        for run in runs
        for split in splits([run])
        if (cell := longest(run, split)) is not None and cell.perplexity is not None
    ]
    if not points:
        return None
    marks = [
        PublishedPoint(f"{model.name}, PG-19", perplexity, accuracy)
        for model in published_rows()
        if (perplexity := model.figure("perplexity", "pg19")) is not None
        and (accuracy := model.figure("accuracy", "pg19")) is not None
    ]
    return drawn_twice(lambda width: perplexity_plot(points, marks, chance=chance, width=width))


def _annotation_facts(runs: Sequence[RunFacts], path: Path | None) -> dict[str, Any]:
    if path is None:
        return {"annotations": None}
    read = read_annotations(path)
    of_runs = {run.name: longest_results(read_items(run.folder)) for run in runs}
    found = breakdown(read.transitions, of_runs)
    if not found.measured:
        names = " and ".join(str(run.folder) for run in runs)
        raise EnsueError(
            f"No example annotated in {path} is a chapter break with in-book negatives in {names}; "
            f"the annotations must be of the same data."
        )
    return {"annotations": read, "aspects": _aspects(read, found), "breakdown": found}


def _aspects(read: Annotations, found: Breakdown) -> list[Aspect]:
    of_all = shares(read.transitions.values())
    # The paper writes "locations" where a sheet has one location a row.
    printed = {(each.aspect.removesuffix("s"), each.category): each for each in transition_shares()}
    aspects: dict[str, list[CategoryLine]] = {}
    for row in found.rows:
        key = (row.aspect, row.category)
        paper = printed[row.aspect.removesuffix("s"), row.category]
        line = CategoryLine(row.category, definition(*key), of_all[key], row, paper.all, paper.missed)
        aspects.setdefault(row.aspect, []).append(line)
    return [Aspect(name, lines) for name, lines in aspects.items()]


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
