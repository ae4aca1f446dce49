"""Which items of two runs belong together: by their names and by what they are made of."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.comparing import Comparing, Pairs, Settings, Untested, in_common
from ensue.errors import EnsueError
from ensue.report.figure import settings_text
from ensue.report.results import ITEMS_FILE, read_numbered_items


class Kept(NamedTuple):
    """All that is kept of an item."""

    cluster: str
    content: str | None
    answer: Any
    shown: int | None


@dataclass
class Group:
    """The items of one task and setting: by the way they were answered, and then by name."""

    task: str
    settings: Settings
    ways: dict[str, Settings] = field(default_factory=dict)
    items: dict[str, dict[str, Kept]] = field(default_factory=dict)

    def names(self) -> set[str]:
        """Return the names of all items."""
        return {name for found in self.items.values() for name in found}


@dataclass
class Side:
    """One of the runs; `fingerprint` is that of its data, where it says one."""

    folder: Path
    fingerprint: str | None
    shared: bool
    groups: dict[str, Group] = field(default_factory=dict)


class Matched(NamedTuple):
    """What both have, what could not be matched, how many items are in one only, and what there is to say."""

    pairs: list[Pairs]
    untested: list[Untested]
    shared: int
    only_a: int
    only_b: int
    notes: list[str]


def read_side(folder: Path, run: Mapping[str, Any], comparing: Comparing, shared: bool) -> Side:
    """Read the items of a run as a comparison needs them; with `shared` their names are what they are made of."""
    data = run.get("data")
    side = Side(folder, data.get("fingerprint") if isinstance(data, dict) else None, shared)
    seen: Counter[tuple[str, str, str]] = Counter()
    for line, item in read_numbered_items(folder):
        try:
            asked = comparing.asked(item)
            answer = comparing.kept(item)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise EnsueError(
                f"{folder / ITEMS_FILE}, line {line}: the item lacks what is compared of it ({error!r})."
            ) from error
        place = _canonical([asked.task, asked.settings])
        group = side.groups.setdefault(place, Group(asked.task, asked.settings))
        way = _canonical(asked.way)
        group.ways.setdefault(way, asked.way)
        content = item.get("content")
        name = asked.id
        if shared:
            if not isinstance(content, str):
                raise EnsueError(
                    f"{folder} was run before items said what they are made of, so what it shares with another run "
                    f"cannot be told; run it again."
                )
            # Of items that are alike in all, such as the shuffles of one document, the first goes with the first.
            seen[place, way, content] += 1
            name = f"{content} {seen[place, way, content]}"
        found = group.items.setdefault(way, {})
        if name in found:
            raise EnsueError(f"{folder / ITEMS_FILE}, line {line}: the item {item['id']!r} was there before.")
        found[name] = Kept(str(item.get("cluster", item["id"])), content, answer, _shown(item))
    return side


def match(a: Side, b: Side, comparing: Comparing) -> Matched:
    """Pair the items of two runs, or refuse: items of one name must be made of the same texts and labels."""
    checked = _Checked(a, b)
    pairs: list[Pairs] = []
    untested: list[Untested] = []
    said: dict[str, list[str]] = {}
    shared = 0
    codes: dict[str, int] = {}
    for place, first in a.groups.items():
        second = b.groups.get(place)
        if second is None:
            untested.append(Untested(first.task, first.settings, f"it is only in {a.folder}"))
            continue
        both = len(first.names() & second.names())
        shared += both
        if both == 0:
            untested.append(Untested(first.task, first.settings, "the runs share none of its items"))
            continue
        chosen = _ways(first, second, comparing)
        if isinstance(chosen, str):
            untested.append(Untested(first.task, first.settings, chosen))
            continue
        for words in _ways_words(first, second, chosen):
            said.setdefault(words, []).append(place_words(first.task, first.settings))
        for ways in chosen:
            made = _pairs(first, second, ways, checked, codes)
            if made.clusters:
                pairs.append(made)
    untested += [
        Untested(group.task, group.settings, f"it is only in {b.folder}")
        for place, group in b.groups.items()
        if place not in a.groups
    ]
    checked.refuse()
    only = [sum(len(group.names()) for group in side.groups.values()) - shared for side in (a, b)]
    ways_notes = [f"{', '.join(places)}: {words}." for words, places in said.items()]
    return Matched(pairs, untested, shared, only[0], only[1], [*checked.notes(shared, only), *ways_notes])


class _Ways(NamedTuple):
    """Ways of answering to be compared: one with the same, or those that either run's figure is the mean of."""

    a: Sequence[str]
    b: Sequence[str]
    same: Settings


class _Checked:
    """What was seen of pairs while they were made: other texts under one name, no texts known, other orders."""

    def __init__(self, a: Side, b: Side) -> None:
        self._a, self._b = a, b
        self._items: set[tuple[str, str]] = set()
        self._other: set[tuple[str, str]] = set()
        self._unknown: set[tuple[str, str]] = set()
        self._shown_differently: set[tuple[str, str]] = set()

    def see(self, place: str, name: str, one: Kept, other: Kept) -> None:
        key = (place, name)
        self._items.add(key)
        if one.content is None or other.content is None:
            self._unknown.add(key)
        elif one.content != other.content:
            self._other.add(key)
        if one.shown != other.shown:
            self._shown_differently.add(key)

    def refuse(self) -> None:
        """Raise where the two runs are over different data."""
        a, b = self._a, self._b
        if self._other:
            raise EnsueError(
                f"{len(self._other):,} of {len(self._items):,} items that {a.folder} and {b.folder} both have by "
                f"name are made of other texts or labels, so the runs are over different data; compare only what is "
                f"the same with --shared (in Python shared=True)."
            )
        if self._unknown and None not in (a.fingerprint, b.fingerprint) and a.fingerprint != b.fingerprint:
            raise EnsueError(
                f"{a.folder} and {b.folder} are over different data (fingerprints {str(a.fingerprint)[:12]} and "
                f"{str(b.fingerprint)[:12]}), and one was run before items said what they are made of; run it again "
                f"to compare what they share."
            )

    def notes(self, shared: int, only: Sequence[int]) -> Iterator[str]:
        a, b = self._a, self._b
        if self._unknown and None in (a.fingerprint, b.fingerprint):
            yield (
                f"{len(self._unknown):,} shared items do not say what they are made of, nor the runs of which data "
                f"they are, so they are paired by name alone."
            )
        if a.shared:
            yield f"Items are matched by what they are made of: {shared:,} are in both runs."
        if any(only):
            yield (
                f"{only[0]:,} items are only in {a.folder} and {only[1]:,} only in {b.folder}; they are left out."
            )
        if self._shown_differently:
            yield (
                f"{len(self._shown_differently):,} of {shared:,} shared items showed their sentences in "
                f"different orders (other seeds), so those are paired by document, not by shuffle."
            )


def _ways(a: Group, b: Group, comparing: Comparing) -> list[_Ways] | str:
    """Return the ways both have, each with itself; else one run's figure with the other's; else why not."""
    if common := [way for way in a.ways if way in b.ways]:
        return [_Ways([way], [way], a.ways[way]) for way in common]
    chosen = []
    for group, where in ((a, "first"), (b, "second")):
        found = [_canonical(way) for way in comparing.headline(list(group.ways.values()))]
        if not found:
            said = "; ".join(map(way_words, group.ways.values()))
            return (
                f"the {where} run answered it in several ways ({said}), none of which the other has; name one"
            )
        chosen.append(found)
    ways = [group.ways[way] for group, found in zip((a, b), chosen, strict=True) for way in found]
    return [_Ways(chosen[0], chosen[1], in_common(ways))]


def _ways_words(a: Group, b: Group, chosen: Sequence[_Ways]) -> Iterator[str]:
    """Return what a reader must know of ways that were put beside each other or left out."""
    for ways in chosen:
        if list(ways.a) != list(ways.b):
            words = [
                ("the mean over " if len(found) > 1 else "")
                + "; ".join(way_words(group.ways[way]) for way in found)
                for group, found in ((a, ways.a), (b, ways.b))
            ]
            yield f"a is {words[0]}, b is {words[1]}"
    if all(list(ways.a) == list(ways.b) for ways in chosen):
        for group, which in ((a, "a"), (b, "b")):
            taken = {one for ways in chosen for one in ways.a}
            if left := [way_words(one) for way, one in group.ways.items() if way not in taken]:
                yield f"answers that only {which} has are left out ({'; '.join(left)})"


def _pairs(a: Group, b: Group, ways: _Ways, checked: _Checked, codes: dict[str, int]) -> Pairs:
    # Each side's answers are repeated so that every way of the one meets every way of the other.
    items_a = [a.items[way] for way in ways.a for _ in ways.b]
    items_b = [b.items[way] for _ in ways.a for way in ways.b]
    answers_a, answers_b, clusters = [], [], []
    for name, one in items_a[0].items():
        if all(name in items for items in (*items_a, *items_b)):
            checked.see(place_words(a.task, a.settings), name, one, items_b[0][name])
            answers_a.append([items[name].answer for items in items_a])
            answers_b.append([items[name].answer for items in items_b])
            clusters.append(codes.setdefault(one.cluster, len(codes)))
    return Pairs(a.task, {**a.settings, **ways.same}, answers_a, answers_b, clusters)


def way_words(way: Settings) -> str:
    """Write a way of answering in words.

    >>> way_words({"template": "plain", "shots": 0}), way_words({})
    ('template plain, shots 0', 'its one answer')
    """
    return settings_text(way) or "its one answer"


def place_words(task: str, settings: Settings) -> str:
    """Write a task and setting in words.

    >>> place_words("CoLA", {"split": "dev"})
    'CoLA (split dev)'
    """
    words = settings_text(settings)
    return f"{task} ({words})" if words else task


def by_reason(untested: Sequence[Untested]) -> list[str]:
    """Say for every reason, once, what could not be tested for it."""
    places: dict[str, list[str]] = {}
    for one in untested:
        places.setdefault(one.reason, []).append(place_words(one.task, one.settings))
    return [f"{', '.join(dict.fromkeys(names))}: {reason}" for reason, names in places.items()]


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _shown(item: Mapping[str, Any]) -> int | None:
    """Return a fingerprint of what an item showed: what was asked, or the order of its text where it has one."""
    if item.get("asked"):
        return hash(str(item["asked"]))
    outputs = item.get("outputs")
    order = outputs.get("order") if isinstance(outputs, dict) else None
    return None if order is None else hash(json.dumps(order))
