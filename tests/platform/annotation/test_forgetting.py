"""Whoever asks to be forgotten is: nothing they wrote is in the database, an export, a backup or SQLite's files."""

from __future__ import annotations

import random
import tarfile
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from starlette.testclient import TestClient

from bench.annotation_rounds import CASES, Worker, work_off
from ensue.benchmarks.people.form import Form
from ensue.platform.annotation import exporting
from ensue.platform.annotation.building import build
from ensue.platform.annotation.people import People
from ensue.platform.annotation.projects import Projects, Wanted
from ensue.platform.backup import write_backup
from ensue.platform.clock import SetClock
from ensue.platform.database.schema import metadata, participants
from ensue.platform.service import Platform
from ensue.platform.web.app import create_app
from tests.platform.annotation.working import item, make, people

MARK = "Zanzibar"  # a word of one person's alone


@pytest.mark.parametrize("who", [0, 2], ids=["composer", "writer"])
def test_what_others_were_shown_of_somebody_is_gone(
    platform: Platform, clock: SetClock, tmp_path: Path, who: int
) -> None:
    """What one writer of a SQuALITY story asked, wrote, and said of others is shown to the three others."""
    case = CASES["squality"](tmp_path, None)
    given = {"own_questions": 4, "stages": "questions,writing,reviewing,rating"}
    wanted = Wanted("round", "squality", case.data, given, 1)
    project = Projects(platform).insert(wanted, build("squality", case.data, given, 1))
    Projects(platform).set_state("round", "open")
    served = create_app(platform)

    def enter(number: int) -> Worker:
        return Worker(TestClient(served, raise_server_exceptions=False), project, f"round-{number}", clock)

    workers = [enter(number) for number in range(4)]

    def answer(form: Form, stage: str, name: str, chance: random.Random) -> dict[str, Any]:
        said = case.answer(form, stage, name, chance)
        if name != workers[who].id:
            return said
        texts = {field.id for field in form.fields if field.type == "text"}
        return {id: f"{value} {MARK}" if id in texts else value for id, value in said.items()}

    work_off(workers, answer, 60)
    assert MARK in _all(platform, tmp_path / "before.tar")
    gone = workers.pop(who)
    People(platform).forget("round", gone.pseudonym)
    after = _all(platform, tmp_path / "after.tar")
    assert MARK not in after
    assert gone.id not in after
    with platform.database.reading() as connection:
        rows = [*exporting.lines(connection, project), *exporting.history_lines(connection, project)]
    assert gone.pseudonym not in str(rows)
    # The story is made whole by somebody else.
    workers.append(enter(4))
    work_off(workers, case.answer, 60)
    with platform.database.reading() as connection:
        written = list(exporting.export_of(connection, project).answers("rating"))
    assert len(written) == 20


def test_no_file_of_sqlite_has_what_was_deleted(platform: Platform) -> None:
    if not platform.database.is_sqlite:
        pytest.skip("PostgreSQL's files are its own")
    project = make(platform, [item("w")], labels=1)
    (ada,) = people(platform, project, 1)
    ada.save(ada.held(), values={"label": "yes", "why": f"{MARK} " * 500})
    file = Path(str(platform.database.url.database))
    assert MARK in _bytes(file)
    ada.part.people.forget("rain", ada.now.pseudonym)
    assert MARK not in _bytes(file)


def test_what_was_deleted_while_somebody_read_is_gone_soon_after(platform: Platform) -> None:
    if not platform.database.is_sqlite:
        pytest.skip("PostgreSQL has no log that whoever reads keeps")
    project = make(platform, [item("w")], labels=1)
    (ada,) = people(platform, project, 1)
    ada.save(ada.held(), values={"label": "yes", "why": f"{MARK} " * 500})
    create_app(platform)  # which says what is done regularly
    file = Path(str(platform.database.url.database))
    with platform.database.reading() as connection:
        assert MARK in str(list(exporting.history_lines(connection, project)))
        ada.part.people.forget("rain", ada.now.pseudonym)
        for part in platform.regularly:  # with no harm
            part()
    for part in platform.regularly:
        part()
    assert MARK not in _bytes(file)


def _bytes(file: Path) -> str:
    return "".join(one.read_bytes().decode("latin-1") for one in sorted(file.parent.glob(f"{file.name}*")))


def _all(platform: Platform, backup: Path) -> str:
    """Return every row of every table but what somebody's row itself keeps, and all of a backup."""
    found = []
    with platform.database.reading() as connection:
        for table in metadata.sorted_tables:
            found += [
                str(row) for row in connection.execute(select(table)).all() if table is not participants
            ]
    write_backup(platform, backup)
    with tarfile.open(backup) as tar:
        for entry in tar.getmembers():
            packed = tar.extractfile(entry)
            found.append("" if packed is None else packed.read().decode())
    return "\n".join(found)
