"""Submissions from hand to board: what `ensue grade` gives is what is recorded, and who may see it when."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import update
from starlette.testclient import TestClient

from ensue.benchmarks.grading import grade
from ensue.platform.boards.board import Boards
from ensue.platform.clock import SetClock
from ensue.platform.database.schema import gradings
from ensue.platform.service import Platform
from tests.platform.boards.handing import (
    BOARD,
    FACTS,
    Participant,
    grade_all,
    labels,
    make_board,
    participant,
    predictions,
    submit,
)


@pytest.fixture
def ada(platform: Platform, tmp_path: Path) -> Participant:
    make_board(platform, tmp_path / "labels")
    return participant(platform)


def test_a_submission_goes_from_hand_to_board(
    platform: Platform, client: TestClient, ada: Participant, tmp_path: Path
) -> None:
    file = predictions(tmp_path / "s.zip")
    accepted = submit(client, ada, file, key="one")
    assert accepted.status_code == 201, accepted.text
    made = accepted.json()
    assert (made["state"], made["position"]) == ("queued", 1)
    where = f"/api/v1/submissions/{made['id']}"
    assert accepted.headers["location"] == where
    assert client.get(where).status_code == 404
    other = participant(platform, "bob@example.org")
    assert client.get(where, headers=other.headers).status_code == 404
    assert client.post(f"{where}/publish", headers=ada.headers).status_code == 409

    assert grade_all(platform) == 1
    shown = client.get(where, headers=ada.headers).json()
    graded = grade(file, labels(tmp_path / "again"), "superglue", split="dev")
    assert graded.score is not None
    assert shown["state"] == "graded"
    assert shown["scores"]["score"] == pytest.approx(graded.score, abs=0.0005)
    assert shown["scores"]["metrics"] == [
        {**row, "value": round(row["value"], 3), "ci95": [round(bound, 3) for bound in row["ci95"]]}  # type: ignore[arg-type]
        for row in graded.metrics
    ]
    assert client.get(where).status_code == 404
    assert client.get(f"/api/v1/boards/{BOARD}").json()["rows"] == []

    assert client.post(f"{where}/publish", headers=other.headers).status_code == 404
    published = client.post(f"{where}/publish", headers=ada.headers).json()
    assert published["published_at"] is not None
    seen = client.get(where).json()
    assert seen["scores"] == shown["scores"]
    assert (seen["email"], seen["file"], len(seen["history"])) == (None, None, 1)
    rows = client.get(f"/api/v1/boards/{BOARD}").json()["rows"]
    assert [row["system"] for row in rows] == [FACTS["system"]]


def test_figures_are_rounded_and_those_of_few_examples_left_out(
    platform: Platform, client: TestClient, ada: Participant, tmp_path: Path
) -> None:
    made = submit(client, ada, predictions(tmp_path / "s.zip")).json()["id"]
    grade_all(platform)
    row = {"task": "AX-b", "metric": "mcc", "value": 0.123456, "ci95": [-0.00001, 0.98765], "clusters": 1}
    tagged = [row | {"n": n, "settings": {"category": "Logic", "tag": f"of {n}"}} for n in (1, 9, 10, 50)]
    with platform.database.writing() as connection:
        connection.execute(update(gradings).values(diagnostics=tagged, score=0.66666))
    where = f"/api/v1/submissions/{made}"
    Boards(platform).change(BOARD, {"rounding": 2})
    told = client.get(where, headers=ada.headers).json()
    assert [one["n"] for one in told["scores"]["diagnostics"]] == [10, 50]
    assert {(one["value"], *one["ci95"]) for one in told["scores"]["diagnostics"]} == {(0.12, 0.0, 0.99)}
    assert told["scores"]["score"] == told["history"][0]["score"] == 0.67
    client.post(f"{where}/publish", headers=ada.headers)
    told_all = client.get(where).text + client.get(f"/api/v1/boards/{BOARD}").text
    told_all += client.get(f"/api/v1/boards/{BOARD}.csv").text
    assert "0.666" not in told_all
    assert "0.123" not in told_all


def test_published_twice_keeps_its_date_and_withdrawn_it_is_private_again(
    platform: Platform, client: TestClient, clock: SetClock, ada: Participant, tmp_path: Path
) -> None:
    made = submit(client, ada, predictions(tmp_path / "s.zip")).json()["id"]
    where = f"/api/v1/submissions/{made}"
    grade_all(platform)
    assert client.post(f"{where}/withdraw", headers=ada.headers).status_code == 409
    first = client.post(f"{where}/publish", headers=ada.headers).json()
    clock.move(days=1)
    again = client.post(f"{where}/publish", json={"anonymous": True}, headers=ada.headers).json()
    assert (again["published_at"], again["is_anonymous"]) == (first["published_at"], True)
    assert client.get(where).json()["link"] == ""
    assert client.post(f"{where}/withdraw", headers=ada.headers).json()["published_at"] is None
    assert client.get(where).status_code == 404
    assert client.get(f"/api/v1/boards/{BOARD}").json()["rows"] == []
    # It was graded, and counts all the same.
    clock.move(days=-1)
    assert client.get(f"/api/v1/boards/{BOARD}/quota", headers=ada.headers).json()["day"] == 1


def test_a_cancelled_submission_gives_the_quota_back_and_is_never_graded(
    platform: Platform, client: TestClient, ada: Participant, tmp_path: Path
) -> None:
    file = predictions(tmp_path / "s.zip")
    made = [submit(client, ada, file, key=key).json() for key in ("a", "b")]
    assert [one["position"] for one in made] == [1, 2]
    spent = submit(client, ada, file, key="c")
    assert spent.status_code == 429
    assert spent.json()["retry_at"] == "2026-11-17T00:00:00+00:00"
    assert spent.headers["retry-after"] == str(12 * 3600)
    where = f"/api/v1/submissions/{made[0]['id']}"
    told = client.post(f"{where}/cancel", headers=ada.headers).json()
    assert (told["state"], told["reason"], told["position"]) == ("cancelled", "Its owner cancelled it.", None)
    # The key still means what it meant.
    assert submit(client, ada, file, key="a").json() == {
        "id": made[0]["id"],
        "state": "cancelled",
        "position": None,
    }
    assert submit(client, ada, file, key="c").status_code == 201
    assert grade_all(platform) == 2
    assert client.get(where, headers=ada.headers).json()["scores"] is None
