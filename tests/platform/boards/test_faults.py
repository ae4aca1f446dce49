"""kill -9 during upload, grading, new labels, backup, restore: what bench/platform_faults.py counts, a few times."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.platform_faults import Account
from ensue.platform.database.schema import new_id
from ensue.platform.service import Settings

ROUNDS = int(os.environ.get("ENSUE_KILLS", "3"))


def test_nothing_is_lost_graded_twice_or_beyond_the_quota(
    database_url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    account = Account(
        Settings(home=tmp_path / "home", database=database_url), tmp_path, seed=2, rounds=ROUNDS
    )
    account.prepare(users=2)
    for _ in range(ROUNDS):
        account.round(account.chance.uniform(0.5, 4.0))
    account.finish()
    told = account.count()
    assert told["wrong"] == []
    if "postgresql" in database_url:
        server = request.getfixturevalue("postgresql")
        account.kill_commands(2, lambda home: server.create(f"restored-{new_id()}"))
    else:
        account.kill_commands(2, lambda home: f"sqlite:///{home / 'database.sqlite3'}")
    account.check_backups()
    assert account.wrong == []
    assert (told["kills"], told["uploads answered"]) == (ROUNDS, 8)
    assert told["accepted"] >= 4
