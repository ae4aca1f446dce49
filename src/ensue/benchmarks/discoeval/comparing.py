"""Comparing two runs of DiscoEval: by task, split and line, whichever layer and protocol answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ensue.benchmarks.comparing import Asked, MeanScores
from ensue.benchmarks.discoeval.rows import without_layer


class DiscoEvalComparing(MeanScores):
    """Layer, protocol and what was taken away are how an item was answered."""

    def asked(self, item: Mapping[str, Any]) -> Asked:
        way = dict(item["settings"])
        split = way.pop("split", None)
        return Asked(without_layer(item["id"]), item["task"], {"split": split}, way)


COMPARING = DiscoEvalComparing()
