"""The tables of Shuffle Test runs: a row a block size, all documents or by domain, the published figures beside."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.published import published
from ensue.report.figure import Figure, settings_text
from ensue.report.results import Results
from ensue.report.table import Cell, Column, Table, blank_on_page
from ensue.stats.clustered import clustered_interval
from ensue.stats.ranges import SHARE

PACKAGE = "ensue.benchmarks.shuffle"
TASK = "shuffle"
# A corpus with a domain per site would make a table nobody reads.
MOST_DOMAINS = 24
# "wsj", "WSJ" and "Wsj" are one domain; names the paper does not have find nothing.
_PUBLISHED_DOMAINS = {"wsj": "WSJ", "legal": "Legal", "reddit": "Reddit"}


class BlockRow(NamedTuple):
    """The results at one block size; fractions, None where the run or the paper has no figure."""

    block_size: int | None
    label: str
    accuracy: Figure
    per_token: float | None
    ties: int | None
    human: float | None
    gpt2: float | None


class DomainRow(NamedTuple):
    """The accuracy of one domain at one block size, with the paper's figure where it tested that domain."""

    domain: str
    label: str
    accuracy: Figure
    per_token: float | None
    gpt2: float | None


def published_series(system: str, task: str, table: str = "2") -> dict[int, float]:
    """Return the accuracies of one system on one task by block size; empty where the paper has none.

    >>> published_series("GPT2-medium", "shuffle/Reddit")[5]
    0.538
    """
    return {
        figure.settings["block_size"]: figure.value
        for figure in published(PACKAGE)
        if (figure.system, figure.task, figure.table) == (system, task, table)
    }


def block_rows(results: Mapping[str, Any]) -> list[BlockRow]:
    """Return one row per block size from the rows of `results.json` that cover all documents."""
    by_settings: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in results["metrics"]:
        if row["task"] == TASK:
            by_settings.setdefault(_canonical(row["settings"]), {})[row["metric"]] = row
    human, gpt2 = published_series("Human", "shuffle/WSJ"), published_series("GPT2-medium", TASK)
    rows = []
    for metrics in by_settings.values():
        main = metrics.get("accuracy")
        if main is None or main["value"] is None:
            continue
        size, ties = _block_size(main["settings"]), _value(metrics, "ties")
        rows.append(
            BlockRow(
                block_size=size,
                label=_label(main["settings"]),
                accuracy=Figure.of(main),
                per_token=_value(metrics, "accuracy_per_token"),
                ties=None if ties is None else round(ties * main["n"]),
                human=None if size is None else human.get(size),
                gpt2=None if size is None else gpt2.get(size),
            )
        )
    return sorted(rows, key=lambda row: (row.block_size or 0, row.label))


class DomainTally:
    """Collects the scores of each domain while items stream by, keeping bare numbers only."""

    def __init__(self, items: Iterable[Mapping[str, Any]]) -> None:
        self._groups: dict[tuple[str, str], _Scores] = {}
        self._settings: dict[str, dict[str, Any]] = {}
        self._clusters: dict[str, int] = {}
        for item in items:
            self._add(item)

    def _add(self, item: Mapping[str, Any]) -> None:
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
        """Return the domains seen, those with the most items first."""
        counts: dict[str, int] = {}
        for (domain, _), scores in self._groups.items():
            counts[domain] = counts.get(domain, 0) + len(scores.accuracy)
        return sorted(counts, key=lambda domain: (-counts[domain], domain))

    def rows(self) -> list[DomainRow]:
        """Return a row per domain and block size, by name, of the `MOST_DOMAINS` largest domains."""
        largest = set(self.domains[:MOST_DOMAINS])
        chosen = [key for key in self._groups if key[0] in largest]
        chosen.sort(key=lambda key: (key[0], _block_size(self._settings[key[1]]) or 0, key[1]))
        return [self._row(domain, settings) for domain, settings in chosen]

    def _row(self, domain: str, settings: str) -> DomainRow:
        scores = self._groups[domain, settings]
        size = _block_size(self._settings[settings])
        gpt2 = published_series("GPT2-medium", f"{TASK}/{_PUBLISHED_DOMAINS.get(domain.casefold())}")
        return DomainRow(
            domain=domain,
            label=_label(self._settings[settings]),
            accuracy=Figure(*clustered_interval(scores.accuracy, scores.clusters, bounds=SHARE)),
            per_token=sum(scores.per_token) / len(scores.per_token) if scores.per_token else None,
            gpt2=None if size is None else gpt2.get(size),
        )


class _Scores:
    def __init__(self) -> None:
        self.accuracy, self.per_token, self.clusters = array("d"), array("d"), array("q")


def _label(settings: Mapping[str, Any]) -> str:
    """Write the settings of a row in words; a lone block size is its number."""
    return str(settings["block_size"]) if list(settings) == ["block_size"] else settings_text(settings)


def _block_size(settings: Mapping[str, Any]) -> int | None:
    size = settings.get("block_size")
    return size if isinstance(size, int) else None


def _value(metrics: Mapping[str, Mapping[str, Any]], name: str) -> float | None:
    value = metrics[name]["value"] if name in metrics else None
    return None if value is None else float(value)


def _canonical(settings: Mapping[str, Any]) -> str:
    return json.dumps(settings, sort_keys=True)


# Short words on two lines: the whole must fit a terminal of 80 columns.
_SIZE, _ACCURACY, _INTERVAL = Column("block\nsize"), Column("accuracy"), Column("95 %\ninterval")
_PER_TOKEN, _DOCUMENTS = Column("per\ntoken", wide="accuracy per token"), Column("docs", wide="documents")


def tables(results: Results, folder: Path | None = None) -> list[Table]:
    """Return the table of a run; none where it has no accuracy by block size."""
    rows = block_rows(results)
    if not rows:
        return []
    table = blocks_table(rows)
    table.title = f"Shuffle Test · {results.get('model', '')}"
    table.caption = (
        "publ.: published by Laban et al. (2021), table 2, on other documents; "
        "human on WSJ, GPT2-medium averaged over three domains. Chance is 0.5."
    )
    return [table]


def blocks_table(rows: Iterable[BlockRow]) -> Table:
    """Return the accuracies by block size over all documents."""
    table = Table(
        [
            _SIZE,
            _ACCURACY,
            _INTERVAL,
            _PER_TOKEN,
            Column("ties"),
            Column("pairs"),
            _DOCUMENTS,
            Column("publ.\nhuman", wide="published: human, WSJ", published=True),
            Column("publ.\nGPT2-med", wide="published: GPT2-medium, average", published=True),
        ]
    )
    for row in rows:
        table.add(
            row.label,
            _strong(row.accuracy),
            row.accuracy.interval(),
            row.per_token,
            row.ties,
            row.accuracy.n,
            row.accuracy.clusters,
            row.human,
            row.gpt2,
        )
    return table


def domains_table(rows: Iterable[DomainRow]) -> Table:
    """Return the accuracies by domain and block size."""
    table = Table(
        [
            Column("domain", words=True),
            _SIZE,
            _ACCURACY,
            _INTERVAL,
            _PER_TOKEN,
            Column("pairs"),
            _DOCUMENTS,
            Column("published: GPT2-medium", published=True),
        ]
    )
    before = None
    for row in rows:
        table.add(
            blank_on_page(row.domain) if row.domain == before else row.domain,
            row.label,
            _strong(row.accuracy),
            row.accuracy.interval(),
            row.per_token,
            row.accuracy.n,
            row.accuracy.clusters,
            row.gpt2,
            section=row.domain != before,
        )
        before = row.domain
    return table


def _strong(accuracy: Figure) -> Cell:
    return Cell(accuracy.text(), "strong", value=accuracy.value)
