"""Boards from the command line: made, listed, changed, opened and closed, exported; what will not do is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from starlette.testclient import TestClient

from ensue.errors import EnsueError
from ensue.platform.boards.board import Boards, Wanted
from ensue.platform.commands import COMMANDS
from ensue.platform.database.schema import board_tasks, gradings, jobs, submissions, uploads
from ensue.platform.refusals import Conflict, Invalid, NotFound
from ensue.platform.service import Platform
from ensue.platform.worker import Worker
from tests.platform.boards.handing import (
    FACTS,
    grade_all,
    labels,
    make_board,
    participant,
    predictions,
    submit,
)

TOML = """
name = "Harbour"
about = "What happened to the boats?"
split = "spring"
[tasks.fate]
labels = "{split}.csv"
metrics = ["accuracy"]
"""


def perform(platform: Platform, command: str, **arguments: Any) -> dict[str, Any]:
    """Hand a command over as JSON, as the command line does."""
    return json.loads(json.dumps(COMMANDS[command](platform, json.loads(json.dumps(arguments)))))


def test_a_board_has_the_columns_of_its_grader(platform: Platform, tmp_path: Path) -> None:
    made = make_board(platform, tmp_path / "labels", title="Small", quota_day=3)
    assert (made.title, made.suffix, made.quota_day, made.quota_month) == ("Small", ".zip", 3, 6)
    with platform.database.reading() as connection:
        rows = connection.execute(select(board_tasks).order_by(board_tasks.c.place)).all()
    assert [(row.task, row.metric, row.is_main) for row in rows] == [
        ("SuperGLUE", "score", True),
        ("BoolQ", "accuracy", False),
        ("COPA", "accuracy", False),
        ("MultiRC", "f1a", False),
        ("MultiRC", "em", False),
        ("AX-b", "mcc", False),
    ]
    assert rows[1].covers == "12 of 3,270 rows"


def test_a_board_of_ones_own_is_graded_by_its_toml(
    platform: Platform, client: TestClient, tmp_path: Path
) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "spring.csv").write_text("id,label\n1,sunk\n2,home\n3,home\n4,home\n")
    told = {"name": "harbour", "toml": TOML, "labels": str(folder)}
    made = perform(platform, "board.create", **told)
    assert (made["title"], made["split"], made["suite"]) == ("Harbour", "spring", None)
    assert made["about"] == "What happened to the boats?"
    ada = participant(platform)
    file = b"id,prediction\n1,home\n2,home\n3,sunk\n4,home\n"
    answer = submit(client, ada, file, board="harbour", name="mine.csv")
    assert answer.status_code == 201, answer.text
    wrong = submit(client, ada, file.replace(b"4,home", b"5,lost"), board="harbour", name="mine.csv")
    assert wrong.status_code == 422
    assert {(one["file"], one["line"]) for one in wrong.json()["problems"]} >= {("mine.csv", 5)}
    grade_all(platform)
    shown = client.get(f"/api/v1/submissions/{answer.json()['id']}", headers=ada.headers).json()
    assert shown["scores"]["score"] == 0.5


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"name": "../x"}, "cannot name a board"),
        ({"name": "a.csv"}, "cannot name a board"),
        ({"name": ""}, "cannot name a board"),
        ({"name": "new"}, "cannot name a board"),
        ({"name": "x" * 61}, "cannot name a board"),
        ({"suite": None}, "suite or of a board"),
        ({"toml": TOML}, "suite or of a board"),
        ({"suite": None, "toml": "x ="}, r"board\.toml is not TOML that can be read \(Invalid value"),
        ({"suite": None, "toml": f"x = 1{'0' * 5000}"}, r"board\.toml is not TOML"),
        ({"suite": None, "toml": f"x = {'[' * 5000}"}, "nested too deeply"),
        ({"suite": None, "toml": "name = 3"}, "name is not a text"),
        ({"suite": "nothing"}, "no benchmark 'nothing'"),
        ({"split": "train"}, "--split train is none of"),
        ({"tasks": ["Nothing"]}, "Nothing"),
        ({"settings": {"seed": "1"}}, "without settings"),
        ({"quota_day": 0}, "quota a day is 0"),
        ({"rounding": 9}, "rounding is 9"),
        ({"title": "a\nb"}, "more than one line"),
    ],
)
def test_a_board_that_will_not_do_is_not_made(
    platform: Platform, tmp_path: Path, wrong: dict[str, Any], words: str
) -> None:
    told: dict[str, Any] = {"name": "small", "suite": "superglue", "split": "dev"} | wrong
    with pytest.raises(EnsueError, match=words) as raised:
        Boards(platform).create(Wanted(**told), labels(tmp_path / "labels"))
    assert str(platform.home.path) not in str(raised.value)  # where labels lie is the server's own affair
    with platform.database.reading() as connection:
        assert Boards(platform).all(connection) == []
    assert [path for path in platform.home.labels.rglob("*") if path.is_file()] == []


def test_boards_are_listed_changed_opened_and_closed(
    platform: Platform, client: TestClient, tmp_path: Path
) -> None:
    make_board(platform, tmp_path / "labels")
    ada, file = participant(platform), predictions(tmp_path / "s.zip")
    assert [one["name"] for one in perform(platform, "board.list")["boards"]] == ["small"]
    changed = perform(platform, "board.change", name="small", title="Smaller", quota_month=1, rounding=2)
    assert (changed["title"], changed["quota_day"], changed["quota_month"]) == ("Smaller", 2, 1)
    assert perform(platform, "board.change", name="small", is_open=False)["is_open"] is False
    refused = submit(client, ada, file)
    assert (refused.status_code, refused.json()["error"]) == (409, "small is closed for submissions.")
    perform(platform, "board.change", name="small", is_open=True, is_listed=False)
    assert client.get("/api/v1/boards").json() == []
    made = submit(client, ada, file)
    assert made.status_code == 201
    spent = submit(client, ada, file)
    assert spent.status_code == 429
    assert spent.json()["retry_at"] == "2026-12-01T00:00:00+00:00"
    assert "1 a month" in spent.json()["error"]
    grade_all(platform)
    shown = client.get(f"/api/v1/submissions/{made.json()['id']}", headers=ada.headers).json()
    assert shown["scores"]["score"] == round(shown["scores"]["score"], 2)
    with pytest.raises(NotFound, match="no such board"):
        perform(platform, "board.change", name="other", title="x")


def test_a_board_is_exported_without_its_labels(
    platform: Platform, client: TestClient, tmp_path: Path
) -> None:
    make_board(platform, tmp_path / "labels")
    ada, file = participant(platform), predictions(tmp_path / "s.zip")
    made = submit(client, ada, file, key="k").json()["id"]
    grade_all(platform)
    perform(platform, "board.import-baselines", name="small")
    folder = tmp_path / "out"
    done = perform(platform, "board.export", name="small", folder=str(folder))
    assert (done["uploads"], done["submissions"]) == (1, 12)
    rows = [json.loads(line) for line in (folder / "submissions.jsonl").read_text().splitlines()]
    (mine,) = [row for row in rows if row["kind"] == "submission"]
    assert (mine["id"], mine["email"], mine["system"]) == (made, "ada@example.org", FACTS["system"])
    with platform.database.reading() as connection:
        grading = connection.execute(select(gradings).where(gradings.c.submission_id == made)).one()
    assert mine["gradings"][0]["score"] == grading.score
    assert (folder / "uploads" / mine["upload"]).read_bytes() == file.read_bytes()
    board = json.loads((folder / "board.json").read_text())
    assert (board["name"], len(board["columns"])) == ("small", 6)
    assert sorted(path.name for path in folder.iterdir()) == ["board.json", "submissions.jsonl", "uploads"]
    with pytest.raises(EnsueError, match="is there already"):
        perform(platform, "board.export", name="small", folder=str(folder))


def test_a_deleted_account_leaves_what_it_published(
    platform: Platform, client: TestClient, tmp_path: Path
) -> None:
    make_board(platform, tmp_path / "labels", quota_day=9, quota_month=9)
    ada = participant(platform)
    made = [
        submit(client, ada, predictions(tmp_path / f"{n}.zip", n), email="ada@example.org").json()["id"]
        for n in range(3)
    ]
    for _ in range(2):
        job = platform.queue.claim()
        assert job is not None
        Worker(platform.queue, platform.home).do(job)
    client.post(f"/api/v1/submissions/{made[0]}/publish", headers=ada.headers)
    platform.accounts.delete(ada.user.id)
    with platform.database.reading() as connection:
        rows = connection.execute(select(submissions)).all()
        assert [(row.id, row.contact) for row in rows] == [(made[0], "")]
        assert len(connection.execute(select(uploads)).all()) == 1
        states = connection.execute(select(jobs.c.state).order_by(jobs.c.number)).scalars().all()
    assert states == ["graded", "graded", "cancelled"]
    assert client.get(f"/api/v1/submissions/{made[0]}").json()["state"] == "graded"
    assert grade_all(platform) == 0


def test_two_organisers_cannot_make_one_board(platform: Platform, tmp_path: Path) -> None:
    make_board(platform, tmp_path / "labels")
    with pytest.raises(Conflict, match="already"):
        make_board(platform, tmp_path / "more")
    with pytest.raises(Invalid, match="needs labels"):
        Boards(platform).create(Wanted("third", "superglue"), None)
