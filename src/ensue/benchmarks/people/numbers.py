"""An annotation project in numbers, for its organiser: progress, agreement, times, disagreement and pay.

Pure functions of an export (`export.py`); what people can agree on is in `units.py`.
"""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from ensue.benchmarks.crowd.protocol import in_cents
from ensue.benchmarks.drawn import Drawn
from ensue.benchmarks.people.agreement import (
    Agreement,
    AnnotatorAgreement,
    ItemAgreement,
    Marks,
    Ratings,
    agreement_of,
    by_annotator,
    by_item,
    drawn_overlap,
    share_of_pairs,
)
from ensue.benchmarks.people.export import Export, Record
from ensue.benchmarks.people.kind import Earned, Kind
from ensue.benchmarks.people.units import Said, Table, marks_in, rating_tables, said_in
from ensue.report import table as report
from ensue.report.figure import Figure, settings_text
from ensue.report.results import MetricRow
from ensue.stats.clustered import Interval, clustered_interval
from ensue.stats.ranges import CORRELATION, SHARE

# How long answers took, for a picture: up to so many seconds.
BINS = (5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600, math.inf)
# Of the items people disagree on, so many are shown.
SHOWN = 20

Ends = tuple[float | None, float | None]


class Progress(NamedTuple):
    """The work of a stage: answers that count, how many are wanted (None: not known), items, people."""

    stage: str
    answers: int
    wanted: int | None
    items: int
    people: int


class Times(NamedTuple):
    """Seconds on task of a stage's answers, idle time taken out; `bins` counts those up to each of `BINS`."""

    stage: str
    answers: int
    median: float
    quartiles: tuple[float, float]
    deciles: tuple[float, float]
    bins: tuple[int, ...]


class FieldAgreement(NamedTuple):
    """How far people agree on a field of the form."""

    field: str
    level: str
    units: int
    agreement: Agreement

    @property
    def alike(self) -> bool:
        """Whether everything was answered the same, so that there is nothing to agree on beyond chance."""
        return self.agreement.alpha is not None and math.isnan(self.agreement.alpha.value)


class Disagreement(NamedTuple):
    """An item that people disagree on: the share of pairs that agree, its 95 % interval, and what each said."""

    item: str
    agreeing: float
    agreeing_ci95: tuple[float, float]
    values: Mapping[str, Any]


class PersonNumbers(NamedTuple):
    """One annotator: what they did, how they stand to the others (with 95 % intervals), and what they earn."""

    annotator: str
    state: str
    answers: int
    void: int
    hasty: int
    controls: int
    missed: int
    median_seconds: float | None
    accuracy: float | None
    accuracy_ci95: Ends | None
    agreeing: float | None
    agreeing_ci95: Ends | None
    kappa: float | None
    kappa_ci95: Ends | None
    pay: float
    bonus: float
    per_hour: float | None


class Overview(NamedTuple):
    """Everything that the organiser's view shows of a project."""

    progress: tuple[Progress, ...]
    times: tuple[Times, ...]
    agreement: tuple[FieldAgreement, ...]
    disagreements: tuple[Disagreement, ...]
    people: tuple[PersonNumbers, ...]
    scores: tuple[MetricRow, ...]
    pay_per_hour: float | None
    owed: float

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it: no number that is none, intervals as in results.json."""
        return {
            "progress": [one._asdict() for one in self.progress],
            "times": [one._asdict() for one in self.times],
            "agreement": [
                {"field": one.field, "level": one.level, "units": one.units, "alike": one.alike}
                | {name: _figure(drawn) for name, drawn in one.agreement._asdict().items()}
                for one in self.agreement
            ],
            "disagreements": [one._asdict() for one in self.disagreements],
            "people": [one._asdict() for one in self.people],
            "scores": list(self.scores),
            "pay_per_hour": self.pay_per_hour,
            "owed": self.owed,
        }


def overview(export: Export, kind: Kind) -> Overview:
    """Return a project in numbers."""
    said = list(said_in(export, kind))
    tables = rating_tables(said)
    earned = kind.earned(export)
    people = tuple(people_numbers(export, earned, tables))
    rates = [one.per_hour for one in people if one.per_hour is not None]
    owed = sum(float(one.pay + one.bonus) for one in earned.values())
    return Overview(
        tuple(progress(export)),
        tuple(times(export)),
        tuple(agreements(tables, marks_in(said))),
        tuple(disagreements(said, tables)[:SHOWN]),
        people,
        tuple(kind.scores(export)),
        statistics.median(rates) if rates else None,
        owed,
    )


def _figure(drawn: Drawn | None) -> dict[str, Any] | None:
    if drawn is None or math.isnan(drawn.value):
        return None
    return {"value": drawn.value, "ci95": list(drawn.interval()), "n": drawn.n, "clusters": drawn.units}


def scores_table(rows: Sequence[MetricRow]) -> report.Table:
    """Return how right people are as a table: a line for whatever it is of, a column a metric."""
    metrics = list(dict.fromkeys(row["metric"] for row in rows))
    lines: dict[str, dict[str, Figure]] = {}
    for row in rows:
        of = ", ".join(filter(None, (row["task"], settings_text(row["settings"]))))
        lines.setdefault(of, {})[row["metric"]] = Figure.of(row)
    columns = [report.Column(metric.replace("_", " ")) for metric in metrics]
    table = report.Table([report.Column("of", words=True), *columns])
    for of, figures in lines.items():
        digits = {metric: 1 if metric == "seconds" else 3 for metric in metrics}
        table.add(of, *(report.figure_cell(figures.get(one), digits=digits[one]) for one in metrics))
    return table


# Progress and times


def progress(export: Export) -> Iterator[Progress]:
    """Yield how far the work of each stage is."""
    by_stage = _by_stage(export)
    for stage in dict.fromkeys([*export.wanted, *by_stage]):
        records = by_stage.get(stage, [])
        items, people = ({pick(one) for one in records} for pick in (_item, _annotator))
        yield Progress(stage, len(records), export.wanted.get(stage), len(items), len(people))


def times(export: Export) -> Iterator[Times]:
    """Yield how long the work of each stage took."""
    for stage, records in _by_stage(export).items():
        seconds = np.array([one.seconds for one in records])
        low, first, middle, third, high = np.quantile(seconds, (0.1, 0.25, 0.5, 0.75, 0.9)).tolist()
        # A bin holds what is above the last end and not above its own.
        counts = np.bincount(np.searchsorted(BINS, seconds), minlength=len(BINS)).tolist()
        yield Times(stage, len(records), middle, (first, third), (low, high), tuple(counts))


def _item(one: Record) -> str:
    return one.item


def _annotator(one: Record) -> str:
    return one.annotator


def _by_stage(export: Export) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for one in export.answers():
        found.setdefault(one.stage, []).append(one)
    return found


# Agreement


def agreements(tables: Mapping[str, Table], marks: Mapping[str, Sequence[Marks]]) -> Iterator[FieldAgreement]:
    """Yield how far people agree on each field; on marked passages, how far they overlap."""
    for name, table in tables.items():
        units = len(table.ratings.items)
        yield FieldAgreement(name, table.level, units, agreement_of(table.ratings, table.level))
    for name, given in marks.items():
        if (overlap := drawn_overlap(given)) is not None:
            yield FieldAgreement(name, "passages", overlap.n, Agreement(None, None, None, overlap))


def disagreements(said: Sequence[Said], tables: Mapping[str, Table]) -> list[Disagreement]:
    """Return the items that people do not all agree on, those they agree on least first."""
    agreeing: defaultdict[Hashable, float] = defaultdict(float)
    pairs: Counter[Hashable] = Counter()
    judgments: Counter[Hashable] = Counter()
    for table in tables.values():
        found = by_item(table.ratings) if table.level == "nominal" else closeness(table.ratings)
        for one in found:
            agreeing[one.item] += one.agreeing * one.pairs
            pairs[one.item] += one.pairs
            judgments[one.item] += one.judgments
    shares = {item: agreeing[item] / n for item, n in pairs.items()}
    values: dict[str, dict[str, dict[str, Any]]] = {}
    for each in said:
        if each.field in tables:
            name = f"{each.field}, {each.part}" if each.part else each.field
            values.setdefault(each.item, {}).setdefault(each.annotator, {})[name] = each.value
    ordered = sorted((item for item in shares if shares[item] < 1), key=lambda item: shares[item])
    return [
        Disagreement(
            str(item), shares[item], share_of_pairs(shares[item], judgments[item]), values[str(item)]
        )
        for item in ordered
    ]


def closeness(ratings: Ratings) -> list[ItemAgreement]:
    """Return for numbers how near each item's pairs are: 1 for the same, 0 for as far apart as any in the table."""
    spread = float(np.nanmax(ratings.table) - np.nanmin(ratings.table)) or 1.0
    near: defaultdict[Hashable, float] = defaultdict(float)
    pairs: Counter[Hashable] = Counter()
    judgments: Counter[Hashable] = Counter()
    for item, row in zip(ratings.items, ratings.table, strict=True):
        given = row[np.isfinite(row)].tolist()
        if len(given) < 2:
            continue
        judgments[item] += len(given)
        for a, b in combinations(given, 2):
            near[item] += 1 - abs(a - b) / spread
            pairs[item] += 1
    return [ItemAgreement(item, near[item] / n, n, judgments[item]) for item, n in pairs.items()]


# People and pay


def people_numbers(
    export: Export, earned: Mapping[str, Earned], tables: Mapping[str, Table]
) -> Iterator[PersonNumbers]:
    """Yield everybody's numbers; an hour's pay is over all the time they spent, training included."""
    standing = {one.annotator: one.state for one in export.people}
    agreeing = _with_others(tables)
    for name in export.annotators:
        own = [one for one in export.records if one.annotator == name]
        work = [one for one in own if one.counts]
        controls = [one for one in own if one.control]
        hours = sum(one.seconds for one in own) / 3600
        paid = earned.get(name)
        pay, bonus = (float(paid.pay), float(paid.bonus)) if paid else (0.0, 0.0)
        share, kappa = agreeing.get(name, (None, None))
        right = _accuracy(work)
        ends = kappa.interval() if kappa is not None else None
        yield PersonNumbers(
            name,
            standing.get(name, ""),
            len(work),
            sum(one.state == "void" for one in own),
            sum(one.hasty for one in own),
            len(controls),
            sum(one.right is False for one in controls),
            statistics.median(one.seconds for one in work) if work else None,
            right.value if right is not None else None,
            (right.low, right.high) if right is not None else None,
            share.value if share is not None else None,
            (share.low, share.high) if share is not None else None,
            kappa.value if kappa is not None else None,
            ends,
            pay,
            bonus,
            (pay + bonus) / hours if paid and hours else None,
        )


def _accuracy(work: Sequence[Record]) -> Interval | None:
    """Return the share of somebody's answers that are right, of those of which it is known."""
    known = [one for one in work if one.right is not None]
    right = [float(bool(one.right)) for one in known]
    return clustered_interval(right, [one.item for one in known], bounds=SHARE) if known else None


def bonuses(export: Export, kind: Kind) -> dict[str, int]:
    """Return everybody's bonus in cents, by pseudonym; nobody is named who gets none."""
    amounts = {name: one.bonus for name, one in kind.earned(export).items()}
    return {name: cents for name, cents in in_cents(amounts).items() if cents}


def bonus_csv(cents: Mapping[str, int], ids: Mapping[str, str]) -> str:
    """Return bonuses as a crowd's site takes them; `ids` are its names of people, by pseudonym.

    >>> bonus_csv({"p1": 85, "p2": 1205}, {"p1": "5f3a"})
    'participant_id,amount\\n5f3a,0.85\\n'
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("participant_id", "amount"))
    writer.writerows((ids[name], f"{n // 100}.{n % 100:02}") for name, n in cents.items() if name in ids)
    return file.getvalue()


def _with_others(tables: Mapping[str, Table]) -> dict[str, tuple[Interval | None, Drawn | None]]:
    """Return how far each annotator agrees with the others on labels, over all fields: pairs, and mean kappa."""
    found: dict[str, list[AnnotatorAgreement]] = {}
    for table in tables.values():
        if table.level == "nominal":
            for one in by_annotator(table.ratings):
                found.setdefault(one.annotator, []).append(one)
    return {name: (_share(given), _kappa(given)) for name, given in found.items()}


def _share(given: Sequence[AnnotatorAgreement]) -> Interval | None:
    """Return the share of all pairs that agree; pairs of one item are not independent."""
    same = [float(pair) for one in given for pair in one.same]
    items = [item for one in given for item in one.items]
    return clustered_interval(same, items, bounds=SHARE) if same else None


def _kappa(given: Sequence[AnnotatorAgreement]) -> Drawn | None:
    """Return the mean kappa over fields, each as heavy as its judgments, as if all of them rose and fell together."""
    kept = [(one.kappa, one.judgments) for one in given if one.kappa is not None]
    if len(kept) < 2:
        return kept[0][0] if kept else None
    figures, weights = [one for one, _ in kept], [weight for _, weight in kept]
    draws = [np.sort(one.draws) for one in figures if one.draws is not None]
    value = float(np.average([one.value for one in figures], weights=weights))
    n, units = sum(one.n for one in figures), max(one.units for one in figures)
    return Drawn(value, np.average(draws, axis=0, weights=weights), n, units, CORRELATION)
