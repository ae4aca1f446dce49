"""Run folders written by hand, for tests of what reads them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def write_items(folder: Path, benchmark: str, items: Iterable[Mapping[str, Any]], **run: Any) -> Path:
    """A finished run of a benchmark with these items."""
    folder.mkdir(parents=True)
    about = {"asked": {"benchmark": benchmark}, "model": {"name": folder.name}, "signature": "rules:1", **run}
    (folder / "run.json").write_text(json.dumps(about))
    (folder / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    (folder / "results.json").write_text(json.dumps({"benchmark": benchmark, "metrics": []}))
    return folder
