"""Labels: private, whole or not there, and what is graded again when they are replaced."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from sqlalchemy import select
from starlette.testclient import TestClient

from ensue.benchmarks.grading import grade
from ensue.errors import EnsueError
from ensue.platform.backup import restore, write_backup
from ensue.platform.boards import labels as labels_module
from ensue.platform.boards.submissions import Submissions
from ensue.platform.database.schema import gradings, jobs
from ensue.platform.refusals import Invalid
from ensue.platform.service import Platform, Settings, opened
from ensue.platform.worker import Worker
from tests.platform.boards.handing import (
    Participant,
    change_labels,
    grade_all,
    labels,
    make_board,
    participant,
    predictions,
    submit,
)


@pytest.fixture
def ada(platform: Platform, tmp_path: Path) -> Participant:
    make_board(platform, tmp_path / "labels", quota_day=10, quota_month=10)
    return participant(platform)


def versions(platform: Platform) -> list[Path]:
    return [version for board in platform.home.labels.iterdir() for version in board.iterdir()]


def test_the_copy_is_for_its_owner_alone_and_follows_no_later_change(
    platform: Platform, tmp_path: Path
) -> None:
    given = labels(tmp_path / "labels")
    (given / ".hidden").write_text("x")
    board = make_board(platform, tmp_path / "again")
    (kept,) = versions(platform)
    assert board.labels_digest == kept.name == labels_module.digest_of(kept)
    for path in [platform.home.labels, *platform.home.labels.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
        assert not path.name.startswith(".")
    change_labels(tmp_path / "again")
    assert labels_module.digest_of(kept) == kept.name


def test_replaced_labels_grade_what_stands_again_and_keep_what_it_had(
    platform: Platform, client: TestClient, ada: Participant, tmp_path: Path
) -> None:
    files = [predictions(tmp_path / f"{seed}.zip", seed) for seed in range(3)]
    made = [submit(client, ada, file).json()["id"] for file in files[:2]]
    assert grade_all(platform) == 2
    client.post(f"/api/v1/submissions/{made[0]}/publish", headers=ada.headers)
    made.append(submit(client, ada, files[2]).json()["id"])  # waits while the labels are replaced
    before = [client.get(f"/api/v1/submissions/{one}", headers=ada.headers).json() for one in made]

    changed = change_labels(labels(tmp_path / "changed"))
    done = Submissions(platform).replace_labels("small", changed)
    assert done == {"board": "small", "labels_version": 2, "regraded": 2}
    waiting = client.get(f"/api/v1/submissions/{made[0]}", headers=ada.headers).json()
    assert (waiting["state"], waiting["is_regrading"]) == ("graded", True)
    assert waiting["scores"] == before[0]["scores"]
    # Everybody is told of what is published, and of that alone.
    told = client.get("/api/v1/boards/small").json()
    regraded = {"labels_version": 2, "has_new_labels": True, "graded_again": 0, "under_way": 1, "failed": 0}
    assert told["regraded"] == {"at": "2026-11-16T12:00:00+00:00", **regraded}
    assert [row["is_stale"] for row in told["rows"]] == [True]
    assert client.get(f"/api/v1/submissions/{made[0]}").json()["is_regrading"] is True
    assert grade_all(platform) == 3
    told = client.get("/api/v1/boards/small").json()
    assert (told["regraded"]["graded_again"], told["regraded"]["under_way"]) == (1, 0)
    assert [(row["is_stale"], row["labels_version"]) for row in told["rows"]] == [(False, 2)]
    public = client.get(f"/api/v1/submissions/{made[0]}").json()
    assert [past["labels_version"] for past in public["history"]] == [1, 2]
    assert public["history"][0]["score"] == before[0]["scores"]["score"]
    for one, was, file in zip(made, before, files, strict=True):
        now = client.get(f"/api/v1/submissions/{one}", headers=ada.headers).json()
        expected = grade(file, changed, "superglue", split="dev")
        assert expected.score is not None
        assert now["scores"]["score"] == pytest.approx(expected.score, abs=0.0005)
        assert now["scores"]["labels_version"] == 2
        assert (now["is_regrading"], now["published_at"]) == (False, was["published_at"])
        assert [past["labels_version"] for past in now["history"]] == ([1, 2] if was["scores"] else [2])
        if was["scores"]:
            assert now["history"][0]["score"] == was["scores"]["score"] != now["scores"]["score"]


def test_the_same_labels_again_change_nothing(platform: Platform, ada: Participant, tmp_path: Path) -> None:
    done = Submissions(platform).replace_labels("small", labels(tmp_path / "same"))
    assert done == {"board": "small", "labels_version": 1, "regraded": 0}


def test_a_grading_under_way_when_labels_are_replaced_is_done_again(
    platform: Platform, client: TestClient, ada: Participant, tmp_path: Path
) -> None:
    made = submit(client, ada, predictions(tmp_path / "s.zip")).json()["id"]
    job = platform.queue.claim()
    assert job is not None
    asked = platform.queue.prepare(job)
    Submissions(platform).replace_labels("small", change_labels(labels(tmp_path / "changed")))
    Submissions(platform).replace_labels("small", labels(tmp_path / "back"))
    result = platform.run_limited(
        "ensue.platform.boards.grading:grade", asked, platform.queue.kinds["grade"].limits
    )
    assert platform.queue.finish(job, result.value)
    assert grade_all(platform) == 1
    shown = client.get(f"/api/v1/submissions/{made}", headers=ada.headers).json()
    assert [past["labels_version"] for past in shown["history"]] == [1, 3]


def test_what_cannot_be_graded_with_new_labels_stands_no_more_and_can_be_regraded(
    platform: Platform, client: TestClient, ada: Participant, tmp_path: Path
) -> None:
    made = submit(client, ada, predictions(tmp_path / "s.zip")).json()["id"]
    grade_all(platform)
    client.post(f"/api/v1/submissions/{made}/publish", headers=ada.headers)
    longer = labels(tmp_path / "longer")
    with (longer / "COPA" / "val.jsonl").open("a") as file:
        file.write(
            '{"premise": "A.", "choice1": "B.", "choice2": "C.", "question": "cause", "label": 0, "idx": 99}\n'
        )
    Submissions(platform).replace_labels("small", longer)
    grade_all(platform)
    shown = client.get(f"/api/v1/submissions/{made}", headers=ada.headers).json()
    assert (shown["state"], shown["scores"], len(shown["history"])) == ("failed", None, 1)
    assert "1 of 13 examples have no prediction: 99" in shown["reason"]
    # Its scores were seen, so it is used all the same.
    assert client.get("/api/v1/boards/small/quota", headers=ada.headers).json()["day"] == 1
    board = client.get("/api/v1/boards/small").json()
    assert (board["rows"], board["regraded"]["failed"], board["regraded"]["graded_again"]) == ([], 1, 0)
    # Its permanent link says so, and what it had; why, its owner knows.
    public = client.get(f"/api/v1/submissions/{made}").json()
    assert (public["state"], public["scores"], len(public["history"])) == ("failed", None, 1)
    assert "stands on it no more" in public["reason"]
    assert "99" not in public["reason"]
    Submissions(platform).replace_labels("small", labels(tmp_path / "as-before"))
    grade_all(platform)
    shown = client.get(f"/api/v1/submissions/{made}", headers=ada.headers).json()
    assert (shown["state"], shown["reason"]) == ("graded", None)
    board = client.get("/api/v1/boards/small").json()
    assert (len(board["rows"]), board["regraded"]["failed"]) == (1, 0)
    assert Submissions(platform).regrade("small")["regraded"] == 1


def test_labels_that_will_not_do_leave_the_board_as_it_was(
    platform: Platform, ada: Participant, tmp_path: Path
) -> None:
    before = versions(platform)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(Invalid, match=f"{empty} has no labels for dev"):
        Submissions(platform).replace_labels("small", empty)
    with pytest.raises(EnsueError, match="is not there"):
        Submissions(platform).replace_labels("small", tmp_path / "nowhere")
    assert versions(platform) == before
    with platform.database.reading() as connection:
        assert connection.execute(select(jobs)).all() == []
        assert connection.execute(select(gradings)).all() == []


def test_starting_removes_versions_that_no_board_names(
    platform: Platform, client: TestClient, ada: Participant, tmp_path: Path
) -> None:
    (board_folder,) = platform.home.labels.iterdir()
    (board_folder / ".new-killed").mkdir()
    (platform.home.labels / "gone" / "0").mkdir(parents=True)
    Submissions(platform).replace_labels("small", change_labels(labels(tmp_path / "changed")))
    submit(client, ada, predictions(tmp_path / "s.zip"))
    labels_module.tidy(platform.home, platform.database)
    assert len(versions(platform)) == 1
    job = platform.queue.claim()
    assert job is not None
    Worker(platform.queue, platform.home).do(job)
    with platform.database.reading() as connection:
        assert connection.execute(select(gradings.c.labels_version)).scalars().all() == [2]


def test_a_restored_home_grades_as_before(
    platform: Platform, client: TestClient, ada: Participant, tmp_path: Path
) -> None:
    made = submit(client, ada, predictions(tmp_path / "s.zip")).json()["id"]
    grade_all(platform)
    write_backup(platform, tmp_path / "backup.tar")
    there = Settings(home=tmp_path / "new", clock=platform.clock)
    restore(there, tmp_path / "backup.tar")
    with opened(there) as again:
        assert Submissions(again).regrade("small")["regraded"] == 1
        assert grade_all(again) == 1
        with again.database.reading() as connection:
            query = select(gradings).where(gradings.c.submission_id == made).order_by(gradings.c.number)
            before, after = connection.execute(query).all()
    assert (before.score, before.metrics) == (after.score, after.metrics)
    (version,) = [one for board in (there.home / "labels").iterdir() for one in board.iterdir()]
    assert labels_module.digest_of(version) == version.name
