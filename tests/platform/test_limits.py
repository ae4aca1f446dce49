"""Functions in processes of their own: what they may take, and what is told of how they end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ensue.platform.limits import Limits, Outcome, run_limited

CHORES = "tests.platform.chores"


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions of the tests are found by the process that runs them."""
    places = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, places)))


def run(folder: Path, name: str, limits: Limits | None = None, **arguments: Any) -> Outcome:
    return run_limited(f"{CHORES}:{name}", arguments, limits or Limits(), folder)


def test_what_the_function_returns_comes_back(tmp_path: Path) -> None:
    assert run(tmp_path, "double", number=21) == Outcome("done", 42)


def test_a_sentence_for_the_user_comes_back_and_an_error_without_its_words(tmp_path: Path) -> None:
    assert run(tmp_path, "refuse", words="WiC.jsonl is missing.") == Outcome(
        "refused", "WiC.jsonl is missing."
    )
    outcome = run(tmp_path, "leak", label="entailment")
    assert outcome.kind == "broken"
    assert outcome.value.startswith("KeyError at child.py:")
    assert "chores.py:" in outcome.value
    for file in tmp_path.iterdir():
        if file.name != "job.json":
            assert "entailment" not in file.read_text()


def test_it_stands_behind_those_who_read(tmp_path: Path) -> None:
    found = run(tmp_path, "surroundings").value
    assert found["nice"] == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 15)
    assert found["scheduler"] == os.SCHED_BATCH


def test_memory_is_limited(tmp_path: Path) -> None:
    assert run(tmp_path, "hungry", Limits(megabytes=400), megabytes=100) == Outcome("done", 100 << 20)
    outcome = run(tmp_path, "hungry", Limits(megabytes=400), megabytes=600)
    assert outcome == Outcome("memory", "It needs more than 400 MB of memory, the most there is for it.")


def test_time_is_limited_whether_it_sleeps_or_works(tmp_path: Path) -> None:
    mark = str(tmp_path / "mark")
    expected = Outcome("time", "It took longer than 2 s, the longest it may.")
    assert run(tmp_path, "slow", Limits(seconds=2), seconds=60, mark=mark) == expected
    assert run(tmp_path, "busy", Limits(seconds=2)) == expected
    # On a slow machine it may not have come as far as to say its number.
    for pid in Path(mark).read_text().split() if Path(mark).exists() else ():
        assert not Path(f"/proc/{pid}").exists()


def test_a_file_that_grows_too_large_is_stopped(tmp_path: Path) -> None:
    big = tmp_path / "big"
    outcome = run(tmp_path, "fill", Limits(file_megabytes=3), path=str(big), megabytes=10)
    assert outcome.kind in {"broken", "stopped"}
    assert big.stat().st_size <= 3 << 20


def test_a_process_that_is_killed_says_so(tmp_path: Path) -> None:
    outcome = run(tmp_path, "killed")
    assert outcome == Outcome("stopped", "the process ended with -9 and no result")


def test_the_environment_holds_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENSUE_DATABASE", "postgresql://ensue:secret@host/ensue")
    outcome = run(tmp_path, "surroundings")
    assert "ENSUE_DATABASE" not in outcome.value["environment"]
    assert "OMP_NUM_THREADS" in outcome.value["environment"]
    assert outcome.value["session"] is True


def test_it_is_stopped_when_it_is_no_longer_wanted(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    arguments = {"seconds": 60.0, "mark": str(mark)}
    outcome = run_limited(f"{CHORES}:slow", arguments, Limits(), tmp_path, go_on=lambda: not mark.exists())
    assert outcome == Outcome("abandoned", None)


@pytest.mark.skipif(sys.platform != "linux", reason="The kernel ends the process on Linux alone.")
def test_it_ends_with_the_process_that_began_it(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    arguments = json.dumps({"seconds": 60, "mark": str(mark)})
    code = (
        "from pathlib import Path\nfrom ensue.platform.limits import *\n"
        f"run_limited('{CHORES}:slow', {arguments}, Limits(), Path({json.dumps(str(tmp_path))}))"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    while not (mark.exists() and mark.read_text()):
        assert parent.poll() is None
        time.sleep(0.02)
    child = int(mark.read_text())
    parent.kill()
    parent.wait()
    until = time.monotonic() + 30
    while Path(f"/proc/{child}").exists() and "State:\tZ" not in Path(f"/proc/{child}/status").read_text():
        assert time.monotonic() < until
        time.sleep(0.02)
