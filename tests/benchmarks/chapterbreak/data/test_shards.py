"""Builds in shards: the examples of a whole build, gone on with after any kill, in memory that does not grow."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from ensue.benchmarks.chapterbreak.data.build import build
from ensue.benchmarks.chapterbreak.data.examples import read_examples
from ensue.benchmarks.output import BUILD
from ensue.errors import EnsueError
from tests.benchmarks.chapterbreak.data.test_build import write_works
from tests.support.command import here, refused

SETTINGS: dict[str, Any] = {"boundaries": ("chapter", "cause"), "prefix_words": 200, "suffix_words": 40}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder of files of works, in which an id comes twice and a work has no chapter break."""
    folder = tmp_path / "works"
    folder.mkdir()
    write_works(folder / "a.jsonl", 5)
    write_works(folder / "b.jsonl", 4, first=3)
    write_works(folder / "c.jsonl", 2, chapter_count=2, first=20)
    write_works(folder / "d.jsonl", 3, first=30)
    return folder


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.name != BUILD}


def counts_of(folder: Path) -> dict[str, Any]:
    about = json.loads((folder / BUILD).read_text("utf-8"))
    return {key: about[key] for key in ("statistics", "skipped", "notes")}


@pytest.mark.parametrize("negatives", ["in-book", "same-split"])
@pytest.mark.parametrize("limit", [None, 7])
def test_the_examples_and_counts_are_those_of_a_whole_build(
    source: Path, tmp_path: Path, negatives: Any, limit: int | None
) -> None:
    settings = {**SETTINGS, "negatives": negatives, "limit": limit}
    whole = build(str(source), tmp_path / "whole", **settings)
    sharded = build(str(source), tmp_path / "sharded", shard=4, **settings)
    assert sorted(sharded.fingerprint) == sorted(files_of(sharded.folder))
    assert {"chapter-00000.json", "chapter-00001.json", "cause-00001.json"} <= sharded.fingerprint.keys()
    assert max(len(json.loads(one)["works"]) for one in files_of(sharded.folder).values()) <= 4
    assert counts_of(sharded.folder) == counts_of(whole.folder)
    found, expected = (read_examples(str(one.folder)) for one in (sharded, whole))
    assert sorted(found.items, key=lambda e: e.id) == sorted(expected.items, key=lambda e: e.id)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def stop_after(works: int, how: Any) -> Any:
    def progress(done: int, total: int, unit: str = "works") -> None:
        if done >= works:
            how()

    return progress


class Stopped(Exception):
    """The build was stopped here."""


@pytest.mark.parametrize("works", [1, 4, 6, 9])
def test_a_build_that_was_stopped_goes_on_to_the_same_bytes(
    source: Path, tmp_path: Path, works: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {**SETTINGS, "shard": 3, "limit": 10}
    whole = build(str(source), tmp_path / "whole", **settings)

    def stop() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        build(str(source), tmp_path / "out", progress=stop_after(works, stop), **settings)
    assert not (tmp_path / "out").exists()
    with pytest.raises(EnsueError, match="holds an unfinished build; add --resume"):
        build(str(source), tmp_path / "out", **settings)
    with pytest.raises(EnsueError, match="another question \\(seed was 0, not 1\\)"):
        build(str(source), tmp_path / "out", seed=1, resume=True, **settings)
    seen: list[int] = []
    progress = stop_after(0, lambda: seen.append(1))
    done = build(str(source), tmp_path / "out", resume=True, progress=progress, **settings)
    assert files_of(done.folder) == files_of(whole.folder)
    assert counts_of(done.folder) == counts_of(whole.folder)
    # Works of finished shards are not made again.
    assert len(seen) < 14 - works + 3


def test_a_killed_build_goes_on(source: Path, tmp_path: Path) -> None:
    settings = {**SETTINGS, "shard": 2, "limit": 9}
    whole = build(str(source), tmp_path / "whole", **settings)
    child = os.fork()
    if child == 0:
        kill = stop_after(5, lambda: os.kill(os.getpid(), signal.SIGKILL))
        build(str(source), tmp_path / "out", progress=kill, **settings)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    done = build(str(source), tmp_path / "out", resume=True, **settings)
    assert files_of(done.folder) == files_of(whole.folder)


def test_another_source_is_not_gone_on_with(source: Path, tmp_path: Path) -> None:
    settings = {**SETTINGS, "shard": 2, "limit": 9}

    def stop() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        build(str(source), tmp_path / "out", progress=stop_after(5, stop), **settings)
    shutil.move(source / "a.jsonl", source / "z.jsonl")
    with pytest.raises(EnsueError, match="other works than when this build began"):
        build(str(source), tmp_path / "out", resume=True, **settings)


def test_the_command_builds_in_shards_and_refuses_in_sentences(source: Path, tmp_path: Path) -> None:
    command = ["build", "chapterbreak", source, "--output", tmp_path / "out", "--workers", 1]
    refused(here(*command, "--resume"), "Only a build in shards can go on; add --shard")
    refused(here(*command, "--executor", "slurm"), "no executor 'slurm'")
    done = here(*command, "--shard", 5, "--json")
    assert done.code == 0, done.err
    assert sorted(json.loads(done.out)["fingerprint"]) == [f"chapter-0000{n}.json" for n in range(3)]
