"""What a report says of a Shuffle Test: accuracy by block size and domain, beside the published figures."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ensue.benchmarks.shuffle.published import published_series
from ensue.stats.clustered import Interval, clustered_interval
from ensue.stats.ranges import SHARE

TASK = "shuffle"
CHANCE = 0.5
# A corpus with a domain per site would make a table nobody reads.
MOST_DOMAINS = 24


class BlockRow(NamedTuple):
    """The results at one block size; fractions, None where the run or the paper has no figure."""

    block_size: int | None
    label: str
    accuracy: float
    low: float | None
    high: float | None
    per_token: float | None
    ties: float | None
    n: int
    documents: int | None
    human: float | None
    gpt2: float | None


class DomainRow(NamedTuple):
    """The accuracy of one domain at one block size, with the paper's figure where it tested that domain."""

    domain: str
    label: str
    accuracy: Interval
    per_token: float | None
    gpt2: float | None


class PublishedLine(NamedTuple):
    """One published series by block size."""

    name: str
    human: bool
    points: dict[int, float]


def block_rows(results: Mapping[str, Any]) -> list[BlockRow]:
    """One row per block size from the rows of `results.json` that cover all documents."""
    by_settings: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in results["metrics"]:
        if row["task"] == TASK:
            by_settings.setdefault(_canonical(row["settings"]), {})[row["metric"]] = row
    human, gpt2 = published_series("Human", "WSJ"), published_series("GPT2-medium", "Overall")
    rows = []
    for metrics in by_settings.values():
        main = metrics.get("accuracy")
        if main is None or main["value"] is None:
            continue
        size = _block_size(main["settings"])
        low, high = main.get("ci95") or (None, None)
        rows.append(
            BlockRow(
                block_size=size,
                label=settings_label(main["settings"]),
                accuracy=main["value"],
                low=low,
                high=high,
                per_token=_value(metrics, "accuracy_per_token"),
                ties=_value(metrics, "ties"),
                n=main["n"],
                documents=main.get("clusters"),
                human=human.get(size) if size is not None else None,
                gpt2=gpt2.get(size) if size is not None else None,
            )
        )
    return sorted(rows, key=lambda row: (row.block_size or 0, row.label))


def published_lines() -> list[PublishedLine]:
    """The series of the paper's table 2 that a plot draws."""
    return [
        PublishedLine("Human, WSJ", True, published_series("Human", "WSJ")),
        PublishedLine("GPT2-medium, Legal", False, published_series("GPT2-medium", "Legal")),
        PublishedLine("GPT2-medium, WSJ", False, published_series("GPT2-medium", "WSJ")),
        PublishedLine("GPT2-medium, Reddit", False, published_series("GPT2-medium", "Reddit")),
    ]


class DomainTally:
    """Collects the scores of each domain while items stream by, keeping bare numbers only."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str], _Scores] = {}
        self._settings: dict[str, dict[str, Any]] = {}
        self._clusters: dict[str, int] = {}

    def add(self, item: Mapping[str, Any]) -> None:
        """Count one item of `items.jsonl`."""
        accuracy = item["scores"].get("accuracy")
        if item["task"] != TASK or accuracy is None:
            return
        outputs = item.get("outputs")
        domain = outputs.get("domain") if isinstance(outputs, dict) else None
        settings = _canonical(item["settings"])
        self._settings.setdefault(settings, item["settings"])
        group = self._groups.setdefault((str(domain or "unnamed"), settings), _Scores())
        group.accuracy.append(accuracy)
        group.clusters.append(
            self._clusters.setdefault(str(item.get("cluster", item["id"])), len(self._clusters))
        )
        per_token = item["scores"].get("accuracy_per_token")
        if per_token is not None:
            group.per_token.append(per_token)

    @property
    def domains(self) -> list[str]:
        """The domains seen, those with the most items first."""
        counts: dict[str, int] = {}
        for (domain, _), scores in self._groups.items():
            counts[domain] = counts.get(domain, 0) + len(scores.accuracy)
        return sorted(counts, key=lambda domain: (-counts[domain], domain))

    def rows(self) -> list[DomainRow]:
        """A row per domain and block size, by name, of the `MOST_DOMAINS` largest domains."""
        largest = set(self.domains[:MOST_DOMAINS])
        chosen = [key for key in self._groups if key[0] in largest]
        chosen.sort(key=lambda key: (key[0], _block_size(self._settings[key[1]]) or 0, key[1]))
        return [self._row(domain, settings) for domain, settings in chosen]

    def _row(self, domain: str, settings: str) -> DomainRow:
        scores = self._groups[domain, settings]
        size = _block_size(self._settings[settings])
        per_token = sum(scores.per_token) / len(scores.per_token) if scores.per_token else None
        # "wsj", "WSJ" and "Wsj" are one domain; names the paper does not have find nothing.
        known = {"wsj": "WSJ", "legal": "Legal", "reddit": "Reddit"}.get(domain.casefold(), "")
        return DomainRow(
            domain=domain,
            label=settings_label(self._settings[settings]),
            accuracy=clustered_interval(scores.accuracy, scores.clusters, bounds=SHARE),
            per_token=per_token,
            gpt2=published_series("GPT2-medium", known).get(size) if size is not None else None,
        )


class _Scores:
    def __init__(self) -> None:
        self.accuracy, self.per_token, self.clusters = array("d"), array("d"), array("q")


def settings_label(settings: Mapping[str, Any]) -> str:
    """The settings of a row in words; a lone block size is its number.

    >>> settings_label({"block_size": 3}), settings_label({"prefix_tokens": 256, "layer": 4})
    ('3', 'prefix tokens 256, layer 4')
    """
    if list(settings) == ["block_size"]:
        return str(settings["block_size"])
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in settings.items())


def tally_domains(items: Iterable[Mapping[str, Any]]) -> DomainTally:
    """The tally of all items of a run."""
    tally = DomainTally()
    for item in items:
        tally.add(item)
    return tally


def _block_size(settings: Mapping[str, Any]) -> int | None:
    size = settings.get("block_size")
    return size if isinstance(size, int) else None


def _value(metrics: Mapping[str, Mapping[str, Any]], name: str) -> float | None:
    value = metrics[name]["value"] if name in metrics else None
    return None if value is None else float(value)


def _canonical(settings: Mapping[str, Any]) -> str:
    return json.dumps(settings, sort_keys=True)
