"""Comparing runs of QAGS: the same measure of both, by how well it agrees with people."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from ensue.benchmarks.base import Outcome, RunContext
from ensue.benchmarks.qags.judging import rank
from ensue.benchmarks.summaries.metaeval import difference, over_summaries
from ensue.errors import EnsueError
from ensue.runs.compare import Comparison, compare_runs
from tests.benchmarks.qags.small_sets import Nothing, prepared, write_sets
from tests.support.run_folders import write_items


@pytest.fixture
def outcome(tmp_path: Path) -> Outcome:
    found = prepared(write_sets(tmp_path / "data")).evaluate(Nothing(), RunContext())
    found.items = list(found.items)
    return found


def changed(outcome: Outcome) -> list[dict[str, object]]:
    """The items with another overlap-1, as another model might give."""
    generator = np.random.default_rng(5)
    return [
        {**item, "scores": {**item["scores"], "overlap-1": float(generator.random())}}
        for item in outcome.items
    ]


def compared(tmp_path: Path, outcome: Outcome) -> Comparison:
    one = write_items(tmp_path / "a", "qags", outcome.items)
    return compare_runs(one, write_items(tmp_path / "b", "qags", changed(outcome)))


def test_correlations_are_those_of_the_runs_and_of_scipy(tmp_path: Path, outcome: Outcome) -> None:
    found = compared(tmp_path, outcome)
    own = {
        (row["task"], row["metric"], *sorted(row["settings"].items())): row["value"]
        for row in outcome.metrics
        if row["metric"] in ("pearson", "spearman", "kendall", "accuracy", "accuracy_half_ties")
    }
    first = {
        (row.task, row.metric, *sorted(row.settings.items())): row.value_a
        for row in found.rows
        if row.settings["measure"] == "overlap-1"
    }
    assert first == pytest.approx({key: own[key] for key in first})
    assert len(first) == 2 * 3 + 2 + 2 * 2 * 3
    items = [item for item in changed(outcome) if item["task"] == "cnndm"]
    values = [item["scores"]["overlap-1"] for item in items]  # type: ignore[index]
    human = [item["outputs"]["human"]["consistency"] for item in items]  # type: ignore[index]
    (row,) = [
        row
        for row in found.rows
        if (row.task, row.metric, row.settings) == ("cnndm", "pearson", {"measure": "overlap-1"})
    ]
    assert row.value_b == pytest.approx(stats.pearsonr(values, human)[0])
    before = [item["scores"]["overlap-1"] for item in outcome.items if item["task"] == "cnndm"]
    both = (over_summaries(one, human) for one in (before, values))
    expected = difference(*both)["pearson"]
    assert (row.test.difference, row.test.low, row.test.high, row.test.p_value) == pytest.approx(expected)


def test_rankings_are_paired_by_triplet(tmp_path: Path, outcome: Outcome) -> None:
    found = compared(tmp_path, outcome)
    data = prepared(tmp_path / "data")
    (falke,) = [one for one in data.data.sets if one.name == "falke"]
    values = [item["scores"]["overlap-1"] for item in changed(outcome) if item["task"] == "falke"]  # type: ignore[index]
    ranked = rank(falke.triplets, values)
    rows = {
        row.metric: row
        for row in found.rows
        if row.task == "falke" and row.settings == {"measure": "overlap-1"}
    }
    assert rows["accuracy"].value_b == ranked.accuracy.value
    assert rows["accuracy_half_ties"].value_b == ranked.half.value
    assert rows["accuracy"].test.n == 4


def test_measures_without_a_difference_and_those_of_one_run_only(tmp_path: Path, outcome: Outcome) -> None:
    found = compared(tmp_path, outcome)
    assert {row.settings["measure"] for row in found.rows if not row.alike} == {"overlap-1"}
    fewer = [
        {**item, "scores": {"overlap-1": item["scores"]["overlap-1"]}}
        for item in outcome.items
        if item["task"] == "xsum"
    ]
    again = compare_runs(tmp_path / "a", write_items(tmp_path / "c", "qags", fewer))
    reasons = {(one.task, one.settings.get("measure")): one.reason for one in again.untested}
    assert reasons["xsum", "overlap-2"] == "it was computed in the first run only"
    assert reasons["cnndm", None] == f"it is only in {tmp_path / 'a'}"
    one = [item for item in outcome.items if item["task"] == "xsum"][:1]
    with pytest.raises(EnsueError, match="fewer than two summaries"):
        compare_runs(tmp_path / "a", write_items(tmp_path / "d", "qags", one))
