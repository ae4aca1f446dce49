"""What other models answered in finished runs of the same tests, so that models may be asked one by one, on several
machines, and a model that comes later is held against those that were asked before."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from ensue.errors import EnsueError
from ensue.report.results import Item, read_items, read_results, read_run
from ensue.version import __version__

# What the texts themselves are held against says more about these than a path does.
_PATHS = ("models", "beside", "domains", "ratings")
# Under which name a run keeps the fingerprints of its tests.
TESTS = "tests"
_MODELS = re.compile(r"\bmodels:(\S+)")


class Earlier(NamedTuple):
    """A finished run: where it lies, what its models answered, which of them saw shuffled text, how they are signed,
    and what was left out."""

    folder: str
    items: list[Item]
    trained: dict[str, bool]
    signed: str
    skipped: dict[str, int]


def read_earlier(folder: str, asked_now: Mapping[str, Any], tests: Mapping[str, str]) -> Earlier:
    """Read a finished run of transfer; one that was asked otherwise, or about other texts, is refused.

    A test may be missing on either side; where both have it, its fingerprint is the same.
    """
    path = Path(folder).expanduser()
    results = read_results(path)
    if results.get("benchmark") != "transfer":
        raise EnsueError(f"{folder} is a run of {results.get('benchmark')}, not of transfer.")
    asked = read_run(path).get("asked")
    if not isinstance(asked, dict) or not all(
        isinstance(asked.get(key), dict) for key in ("settings", TESTS)
    ):
        raise EnsueError(f"{path / 'run.json'} does not say what was asked.")
    then, now = {**asked, **asked["settings"]}, {**asked_now, "version": __version__}
    for key in [key for key in now if key not in _PATHS]:
        if then.get(key) != now[key]:
            raise EnsueError(
                f"{folder} was run with {key} {then.get(key)}, not {now[key]}, so its answers cannot stand beside "
                f"these."
            )
    for test, mark in tests.items():
        if asked[TESTS].get(test, mark) != mark:
            raise EnsueError(
                f"{folder} asked about other texts ({test}), so its answers cannot stand beside these."
            )
    trained = {
        str(row["settings"]["model"]): bool(row["settings"]["trained"])
        for row in results["metrics"]
        if "trained" in row["settings"]
    }
    signed = _MODELS.search(str(results.get("signature")))
    items = [cast(Item, item) for item in read_items(path)]
    if not items or any(item["settings"].get("model") not in trained for item in items):
        raise EnsueError(f"The items of {folder} are not those of its results; run it again.")
    return Earlier(folder, items, trained, signed[1] if signed else "", dict(results["skipped"]))
