"""What the files of a run folder hold, and how they are read back: every problem is one sentence."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

from ensue.errors import EnsueError
from ensue.jsonl import read_lines, read_object

RUN_FILE = "run.json"
RESULTS_FILE = "results.json"
ITEMS_FILE = "items.jsonl"
PROFILES_FILE = "profiles.jsonl"
FITS_FILE = "fits.jsonl"

_ROW_KEYS = ("task", "metric", "value", "n", "settings")
_NOUNS = {str: "string", dict: "object", list: "list", float: "number"}
_ITEM_KEYS: dict[str, type] = {"id": str, "task": str, "settings": dict, "scores": dict}


class Item(TypedDict):
    """One line of items.jsonl: enough to score again without the model.

    `content` is a digest of what was asked (`benchmarks.base.content_of`); runs are paired by it. `asked` is one
    without the gold answer, by which a board knows what a prediction is about.
    """

    id: str
    cluster: str
    task: str
    settings: dict[str, Any]
    scores: dict[str, float]
    outputs: dict[str, Any]
    content: NotRequired[str]
    asked: NotRequired[str]


class MetricRow(TypedDict):
    """One row of results.json; values are fractions."""

    task: str
    metric: str
    value: float
    ci95: list[float | None]
    n: int
    clusters: int
    settings: dict[str, Any]


class Results(TypedDict):
    """The contents of results.json; `notes` counts what was done to inputs, `skipped` what was left out."""

    benchmark: str
    model: str
    signature: str
    metrics: list[MetricRow]
    skipped: dict[str, int]
    notes: NotRequired[dict[str, int]]
    seconds: float
    tokens: int


def read_run(folder: str | Path) -> dict[str, Any]:
    """Return what `run.json` says was asked, of which model, on which machine."""
    return read_object(_run_folder(folder) / RUN_FILE)


def read_results(folder: str | Path) -> Results:
    """Read the results of a finished run; an unfinished one has none and is an error."""
    folder = _run_folder(folder)
    path = folder / RESULTS_FILE
    if not path.exists():
        raise _unfinished(folder)
    results = read_object(path)
    rows = results.get("metrics")
    if not isinstance(rows, list):
        raise EnsueError(f"{path} has no list of metrics, so it is not a results file.")
    for place, row in enumerate(rows, start=1):
        missing = [key for key in _ROW_KEYS if not isinstance(row, dict) or key not in row]
        if missing:
            raise EnsueError(f"{path}: metric row {place} lacks {', '.join(missing)}.")
        if not isinstance(row["settings"], dict):
            raise EnsueError(f"{path}: the settings of metric row {place} are not an object.")
        # A single document has a value and no interval; readers should not care how that is said.
        row["ci95"] = row.get("ci95") or [None, None]
    return cast(Results, results)


def metrics_by_setting(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Mapping[str, Any]]]:
    """Return the metric rows of each task and settings by metric, in the order in which settings come first."""
    groups: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in rows:
        key = json.dumps([row["task"], row["settings"]], sort_keys=True)
        groups.setdefault(key, {})[row["metric"]] = row
    return list(groups.values())


def value_of(metrics: Mapping[str, Mapping[str, Any]], name: str) -> float | None:
    """Return the value of one of several metrics, None where there is none."""
    value = metrics[name]["value"] if name in metrics else None
    return None if value is None else float(value)


def is_finished(folder: str | Path) -> bool:
    """Return whether the run has its results; the run writes them last."""
    return (_run_folder(folder) / RESULTS_FILE).exists()


def read_items(folder: str | Path) -> Iterator[dict[str, Any]]:
    """Read the items of a run, one at a time, each with at least an id, a task, settings and scores."""
    return (item for _, item in read_numbered_items(folder))


def read_numbered_items(folder: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read the items with their line numbers, for readers that may yet find fault with one."""
    folder = _run_folder(folder)
    path = folder / ITEMS_FILE
    if not path.exists() and not (folder / RESULTS_FILE).exists():
        raise _unfinished(folder)
    yield from _checked_lines(path, _ITEM_KEYS)


def read_beside(
    folder: str | Path, name: str, keys: Mapping[str, type] | None = None
) -> Iterator[dict[str, Any]]:
    """Read a file that a run may have left beside its items, a row at a time; nothing where it left none."""
    path = _run_folder(folder) / name
    return (row for _, row in _checked_lines(path, keys or {})) if path.exists() else iter(())


def read_profiles(folder: str | Path) -> Iterator[dict[str, Any]]:
    """Read the surprisal profiles of a run, one document at a time; none where the run made no profiles."""
    return read_beside(folder, PROFILES_FILE, {"versions": list})


def read_fits(folder: str | Path) -> Iterator[dict[str, Any]]:
    """Read how the trainings of a run went, one at a time; none where nothing was trained."""
    return read_beside(folder, FITS_FILE, {"task": str})


def _checked_lines(path: Path, keys: Mapping[str, type]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read numbered rows, each of which must have these keys with values of these types."""
    for line, row in read_lines(path):
        for key, kind in keys.items():
            if not isinstance(row.get(key), (int, float) if kind is float else kind):
                raise EnsueError(f"{path}, line {line}: it needs a JSON {_NOUNS[kind]} called {key!r}.")
        yield line, row


def _run_folder(folder: str | Path) -> Path:
    path = Path(folder)
    if not path.is_dir():
        raise EnsueError(f"{path} is not a run folder: there is no such folder.")
    if not (path / RUN_FILE).exists():
        raise EnsueError(f"{path} is not a run folder: it has no {RUN_FILE}.")
    return path


def _unfinished(folder: Path) -> EnsueError:
    return EnsueError(f"{folder} is an unfinished run; continue it with --resume.")
