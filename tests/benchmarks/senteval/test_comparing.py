"""Comparing runs of SentEval: what is compared is what each run's own results say, correlations too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ensue.benchmarks.base import Outcome, RunContext
from ensue.benchmarks.senteval.task import TASK
from ensue.benchmarks.settings import resolve
from ensue.runs.compare import Comparison, compare_runs
from tests.benchmarks.senteval.folders import WordEncoder
from tests.support.run_folders import write_items


class Coarse(WordEncoder):
    """Another encoder, which keeps little of a sentence."""

    def encode(self, texts: Any, **options: Any) -> Any:
        return np.asarray(super().encode(texts, **options))[..., :3]


def evaluated(folder: Path, task: str, encoder: Any, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    monkeypatch.setenv("ENSUE_HOME", str(folder / type(encoder).__name__))
    values = resolve("senteval", TASK.settings, {"classifier_device": "cpu", "protocol": "converged"})
    outcome = TASK.prepare(task, str(folder), None, 0, values).evaluate(encoder, RunContext())
    outcome.items = list(outcome.items)
    return outcome


def compared(folder: Path, tmp_path: Path, outcomes: list[Outcome]) -> Comparison:
    one, other = (
        write_items(tmp_path / f"run{n}", "senteval", outcome.items) for n, outcome in enumerate(outcomes)
    )
    return compare_runs(one, other, rounds=200)


@pytest.mark.parametrize("task", ["STS12", "STSBenchmark", "MRPC"])
def test_values_are_those_of_the_runs(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    outcomes = [evaluated(folder, task, encoder, monkeypatch) for encoder in (WordEncoder(), Coarse())]
    found = compared(folder, tmp_path, outcomes)
    wanted = [
        {
            (row["metric"], row["settings"]["split"]): row["value"]
            for row in outcome.metrics
            if "subset" not in row["settings"] and "average" not in row["settings"]
        }
        for outcome in outcomes
    ]
    own = [{(row.metric, row.settings["split"]): row.value_a for row in found.rows}]
    own.append({(row.metric, row.settings["split"]): row.value_b for row in found.rows})
    assert own[0] == pytest.approx(wanted[0])
    assert own[1] == pytest.approx(wanted[1])
    assert [row.test.difference for row in found.rows] == pytest.approx(
        [row.value_a - row.value_b for row in found.rows]
    )
    assert {metric for metric, _ in own[0]} == (
        {"accuracy", "f1"} if task == "MRPC" else {"pearson", "spearman"}
    )


def test_layers_are_how_an_item_was_answered(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = evaluated(folder, "STSBenchmark", WordEncoder(), monkeypatch)
    at_layer = Outcome(
        [{**item, "settings": {**item["settings"], "layer": 2}} for item in outcome.items], [], "", {}, 0
    )
    found = compared(folder, tmp_path, [outcome, at_layer])
    assert {row.alike for row in found.rows} == {True}
    assert found.notes == (
        "STSBenchmark (split dev), STSBenchmark (split test): a is protocol converged, "
        "b is protocol converged, layer 2.",
    )


def test_the_difference_of_a_year_is_that_of_the_means_over_its_sets(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    gold = generator.uniform(0, 5, 40)
    # The second set lies apart, so that all pairs at once would correlate otherwise.
    given = [
        gold + generator.normal(0, sd, 40) + far * (np.arange(40) >= 20) for sd, far in ((1, 30), (2, 0))
    ]
    folders = [
        write_items(
            tmp_path / f"run{n}",
            "senteval",
            [
                {
                    "id": str(place),
                    "cluster": str(place),
                    "task": "STS12",
                    "settings": {"split": "test", "subset": "one" if place < 20 else "two"},
                    "scores": {},
                    "outputs": {"gold": gold[place], "similarity": scores[place]},
                    "content": str(place),
                }
                for place in range(40)
            ],
        )
        for n, scores in enumerate(given)
    ]
    parts = (slice(0, 20), slice(20, 40))
    means = [np.mean([np.corrcoef(scores[part], gold[part])[0, 1] for part in parts]) for scores in given]
    (row,) = [one for one in compare_runs(*folders, rounds=100).rows if one.metric == "pearson"]
    assert (row.value_a, row.value_b) == pytest.approx(means)
    assert row.test.difference == pytest.approx(means[0] - means[1])
