"""Comparing two runs of ChapterBreak: by example, kind of negatives and lengths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ensue.benchmarks.comparing import Asked, MeanScores


class ChapterBreakComparing(MeanScores):
    """An item's id says its lengths only where a run has several, so examples are known by their own."""

    def asked(self, item: Mapping[str, Any]) -> Asked:
        outputs = item.get("outputs") or {}
        return Asked(outputs.get("example", item["id"]), item["task"], item["settings"], {})


COMPARING = ChapterBreakComparing()
