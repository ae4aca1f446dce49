"""The figures of every model on every test, and how far those trained on shuffled text are ahead of the others."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ensue.benchmarks.transfer.asked import ACCURACY, HIT_RATE
from ensue.report.figure import Figure
from ensue.report.results import Item, MetricRow
from ensue.stats.clustered import clustered_interval
from ensue.stats.paired import paired_test
from ensue.stats.ranges import SHARE

AHEAD = "ahead"
# To which a mean is the same, in whatever order it is summed.
_DIGITS = 9
# By test, the items of each model.
_ByTest = dict[tuple[str, str], dict[str, list[Item]]]


def metric_rows(items: Sequence[Item], trained: Mapping[str, bool]) -> Iterator[MetricRow]:
    """Yield the accuracy of each model on each test, with an interval over documents (groups of rated texts), and how
    far each one trained on shuffled text is ahead of each that was not, on the same pairs."""
    tests = _by_test(items)
    for (task, asked), models in tests.items():
        question = json.loads(asked)
        for model, own in models.items():
            settings = {**question, "model": model, "trained": trained[model]}
            for metric in (ACCURACY, HIT_RATE):
                if metric in own[0]["scores"]:
                    values = [item["scores"][metric] for item in own]
                    clusters = [item["cluster"] for item in own]
                    yield Figure(*clustered_interval(values, clusters, bounds=SHARE)).row(
                        task, metric, settings
                    )
    for (task, asked), models in tests.items():
        for model in [name for name in models if trained[name]]:
            for other in [name for name in models if not trained[name]]:
                settings = {**json.loads(asked), "model": model, "against": other}
                yield _ahead(models[model], models[other]).row(task, AHEAD, settings)


def agree(items: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether items as they were read are those from which the rows were made: each what a model answered, and
    as many on every test, with the same means."""
    values: dict[str, list[float]] = {}
    for item in items:
        outputs, scores = item.get("outputs"), item["scores"]
        whole = isinstance(item.get("cluster"), str) and isinstance(outputs, dict) and "pair" in outputs
        if not whole or any(type(score) not in (int, float) for score in scores.values()):
            return False
        for metric, score in scores.items():
            values.setdefault(_asked(item["task"], metric, item["settings"]), []).append(score)
    found = {asked: (len(own), round(math.fsum(own) / len(own), _DIGITS)) for asked, own in values.items()}
    told = {
        _asked(row["task"], row["metric"], row["settings"]): (row["n"], round(row["value"], _DIGITS))
        for row in rows
        if row["metric"] != AHEAD and type(row["value"]) in (int, float)
    }
    return found == told


def _asked(task: str, metric: str, settings: Mapping[str, Any]) -> str:
    asked = {key: value for key, value in settings.items() if key != "trained"}
    return json.dumps([task, metric, asked], sort_keys=True)


def _by_test(items: Sequence[Item]) -> _ByTest:
    found: _ByTest = {}
    for item in items:
        question = {key: value for key, value in item["settings"].items() if key != "model"}
        test = found.setdefault((item["task"], json.dumps(question)), {})
        test.setdefault(item["settings"]["model"], []).append(item)
    return found


def _ahead(first: Sequence[Item], second: Sequence[Item]) -> Figure:
    """Return by how much the first is ahead on the pairs that both answered."""
    others: dict[str, Any] = {item["outputs"]["pair"]: item["scores"][ACCURACY] for item in second}
    shared = [item for item in first if item["outputs"]["pair"] in others]
    a = [item["scores"][ACCURACY] for item in shared]
    b = [others[item["outputs"]["pair"]] for item in shared]
    test = paired_test(a, b, [item["cluster"] for item in shared], bounds=SHARE)
    return Figure(test.difference, test.low, test.high, test.n, test.clusters)
