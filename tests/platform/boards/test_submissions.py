"""Submissions from hand to board: what `ensue grade` gives is what is recorded, and who may see it when."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from ensue.benchmarks.grading import grade
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
    assert (seen["email"], seen["history"]) == (None, None)
    rows = client.get(f"/api/v1/boards/{BOARD}").json()["rows"]
    assert [row["system"] for row in rows] == [FACTS["system"]]
