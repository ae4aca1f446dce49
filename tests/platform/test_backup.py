"""Backups: the same rows and files come back, also into the other database, also when taken while others write."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, select

from ensue.errors import EnsueError
from ensue.platform.backup import check, restore, write_backup
from ensue.platform.database.opening import Database
from ensue.platform.database.schema import boards, metadata, submissions, uploads
from ensue.platform.refusals import Conflict
from ensue.platform.service import Platform, Settings, opened
from tests.platform.conftest import Server


def rows(database: Database) -> dict[str, list[Any]]:
    with database.reading() as connection:
        return {
            table.name: [tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key))]
            for table in metadata.sorted_tables
        }


def hand_in(platform: Platform, user: str, contents: bytes, name: str = "x.zip") -> None:
    """What a submission does: the file is on the disk before the rows are."""
    digest, size = platform.home.keep_upload(io.BytesIO(contents), 1_000_000)
    now = platform.clock.now()
    with platform.database.writing() as connection:
        upload = {"user_id": user, "name": name, "digest": digest, "size": size, "created_at": now}
        made = connection.execute(insert(uploads).values(**upload).returning(uploads.c.id)).scalar_one()
        job = platform.queue.add(connection, "grade", arguments={"upload": digest})
        given = {
            "board_id": "b",
            "user_id": user,
            "upload_id": made,
            "job_id": job,
            "system": "Ünïcode 漢字 🦉",
        }
        connection.execute(insert(submissions).values(**given, created_at=now))


def fill(platform: Platform) -> str:
    """Put something of everything in."""
    user = platform.accounts.sign_up("ada@example.org", "correct horse battery", name="Ada \u2028 line")
    platform.accounts.add_token(user.id, "laptop", days=3)
    platform.accounts.begin_session(user.id)
    platform.accounts.invitations.make("organiser", by=None)
    facts = {"id": "b", "name": "superglue", "title": "B", "definition": {"tasks": ["WiC"], "nothing": None}}
    with platform.database.writing() as connection:
        created = {"split": "test", "created_at": platform.clock.now()}
        connection.execute(insert(boards).values(**facts, **created))
    (platform.home.labels / "b").mkdir()
    (platform.home.labels / "b" / "WiC.jsonl").write_text('{"label": true}\n')
    (platform.home.labels / "b" / ".new-half").write_text("being copied")
    for number in range(3):
        hand_in(platform, user.id, f"answers {number % 2}".encode())
    return user.id


@contextmanager
def target_url(server: Server | None, folder: Path) -> Iterator[str]:
    if server is None:
        yield f"sqlite:///{folder / 'restored.sqlite3'}"
        return
    name = f"restored-{folder.name}"
    yield server.create(name)
    server.drop(name)


@pytest.mark.parametrize("into", ["sqlite", "postgresql"])
def test_a_restored_backup_is_as_it_was_in_either_database(
    platform: Platform, tmp_path: Path, into: str, request: pytest.FixtureRequest
) -> None:
    user = fill(platform)
    made = write_backup(platform, tmp_path / "all.tar.gz")
    assert made["uploads"] == 2  # three were handed in, two of them the same
    assert (tmp_path / "all.tar.gz").stat().st_mode & 0o077 == 0
    before = rows(platform.database)
    assert before["jobs"]
    with target_url(request.getfixturevalue("postgresql") if into == "postgresql" else None, tmp_path) as url:
        given = replace(platform.settings, home=tmp_path / "new", database=url)
        assert restore(given, tmp_path / "all.tar.gz")["rows"] == made["rows"]
        with opened(given) as again:
            assert rows(again.database) == before
            assert check(again) == []
            assert (again.home.labels / "b" / "WiC.jsonl").read_text() == '{"label": true}\n'
            assert [file.name for file in (again.home.labels / "b").iterdir()] == ["WiC.jsonl"]
            assert again.home_key != platform.home_key
            # It can be gone on with: numbers go on after those there are.
            hand_in(again, user, b"more")
            numbers = [job[0] for job in rows(again.database)["jobs"]]
            assert numbers == sorted(set(numbers))
            assert len(numbers) == 4
        with pytest.raises(Conflict, match="is not empty"):
            restore(given, tmp_path / "all.tar.gz")


def test_a_backup_taken_while_others_write_is_whole(platform: Platform, tmp_path: Path) -> None:
    user = fill(platform)
    stop = threading.Event()
    failed: list[BaseException] = []

    def write(number: int) -> None:
        try:
            step = 0
            while not stop.is_set():
                hand_in(platform, user, f"{number} {step}".encode())
                step += 1
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    files = [tmp_path / f"{number}.tar" for number in range(3)]
    made = [write_backup(platform, file) for file in files]
    stop.set()
    for thread in threads:
        thread.join()
    assert failed == []
    for number, file in enumerate(files):
        folder = tmp_path / f"again-{number}"
        given = Settings(home=folder, clock=platform.clock)
        restore(given, file)
        with opened(given) as again:
            assert check(again) == []
            found = rows(again.database)
            assert len(found["submissions"]) == len(found["uploads"]) == made[number]["rows"]["submissions"]
    assert made[0]["rows"]["submissions"] <= made[2]["rows"]["submissions"]


def test_backups_to_the_same_file_at_once_are_whole_and_leave_nothing_of_killed_ones(
    platform: Platform, tmp_path: Path
) -> None:
    fill(platform)
    folder = tmp_path / "backups"
    folder.mkdir()
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True)
    (folder / f".all.tar.{int(ended.stdout)}-0.part").write_text("half, with labels")
    (folder / ".all.tar.of mine.part").write_text("somebody's own")
    (folder / f".other.tar.{int(ended.stdout)}-0.part").write_text("of another file")
    found: list[dict[str, Any]] = []
    threads = [
        threading.Thread(target=lambda: found.append(write_backup(platform, folder / "all.tar")))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    left = sorted(file.name for file in folder.iterdir())
    assert left == [".all.tar.of mine.part", f".other.tar.{int(ended.stdout)}-0.part", "all.tar"]
    given = Settings(home=tmp_path / "again", clock=platform.clock)
    restore(given, folder / "all.tar")
    with opened(given) as again:
        assert rows(again.database) == rows(platform.database)


def test_a_home_that_was_opened_and_not_used_can_be_restored_into(platform: Platform, tmp_path: Path) -> None:
    fill(platform)
    write_backup(platform, tmp_path / "all.tar")
    given = Settings(home=tmp_path / "new", clock=platform.clock)
    with opened(given):
        pass
    restore(given, tmp_path / "all.tar")
    with opened(given) as again:
        assert rows(again.database) == rows(platform.database)
        assert again.home.id == platform.home.id


def test_damaged_or_cut_backups_restore_nothing(platform: Platform, tmp_path: Path) -> None:
    fill(platform)
    whole = tmp_path / "whole.tar"
    write_backup(platform, whole)
    good = whole.read_bytes()
    with tarfile.open(whole) as tar:
        start = tar.getmember("tables/users/000000.jsonl").offset_data
        names = tar.getnames()
    assert names[-1] == "backup.json"
    damaged = {
        "changed": good[: start + 20] + b"#" + good[start + 21 :],
        "cut": good[: len(good) // 2],
        "empty": b"",
        "text": b"this is no backup" * 100,
    }
    with pytest.raises(EnsueError, match=r"There is no file .*missing\.tar to restore from"):
        restore(Settings(home=tmp_path / "none", clock=platform.clock), tmp_path / "missing.tar")
    assert not (tmp_path / "none").exists()
    for name, contents in damaged.items():
        file = tmp_path / name
        file.write_bytes(contents)
        given = Settings(home=tmp_path / f"home-{name}", clock=platform.clock)
        with pytest.raises(EnsueError):
            restore(given, file)
        # The same home takes a good one afterwards.
        restore(given, whole)
        with opened(given) as again:
            assert rows(again.database) == rows(platform.database)


def test_a_backup_that_reaches_out_of_its_folder_is_refused(platform: Platform, tmp_path: Path) -> None:
    file = tmp_path / "evil.tar"
    with tarfile.open(file, "w") as tar:
        for name in ("../evil", "backup.json"):
            entry = tarfile.TarInfo(name)
            contents = json.dumps({"files": {}}).encode()
            entry.size = len(contents)
            tar.addfile(entry, io.BytesIO(contents))
    with pytest.raises(EnsueError):
        restore(Settings(home=tmp_path / "new", clock=platform.clock), file)
    assert not list(tmp_path.rglob("evil"))


def test_check_names_what_is_wrong(platform: Platform) -> None:
    user = fill(platform)
    assert check(platform) == []
    first, second = sorted(platform.home.uploads.iterdir())
    first.unlink()
    second.write_bytes(b"changed altogether")
    (platform.home.path / "key").chmod(0o644)
    with platform.database.writing() as connection:
        connection.execute(boards.update().values(labels_digest="0" * 64))
    kept = platform.home.keep_upload(io.BytesIO(b"as it was"), 100)[0]
    hand_in(platform, user, b"as it was")
    platform.home.upload(kept).write_bytes(b"as it is!")
    problems = check(platform)
    assert f"The upload {kept} is not as it was; restore it from a backup." in problems
    problems.remove(f"The upload {kept} is not as it was; restore it from a backup.")
    assert problems.pop(0) == "The labels of the board superglue are missing; import them again."
    assert [words.split(" ")[0] for words in problems] == ["The", "The", str(platform.home.path / "key")]
    assert any(first.name in words and "missing" in words for words in problems)
    assert any(second.name in words and "bytes" in words for words in problems)


def test_files_that_nothing_names_are_swept_after_a_while(platform: Platform) -> None:
    fill(platform)
    old, _ = platform.home.keep_upload(io.BytesIO(b"nobody's"), 100)
    assert platform.home.sweep(set(), older=3600) == 0
    named = {row[3] for row in rows(platform.database)["uploads"]}
    with platform.home.keeping_files():
        assert platform.home.sweep(named, older=-1) == 0
    assert platform.home.sweep(named, older=-1) == 1
    assert not platform.home.upload(old).exists()
    assert check(platform) == []
