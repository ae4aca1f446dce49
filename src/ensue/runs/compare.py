"""Comparing two runs on the items they share: paired, clustered, corrected for the number of questions.

Items are shared that have the same name and are made of the same texts and labels. What is tested of them, the
benchmark knows (`benchmarks.comparing`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ensue import lazy
from ensue.benchmarks import registry
from ensue.benchmarks.comparing import Comparing, MeanScores, Pairs, Resampling, Tested, Untested
from ensue.errors import EnsueError
from ensue.report.results import is_finished, read_run
from ensue.runs.pairing import Side, match, read_side
from ensue.runs.run import Run, folder_of
from ensue.stats.paired import PairedTest, holm


@dataclass(frozen=True)
class ComparedRow:
    """One metric of one task at one setting, over the items both runs have.

    The values are those of the shared items, so where a run has more items they may differ from its own results.
    `adjusted_p` is Holm's over the rows of the same metric: the family is "where does this metric differ", so a
    count kept beside the accuracy does not weaken it, nor does a row in which no answer differs (`alike`).
    """

    task: str
    metric: str
    settings: dict[str, Any]
    value_a: float
    value_b: float
    test: PairedTest
    adjusted_p: float
    alike: bool


@dataclass(frozen=True)
class UntestedRow:
    """A task, or a metric of one, that could not be tested, and why."""

    task: str
    settings: dict[str, Any]
    reason: str


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
    untested: tuple[UntestedRow, ...]
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
        return plain | {"untested": list(plain["untested"]), "notes": list(self.notes)}


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
    sides = [read_side(folder, run, comparing, shared) for folder, run in zip(folders, about, strict=True)]
    matched = match(sides[0], sides[1], comparing)
    if matched.shared == 0:
        raise EnsueError(
            f"{folders[0]} and {folders[1]} share no items: compare runs of the same benchmark, data and settings."
        )
    tested, untested = _tests(comparing, matched.pairs, Resampling(rounds, seed))
    untested = [*untested, *matched.untested]
    if not tested:
        raise EnsueError(
            f"{folders[0]} and {folders[1]} share nothing that could be tested ({_reasons(untested)})."
        )
    return Comparison(
        path_a=str(folders[0]),
        path_b=str(folders[1]),
        model_a=_model_name(about[0]),
        model_b=_model_name(about[1]),
        signature_a=str(about[0].get("signature", "")),
        signature_b=str(about[1].get("signature", "")),
        rows=tuple(_rows(tested)),
        untested=tuple(UntestedRow(one.task, dict(one.settings), one.reason) for one in untested),
        shared=matched.shared,
        only_a=matched.only_a,
        only_b=matched.only_b,
        notes=(*_notes(sides, about), *matched.notes),
    )


def _comparing(folders: Sequence[Path], about: Sequence[dict[str, Any]]) -> Comparing:
    """How runs of this benchmark are compared; a benchmark of which nothing is known has means of scores."""
    names = [_benchmark_name(run) for run in about]
    if None not in names and names[0] != names[1]:
        raise EnsueError(
            f"{folders[0]} is a run of {names[0]} and {folders[1]} one of {names[1]}; compare runs of one benchmark."
        )
    name = names[0] or names[1]
    if name is None or name not in registry.names():
        return MeanScores()
    reference = registry.find(name).comparing
    return MeanScores() if reference is None else lazy.load(reference)


def _benchmark_name(run: dict[str, Any]) -> str | None:
    asked = run.get("asked")
    name = asked.get("benchmark") if isinstance(asked, dict) else None
    return None if name is None else str(name).partition("/")[0]


def _tests(
    comparing: Comparing, pairs: Sequence[Pairs], how: Resampling
) -> tuple[list[Tested], list[Untested]]:
    tested: list[Tested] = []
    untested: list[Untested] = []
    for group in pairs:
        for one in comparing.tests(group, how):
            if isinstance(one, Tested):
                tested.append(one)
            else:
                untested.append(one)
    return tested, untested


def _reasons(untested: Sequence[Untested]) -> str:
    """Why nothing could be tested, each reason once."""
    tasks: dict[str, dict[str, None]] = {}
    for one in untested:
        tasks.setdefault(one.reason, {})[one.task] = None
    said = [f"{', '.join(names)}: {reason}" for reason, names in tasks.items()]
    return "; ".join(said) or "no metric that both scored"


def _rows(tested: Sequence[Tested]) -> list[ComparedRow]:
    ordered = sorted(tested, key=lambda one: (one.task, one.metric, _sortable(dict(one.settings))))
    adjusted = [1.0] * len(ordered)
    for metric in dict.fromkeys(one.metric for one in ordered):
        family = [n for n, one in enumerate(ordered) if one.metric == metric and not one.alike]
        for n, p_value in zip(family, holm([ordered[n].test.p_value for n in family]), strict=True):
            adjusted[n] = p_value
    return [
        ComparedRow(
            one.task,
            one.metric,
            dict(one.settings),
            one.value_a,
            one.value_b,
            one.test,
            p_value,
            one.alike,
        )
        for one, p_value in zip(ordered, adjusted, strict=True)
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
    """The rules a signature states; the model differs by intention, and data are matched item by item."""
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
