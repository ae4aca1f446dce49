"""Baselines: the figures of the papers and of this project, marked as such, on boards that nobody has labels for."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from ensue.benchmarks import registry
from ensue.platform.boards.baselines import Baselines, baselines_of, read_bundled
from ensue.platform.boards.board import Boards, Wanted
from ensue.platform.boards.submissions import Submissions
from ensue.platform.refusals import Conflict, Invalid
from ensue.platform.service import Platform
from tests.platform.boards.handing import labels, make_board, participant, predictions, submit

BUNDLED = {said["name"]: said for said in read_bundled()}


@pytest.fixture
def baselines(platform: Platform) -> Baselines:
    return Baselines(Boards(platform))


def rows(client: TestClient, board: str) -> dict[tuple[str, str], dict]:
    found = client.get(f"/api/v1/boards/{board}").json()["rows"]
    return {(row["kind"], row["system"]): row for row in found}


def score(row: dict) -> float | None:
    return row["score"] and row["score"]["value"]


def test_every_suite_that_grades_has_a_board() -> None:
    assert {said["suite"] for said in BUNDLED.values()} == {
        one.name for one in registry.every() if one.grader
    }


@pytest.mark.parametrize("name", sorted(BUNDLED))
def test_a_bundled_board_names_tables_that_are_there_and_a_column_to_order_by(name: str) -> None:
    said = BUNDLED[name]
    found = baselines_of(said)
    main = {"settings": {}, **said["main"]}
    assert any(one.score(main) is not None for one in found)
    assert all(one.rows or one.diagnostics for one in found)
    assert len({(one.kind, one.system) for one in found}) == len(found)
    assert {one.kind for one in found} <= {"published", "measured", "human"}


def test_bundled_boards_show_the_printed_figures(
    platform: Platform, client: TestClient, baselines: Baselines
) -> None:
    assert baselines.make_bundled() == len(BUNDLED)
    assert baselines.make_bundled() == 0
    listed = client.get("/api/v1/boards").json()
    assert {board["name"] for board in listed} == set(BUNDLED)
    assert not any(board["is_open"] for board in listed)
    superglue = rows(client, "superglue")
    assert score(superglue["human", "Human"]) == 0.898
    assert score(superglue["published", "BERT++"]) == 0.715
    assert superglue["published", "BERT"]["metrics"]["CB.f1"]["value"] == 0.757
    assert score(superglue["published", "Outside Best"]) is None
    assert all(row["rank"] is None for row in superglue.values())
    # A name in two groups is two systems.
    glue = rows(client, "glue")
    assert score(glue["published", "BiLSTM (single-task)"]) == 0.620
    assert score(glue["published", "BiLSTM (multi-task)"]) == 0.635
    shuffle = rows(client, "shuffle")
    assert score(shuffle["measured", "smollm2"]) == 0.949
    told = {name: client.get(f"/api/v1/boards/{name}").json()["covers"] for name in BUNDLED}
    assert told["discoeval"]["average"].startswith("of measured systems over 9 of 12 tasks")
    assert told["intruder"] == {"intruder": "measured systems on 400 BBC articles; there is no published set"}
    assert {name for name, covers in told.items() if not covers} == {"glue", "superglue", "qags"}
    found = rows(client, "intruder")["measured", "smollm2, following"]
    assert score(found) == 0.930
    assert found["metrics"]["intruder.false_alarms.kind=untouched"]["value"] == 0.102
    # The two tables of the paper disagree; the second one is shown.
    assert score(shuffle["published", "GPT2-medium"]) == 0.945


def test_a_board_without_labels_takes_nothing_until_it_has_some(
    platform: Platform, client: TestClient, baselines: Baselines, tmp_path: Path
) -> None:
    baselines.make_bundled()
    ada, file = participant(platform), predictions(tmp_path / "s.zip")
    refused = submit(client, ada, file, board="superglue-dev")
    assert refused.status_code == 409
    assert "has not given labels" in refused.json()["error"]
    with pytest.raises(Conflict, match="no labels"):
        Boards(platform).change("superglue-dev", {"is_open": True})
    done = Submissions(platform).replace_labels("superglue-dev", labels(tmp_path / "labels"))
    assert (done["labels_version"], done["regraded"]) == (1, 0)
    assert submit(client, ada, file, board="superglue-dev").status_code == 201
    assert score(rows(client, "superglue-dev")["published", "BERT"]) == 0.722


def test_create_takes_over_a_board_that_came_without_labels_but_no_other(
    platform: Platform, client: TestClient, baselines: Baselines, tmp_path: Path
) -> None:
    baselines.make_bundled()
    made = make_board(platform, tmp_path / "labels", name="superglue")
    assert (made.name, made.title, made.split, made.is_open) == ("superglue", "SuperGLUE", "dev", True)
    # The figures were of the test sets, and the board is of the dev sets now.
    assert rows(client, "superglue") == {}
    same = make_board(platform, tmp_path / "dev", name="superglue-dev", title="Own")
    assert same.title == "Own"
    assert score(rows(client, "superglue-dev")["published", "BERT"]) == 0.722
    with pytest.raises(Conflict, match="already"):
        Boards(platform).create(Wanted("superglue", "superglue", split="dev"), labels(tmp_path / "more"))


def test_baselines_are_imported_from_the_papers_or_a_file(
    platform: Platform, client: TestClient, baselines: Baselines, tmp_path: Path
) -> None:
    make_board(platform, tmp_path / "labels")
    done = baselines.import_published("small")
    assert done == {"board": "small", "baselines": len(baselines_of(BUNDLED["superglue-dev"]))}
    again = baselines.import_published("small")
    assert len(rows(client, "small")) == again["baselines"] == done["baselines"]
    words = """
        citation = "Ada (2026): Notes"
        dated = 2026-01-02
        [[tables]]
        table = "7"
        columns = [{ task = "SuperGLUE", metric = "score" }, { task = "BoolQ", metric = "accuracy" }]
        rows = [{ system = "Notes", values = [0.5, 0.25] }, { system = "Half", values = [nan, 0.75] }]
    """
    assert baselines.import_file("small", words)["baselines"] == 2
    found = rows(client, "small")
    assert score(found["published", "Notes"]) == 0.5
    assert found["published", "Notes"]["published_at"].startswith("2026-01-02")
    assert found["published", "Notes"]["description"] == "Printed in Ada (2026): Notes, table 7."
    assert score(found["published", "Half"]) is None
    assert found["published", "Half"]["metrics"]["BoolQ.accuracy"]["value"] == 0.75
    for wrong in ("", "x = ", "citation = 'a'\ntables = 3", "citation = 'a'\n[[tables]]\ntable = '1'"):
        with pytest.raises(Invalid, match=r"published\.toml"):
            baselines.import_file("small", wrong)
