"""kill -9 of the server during upload, grading and regrading: what bench/platform_faults.py counts, a few times."""

from __future__ import annotations

import os
from pathlib import Path

from bench.platform_faults import Account
from ensue.platform.service import Settings

ROUNDS = int(os.environ.get("ENSUE_KILLS", "3"))


def test_nothing_is_lost_graded_twice_or_beyond_the_quota(database_url: str, tmp_path: Path) -> None:
    account = Account(Settings(home=tmp_path / "home", database=database_url), tmp_path, seed=2)
    account.prepare(users=2)
    for _ in range(ROUNDS):
        account.round(account.chance.uniform(0.5, 4.0))
    account.finish()
    told = account.count()
    assert told["wrong"] == []
    assert (told["kills"], told["uploads answered"]) == (ROUNDS, 8)
    assert told["accepted"] >= 4
