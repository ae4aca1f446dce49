"""Comparing two runs on the items they share: paired, clustered, corrected for the number of questions."""

from __future__ import annotations

import json
import math
import sys
from array import array
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ensue.errors import EnsueError
from ensue.runs.reading import ITEMS_FILE, is_finished, read_numbered_items, read_run
from ensue.stats.multiple import holm
from ensue.stats.paired import PairedTest, paired_test


@dataclass(frozen=True)
class ComparedRow:
    """One metric of one task at one setting, over the items both runs have.

    The values are the means over the shared items, so where a run has more items they may differ from its
    own results. `adjusted_p` is Holm's over the rows of the same metric: the family is "at which settings
    does this metric differ", so a count kept beside the accuracy does not weaken it.
    """

    task: str
    metric: str
    settings: dict[str, Any]
    value_a: float
    value_b: float
    test: PairedTest
    adjusted_p: float


@dataclass(frozen=True)
class Comparison:
    """Two runs side by side; `test.difference` of a row is a − b."""

    path_a: str
    path_b: str
    model_a: str
    model_b: str
    signature_a: str
    signature_b: str
    rows: tuple[ComparedRow, ...]
    shared: int
    only_a: int
    only_b: int
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The same as plain JSON values."""
        plain = asdict(self)
        # asdict keeps named tuples, which JSON would print as bare lists.
        plain["rows"] = [
            {**line, "test": row.test._asdict()} for line, row in zip(plain["rows"], self.rows, strict=True)
        ]
        plain["notes"] = list(self.notes)
        return plain


def compare_runs(
    path_a: str | Path, path_b: str | Path, *, rounds: int = 10_000, seed: int = 0
) -> Comparison:
    """Test every metric of two runs on the items, matched by id, task and settings, that both have."""
    folder_a, folder_b = Path(path_a), Path(path_b)
    run_a, run_b = read_run(folder_a), read_run(folder_b)
    matched = _match(folder_a, folder_b)
    if matched.shared == 0:
        raise EnsueError(
            f"{folder_a} and {folder_b} share no items: "
            f"compare runs of the same benchmark, data and settings."
        )
    rows = _test_rows(matched, rounds, seed)
    if not rows:
        raise EnsueError(f"{folder_a} and {folder_b} share items but no metric that both scored.")
    return Comparison(
        path_a=str(folder_a),
        path_b=str(folder_b),
        model_a=_model_name(run_a),
        model_b=_model_name(run_b),
        signature_a=str(run_a.get("signature", "")),
        signature_b=str(run_b.get("signature", "")),
        rows=tuple(rows),
        shared=matched.shared,
        only_a=matched.only_a,
        only_b=matched.only_b,
        notes=tuple(_notes(folder_a, folder_b, run_a, run_b, matched)),
    )


class _Group:
    """The paired scores of one task, setting and metric, kept as bare numbers."""

    def __init__(self, task: str, metric: str, settings: dict[str, Any]) -> None:
        self.task, self.metric, self.settings = task, metric, settings
        self.a, self.b, self.clusters = array("d"), array("d"), array("q")


class _Kept(NamedTuple):
    """All that is kept of an item of the first run until its twin turns up."""

    cluster: int
    scores: tuple[tuple[str, float], ...]
    shown: int | None


class _Matched(NamedTuple):
    groups: list[_Group]
    shared: int
    only_a: int
    only_b: int
    shown_differently: int


def _match(folder_a: Path, folder_b: Path) -> _Matched:
    waiting: dict[str, _Kept | None] = {}
    clusters: dict[str, int] = {}
    for line, key, item in _keyed(folder_a):
        if key in waiting:
            raise _repeated(folder_a, line, item)
        cluster = clusters.setdefault(str(item.get("cluster", item["id"])), len(clusters))
        # Every parsed line brings its own copy of the metric names; interning keeps one.
        scores = tuple((sys.intern(name), score) for name, score in _numbers(item["scores"]).items())
        waiting[key] = _Kept(cluster, scores, _shown(item))
    groups: dict[tuple[str, str, str], _Group] = {}
    shared = only_b = shown_differently = 0
    for line, key, item in _keyed(folder_b):
        if key not in waiting:
            only_b += 1
            continue
        twin = waiting[key]
        if twin is None:
            raise _repeated(folder_b, line, item)
        # Marked rather than removed, so that a second twin is noticed.
        waiting[key] = None
        shared += 1
        shown_differently += twin.shown != _shown(item)
        scores_b = _numbers(item["scores"])
        settings = _canonical(item["settings"])
        for metric, value in twin.scores:
            if metric in scores_b:
                place = (item["task"], settings, metric)
                group = groups.setdefault(place, _Group(item["task"], metric, item["settings"]))
                group.a.append(value)
                group.b.append(scores_b[metric])
                group.clusters.append(twin.cluster)
    only_a = sum(kept is not None for kept in waiting.values())
    return _Matched(list(groups.values()), shared, only_a, only_b, shown_differently)


def _keyed(folder: Path) -> Iterator[tuple[int, str, dict[str, Any]]]:
    for line, item in read_numbered_items(folder):
        yield line, "\0".join([item["id"], item["task"], _canonical(item["settings"])]), item


def _repeated(folder: Path, line: int, item: dict[str, Any]) -> EnsueError:
    return EnsueError(f"{folder / ITEMS_FILE}, line {line}: the item {item['id']!r} was there before.")


def _canonical(settings: dict[str, Any]) -> str:
    return json.dumps(settings, sort_keys=True)


def _numbers(scores: dict[str, Any]) -> dict[str, float]:
    """The scores that are finite numbers; a missing one is null or absent."""
    return {
        name: float(score)
        for name, score in scores.items()
        if isinstance(score, (int, float)) and math.isfinite(score)
    }


def _shown(item: dict[str, Any]) -> int | None:
    """A fingerprint of the order in which an item showed its text, where it has one."""
    outputs = item.get("outputs")
    order = outputs.get("order") if isinstance(outputs, dict) else None
    return None if order is None else hash(json.dumps(order))


def _test_rows(matched: _Matched, rounds: int, seed: int) -> list[ComparedRow]:
    ordered = sorted(matched.groups, key=lambda group: (group.task, group.metric, _sortable(group.settings)))
    tests = [paired_test(group.a, group.b, group.clusters, rounds=rounds, seed=seed) for group in ordered]
    adjusted: dict[int, float] = {}
    for metric in dict.fromkeys(group.metric for group in ordered):
        family = [index for index, group in enumerate(ordered) if group.metric == metric]
        adjusted.update(zip(family, holm([tests[index].p_value for index in family]), strict=True))
    return [
        ComparedRow(
            task=group.task,
            metric=group.metric,
            settings=group.settings,
            value_a=math.fsum(group.a) / len(group.a),
            value_b=math.fsum(group.b) / len(group.b),
            test=test,
            adjusted_p=adjusted[index],
        )
        for index, (group, test) in enumerate(zip(ordered, tests, strict=True))
    ]


def _sortable(settings: dict[str, Any]) -> list[tuple[str, bool, float, str]]:
    """Numbers in order of size and before words, so block size 10 comes after 9."""
    return [
        (
            name,
            not isinstance(value, (int, float)),
            value if isinstance(value, (int, float)) else 0.0,
            str(value),
        )
        for name, value in sorted(settings.items())
    ]


def _model_name(run: dict[str, Any]) -> str:
    model = run.get("model", "")
    return str(model.get("name", "")) if isinstance(model, dict) else str(model)


def _rules(signature: str) -> list[str]:
    """The rules a signature states, without which model it was: that differs by intention."""
    return [word for word in signature.split() if not word.startswith(("model:", "weights:"))]


def _notes(
    folder_a: Path, folder_b: Path, run_a: dict[str, Any], run_b: dict[str, Any], matched: _Matched
) -> Iterator[str]:
    for folder in (folder_a, folder_b):
        if not is_finished(folder):
            yield f"{folder} is an unfinished run; only the items it has so far are compared."
    # A run learns its signature from its model and writes it when it ends.
    rules = [_rules(run["signature"]) for run in (run_a, run_b) if run.get("signature")]
    if len(rules) == 2 and rules[0] != rules[1]:
        words = [
            " ".join(rule for rule in rules[i] if rule not in rules[1 - i]) or "nothing more" for i in (0, 1)
        ]
        yield f"The signatures differ, so the runs were not scored by the same rules: {words[0]} against {words[1]}."
    if matched.only_a or matched.only_b:
        yield (
            f"{matched.only_a} items are only in {folder_a} and {matched.only_b} only in {folder_b}; "
            f"they are left out."
        )
    if matched.shown_differently:
        yield (
            f"{matched.shown_differently} of {matched.shared} shared items showed their sentences in "
            f"different orders (other seeds), so those are paired by document, not by shuffle."
        )
