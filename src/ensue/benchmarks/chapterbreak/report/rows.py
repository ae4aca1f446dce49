"""What a report says of ChapterBreak runs: accuracies by setting, the paper's models, the hardest examples."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.chapterbreak.annotation import main_suffix
from ensue.benchmarks.chapterbreak.data.examples import BOUNDARIES
from ensue.benchmarks.published import published
from ensue.report.figure import Figure
from ensue.report.page import run_names
from ensue.report.results import metrics_by_setting, value_of

PACKAGE = "ensue.benchmarks.chapterbreak"
# The paper's examples have five negatives; a run says how many its own had.
CHANCE = 1 / 6
PUBLISHED_SPLITS = ("pg19", "ao3")
# What the paper names, in its order; other names come after these.
_KNOWN: dict[str, tuple[str, ...]] = {
    "split": PUBLISHED_SPLITS,
    "boundary": BOUNDARIES,
    "negatives": ("in-book", "same-split", "other-split"),
}
MOST_HARD = 10
_SETTINGS = {"boundary": str, "negatives": str, "prefix_tokens": int, "suffix_tokens": int}
_OTHERS = ("rank", "margin", "word_perplexity", "subwords_per_word")


class Measured(NamedTuple):
    """The results of a run at one split and setting; None where the run has no such figure."""

    split: str
    boundary: str
    negatives: str
    prefix: int
    suffix: int
    accuracy: Figure
    rank: float | None
    margin: float | None
    perplexity: float | None
    subwords: float | None


class RunRows(NamedTuple):
    """A run with a name that no other run of the report has, and its rows in the order of a page."""

    name: str
    folder: Path
    rows: list[Measured]

    def of(self, split: str) -> list[Measured]:
        return [row for row in self.rows if row.split == split]


class PlotLine(NamedTuple):
    """Rows that differ in one length, joined in a plot."""

    name: str
    rows: list[Measured]


class Panel(NamedTuple):
    """One set of axes in a plot."""

    title: str
    lines: list[PlotLine]
    with_published: bool = False


class HardItem(NamedTuple):
    """An item the model got wrong by far: how much likelier it found the best negative than the gold suffix."""

    example: str
    prefix: int
    rank: float | None
    margin: float


class ModelRow(NamedTuple):
    """A model of the paper's table 2 or of a run, with its figures by metric and split.

    `partly` says that the paper measured it on a part of the examples.
    """

    name: str
    published: bool
    length: int | None
    figures: dict[tuple[str, str], Figure]
    parameters: int | None = None
    partly: bool = False

    def value(self, metric: str, split: str) -> float | None:
        """Return a figure as a bare number."""
        found = self.figures.get((metric, split))
        return None if found is None else found.value


def run_rows(folders: Sequence[Path], results: Sequence[Mapping[str, Any]]) -> list[RunRows]:
    """Return the runs by the names of their models; models that come twice are told apart by folder."""
    return [
        RunRows(name, folder, sorted(measured(each), key=_order))
        for name, folder, each in zip(run_names(folders, results), folders, results, strict=True)
    ]


def measured(results: Mapping[str, Any]) -> list[Measured]:
    """Return one row per split and setting; rows whose settings are not ChapterBreak's are passed over."""
    known = (
        row
        for row in results["metrics"]
        if all(isinstance(row["settings"].get(name), kind) for name, kind in _SETTINGS.items())
    )
    return [
        Measured._make(
            [
                str(main["task"]),
                *(main["settings"][name] for name in _SETTINGS),
                Figure.of(main),
                *(value_of(metrics, name) for name in _OTHERS),
            ]
        )
        for metrics in metrics_by_setting(known)
        if (main := metrics.get("accuracy")) is not None and main["value"] is not None
    ]


class Peoples(NamedTuple):
    """What people are worth on a split: one of them, their majority, their time and agreement."""

    split: str
    words: int
    accuracy: Figure
    majority: Figure | None
    seconds: Figure | None
    kappa: Figure | None
    chance: Figure | None


def peoples(results: Mapping[str, Any]) -> list[Peoples]:
    """Return a row a split of a run of people; none of a model's."""
    found: dict[tuple[str, int], dict[str, Figure]] = {}
    for row in results["metrics"]:
        words = row["settings"].get("context_words")
        if isinstance(words, int):
            found.setdefault((str(row["task"]), words), {})[row["metric"]] = Figure.of(row)
    names = ("accuracy_majority", "seconds", "kappa", "chance")
    return [
        Peoples(split, words, figures["accuracy"], *(figures.get(name) for name in names))
        for (split, words), figures in found.items()
        if "accuracy" in figures
    ]


def _order(row: Measured) -> tuple[Any, ...]:
    return *(_place(name, getattr(row, name)) for name in _KNOWN), row.suffix, row.prefix


def _place(column: str, name: str) -> tuple[int, str]:
    known = _KNOWN[column]
    return (known.index(name) if name in known else len(known), name)


def _names(column: str, rows: Iterable[Measured]) -> list[str]:
    """Return the values of a column, those of the paper first."""
    return sorted({getattr(row, column) for row in rows}, key=lambda name: _place(column, name))


def splits(runs: Iterable[RunRows]) -> list[str]:
    """Return the splits of all runs, those of the paper first."""
    return _names("split", (row for run in runs for row in run.rows))


def usual(chosen: Iterable[Measured]) -> list[Measured]:
    """Return the rows that results are reported for: in-book negatives and the paper's suffix length if there."""
    known = list(chosen)
    if not known:
        return []
    kind = _names("negatives", known)[0]
    known = [row for row in known if row.negatives == kind]
    length = main_suffix(row.suffix for row in known)
    return [row for row in known if row.suffix == length]


def longest(run: RunRows, split: str) -> Measured | None:
    """Return the result at the longest prefix, of chapter breaks where the run has them."""
    known = usual(run.of(split))
    if not known:
        return None
    boundary = _names("boundary", known)[0]
    return max((row for row in known if row.boundary == boundary), key=lambda row: row.prefix)


def published_models() -> list[ModelRow]:
    """Return the models of the paper's table 2."""
    rows: dict[str, ModelRow] = {}
    for found in published(PACKAGE):
        if found.table == "2":
            length, size, partly = (found.facts.get(name) for name in ("sequence", "parameters", "subset"))
            made = ModelRow(found.system, True, length, {}, size, bool(partly))
            rows.setdefault(found.system, made).figures[found.metric, found.task] = Figure(found.value)
    return list(rows.values())


def measured_model(run: RunRows) -> ModelRow:
    """Return a run as a row of the paper's table: chapter breaks, in-book negatives, the longest prefix."""
    figures: dict[tuple[str, str], Figure] = {}
    lengths = []
    for split in splits([run]):
        row = longest(run, split)
        if row is None or (row.boundary, row.negatives) != ("chapter", "in-book"):
            continue
        lengths.append(row.prefix)
        figures["accuracy", split] = row.accuracy
        if row.perplexity is not None:
            figures["word_perplexity", split] = Figure(row.perplexity)
    return ModelRow(run.name, False, max(lengths, default=None), figures)


def boundary_panels(runs: Sequence[RunRows], split: str) -> list[Panel]:
    """Return a line per boundary for a lone run, else a panel per boundary with a line per run."""
    if len(runs) == 1:
        lines = _lines(usual(runs[0].of(split)), lambda row: boundary_words(row.boundary))
        return [Panel("", lines, with_published=True)]
    by_boundary: dict[str, list[PlotLine]] = {}
    for run in runs:
        for line in _lines(usual(run.of(split)), lambda row: row.boundary):
            by_boundary.setdefault(line.name, []).append(PlotLine(run.name, line.rows))
    names = sorted(by_boundary, key=lambda name: _place("boundary", name))
    return [Panel(boundary_words(name), by_boundary[name], name == "chapter") for name in names]


def negatives_panels(runs: Sequence[RunRows], split: str) -> list[Panel]:
    """Return a line per kind of negatives, a panel for each run that has several kinds; none where no run has."""
    panels = []
    for run in runs:
        known = [row for row in run.of(split) if row.boundary == "chapter"]
        length = main_suffix(row.suffix for row in known) if known else 0
        lines = _lines([row for row in known if row.suffix == length], lambda row: row.negatives)
        if len(lines) > 1:
            panels.append(Panel(run.name if len(runs) > 1 else "", lines))
    return panels


def suffix_panels(runs: Sequence[RunRows], split: str) -> list[Panel]:
    """Return accuracy by suffix length at the longest prefix, a line for each run that has several; else none."""
    lines = []
    for run in runs:
        known = [row for row in run.of(split) if row.boundary == "chapter"]
        furthest = max((row.prefix for row in known), default=0)
        kinds = _names("negatives", known)[:1]
        chosen = [row for row in known if row.negatives in kinds and row.prefix == furthest]
        if len(chosen) > 1:
            lines.append(PlotLine(f"{run.name}, prefix {length_words(furthest)}", chosen))
    return [Panel("", lines)] if lines else []


def _lines(chosen: Iterable[Measured], name: Callable[[Measured], str]) -> list[PlotLine]:
    groups: dict[str, list[Measured]] = {}
    for row in chosen:
        groups.setdefault(name(row), []).append(row)
    return [PlotLine(words, members) for words, members in groups.items()]


def boundary_words(boundary: str) -> str:
    """Name a boundary type as a reader knows it."""
    return "chapter breaks" if boundary == "chapter" else boundary


def split_words(split: str) -> str:
    """Name a split as the paper writes it, other data by its own name."""
    return {"pg19": "PG-19", "ao3": "AO3"}.get(split, split)


def length_words(tokens: int) -> str:
    """Write a length in tokens, short.

    >>> length_words(512), length_words(8192), length_words(3000)
    ('512', '8K', '3000')
    """
    return f"{tokens // 1024}K" if tokens and tokens % 1024 == 0 else str(tokens)


def item_facts(
    items: Iterable[Mapping[str, Any]], chosen: Iterable[Measured]
) -> tuple[float, list[HardItem]]:
    """Find the accuracy of guessing over all items, and the hardest of those that make up the chosen rows."""
    wanted = {(row.split, row.boundary, row.negatives, row.prefix, row.suffix) for row in chosen}
    hard: list[tuple[float, int, HardItem]] = []
    guessed, count = 0.0, 0
    for place, item in enumerate(items):
        outputs = item["outputs"] if isinstance(item.get("outputs"), dict) else {}
        if isinstance(scores := outputs.get("scores"), list) and scores:
            guessed, count = guessed + 1 / len(scores), count + 1
        margin = item["scores"].get("margin")
        setting = (item["task"], *(item["settings"].get(name) for name in _SETTINGS))
        if setting not in wanted or margin is None or margin >= 0:
            continue
        example = str(outputs.get("example") or item["id"])
        entry = HardItem(example, setting[3], item["scores"].get("rank"), margin)
        # The place breaks ties in favour of the earlier item.
        heapq.heappush(hard, (-margin, -place, entry))
        if len(hard) > MOST_HARD:
            heapq.heappop(hard)
    hardest = [entry for _, _, entry in sorted(hard, key=lambda each: each[:2], reverse=True)]
    return guessed / count if count else CHANCE, hardest
