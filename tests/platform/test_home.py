"""A home: who may have it open, what of a killed process is tidied away, and which database it belongs to."""

from __future__ import annotations

import io
import json
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ensue.errors import EnsueError, RunFailed
from ensue.platform.home import Home, InUse
from ensue.platform.refusals import NotFound, TooLarge
from ensue.platform.service import Settings, opened, perform


def test_a_home_is_for_its_owner_alone(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.make()
    key = home.key()
    assert len(key) == 32
    for path in (home.path, home.uploads, home.labels, home.work):
        assert path.stat().st_mode & 0o777 == 0o700
    assert (home.path / "key").stat().st_mode & 0o777 == 0o600
    home.make()
    assert home.key() == key


def test_a_command_waits_for_another_and_not_for_a_server(tmp_path: Path) -> None:
    first, second = Home(tmp_path), Home(tmp_path)
    order = []

    def wait() -> None:
        with second.held():
            order.append("second")

    with first.held():
        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    with first.held():
        first.announce("http://127.0.0.1:1")
        with pytest.raises(InUse, match="in use by another process"), second.held():
            pass


def test_what_a_killed_server_left_is_tidied_away(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    home = Home(tmp_path)
    home.make()
    home.announce("http://127.0.0.1:1")  # and nobody holds the lock
    (home.uploads / ".new-abc").write_bytes(b"half of a file")
    home.work_folder("lease")
    kept, size = home.keep_upload(io.BytesIO(b"whole"), 5)
    assert size == 5
    assert "id" in perform(settings, "user.add", {"email": "ada@example.org", "role": "admin"})
    assert home.server() is None
    assert [file.name for file in home.uploads.iterdir()] == [kept]
    assert list(home.work.iterdir()) == []


def test_a_file_too_large_leaves_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.make()
    with pytest.raises(TooLarge):
        home.keep_upload(io.BytesIO(b"x" * 101), 100)
    assert list(home.uploads.iterdir()) == []


def test_a_server_that_does_not_answer_is_said_not_to(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with home.held():
        home.announce("http://127.0.0.1:1")
        with pytest.raises(RunFailed, match="does not answer"):
            perform(Settings(home=tmp_path), "check", {})


def test_a_database_belongs_to_one_home(settings: Settings, tmp_path: Path) -> None:
    with opened(settings) as platform:
        first = platform.home.id
        other = replace(settings, home=tmp_path / "other")
        with pytest.raises(EnsueError, match="is open already"), opened(other):
            pass
    with pytest.raises(EnsueError, match=f"belongs to another home, whose home.json has the id {first}"):
        perform(other, "user.add", {"email": "ada@example.org", "role": "admin"})
    with opened(settings) as platform, pytest.raises(NotFound):
        platform.accounts.find_email("ada@example.org")


def test_a_home_keeps_to_its_kind_of_database(tmp_path: Path) -> None:
    with opened(Settings(home=tmp_path)):
        pass
    with pytest.raises(EnsueError, match="belongs to a sqlite database"):
        Home(tmp_path).database_url("postgresql://127.0.0.1/ensue")
    (tmp_path / "home.json").write_text(json.dumps(["damaged"]))
    with pytest.raises(EnsueError, match="damaged"):
        Home(tmp_path).database_url(None)
