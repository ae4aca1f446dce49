"""A disk that is really full while a run is written: one sentence, exit code 2, and no results."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import tiny
from tests.support.command import here, in_process_of_its_own, refused
from tests.support.corpus import write_corpus


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Mounts a file system of so many KiB; skipped where that is not permitted."""
    mounted: list[Path] = []

    def mount(kib: int) -> Path:
        folder = tmp_path / f"disk{len(mounted)}"
        folder.mkdir()
        options = ["-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(folder)]
        try:
            done = subprocess.run(["mount", *options], capture_output=True, text=True)
        except FileNotFoundError:
            pytest.skip("there is no mount command to make a small disk with")
        if done.returncode:
            pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_corpus(tmp_path / "corpus.jsonl", (12,) * 20)


def run(data: Path, output: Path, *more: object) -> tuple[object, ...]:
    return ("run", "shuffle", "--model", "random", "--data", data, "--output", output, *more)


def sizes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.iterdir()}


def test_no_room_for_the_first_file(small_disk, data):
    disk = small_disk(64)
    filler = disk / "filler"
    with pytest.raises(OSError, match="No space"):
        filler.write_bytes(b"x" * 100_000)
    refused(in_process_of_its_own(*run(data, disk / "run")), "run.json", "No space left on device")
    assert not (disk / "run").exists()
    # As the sentence says: make room and run again with --resume.
    filler.unlink()
    assert here(*run(data, disk / "run", "--resume", "--limit", "1", "--set", "shuffles=2")).code == 0


@pytest.mark.parametrize("model", ["random", "llama"])
def test_no_room_for_the_journal(small_disk, data, tmp_path, model):
    if model == "llama":
        model = str(tiny.save_llama(tmp_path / "llama"))
    output = small_disk(12) / "run"
    command = run(data, output, "--model", model, "--set", "shuffles=2")
    refused(here(*command), "journal.jsonl", "No space left on device", "--resume")
    assert set(sizes(output)) == {".lock", "run.json", "journal.jsonl"}


def test_no_room_for_the_items_and_then_there_is(small_disk, data, tmp_path):
    disk = small_disk(700)
    output = disk / "run"
    refused(in_process_of_its_own(*run(data, output)), "items.jsonl", "No space left on device", "--resume")
    left = sizes(output)
    assert set(left) == {".lock", "run.json", "journal.jsonl"}
    refused(here("report", output), "unfinished")
    subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
    assert here(*run(data, output, "--resume")).code == 0
    assert here(*run(data, tmp_path / "whole")).code == 0
    for name in ("items.jsonl", "profiles.jsonl"):
        assert (output / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_no_room_for_the_results(small_disk, data, monkeypatch):
    """The last file of all: everything else is there, and still the run is unfinished."""
    from ensue.runs.folder import RunFolder

    disk = small_disk(4096)
    output = disk / "run"
    write = RunFolder.write_json

    def fill_up_first(self, name, value):
        if name == "results.json":
            with pytest.raises(OSError, match="No space"):
                (disk / "filler").write_bytes(b"x" * 8_000_000)
        write(self, name, value)

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "write_json", fill_up_first)
        refused(here(*run(data, output)), "results.json", "No space left on device", "--resume")
    assert set(sizes(output)) == {".lock", "run.json", "journal.jsonl", "items.jsonl", "profiles.jsonl"}
    refused(here("report", output), "unfinished")
    (disk / "filler").unlink()
    assert here(*run(data, output, "--resume")).code == 0
    assert (output / "results.json").is_file()


def test_a_read_only_disk(small_disk, data):
    disk = small_disk(64)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    refused(here(*run(data, disk / "run")), str(disk / "run"), "Read-only file system")
