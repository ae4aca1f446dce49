"""How often each kind of chapter transition occurs, and where models fail: the paper's tables 1 and 5."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ensue.benchmarks.chapterbreak.annotation import ASPECTS, Transition, example_of
from ensue.stats.clustered import Interval, clustered_interval
from ensue.stats.ranges import SHARE

# The suffix length of the paper; of several in a run, the one that results are told for.
MAIN_SUFFIX = 128


@dataclass(frozen=True, slots=True)
class Share:
    """How many of the examples with an agreed category have this one; `share` is None where there are none."""

    count: int
    total: int

    @property
    def share(self) -> float | None:
        return self.count / self.total if self.total else None


class Result(NamedTuple):
    """How a run did on one example, and the work the example is from."""

    accuracy: float
    cluster: str


class CategoryRow(NamedTuple):
    """One category: among all examples, among those every run got wrong, and each run's accuracy on it.

    `all_wrong` is the share of the category's examples that every run got wrong.
    """

    aspect: str
    category: str
    base: Share
    errors: Share
    all_wrong: Interval | None
    accuracy: dict[str, Interval | None]


class Breakdown(NamedTuple):
    """The rows, and of how many annotated examples: those every run has, and those every run got wrong."""

    rows: list[CategoryRow]
    annotated: int
    measured: int
    wrong: int


def shares(transitions: Iterable[Transition]) -> dict[tuple[str, str], Share]:
    """The share of each category by aspect and category (table 1); tied aspects count for neither side."""
    chosen = list(transitions)
    found = {}
    for aspect, categories in ASPECTS.items():
        given = [category for each in chosen if (category := each.category(aspect)) is not None]
        for category in categories:
            found[aspect, str(category)] = Share(given.count(category), len(given))
    return found


def longest_results(items: Iterable[Mapping[str, Any]]) -> dict[str, Result]:
    """How a run did on each chapter break at the split's longest prefix, with in-book negatives."""
    by_length: dict[tuple[str, int], dict[int, dict[str, Result]]] = {}
    for item in items:
        settings, accuracy = item["settings"], item["scores"].get("accuracy")
        if (settings.get("boundary"), settings.get("negatives")) != (
            "chapter",
            "in-book",
        ) or accuracy is None:
            continue
        suffixes = by_length.setdefault((item["task"], settings["prefix_tokens"]), {})
        results = suffixes.setdefault(settings["suffix_tokens"], {})
        results[example_of(item)] = Result(float(accuracy), str(item.get("cluster", item["id"])))
    longest: dict[str, int] = {}
    for split, prefix in by_length:
        longest[split] = max(prefix, longest.get(split, 0))
    found: dict[str, Result] = {}
    for split, prefix in longest.items():
        suffixes = by_length[split, prefix]
        found |= suffixes[main_suffix(suffixes)]
    return found


def main_suffix(lengths: Iterable[int]) -> int:
    """Of several suffix lengths the paper's, or else the longest."""
    known = set(lengths)
    return MAIN_SUFFIX if MAIN_SUFFIX in known else max(known)


def breakdown(transitions: Mapping[str, Transition], runs: Mapping[str, Mapping[str, Result]]) -> Breakdown:
    """The shares of each category among what every run got wrong (table 5), with base rates and accuracies.

    All figures are of the annotated examples that every run has, so that they can be set side by side. An
    example is wrong where the gold suffix did not win, ties included.
    """
    common = [example for example in transitions if all(example in results for results in runs.values())]
    missed = {e for e in common if runs and all(results[e].accuracy < 1.0 for results in runs.values())}
    base = shares(transitions[example] for example in common)
    errors = shares(transitions[example] for example in common if example in missed)
    clusters = {example: next(iter(runs.values()))[example].cluster for example in common} if runs else {}
    rows = []
    for (aspect, category), share in base.items():
        members = [example for example in common if transitions[example].category(aspect) == category]
        accuracy = {
            name: _interval([results[example].accuracy for example in members], members, clusters)
            for name, results in runs.items()
        }
        all_wrong = _interval([float(example in missed) for example in members], members, clusters)
        rows.append(CategoryRow(aspect, category, share, errors[aspect, category], all_wrong, accuracy))
    return Breakdown(rows, len(transitions), len(common), len(missed))


def _interval(
    values: Sequence[float], members: Sequence[str], clusters: Mapping[str, str]
) -> Interval | None:
    if not values:
        return None
    return clustered_interval(values, [clusters[example] for example in members], bounds=SHARE)
