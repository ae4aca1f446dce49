"""What a report says of ChapterBreak runs: accuracy by prefix, boundary, negatives and suffix; hard examples."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.chapterbreak.breakdown import main_suffix

# The paper's examples have five negatives; a run says how many its own had.
CHANCE = 1 / 6
BOUNDARIES = ("chapter", "cause", "dialogue")
NEGATIVES = ("in-book", "same-split", "other-split")
MOST_HARD = 10
_SETTINGS = {"boundary": str, "negatives": str, "prefix_tokens": int, "suffix_tokens": int}


class Cell(NamedTuple):
    """The results of a run at one split and setting; None where the run has no such figure."""

    split: str
    boundary: str
    negatives: str
    prefix: int
    suffix: int
    accuracy: float
    low: float | None
    high: float | None
    rank: float | None
    margin: float | None
    perplexity: float | None
    subwords: float | None
    n: int
    works: int | None


class RunFacts(NamedTuple):
    """A run with a name that no other run of the report has."""

    name: str
    folder: Path
    cells: list[Cell]

    def of(self, split: str) -> list[Cell]:
        return [cell for cell in self.cells if cell.split == split]


class Line(NamedTuple):
    """Cells that differ in one length, joined in a plot."""

    name: str
    cells: list[Cell]


class Panel(NamedTuple):
    """One set of axes in a plot."""

    title: str
    lines: list[Line]
    with_published: bool = False


class HardItem(NamedTuple):
    """An item the model got wrong by far: how much likelier it found the best negative than the gold suffix."""

    example: str
    split: str
    prefix: int
    rank: float | None
    margin: float


class ItemFacts(NamedTuple):
    """What is learned from a run's items: the accuracy of guessing, and the items furthest from right."""

    chance: float
    hardest: list[HardItem]


def run_facts(folders: Sequence[Path], results: Sequence[Mapping[str, Any]]) -> list[RunFacts]:
    """The runs by the names of their models; models that come twice are told apart by folder."""
    models = [str(each.get("model") or folder.name) for folder, each in zip(folders, results, strict=True)]
    names: list[str] = []
    for folder, model in zip(folders, models, strict=True):
        name = model if models.count(model) == 1 else f"{model} ({folder.name})"
        names.append(name if name not in names else f"{model} ({folder})")
    return [
        RunFacts(name, folder, cells(each))
        for name, folder, each in zip(names, folders, results, strict=True)
    ]


def cells(results: Mapping[str, Any]) -> list[Cell]:
    """One cell per split and setting, sorted; rows whose settings are not ChapterBreak's are passed over."""
    groups: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in results["metrics"]:
        settings = row["settings"]
        if all(isinstance(settings.get(name), kind) for name, kind in _SETTINGS.items()):
            key = json.dumps([row["task"], *(settings[name] for name in _SETTINGS)])
            groups.setdefault(key, {})[row["metric"]] = row
    found = [_cell(metrics) for metrics in groups.values() if _value(metrics, "accuracy") is not None]
    return sorted(found, key=_order)


def _cell(metrics: Mapping[str, Mapping[str, Any]]) -> Cell:
    main = metrics["accuracy"]
    settings = main["settings"]
    low, high = main.get("ci95") or (None, None)
    return Cell(
        split=str(main["task"]),
        boundary=settings["boundary"],
        negatives=settings["negatives"],
        prefix=settings["prefix_tokens"],
        suffix=settings["suffix_tokens"],
        accuracy=main["value"],
        low=low,
        high=high,
        rank=_value(metrics, "rank"),
        margin=_value(metrics, "margin"),
        perplexity=_value(metrics, "word_perplexity"),
        subwords=_value(metrics, "subwords_per_word"),
        n=main["n"],
        works=main.get("clusters"),
    )


def _order(cell: Cell) -> tuple[Any, ...]:
    return (
        *_place(cell.split, ("pg19", "ao3")),
        *_place(cell.boundary, BOUNDARIES),
        *_place(cell.negatives, NEGATIVES),
        cell.suffix,
        cell.prefix,
    )


def _place(name: str, known: Sequence[str]) -> tuple[int, str]:
    return (known.index(name) if name in known else len(known), name)


def splits(runs: Iterable[RunFacts]) -> list[str]:
    """The splits of all runs, those of the paper first."""
    names = {cell.split for run in runs for cell in run.cells}
    return sorted(names, key=lambda name: _place(name, ("pg19", "ao3")))


def usual(chosen: Iterable[Cell]) -> list[Cell]:
    """The cells that results are told for: in-book negatives and the paper's suffix length, where there are any."""
    known = list(chosen)
    if not known:
        return []
    kind = min((cell.negatives for cell in known), key=lambda name: _place(name, NEGATIVES))
    known = [cell for cell in known if cell.negatives == kind]
    length = main_suffix(cell.suffix for cell in known)
    return [cell for cell in known if cell.suffix == length]


def longest(run: RunFacts, split: str) -> Cell | None:
    """The result at the longest prefix, of chapter breaks where the run has them."""
    known = usual(run.of(split))
    if not known:
        return None
    boundary = min((cell.boundary for cell in known), key=lambda name: _place(name, BOUNDARIES))
    return max((cell for cell in known if cell.boundary == boundary), key=lambda cell: cell.prefix)


def boundary_panels(runs: Sequence[RunFacts], split: str) -> list[Panel]:
    """A line per boundary for a lone run, else a panel per boundary with a line per run."""
    if len(runs) == 1:
        lines = _lines(usual(runs[0].of(split)), lambda cell: boundary_words(cell.boundary))
        return [Panel("", lines, with_published=True)]
    by_boundary: dict[str, list[Line]] = {}
    for run in runs:
        for line in _lines(usual(run.of(split)), lambda cell: cell.boundary):
            by_boundary.setdefault(line.name, []).append(Line(run.name, line.cells))
    names = sorted(by_boundary, key=lambda name: _place(name, BOUNDARIES))
    return [Panel(boundary_words(name), by_boundary[name], name == "chapter") for name in names]


def negatives_panels(runs: Sequence[RunFacts], split: str) -> list[Panel]:
    """A line per kind of negatives, a panel for each run that has several kinds; none where no run has."""
    panels = []
    for run in runs:
        known = _chapters(run.of(split))
        length = main_suffix(cell.suffix for cell in known) if known else 0
        lines = _lines([cell for cell in known if cell.suffix == length], lambda cell: cell.negatives)
        if len(lines) > 1:
            panels.append(Panel(run.name if len(runs) > 1 else "", lines))
    return panels


def suffix_panels(runs: Sequence[RunFacts], split: str) -> list[Panel]:
    """Accuracy by suffix length at the longest prefix, a line for each run that has several; else none."""
    lines = []
    for run in runs:
        known = _chapters(run.of(split))
        kind = min((cell.negatives for cell in known), key=lambda name: _place(name, NEGATIVES), default="")
        furthest = max((cell.prefix for cell in known), default=0)
        chosen = [cell for cell in known if (cell.negatives, cell.prefix) == (kind, furthest)]
        if len(chosen) > 1:
            lines.append(Line(f"{run.name}, prefix {length_words(furthest)}", chosen))
    return [Panel("", lines)] if lines else []


def _chapters(chosen: Iterable[Cell]) -> list[Cell]:
    return [cell for cell in chosen if cell.boundary == "chapter"]


def _lines(chosen: Iterable[Cell], name: Callable[[Cell], str]) -> list[Line]:
    groups: dict[str, list[Cell]] = {}
    for cell in chosen:
        groups.setdefault(name(cell), []).append(cell)
    return [Line(words, members) for words, members in groups.items()]


def boundary_words(boundary: str) -> str:
    """A boundary type as a reader knows it."""
    return "chapter breaks" if boundary == "chapter" else boundary


def split_words(split: str) -> str:
    """A split as the paper writes it, other data by its own name."""
    return {"pg19": "PG-19", "ao3": "AO3"}.get(split, split)


def length_words(tokens: int) -> str:
    """A length in tokens, short.

    >>> length_words(512), length_words(8192), length_words(3000)
    ('512', '8K', '3000')
    """
    return f"{tokens // 1024}K" if tokens and tokens % 1024 == 0 else str(tokens)


def item_facts(items: Iterable[Mapping[str, Any]], chosen: Iterable[Cell]) -> ItemFacts:
    """The accuracy of guessing over all items, and the hardest of those that make up the chosen cells."""
    wanted = {(cell.split, cell.boundary, cell.negatives, cell.prefix, cell.suffix) for cell in chosen}
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
        entry = HardItem(example, item["task"], setting[3], item["scores"].get("rank"), margin)
        # The place breaks ties in favour of the earlier item.
        heapq.heappush(hard, (-margin, -place, entry))
        if len(hard) > MOST_HARD:
            heapq.heappop(hard)
    hardest = [entry for _, _, entry in sorted(hard, key=lambda each: each[:2], reverse=True)]
    return ItemFacts(guessed / count if count else CHANCE, hardest)


def _value(metrics: Mapping[str, Mapping[str, Any]], name: str) -> float | None:
    value = metrics[name]["value"] if name in metrics else None
    return None if value is None else float(value)
