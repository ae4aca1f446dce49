"""A small SuperGLUE board, files that fit it, and users who hand them in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from starlette.testclient import TestClient

from ensue.benchmarks.nlu.submissions.submission import write_submission
from ensue.platform.accounts import User
from ensue.platform.boards.board import Board, Boards, Wanted
from ensue.platform.service import Platform
from ensue.platform.worker import Worker
from tests.benchmarks.nlu import folders

BOARD = "small"
FACTS = {
    "system": "Majority",
    "description": "It says what is said most.",
    "parameters": "3, all shared",
    "data": "None.",
    "link": "https://example.org/majority",
}


class Participant(NamedTuple):
    """A user who is asked for nothing: the token goes with every request."""

    user: User
    token: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


def labels(folder: Path) -> Path:
    """Make the labels of the small board."""
    return folders.superglue(folder)


def predictions(path: Path, seed: int = 2) -> Path:
    """Write a zip that fits the board; another seed has other predictions."""
    write_submission("superglue", folders.superglue_predictions(seed), path, "dev")
    return path


def make_board(platform: Platform, folder: Path, **wanted: Any) -> Board:
    """Make the small board with labels in a new folder."""
    return Boards(platform).create(wanted_board(**wanted), labels(folder))


def wanted_board(**wanted: Any) -> Wanted:
    """What is said of the small board."""
    told: dict[str, Any] = {"name": BOARD, "suite": "superglue", "split": "dev", **wanted}
    return Wanted(**told)


def participant(platform: Platform, email: str = "ada@example.org", role: str = "participant") -> Participant:
    user = platform.accounts.add(email, role)
    return Participant(user, platform.accounts.add_token(user.id, "test"))


def submit(
    client: TestClient | httpx.Client,
    who: Participant,
    file: bytes | Path,
    *,
    key: str | None = None,
    board: str = BOARD,
    name: str = "predictions.zip",
    **facts: str,
) -> httpx.Response:
    """Hand a file in."""
    content = file.read_bytes() if isinstance(file, Path) else file
    headers = {**who.headers, **({"Idempotency-Key": key} if key is not None else {})}
    return client.post(
        f"/api/v1/boards/{board}/submissions",
        data={**FACTS, **facts},
        files={"file": (name, content)},
        headers=headers,
    )


def grade_all(platform: Platform) -> int:
    """Do every job in the queue, here and now; return how many there were."""
    worker, done = Worker(platform.queue, platform.home), 0
    while (job := platform.queue.claim()) is not None:
        worker.do(job)
        done += 1
    return done


def change_labels(folder: Path) -> Path:
    """Turn every label of BoolQ in a folder of labels round."""
    file = folder / "BoolQ" / "val.jsonl"
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    file.write_text("".join(json.dumps({**row, "label": not row["label"]}) + "\n" for row in rows), "utf-8")
    return folder
