"""Runs that are killed, interrupted or cut off go on with --resume and end as if nothing had happened."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

import ensue
from tests.support import tiny
from tests.support.command import here, refused, start
from tests.support.corpus import write_corpus

SETTINGS = ("--set", "shuffles=10")


@pytest.fixture(scope="module")
def llama(tmp_path_factory) -> Path:
    return tiny.save_llama(tmp_path_factory.mktemp("models") / "llama")


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("data") / "corpus.jsonl", (10,) * 6)


def command(llama: Path, data: Path, output: Path) -> tuple[object, ...]:
    return ("run", "shuffle", "--model", llama, "--data", data, "--output", output, *SETTINGS)


@pytest.fixture(scope="module")
def whole(llama, data, tmp_path_factory) -> Path:
    """The run that nobody disturbed."""
    output = tmp_path_factory.mktemp("runs") / "whole"
    assert here(*command(llama, data, output)).code == 0
    return output


def assert_same(found: Path, whole: Path) -> None:
    """Equal byte for byte, `seconds` apart."""
    for name in ("items.jsonl", "profiles.jsonl"):
        assert (found / name).read_bytes() == (whole / name).read_bytes()
    assert without_seconds(found) == without_seconds(whole)
    assert not (found / "journal.jsonl").exists()


def without_seconds(folder: Path) -> list[str]:
    lines = (folder / "results.json").read_text("utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith('  "seconds": ')]
    assert len(kept) == len(lines) - 1
    return kept


def wait_for_scores(process: subprocess.Popen[str], journal: Path, lines: int) -> None:
    """Until the journal has so many lines; the run must still be going on then."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if journal.exists() and journal.read_bytes().count(b"\n") >= lines:
            break
        assert process.poll() is None, "the run ended before it could be stopped"
        time.sleep(0.01)
    assert process.poll() is None, "the run ended before it could be stopped"


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_same_bytes(llama, data, whole, tmp_path):
    output = tmp_path / "run"
    process = start(*command(llama, data, output))
    wait_for_scores(process, output / "journal.jsonl", 20)
    process.kill()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert not (output / "results.json").exists()
    assert not (output / "items.jsonl").exists()
    kept = (output / "journal.jsonl").read_bytes().count(b"\n")
    refused(here(*command(llama, data, output)), "an unfinished run", "--resume")
    assert here(*command(llama, data, output), "--resume").code == 0
    assert json.loads((output / "run.json").read_text("utf-8"))["resumed_from"] >= kept >= 20
    assert_same(output, whole)


@pytest.mark.slow
def test_an_interrupted_run_says_so_and_resumes_to_the_same_bytes(llama, data, whole, tmp_path):
    output = tmp_path / "run"
    process = start(*command(llama, data, output))
    wait_for_scores(process, output / "journal.jsonl", 20)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, "")
    assert "Traceback" not in err
    assert err.splitlines()[-1].startswith("ensue: stopped")
    assert "--resume" in err.splitlines()[-1]
    assert not (output / "results.json").exists()
    # The last line is torn, as a power cut leaves it.
    journal = output / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-25])
    assert here(*command(llama, data, output), "--resume").code == 0
    assert_same(output, whole)


class Stop(Exception):
    """Ends a run in the middle, as a crash would."""


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("llama", {}),
        ("llama", {"window": "strided"}),
        ("gpt2", {"window": "released"}),
        ("bert", {}),
        ("roberta", {"masked": "within-word"}),
    ],
)
@pytest.mark.parametrize("share", [0.05, 1.0])
def test_wherever_a_run_stops_it_ends_the_same(tmp_path, family, settings, share):
    folder = getattr(tiny, f"save_{family}")(tmp_path / family, max_length=96)
    data = write_corpus(tmp_path / "corpus.jsonl", (4, 3))
    asked = {"model": str(folder), "data": data, "shuffles": 2, "block_size": [1, 2], **settings}
    # Small batches, so that there is a middle to stop in.
    asked["model_options"] = {"batch_tokens": 1024 if family in ("bert", "roberta") else 128}
    whole = ensue.run("shuffle", output=tmp_path / "whole", **asked)
    progressed = []

    def stop(done: int, total: int, unit: str) -> None:
        progressed.append(done)
        if done >= share * total:
            raise Stop

    with pytest.raises(Stop):
        ensue.run("shuffle", output=tmp_path / "run", progress=stop, **asked)
    assert len(progressed) >= 2
    assert not (tmp_path / "run" / "results.json").exists()
    resumed = ensue.run("shuffle", output=tmp_path / "run", resume=True, **asked)
    assert_same(resumed.folder, whole.folder)


def test_a_run_that_is_stopped_while_it_writes_its_items_is_unfinished(tmp_path, monkeypatch):
    from ensue.runs import folder as folders

    data = write_corpus(tmp_path / "corpus.jsonl", (4, 4))
    asked = {"model": "random", "data": data, "output": tmp_path / "run"}
    write = folders.RunFolder.write_lines

    def half(self, name, rows):
        write(self, name, list(rows)[:3])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(folders.RunFolder, "write_lines", half)
        with pytest.raises(KeyboardInterrupt):
            ensue.run("shuffle", **asked)
    assert not (tmp_path / "run" / "results.json").exists()
    resumed = ensue.run("shuffle", resume=True, **asked)
    whole = ensue.run("shuffle", **{**asked, "output": tmp_path / "whole"})
    assert_same(resumed.folder, whole.folder)


def test_resuming_a_finished_run_needs_no_scores(tmp_path):
    """The journal is gone by then: the results themselves answer."""
    data = write_corpus(tmp_path / "corpus.jsonl", (4, 4))
    first = ensue.run("shuffle", model="random", data=data, output=tmp_path / "run")
    before = (first.folder / "results.json").read_bytes()
    called = []
    again = ensue.run(
        "shuffle",
        model="random",
        data=data,
        output=tmp_path / "run",
        resume=True,
        progress=lambda *_: called.append(1),
    )
    assert (again.folder / "results.json").read_bytes() == before
    assert not called
