"""The table, page and picture of insertion runs: how often the place is found, and how far off it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ensue.benchmarks.coherence.report import (
    Figures,
    Findings,
    Section,
    cells,
    domain_of,
    main_cells,
    page_of,
    runs_by_name,
    sections_beside,
)
from ensue.report.results import Results, read_items
from ensue.report.svg import Picture, drawn_twice
from ensue.report.table import Cell, Column, Table

# Further off than this nobody looks.
_FURTHEST = 5
_CAPTION = (
    "accuracy: sentences put back where they stood; distance: how many sentences off the best position is; chance: "
    "of a position drawn blindly, for documents of these lengths. Intervals are over whole documents."
)


def tables(results: Results, folder: Path | None = None) -> list[Table]:
    """Return the table of a run; none where it has no accuracy."""
    figures = Figures(results)
    tasks = figures.tasks("insertion", "accuracy")
    if not tasks:
        return []
    table = Table(
        [
            Column("domain", words=True),
            Column("accuracy"),
            Column("95 %\ninterval"),
            Column("chance"),
            Column("mean\ndistance", wide="mean distance"),
            Column("95 % interval", in_terminal=False),
            Column("chance", wide="distance by chance"),
            Column("taken\nout", wide="sentences taken out"),
            Column("docs", wide="documents"),
        ],
        title=f"Insertion · {results.get('model', '')}",
        caption=_CAPTION,
    )
    for place, task in enumerate(tasks):
        accuracy = figures.get(task, "accuracy")
        chances = [figures.get(task, name) for name in ("chance", "chance_distance")]
        table.add(
            domain_of(task, "insertion"),
            *main_cells(accuracy),
            *(None if chances[0] is None else Cell(chances[0].text(), "quiet", value=chances[0].value),),
            *cells(figures.get(task, "distance"), 2),
            *(None if chances[1] is None else Cell(chances[1].text(2), "quiet", value=chances[1].value),),
            None if accuracy is None else accuracy.n,
            None if accuracy is None else accuracy.clusters,
            section=place == 1,
        )
    return [table]


def offsets(items: Iterable[Mapping[str, Any]]) -> tuple[list[float], list[float]]:
    """Return the share of predictions no further off than 0, 1, … sentences, and what chance gives; people have one
    prediction each."""
    found, blind = [0.0] * (_FURTHEST + 1), [0.0] * (_FURTHEST + 1)
    count = 0
    for item in items:
        outputs = item["outputs"]
        count += 1
        every = range(len(outputs["values"]))
        for shares, positions in ((found, outputs.get("chosen", outputs["best"])), (blind, every)):
            far = [min(abs(at - one) for one in outputs["right"]) for at in positions]
            for reach in range(_FURTHEST + 1):
                shares[reach] += sum(one <= reach for one in far) / len(far)
    return [one / max(1, count) for one in found], [one / max(1, count) for one in blind]


def _picture(lines: Mapping[str, Sequence[float]], blind: Sequence[float]) -> Picture:
    # Drawing needs matplotlib, which takes half a second to import.
    from ensue.benchmarks.coherence.report.plots import lines_plot

    said = ". ".join(
        f"{name}: " + ", ".join(f"{value:.2f} within {at}" for at, value in enumerate(line))
        for name, line in lines.items()
    )
    return drawn_twice(
        lambda width: lines_plot(
            {name: dict(enumerate(line)) for name, line in lines.items()},
            {"chance": dict(enumerate(blind))},
            x="no further off than so many sentences",
            y="share of sentences",
            name="offsets",
            about=f"Sentences put back. {said}.",
            width=width,
        )
    )


def findings(folders: Sequence[Path], results: Results) -> Findings | None:
    """Return what the page says of a run; others, such as people's, are lines beside it."""
    made = tables(results)
    if not made:
        return None
    figure = Figures(results).get("insertion", "accuracy")
    runs = {name: offsets(read_items(folder)) for name, folder in runs_by_name(folders).items()}
    (_, blind), *_ = runs.values()
    model = results.get("model", "")
    right = "The model is right where it finds the document likeliest with the sentence where it stood."
    if any("chosen" in item["outputs"] for item in read_items(folders[0])):
        right = "A document counts as the share of people who put it back where it stood."
    return Findings(
        f"Does {model} put a sentence back into its place?",
        f"{0 if figure is None else figure.n} sentences were taken out of {0 if figure is None else figure.clusters} "
        f"documents, one at a time. {right}",
        [
            Section(
                "Found, and how far off",
                _CAPTION,
                _picture({name: found for name, (found, _) in runs.items()}, blind),
                made[0],
            ),
            *sections_beside(folders, tables),
        ],
    )


PAGE = page_of(findings, takes_runs=True)
