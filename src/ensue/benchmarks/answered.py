"""What people are worth on the questions of a run: their answers by question, and the outcome they make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from ensue.benchmarks.base import Outcome
from ensue.benchmarks.people.agreement import Judgment, drawn_fleiss, ratings_of
from ensue.benchmarks.people.export import Export, Record
from ensue.errors import EnsueError
from ensue.models.protocols import Model
from ensue.report.results import Item, MetricRow

Asked = TypeVar("Asked")
Records = dict[str, list[Record]]


def by_item(export: Export) -> Records:
    """Return what people answered, by what was asked."""
    found: Records = {}
    for one in export.answers():
        found.setdefault(one.item, []).append(one)
    return found


def kappa_rows(
    judgments: Sequence[Judgment], task: str, settings: Mapping[str, Any], metric: str = "kappa"
) -> list[MetricRow]:
    """Return the row of Fleiss' kappa, none where people cannot agree by chance."""
    table = ratings_of(judgments)
    kappa = drawn_fleiss(table.table, table.items)
    return [] if kappa is None else [kappa.row(task, metric, settings)]


def people_outcome(
    model: Model,
    export: Export,
    known: Mapping[str, Asked],
    *,
    what: str,
    content: Callable[[Asked], str],
    item: Callable[[Asked, Sequence[Record]], Item],
    rows: Callable[[Sequence[Item], Records], Iterable[MetricRow]],
    skipped: Counter[str],
    notes: Counter[str] | None = None,
    key: str = "id",
    mark: str = "content",
    hint: str = "",
) -> Outcome:
    """Return the outcome of people who answered about what a run asks about, which is `known` by id.

    `key` and `mark` are where an answer has that id and a digest of what was read, which must be the `content` of
    what the run has; `what` that is called, and `hint` says how it is had. What nobody was asked about is counted.
    """
    records = by_item(export)
    if not records:
        export.refuse_empty()
    items, answered = [], set()
    judged: Records = {}
    for asked, given in records.items():
        id = str(given[0].key[key])
        if id not in known:
            skipped[f"{what}s of people that are not here"] += 1
        elif content(known[id]) != given[0].key[mark]:
            raise EnsueError(
                f"The {what} {id} is not the one people read; run on the project's data ({export.source}){hint}."
            )
        else:
            items.append(item(known[id], given))
            answered.add(id)
            judged[asked] = given
    if not items:
        raise EnsueError(f"People read none of these {what}s; run on the project's data ({export.source}).")
    skipped[f"{what}s that nobody was asked about"] = len(known) - len(answered)
    people = len({one.annotator for given in judged.values() for one in given})
    return Outcome(
        items=items,
        metrics=list(rows(items, judged)),
        signature=f"model:{model.card.signed_name} export:{model.card.mark} people:{people}",
        skipped=dict(+skipped),
        tokens=0,
        notes=notes or Counter(),
    )
