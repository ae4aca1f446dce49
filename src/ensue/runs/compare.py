"""Comparing two runs on the items they share: paired, clustered, corrected for the number of questions.

Items are shared that have the same name and are made of the same texts and labels. What is tested of them, the
benchmark knows (`benchmarks.comparing`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.base import PEOPLE
from ensue.benchmarks.comparing import Comparing, MeanScores, Resampling, Settings, Tested, Untested
from ensue.benchmarks.marks import is_marked
from ensue.errors import EnsueError
from ensue.report.provenance import model_name
from ensue.report.results import is_finished, read_run
from ensue.runs.pairing import Side, by_reason, match, read_side
from ensue.runs.run import Run, folder_of, part_of, suite_of
from ensue.stats.clustered import Interval
from ensue.stats.paired import PairedTest, holm


class ComparedRow(NamedTuple):
    """One metric of one task at one setting, over the items both runs have.

    The values are those of the shared items, so where a run has more items they may differ from its own results.
    `adjusted_p` is Holm's over the rows of the same metric: the family is "where does this metric differ", so a
    count kept beside the accuracy does not weaken it, nor does a row in which no answer differs (`alike`). `same` is
    the share of items that both runs score the same, where items are right, wrong or undecided.
    """

    task: str
    metric: str
    settings: Settings
    value_a: float
    value_b: float
    test: PairedTest
    adjusted_p: float
    alike: bool
    same: Interval | None


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
    untested: tuple[Untested, ...]
    shared: int
    only_a: int
    only_b: int
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the same as plain JSON values."""
        rows = [
            {
                **row._asdict(),
                "test": row.test._asdict(),
                "same": None if row.same is None else row.same._asdict(),
            }
            for row in self.rows
        ]
        untested = [one._asdict() for one in self.untested]
        return {**vars(self), "rows": rows, "untested": untested, "notes": list(self.notes)}


def compare_runs(
    run_a: str | Path | Run,
    run_b: str | Path | Run,
    *,
    shared: bool = False,
    rounds: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Test every metric of two runs, or run folders, on the items that both have.

    Runs over different data, which call other items by the same names, are refused. With `shared`, items are matched
    by what they are made of, whatever they are called, and the rest is left out.
    """
    folders = [folder_of(run) for run in (run_a, run_b)]
    about = [read_run(folder) for folder in folders]
    comparing = _comparing(folders, about)
    _refuse_mixed(folders, about)
    sides = [read_side(folder, run, comparing, shared) for folder, run in zip(folders, about, strict=True)]
    matched = match(sides[0], sides[1], comparing)
    if matched.shared == 0:
        raise EnsueError(
            f"{folders[0]} and {folders[1]} share no items: compare runs of the same benchmark, data and settings."
        )
    how = Resampling(rounds, seed)
    found = [one for group in matched.pairs for one in comparing.tests(group, how)]
    tested = [one for one in found if isinstance(one, Tested)]
    untested = [*(one for one in found if isinstance(one, Untested)), *matched.untested]
    if not tested:
        why = "; ".join(by_reason(untested)) or "no metric that both scored"
        raise EnsueError(f"{folders[0]} and {folders[1]} share nothing that could be tested ({why}).")
    return Comparison(
        path_a=str(folders[0]),
        path_b=str(folders[1]),
        model_a=model_name(about[0]),
        model_b=model_name(about[1]),
        signature_a=str(about[0].get("signature", "")),
        signature_b=str(about[1].get("signature", "")),
        rows=tuple(_rows(tested)),
        untested=tuple(untested),
        shared=matched.shared,
        only_a=matched.only_a,
        only_b=matched.only_b,
        notes=(*_notes(sides, about), *matched.notes),
    )


def _comparing(folders: Sequence[Path], about: Sequence[dict[str, Any]]) -> Comparing:
    """Return how runs of this benchmark are compared; one of which nothing is known has means of scores."""
    asked = [run["asked"] if isinstance(run.get("asked"), dict) else {} for run in about]
    names = [suite_of(one) for one in asked if one.get("benchmark") is not None]
    if len(set(names)) > 1:
        raise EnsueError(
            f"{folders[0]} is a run of {names[0]} and {folders[1]} one of {names[1]}; compare runs of one benchmark."
        )
    return (part_of(names[0], "comparing") if names else None) or MeanScores()


def _refuse_mixed(folders: Sequence[Path], about: Sequence[dict[str, Any]]) -> None:
    """Refuse a model that named its choice beside one whose log-likelihoods chose: these are not one measure."""
    named = [is_marked(run) for run in about]
    people = [isinstance(run.get("model"), dict) and run["model"].get("kind") == PEOPLE for run in about]
    if len(set(named)) > 1 and not any(people):
        a, b = folders if named[0] else reversed(folders)
        raise EnsueError(
            f"{a} is by generation (the model was asked to name its choice) and {b} by log-likelihood, which are not "
            f"compared: run both in one way (--set by=generation does without log-likelihoods)."
        )


def _rows(tested: Sequence[Tested]) -> list[ComparedRow]:
    ordered = sorted(tested, key=lambda one: (one.task, one.metric, _sortable(one.settings)))
    adjusted = [1.0] * len(ordered)
    for metric in dict.fromkeys(one.metric for one in ordered):
        family = [n for n, one in enumerate(ordered) if one.metric == metric and not one.alike]
        for n, p_value in zip(family, holm([ordered[n].test.p_value for n in family]), strict=True):
            adjusted[n] = p_value
    return [
        ComparedRow(*one[:-2], adjusted_p=p_value, alike=one.alike, same=one.same)
        for one, p_value in zip(ordered, adjusted, strict=True)
    ]


def _sortable(settings: Settings) -> list[tuple[str, bool, float, str]]:
    """Return what sorts numbers by size and before words, so block size 10 comes after 9."""
    return [
        (name, False, value, str(value)) if isinstance(value, int | float) else (name, True, 0.0, str(value))
        for name, value in sorted(settings.items())
    ]


def _rules(signature: str) -> list[str]:
    """Return the rules a signature states; the model differs by intention, and data are matched item by item."""
    mute = ("model:", "weights:", "benchmark:", "data:", "limit:")
    return [word for word in signature.split() if not word.startswith(mute)]


def _notes(sides: Sequence[Side], about: Sequence[dict[str, Any]]) -> Iterator[str]:
    for side in sides:
        if not is_finished(side.folder):
            yield f"{side.folder} is an unfinished run; only the items it has so far are compared."
    # A run learns its signature from its model and writes it when it ends.
    rules = [_rules(run["signature"]) for run in about if run.get("signature")]
    if len(rules) == 2 and rules[0] != rules[1]:
        words = [
            " ".join(rule for rule in rules[i] if rule not in rules[1 - i]) or "nothing more" for i in (0, 1)
        ]
        yield f"The signatures differ, so the runs were not scored by the same rules: {words[0]} against {words[1]}."
