"""Runs of every benchmark, killed at random steps and gone on with, end as if nothing had happened."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import environment

BENCHMARKS = {"shuffle", "qags", "discoeval", "senteval", "squality", "superglue", "glue"}


@pytest.mark.slow
def test_runs_killed_at_random_steps_end_the_same(tmp_path):
    command = [sys.executable, "-m", "tests.runs.killing", tmp_path]
    root = Path(__file__).parents[2]
    done = subprocess.run(
        command, cwd=root, env=environment(HF_HUB_OFFLINE="1"), capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert set(told) == BENCHMARKS
    assert any(any(one["killed"]) for one in told.values())
    for name, one in told.items():
        whole, found = (tmp_path / kind / name for kind in ("whole", "killed"))
        assert (found / "items.jsonl").read_bytes() == (whole / "items.jsonl").read_bytes(), (name, one)
        results = [json.loads((folder / "results.json").read_text("utf-8")) for folder in (whole, found)]
        for each in results:
            del each["seconds"]
        assert results[0] == results[1], (name, one)
        about = json.loads((found / "run.json").read_text("utf-8"))
        if one["kept"]:
            assert about["resumed_from"] == one["kept"], (name, one)
        assert not list(found.glob("journal*")) + list(found.glob(".kept*"))
