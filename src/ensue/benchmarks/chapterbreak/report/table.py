"""ChapterBreak runs as a table: a row per split, boundary, kind of negatives and lengths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ensue.benchmarks.chapterbreak.published import published_models
from ensue.report.figure import interval, signed
from ensue.report.results import Results
from ensue.report.table import Cell, Column, Table

_SETTINGS = {
    "boundary": "boundary",
    "negatives": "negatives",
    "prefix_tokens": "prefix",
    "suffix_tokens": "suffix",
}


def tables(results: Results, folder: Path | None = None) -> list[Table]:
    """Return the table of a run; settings that never change have no column."""
    rows: dict[tuple[Any, ...], dict[str, Mapping[str, Any]]] = {}
    for row in results["metrics"]:
        place = (row["task"], *(row["settings"].get(key) for key in _SETTINGS))
        rows.setdefault(place, {})[row["metric"]] = row
    names = dict(zip(("task", *_SETTINGS), range(1 + len(_SETTINGS)), strict=True))
    shown = ["task", *(k for k in names if k != "task" and (k == "prefix_tokens" or _differ(rows, names[k])))]
    table = Table(
        [
            # A split's name may be long; the other words are ours and short.
            *(
                Column(
                    _SETTINGS.get(key, "split"),
                    words=key not in ("prefix_tokens", "suffix_tokens"),
                    fold=key == "task",
                )
                for key in shown
            ),
            *map(Column, ("acc.", "95 %\ninterval", "rank", "margin", "word\nppl", "n", "works")),
        ],
        title=f"ChapterBreak · {results.get('model', '')}",
        caption=_caption([str(place[0]) for place in rows]),
    )
    for place, found in rows.items():
        accuracy, perplexity = found["accuracy"], found.get("word_perplexity")
        table.add(
            *(_count(place[names[key]]) for key in shown),
            Cell(f"{accuracy['value']:.3f}", "strong", value=accuracy["value"]),
            interval(*accuracy["ci95"]),
            Cell(f"{found['rank']['value']:.2f}", value=found["rank"]["value"]),
            Cell(signed(found["margin"]["value"]), value=found["margin"]["value"]),
            None if perplexity is None else Cell(_perplexity(perplexity["value"]), value=perplexity["value"]),
            accuracy["n"],
            accuracy["clusters"],
        )
    return [table]


def _differ(places: Iterable[tuple[Any, ...]], index: int) -> bool:
    return len({place[index] for place in places}) > 1


def _perplexity(value: float) -> str:
    return f"{value:.1f}" if value < 1000 else f"{value:.0f}" if value < 1e6 else f"{value:.0e}"


def _caption(splits: list[str]) -> str:
    """Chance, and the paper's figures for the splits that it has."""
    words = "Chance is 0.167 with five negatives; rank 1 is best."
    for split in dict.fromkeys(splits):
        found = [
            f"{line.model} {line.accuracy[split]:.2f} ({line.sequence // 1024}K{', a subset' if line.subset else ''})"
            for line in published_models()
            if split in line.accuracy
        ]
        words += f" Published for {split} by Sun et al. (2022), table 2: {', '.join(found)}." if found else ""
    return words


def _count(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
