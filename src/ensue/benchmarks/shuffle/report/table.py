"""The tables of Shuffle Test runs: a row a block size, all documents or by domain, the published figures beside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.marks import marked
from ensue.benchmarks.published import published
from ensue.report.figure import Figure, settings_text
from ensue.report.results import Results, metrics_by_setting, value_of
from ensue.report.table import Cell, Column, Content, Table, blank_on_page

PACKAGE = "ensue.benchmarks.shuffle"
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
    by_document: float | None
    authors: float | None
    ties: int | None
    human: float | None
    gpt2: float | None
    # Of runs of people alone.
    majority: float | None = None
    seconds: float | None = None
    kappa: float | None = None


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


def block_rows(results: Mapping[str, Any], domain: str | None = None) -> list[BlockRow]:
    """Return one row per block size from the rows of `results.json` of all documents, or of those of a domain."""
    known = "" if domain is None else _PUBLISHED_DOMAINS.get(domain.casefold(), "none")
    human = published_series("Human", "shuffle/WSJ")
    gpt2 = published_series("GPT2-medium", _task(known or None))
    rows = []
    for metrics in metrics_by_setting(row for row in results["metrics"] if row["task"] == _task(domain)):
        main = metrics.get("accuracy")
        if main is None or main["value"] is None:
            continue
        settings, ties = main["settings"], value_of(metrics, "ties")
        per_token = value_of(metrics, "accuracy_per_token")
        size = settings.get("block_size") if isinstance(settings.get("block_size"), int) else None
        rows.append(
            BlockRow(
                block_size=size,
                # A lone block size is its number.
                label=str(size) if set(settings) <= {"block_size", "by"} else settings_text(settings),
                accuracy=Figure.of(main),
                per_token=per_token,
                by_document=value_of(metrics, "accuracy_by_document"),
                # A model that rates texts, and people, have nothing per token.
                authors=value_of(
                    metrics, "accuracy_authors" if per_token is None else "accuracy_per_token_authors"
                ),
                ties=None if ties is None else round(ties * main["n"]),
                human=None if size is None else human.get(size),
                gpt2=None if size is None else gpt2.get(size),
                majority=value_of(metrics, "accuracy_majority"),
                seconds=value_of(metrics, "seconds"),
                kappa=value_of(metrics, "kappa"),
            )
        )
    return sorted(rows, key=lambda row: (row.block_size or 0, row.label))


def domains_of(results: Mapping[str, Any]) -> list[str]:
    """Return the domains that a run tells apart, those with the most pairs first."""
    pairs: Counter[str] = Counter()
    for row in results["metrics"]:
        if row["metric"] == "accuracy" and row["task"].startswith(_task("")):
            pairs[row["task"].removeprefix(_task(""))] += row["n"]
    return sorted(pairs, key=lambda domain: (-pairs[domain], domain))


def _task(domain: str | None) -> str:
    return "shuffle" if domain is None else f"shuffle/{domain}"


# Short words on two lines: the whole must fit a terminal of 80 columns.
_MAIN = map(Column, ("block\nsize", "accuracy", "95 %\ninterval"))
_FIRST = (*_MAIN, Column("per\ntoken", wide="accuracy per token"))
_DOCUMENTS = Column("docs", wide="documents")


def tables(results: Results, folder: Path | None = None) -> list[Table]:
    """Return the table of a run; none where it has no accuracy by block size."""
    rows = block_rows(results)
    if not rows:
        return []
    table = blocks_table(rows)
    table.title = f"Shuffle Test · {results.get('model', '')}"
    if _by_people(rows):
        table.caption = (
            "accuracy: of one person, the mean over whoever read a pair; majority: of their vote, a tie half; "
            "seconds: the mean over pairs of their readers' median, idle time taken out; κ: Fleiss', of the sides "
            "chosen. publ.: people on WSJ, Laban et al. (2021), table 2. Chance is 0.5."
        )
        return [table]
    by = " by perplexity," if any(row.per_token is not None for row in rows) else ""
    table.caption = (
        "publ.: published by Laban et al. (2021), table 2, on other documents; human on WSJ, GPT2-medium averaged "
        f"over three domains. It compares with 'as the authors':{by} every document counting alike, one of "
        "a single block as wrong. Chance is 0.5."
    )
    return [marked(table, results)]


def _by_people(rows: Sequence[BlockRow]) -> bool:
    return any(row.majority is not None for row in rows)


def blocks_table(rows: Sequence[BlockRow]) -> Table:
    """Return the accuracies by block size over all documents; of people, also the seconds and how far they agree."""
    if _by_people(rows):
        return _people_table(rows)
    table = Table(
        [
            *_FIRST,
            Column("mean per document", in_terminal=False),
            Column("as the\nauthors", wide="as the authors count"),
            Column("ties"),
            Column("pairs"),
            _DOCUMENTS,
            Column("publ.\nhuman", wide="published: human, WSJ", published=True),
            Column("publ.\nGPT2-M", wide="published: GPT2-medium, average", published=True),
        ]
    )
    for row in rows:
        table.add(
            *_first_cells(row),
            row.by_document,
            row.authors,
            row.ties,
            row.accuracy.n,
            row.accuracy.clusters,
            row.human,
            row.gpt2,
        )
    return table


def _people_table(rows: Sequence[BlockRow]) -> Table:
    more = map(Column, ("majority", "seconds", "κ", "ties", "pairs"))
    publ = Column("publ.\nhuman", wide="published: human, WSJ", published=True)
    table = Table([*_FIRST[:3], *more, _DOCUMENTS, publ])
    for row in rows:
        seconds = None if row.seconds is None else Cell(f"{row.seconds:.1f}", value=row.seconds)
        counts = (row.ties, row.accuracy.n, row.accuracy.clusters)
        table.add(*_first_cells(row)[:3], row.majority, seconds, row.kappa, *counts, row.human)
    return table


def domains_table(results: Mapping[str, Any]) -> Table:
    """Return the accuracies of the largest domains by domain and block size."""
    table = Table(
        [
            Column("domain", words=True),
            *_FIRST,
            Column("pairs"),
            _DOCUMENTS,
            Column("published: GPT2-medium", published=True),
        ]
    )
    for domain in sorted(domains_of(results)[:MOST_DOMAINS]):
        name = domain or "unnamed"
        for place, row in enumerate(block_rows(results, domain)):
            table.add(
                blank_on_page(name) if place else name,
                *_first_cells(row),
                row.accuracy.n,
                row.accuracy.clusters,
                row.gpt2,
                section=not place,
            )
    return table


def _first_cells(row: BlockRow) -> list[Content]:
    accuracy = row.accuracy
    strong = Cell(accuracy.text(), "strong", value=accuracy.value)
    return [row.label, strong, accuracy.interval(), row.per_token]
