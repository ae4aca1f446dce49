"""From predictions to items and rows, by hand: shares of seeds, clusters, groups, and the average of table 2."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from ensue.benchmarks.base import content_of
from ensue.benchmarks.discoeval.data import SPECS, DiscoEvalData, DiscoEvalExample
from ensue.benchmarks.discoeval.judging import COMPARING, ProbedSplit, judge, metric_rows
from ensue.benchmarks.discoeval.probe import Choices, Probe
from ensue.stats.clustered import clustered_interval, mean_interval

CHOICES = Choices("paper", context=True, hidden=True, seeds=(0, 1), device="cpu")
BY_NAME = {spec.name: spec for spec in SPECS}


def task(name: str, labels: list[int]) -> DiscoEvalData:
    """Examples of two a cluster, the same on dev and test."""
    examples = [
        DiscoEvalExample(f"{name}/{n}", f"{name}/line-{n // 2}", label, ((f"One {n}.",), (f"Two {n}.",)))
        for n, label in enumerate(labels)
    ]
    splits = {"dev": examples, "test": examples}
    return DiscoEvalData(BY_NAME[name], Path("data"), ("first", "second"), splits, "made", Counter())


def probe(*seeds: list[int], layer: int | None = None) -> Probe:
    found = np.array(seeds)
    return Probe(layer, [{"seed": n} for n in range(len(seeds))], {"dev": found, "test": 1 - found})


def test_an_example_scores_the_share_of_seeds_that_are_right() -> None:
    on_dev, on_test = judge(
        task("BSO/wiki", [0, 1, 1, 0]), probe([0, 1, 0, 0], [0, 0, 0, 1], layer=3), CHOICES
    )
    assert on_dev.scores.tolist() == [1.0, 0.5, 0.0, 0.5]
    assert on_test.scores.tolist() == [0.0, 0.5, 1.0, 0.5]
    settings = {"split": "dev", "protocol": "paper", "layer": 3}
    assert (on_dev.settings, on_test.settings["split"]) == (settings, "test")
    items = list(on_dev.items())
    assert items[1] == {
        "id": "BSO/wiki/1#layer3",
        "cluster": "BSO/wiki/line-0",
        "task": "BSO/wiki",
        "settings": settings,
        "scores": {"accuracy": 0.5},
        "outputs": {"label": "second", "predicted": ["second", "first"]},
        "content": content_of((("One 1.",), ("Two 1.",)), "second"),
        "asked": content_of((("One 1.",), ("Two 1.",))),
    }
    row = on_dev.row()
    reference = clustered_interval([1.0, 0.5, 0.0, 0.5], ["a", "a", "b", "b"], bounds=(0, 1))
    assert (row["task"], row["metric"], row["value"]) == ("BSO/wiki", "accuracy", 0.5)
    assert (row["n"], row["clusters"], row["ci95"]) == (4, 2, [reference.low, reference.high])


def test_one_seed_predicts_one_label_and_no_layer_has_no_mark() -> None:
    (on_dev, _) = judge(task("BSO/wiki", [0, 1]), probe([1, 1]), CHOICES)
    first, second = on_dev.items()
    assert (first["id"], first["outputs"]) == ("BSO/wiki/0", {"label": "first", "predicted": "second"})
    assert second["scores"] == {"accuracy": 1.0}
    assert on_dev.settings == {"split": "dev", "protocol": "paper"}


def dev_of(name: str, right: int, of: int = 4) -> ProbedSplit:
    """The first `right` examples right, on dev."""
    found = [1] * right + [0] * (of - right)
    return judge(task(name, [1] * of), probe(found), CHOICES)[0]


def test_groups_are_means_of_their_tasks_and_the_average_of_columns() -> None:
    """PDTB's two kinds are columns of their own; a group of one task has a row all the same, but RST has one."""
    judged = [
        dev_of("SP/wiki", 1),
        dev_of("SP/arxiv", 3),
        dev_of("DC/chat", 4),
        dev_of("PDTB/explicit", 2),
        dev_of("PDTB/implicit", 0),
        dev_of("RST", 1),
    ]
    rows = list(metric_rows(judged, "", ["SP/rocstory", "BSO/wiki"], 50))
    assert [row["task"] for row in rows[:6]] == [one.task.spec.name for one in judged]
    averages = {row["task"]: row for row in rows[6:]}
    assert {name: row["value"] for name, row in averages.items()} == {
        "SP": pytest.approx(0.5),
        "DC": 1.0,
        "PDTB": pytest.approx(0.25),
        "average": pytest.approx((0.5 + 1.0 + 0.5 + 0.0 + 0.25) / 5),
    }
    assert averages["SP"]["settings"] == {
        "split": "dev",
        "protocol": "paper",
        "covers": "2 of 3 tasks, the first 50 lines of each file",
        "tasks": "SP/wiki,SP/arxiv",
        "missing": "SP/rocstory",
    }
    assert "missing" not in averages["DC"]["settings"]
    assert averages["average"]["settings"]["missing"] == "SP/rocstory,BSO/wiki"
    assert (averages["SP"]["n"], averages["SP"]["clusters"]) == (8, 4)
    assert (averages["average"]["n"], averages["average"]["clusters"]) == (24, 12)
    low, high = averages["average"]["ci95"]
    assert low is not None
    assert high is not None
    assert low < averages["average"]["value"] < high


def test_only_what_was_asked_for_is_averaged() -> None:
    judged = [dev_of("SP/wiki", 1), dev_of("SP/arxiv", 3)]
    assert [row["task"] for row in metric_rows(judged, "sp/", [])][2:] == ["SP"]
    assert [row["task"] for row in metric_rows(judged[:1], "SP/wiki", [])] == ["SP/wiki"]


def test_dev_and_test_and_layers_are_averaged_apart() -> None:
    low = judge(task("SP/wiki", [1, 1]), probe([1, 1], layer=0), CHOICES)
    high = judge(task("SP/wiki", [1, 1]), probe([1, 0], layer=1), CHOICES)
    found = {
        (row["settings"]["layer"], row["settings"]["split"]): row["value"]
        for row in metric_rows([*low, *high], "SP", [])
        if row["task"] == "SP"
    }
    assert found == {(0, "dev"): 1.0, (0, "test"): 0.0, (1, "dev"): 0.5, (1, "test"): 0.5}


def test_one_cluster_has_no_interval_and_what_was_taken_away_is_told() -> None:
    choices = Choices("paper", context=False, hidden=False, seeds=(0,), device="cpu")
    (alone, _) = judge(task("SP/wiki", [1, 1]), probe([1, 0]), choices)
    rows = list(metric_rows([alone], "", []))
    for row in rows[1:]:
        assert row["ci95"] == [None, None]
        assert row["settings"]["context"] == "no"
        assert "hidden" not in row["settings"]
    assert [row["task"] for row in rows] == ["SP/wiki", "SP", "average"]


def test_intervals_of_averages_weigh_columns_alike() -> None:
    """Two columns: SP with two tasks and DC with one; each column weighs a half."""
    judged = [dev_of("SP/wiki", 1), dev_of("SP/arxiv", 3), dev_of("DC/chat", 2)]
    rows = {row["task"]: row for row in metric_rows(judged, "", [])}
    parts = [one.interval() for one in judged]
    expected = mean_interval(parts, [0.25, 0.25, 0.5])
    assert rows["average"]["value"] == pytest.approx(0.5)
    assert rows["average"]["ci95"] == pytest.approx([expected.low, expected.high])
    pair = mean_interval(parts[:2], [0.5, 0.5])
    assert rows["SP"]["ci95"] == pytest.approx([pair.low, pair.high])
    assert rows["average"]["settings"] == {
        "split": "dev",
        "protocol": "paper",
        "covers": "3 of 3 tasks",
        "tasks": "SP/wiki,SP/arxiv,DC/chat",
    }


@pytest.mark.parametrize(
    ("protocol", "context", "hidden", "group", "taken"),
    [
        ("paper", True, True, "SP", {}),
        ("paper", False, True, "SP", {"context": "no"}),
        ("paper", False, False, "BSO", {}),
        ("paper", True, False, "DC", {"hidden": "no"}),
        ("converged", True, True, "DC", {"hidden": "no"}),
        ("converged", True, True, "SP", {}),
        ("paper", False, True, "DC", {}),
    ],
)
def test_what_was_taken_away_is_told_of_the_groups_it_concerns(
    protocol: str, context: bool, hidden: bool, group: str, taken: dict[str, str]
) -> None:
    assert Choices(protocol, context, hidden, (0,), "cpu").ablation(group) == taken


def test_an_item_is_compared_by_line_and_split_however_it_was_answered() -> None:
    settings = {"split": "dev", "protocol": "paper", "layer": 3}
    item = {"id": "SP/wiki/7#layer3", "task": "SP/wiki", "settings": settings}
    way = {"protocol": "paper", "layer": 3}
    assert COMPARING.asked(item) == ("SP/wiki/7", "SP/wiki", {"split": "dev"}, way)
    assert settings == {"split": "dev", **way}
    bare = {"id": "RST/1", "task": "RST", "settings": {}}
    assert COMPARING.asked(bare) == ("RST/1", "RST", {"split": None}, {})
