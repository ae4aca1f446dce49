"""FRANK's labels of 2,246 summaries, and what published metrics gave the same summaries; it has no texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from ensue.benchmarks.nlu.files import Row
from ensue.benchmarks.qags.files import json_entries, number
from ensue.errors import EnsueError

LABELS = "human_annotations.json"
METRICS = "baseline_factuality_metrics_outputs.json"
SIZE = 2_246
DATASETS: Mapping[str, str] = {"cnndm": "cnndm", "bbc": "xsum"}
_SPLITS = ("valid", "test")
_FACTUALITY = "Factuality"
_ABOUT = ("hash", "model_name", "dataset", "split")


class FrankSummary(NamedTuple):
    """One system's summary of an article: its label, its freedom from each kind of error, and its metrics.

    Factuality and the kinds of error run from 0 to 1, and 1 is the better. `metrics` lacks those that their
    authors could not compute.
    """

    article: str
    system: str
    dataset: str
    split: str
    factuality: float
    without: Mapping[str, float]
    metrics: Mapping[str, float]


class FrankData(NamedTuple):
    """All summaries, in the order of the labels; notes count metrics that are missing."""

    summaries: tuple[FrankSummary, ...]
    notes: Mapping[str, int]

    def of(self, dataset: str) -> list[FrankSummary]:
        """The summaries of `cnndm` or of `xsum`."""
        return [summary for summary in self.summaries if summary.dataset == dataset]


def read_frank(folder: Path) -> FrankData:
    """Labels and metrics, joined by article and system."""
    labels, outputs = _rows(folder / LABELS), _rows(folder / METRICS)
    if missing := [key for key in labels if key not in outputs]:
        article, system = missing[0]
        labels[missing[0]].refuse(f"{METRICS} has no metrics of {system}'s summary of {article}")
    if over := [key for key in outputs if key not in labels]:
        article, system = over[0]
        outputs[over[0]].refuse(f"{LABELS} has no labels of {system}'s summary of {article}")
    notes: Counter[str] = Counter()
    found = tuple(_summary(key, row, outputs[key], notes) for key, row in labels.items())
    return FrankData(found, dict(notes))


def values_of(summaries: Iterable[FrankSummary], metric: str) -> tuple[list[FrankSummary], list[float]]:
    """The summaries for which a metric is there, and its values."""
    kept = [summary for summary in summaries if metric in summary.metrics]
    if not kept:
        raise EnsueError(f"None of FRANK's summaries has the metric {metric!r}.")
    return kept, [summary.metrics[metric] for summary in kept]


def _rows(path: Path) -> dict[tuple[str, str], Row]:
    if not path.is_file():
        raise EnsueError(f"{path.parent} has no {path.name}; name FRANK's data folder with --data.")
    found: dict[tuple[str, str], Row] = {}
    for _, row in json_entries(path):
        key = (row.text("hash"), row.text("model_name"))
        if key in found:
            row.refuse(f"{key[1]}'s summary of {key[0]} is there twice; leave one of the entries")
        found[key] = row
    return found


def _summary(key: tuple[str, str], label: Row, output: Row, notes: Counter[str]) -> FrankSummary:
    kinds = [name for name in label.fields if name not in (*_ABOUT, _FACTUALITY)]
    metrics: dict[str, float] = {}
    for name, value in output.fields.items():
        if name in _ABOUT:
            continue
        if value is None:
            notes[f"summaries without {name}"] += 1
        else:
            metrics[name] = number(output, name)
    return FrankSummary(
        *key,
        DATASETS[label.label("dataset", tuple(DATASETS))],
        label.label("split", _SPLITS),
        label.score(_FACTUALITY, 0.0, 1.0),
        {name: label.score(name, 0.0, 1.0) for name in kinds},
        metrics,
    )
