"""A run, submitted by the command and graded by the command, has the same metric rows."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from tests.support.command import here

Row = dict[str, Any]


def submitted(suite: str, run: Path, *options: object, split: str = "test") -> Path:
    """Where `ensue submit` wrote the predictions of a run."""
    done = here("submit", suite, run, "--split", split, *options, "--json")
    assert (done.code, done.err) == (0, "")
    return Path(json.loads(done.out)["path"])


def graded(suite: str, file: Path, labels: Path, *options: object, split: str = "test") -> Mapping[str, Any]:
    """What `ensue grade` says."""
    done = here("grade", file, "--suite", suite, "--labels", labels, "--split", split, *options, "--json")
    assert (done.code, done.err) == (0, "")
    found: Mapping[str, Any] = json.loads(done.out)
    return found


def by_place(rows: list[Row], split: str, ways: Collection[str]) -> dict[str, Row]:
    """The rows of a split by task, metric and settings, without what says how a system answered."""
    found: dict[str, Row] = {}
    for row in rows:
        if row["settings"].get("split", split) != split:
            continue
        settings = {key: value for key, value in row["settings"].items() if key not in ways}
        place = json.dumps([row["task"], row["metric"], settings], sort_keys=True)
        assert place not in found, place
        found[place] = {key: row[key] for key in ("value", "ci95", "n", "clusters")}
    return found


def agree(
    run: Any,
    said: Mapping[str, Any],
    ways: Collection[str] = (),
    split: str = "test",
    without: Collection[str] = (),
) -> dict[str, Row]:
    """Every row of the run of that split is graded, to the last bit; returns what was graded beside."""
    expected = [row for row in run.results["metrics"] if row["metric"] not in without]
    wanted = by_place(expected, split, ways)
    found = by_place([*said["metrics"], *said["diagnostics"]], split, ways)
    assert wanted
    assert {place: found.get(place) for place in wanted} == wanted
    return {place: row for place, row in found.items() if place not in wanted}
