"""What a pair of the Shuffle Test scores, and the metrics of all pairs, counted by pairs and as the authors count."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence

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


class _Column:
    """What metrics need of the items of one block size: eight bytes for each number of each item."""

    def __init__(self, first: Item) -> None:
        self.settings = first["settings"]
        self.clusters: list[str] = []
        self.domains: list[str] = []
        self.values = {metric: array("d") for metric in METRICS if metric in first["scores"]}

    def add(self, item: Item, known: dict[str, str]) -> None:
        # Each name is held once, however many items have it.
        for names, name in ((self.clusters, item["cluster"]), (self.domains, item["outputs"]["domain"])):
            names.append(known.setdefault(name, name))
        for metric, values in self.values.items():
            values.append(item["scores"][metric])

    def rows(self, task: str, single: int, domain: str | None = None) -> Iterator[MetricRow]:
        """Yield the rows of all items, or of those of a domain."""
        clusters: Sequence[str] = self.clusters
        by_metric: Mapping[str, Sequence[float]] = self.values
        if domain is not None:
            chosen = [place for place, own in enumerate(self.domains) if own == domain]
            if not chosen:
                return
            clusters = [clusters[place] for place in chosen]
            by_metric = {name: [values[place] for place in chosen] for name, values in self.values.items()}
        for metric, values in by_metric.items():
            found = Figure(*clustered_interval(values, clusters, bounds=range_of(metric)))
            yield found.row(task, metric, self.settings)
        for metric in _BY_DOCUMENT:
            if metric in by_metric:
                for name, figure in _by_document(metric, by_metric[metric], clusters, single):
                    yield figure.row(task, name, self.settings)


def metric_rows(items: Iterable[Item], single: SingleBlocks | None = None) -> Iterator[MetricRow]:
    """Yield one row per task, block size and metric; with several domains, rows for each domain follow.

    What else than the block size an item's settings say, all items and rows of a run say alike.
    """
    columns: dict[int, _Column] = {}
    known: dict[str, str] = {}
    for item in items:
        size = item["settings"]["block_size"]
        if size not in columns:
            columns[size] = _Column(item)
        columns[size].add(item, known)
    without = single or {}
    for size, column in sorted(columns.items()):
        yield from column.rows("shuffle", len(without.get(size, ())))
    domains = sorted({domain for column in columns.values() for domain in column.domains})
    for domain in domains if len(domains) > 1 else ():
        for size, column in sorted(columns.items()):
            count = sum(one == domain for one in without.get(size, ()))
            yield from column.rows(f"shuffle/{domain}", count, domain)


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
