"""What people can agree on, in the answers of a project.

A *unit* is a choice, one sentence's judgment, one option of several, one pair of a ranking or an order, a number of a
scale. Passages that were marked are compared by how far they overlap; free text is not compared. What was said of the
same thing in several items, such as one response under other letters, is brought together by the kind (`judged`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from ensue.benchmarks.people.agreement import Judgment, Marks, Ratings, ratings_of
from ensue.benchmarks.people.export import Export
from ensue.benchmarks.people.kind import Kind
from ensue.metrics.agreement import Level


class Said(NamedTuple):
    """What somebody said of an item, or of a part of it, in answer to a field of that type."""

    item: str
    part: str
    field: str
    type: str
    annotator: str
    value: Any


class Table(NamedTuple):
    """The judgments of a field, and at what level they are compared."""

    ratings: Ratings
    level: Level


def said_in(export: Export, kind: Kind) -> Iterator[Said]:
    """Yield all that was said in answers that count."""
    for one in export.answers():
        for judged in kind.judged(one):
            type = export.fields.get(judged.field, "")
            yield Said(judged.item, judged.part, judged.name, type, one.annotator, judged.value)


def level_of(type: str) -> Level:
    """Return at what level the values of a type of field are compared."""
    return "interval" if type in {"scale", "place"} else "nominal"


def rating_tables(said: Sequence[Said]) -> dict[str, Table]:
    """Return the judgments of each field that people can agree on, as tables, by field."""
    given: dict[str, list[Judgment]] = {}
    levels: dict[str, Level] = {}
    chosen = _chosen(said)
    for one in said:
        units = _UNITS.get(one.type)
        if units is None:
            continue
        levels[one.field] = level_of(one.type)
        for unit, value in units(one.value, chosen.get(one.field, ())):
            given.setdefault(one.field, []).append(Judgment(one.item, (one.part, unit), one.annotator, value))
    return {name: Table(ratings_of(judged), levels[name]) for name, judged in given.items()}


def marks_in(said: Sequence[Said]) -> dict[str, list[Marks]]:
    """Return what each person marked, by field; whoever answered where others marked, and marked nothing, too."""
    there: dict[str, set[str]] = {}
    found: dict[str, dict[tuple[str, str], dict[str, frozenset[tuple[str, int]]]]] = {}
    for one in said:
        there.setdefault(one.item, set()).add(one.annotator)
        if one.type == "spans":
            marked = found.setdefault(one.field, {}).setdefault((one.item, one.part), {})
            marked[one.annotator] = _characters(one.value)
    return {
        field: [
            Marks(item, part, annotator, by.get(annotator, frozenset()))
            for (item, part), by in of.items()
            for annotator in (sorted(there[item]) if not part else sorted(by))
        ]
        for field, of in found.items()
    }


def _characters(spans: Iterable[Mapping[str, Any]]) -> frozenset[tuple[str, int]]:
    return frozenset(
        (str(one.get("label", "")), place)
        for one in spans
        for place in range(int(one["start"]), int(one["end"]))
    )


def _chosen(said: Iterable[Said]) -> dict[str, list[str]]:
    """Return for fields of several choices all that anybody chose: what nobody did is no matter of agreement."""
    found: dict[str, set[str]] = {}
    for one in said:
        if one.type == "choices":
            found.setdefault(one.field, set()).update(map(_word, one.value))
    return {name: sorted(options) for name, options in found.items()}


Units = Callable[[Any, Sequence[Any]], Iterator[tuple[Hashable, str | float]]]


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _one(value: Any, _: Sequence[Any]) -> Iterator[tuple[Hashable, str | float]]:
    yield "", _word(value)


def _number(value: Any, _: Sequence[Any]) -> Iterator[tuple[Hashable, str | float]]:
    yield "", float(value)


def _each(value: Any, known: Sequence[Any]) -> Iterator[tuple[Hashable, str | float]]:
    for option in known:
        yield option, "yes" if option in map(_word, value) else "no"


def _sentences(value: Any, _: Sequence[Any]) -> Iterator[tuple[Hashable, str | float]]:
    for place, one in enumerate(value):
        yield place, _word(one["value"])


def _ordered(value: Any, _: Sequence[Any]) -> Iterator[tuple[Hashable, str | float]]:
    yield from _pairs({id: place for place, id in enumerate(value)})


def _ranked(value: Any, _: Sequence[Any]) -> Iterator[tuple[Hashable, str | float]]:
    yield from _pairs(value)


def _pairs(places: Mapping[str, int]) -> Iterator[tuple[Hashable, str | float]]:
    for a, b in combinations(sorted(places), 2):
        yield (a, b), "before" if places[a] < places[b] else "after" if places[a] > places[b] else "tied"


_UNITS: Mapping[str, Units] = {
    "choice": _one,
    "preference": _one,
    "choices": _each,
    "scale": _number,
    "place": _number,
    "sentences": _sentences,
    "order": _ordered,
    "rank": _ranked,
}
