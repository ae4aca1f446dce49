"""What a pair of the Shuffle Test scores, and the metrics of all pairs, counted by pairs and as the authors count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ensue.metrics.preference import Verdict
from ensue.report.figure import Figure
from ensue.report.results import Item, MetricRow
from ensue.stats.clustered import clustered_interval
from ensue.stats.ranges import SHARE, range_of

METRICS = ("accuracy", "accuracy_per_token", "ties", "ties_per_token")
# Those that are also given with every document weighing alike.
_BY_DOCUMENT = METRICS[:2]
# By block size, the domains of the documents that have no second order: the authors count each as wrong.
SingleBlocks = Mapping[int, Sequence[str]]


def scores_of(total: Verdict, mean: Verdict | None) -> dict[str, float]:
    """Return what a pair scores by total log-likelihood and, where that is known, by the mean per token."""
    found = {"accuracy": float(total == "good")}
    if mean is not None:
        found["accuracy_per_token"] = float(mean == "good")
    found["ties"] = float(total == "same")
    if mean is not None:
        found["ties_per_token"] = float(mean == "same")
    return found


def metric_rows(items: list[Item], single: SingleBlocks | None = None) -> Iterator[MetricRow]:
    """Yield one row per task, block size and metric; with several domains, rows for each domain follow.

    What else than the block size an item's settings say, all items and rows of a run say alike.
    """
    single = single or {}
    domains = sorted({item["outputs"]["domain"] for item in items})
    yield from _rows("shuffle", items, {size: len(those) for size, those in single.items()})
    if len(domains) > 1:
        for domain in domains:
            own = {size: those.count(domain) for size, those in single.items()}
            yield from _rows(f"shuffle/{domain}", [i for i in items if i["outputs"]["domain"] == domain], own)


def _rows(task: str, items: list[Item], single: Mapping[int, int]) -> Iterator[MetricRow]:
    for size in sorted({item["settings"]["block_size"] for item in items}):
        chosen = [item for item in items if item["settings"]["block_size"] == size]
        clusters = [item["cluster"] for item in chosen]
        settings = chosen[0]["settings"]
        by_metric = {
            metric: [item["scores"][metric] for item in chosen]
            for metric in METRICS
            if metric in chosen[0]["scores"]
        }
        for metric, values in by_metric.items():
            found = Figure(*clustered_interval(values, clusters, bounds=range_of(metric)))
            yield found.row(task, metric, settings)
        for metric in _BY_DOCUMENT:
            if metric in by_metric:
                for name, figure in _by_document(metric, by_metric[metric], clusters, single.get(size, 0)):
                    yield figure.row(task, name, settings)


def _by_document(
    metric: str, values: Sequence[float], clusters: Sequence[str], single: int
) -> Iterator[tuple[str, Figure]]:
    """Yield the mean over documents, and the authors' count: every document has as many pairs, and one of a single
    block, whose shuffled copies are the document itself, has all of them wrong."""
    found: dict[str, list[float]] = {}
    for cluster, value in zip(clusters, values, strict=True):
        found.setdefault(cluster, []).append(value)
    means = [sum(one) / len(one) for one in found.values()]
    yield f"{metric}_by_document", _alike(means)
    yield f"{metric}_authors", _alike([*means, *[0.0] * single])


def _alike(means: Sequence[float]) -> Figure:
    return Figure(*clustered_interval(means, range(len(means)), bounds=SHARE))
