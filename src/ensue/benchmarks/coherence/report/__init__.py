"""The page of the tasks on the order of sentences: a lead, and sections of a picture, words and a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ensue.report.figure import Figure
from ensue.report.page import Page, run_names
from ensue.report.results import Results, read_results
from ensue.report.svg import Picture
from ensue.report.table import Cell, Content, Table

# A corpus with a domain per site would make a table nobody reads.
MOST_DOMAINS = 24


class Section(NamedTuple):
    """A section of a page; the picture or the table may be missing."""

    heading: str
    words: str = ""
    picture: Picture | None = None
    table: Table | None = None


class Findings(NamedTuple):
    """What a page says of a run: a question as its heading, a lead, and sections."""

    question: str
    lead: str
    sections: Sequence[Section]


def page_of(
    findings: Callable[[Sequence[Path], Results], Findings | None], *, takes_runs: bool = False
) -> Page:
    """Return the page of a benchmark from a function of run folders and the first one's results."""

    def facts(folders: Sequence[Path], annotations: Path | None) -> dict[str, Any]:
        found = findings(folders, read_results(folders[0]))
        return {} if found is None else found._asdict()

    return Page("ensue.benchmarks.coherence.report", "coherence.html.j2", facts, takes_runs=takes_runs)


def runs_by_name(folders: Sequence[Path]) -> dict[str, Path]:
    """Return the folders of runs by what their lines are called."""
    return dict(zip(run_names(folders, [read_results(folder) for folder in folders]), folders, strict=True))


def sections_beside(folders: Sequence[Path], tables: Callable[[Results], list[Table]]) -> list[Section]:
    """Return a section with the table of every run but the first, such as people's."""
    others = list(runs_by_name(folders).items())[1:]
    return [Section(name, table=tables(read_results(folder))[0]) for name, folder in others]


class Figures:
    """The figures of a run by task and metric; of rows with settings, those asked for."""

    def __init__(self, results: Mapping[str, Any]) -> None:
        self._rows = results["metrics"]

    def get(self, task: str, metric: str, settings: Mapping[str, Any] | None = None) -> Figure | None:
        for row in self._rows:
            if (row["task"], row["metric"], row["settings"]) == (task, metric, dict(settings or {})):
                return None if row["value"] is None else Figure.of(row)
        return None

    def tasks(self, name: str, metric: str) -> list[str]:
        """Return the task of that name, and those of its largest domains by name."""
        sizes = {
            row["task"]: row["n"]
            for row in self._rows
            if row["metric"] == metric and (row["task"] == name or row["task"].startswith(f"{name}/"))
        }
        domains = sorted((task for task in sizes if task != name), key=lambda task: (-sizes[task], task))
        return [task for task in (name,) if task in sizes] + sorted(domains[:MOST_DOMAINS])


def domain_of(task: str, name: str) -> str:
    """Return what a row is called: all documents, or a domain.

    >>> domain_of("ordering", "ordering"), domain_of("ordering/news", "ordering")
    ('all', 'news')
    """
    return "all" if task == name else task.removeprefix(f"{name}/") or "unnamed"


def main_cells(figure: Figure | None, digits: int = 3) -> list[Content]:
    """Return the cells of a run's main figure and its interval."""
    if figure is None:
        return [None, None]
    return [Cell(figure.text(digits), "strong", value=figure.value), figure.interval(digits)]


def cells(figure: Figure | None, digits: int = 3) -> list[Content]:
    """Return the cells of a figure and its interval."""
    return (
        [None, None]
        if figure is None
        else [Cell(figure.text(digits), value=figure.value), figure.interval(digits)]
    )
