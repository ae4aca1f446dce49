"""Comparing two runs of SentEval: accuracies, MRPC's F1, and correlations (of an STS year the mean over sets)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ensue.benchmarks.comparing import (
    Asked,
    MeanScores,
    Pairs,
    Resampling,
    Tested,
    Untested,
    correlation_test,
    mean_test,
)
from ensue.benchmarks.senteval.answering import POSITIVE, WITH_F1
from ensue.metrics.classification import confusion_cells, f1
from ensue.stats.paired_statistic import Numbers, paired_statistic_test
from ensue.stats.resampling import one_hot


class SentEvalAnswer(NamedTuple):
    """What an item holds: classes by name, or scores; and the set of the year it is of, where there are several."""

    gold: Any
    given: Any
    subset: str


class SentEvalComparing(MeanScores):
    """Items belong together by task, split and line; layer and protocol are how they were answered."""

    def asked(self, item: Mapping[str, Any]) -> Asked:
        settings = dict(item["settings"])
        split = settings.pop("split", None)
        settings.pop("subset", None)
        return Asked(item["id"], item["task"], {"split": split}, settings)

    def kept(self, item: Mapping[str, Any]) -> SentEvalAnswer:
        outputs = item["outputs"]
        gold = outputs["label"] if "label" in outputs else float(outputs["gold"])
        given = outputs["similarity"] if "similarity" in outputs else outputs["predicted"]
        return SentEvalAnswer(gold, given, item["settings"].get("subset", ""))

    def tests(self, pairs: Pairs, how: Resampling) -> Iterator[Tested | Untested]:
        if isinstance(pairs.a[0][0].gold, str):
            yield from mean_test(pairs, "accuracy", lambda one: float(one.gold == one.given), how)
            if pairs.task == WITH_F1:
                yield _f1(pairs, how)
            return
        gold = [item[0].gold for item in pairs.a]
        a, b = ([float(item[0].given) for item in side] for side in (pairs.a, pairs.b))
        sets = [item[0].subset for item in pairs.a]
        for kind in ("pearson", "spearman"):
            yield correlation_test(pairs, kind, a, b, gold, how, sets)


def _f1(pairs: Pairs, how: Resampling) -> Tested:
    """F1 of MRPC's paraphrases."""
    a, b = (
        one_hot(
            confusion_cells(
                [item[0].gold == POSITIVE for item in side], [item[0].given == POSITIVE for item in side], 2
            ),
            4,
        )
        for side in (pairs.a, pairs.b)
    )
    test = paired_statistic_test(a, b, pairs.clusters, _f1_of_sums, rounds=how.rounds, seed=how.seed)
    values = [float(_f1_of_sums(table.sum(axis=0))) for table in (a, b)]
    return Tested(pairs.task, "f1", pairs.settings, values[0], values[1], test, bool(np.array_equal(a, b)))


def _f1_of_sums(sums: Numbers) -> Numbers:
    return f1(sums.reshape(*sums.shape[:-1], 2, 2))


COMPARING = SentEvalComparing()
