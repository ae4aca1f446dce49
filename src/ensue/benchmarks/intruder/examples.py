"""A few versions of documents with their sentences, for a page to show: hits, misses and false alarms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ensue.benchmarks.intruder.judging import UNTOUCHED, Version
from ensue.report.results import Item

# So many hits and so many misses of each kind: all sentences of all versions would be many times the data.
_EACH = 2


def chosen_examples(versions: Sequence[Version], items: Sequence[Item]) -> list[dict[str, Any]]:
    """Return the first hits and misses of each kind, and false alarms, as the first rule of the run has them."""
    rule = next(iter(items[0]["outputs"]["values"]))
    seen: dict[tuple[str, bool], int] = {}
    found = []
    for version, item in zip(versions, items, strict=True):
        untouched = version.kind == UNTOUCHED
        right = bool(item["scores"][f"{rule}/{'false_alarms' if untouched else 'hit_rate_at'}"]) != untouched
        group = (version.kind, right)
        # An untouched document of which nothing is said is no example of anything.
        if (untouched and right) or seen.get(group, 0) == _EACH:
            continue
        seen[group] = seen.get(group, 0) + 1
        found.append(
            {
                "id": item["id"],
                "document": version.document.id,
                "kind": version.kind,
                "rule": rule,
                "right": right,
                "places": list(version.edited.places),
                "flagged": item["outputs"]["flagged"][rule],
                "sentences": list(version.edited.sentences),
                "before": [version.document.sentences[place] for place in version.edited.places],
                "values": item["outputs"]["values"][rule],
            }
        )
    return found
