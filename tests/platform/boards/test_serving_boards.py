"""A server as a process of its own: `ensue board create`, `ensue submit --to`, fifty uploads at once."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.platform.boards.handing import BOARD, FACTS, labels, predictions
from tests.platform.processes import serving
from tests.support.command import here


def ensue(*words: str, code: int = 0) -> Any:
    """Run a command and return the JSON it prints."""
    done = here(*words)
    assert done.code == code, done.err
    return json.loads(done.out) if done.out.strip() else done.err


class Served:
    """A server with the small board and a user."""

    def __init__(self, url: str, where: tuple[str, ...], token: str) -> None:
        self.url, self.where = url, where
        self.client = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=120)
        self.token = token

    def post(self, file: Path, key: str | None = None, **facts: str) -> httpx.Response:
        headers = {"Idempotency-Key": key} if key else {}
        files = {"file": (file.name, file.read_bytes())}
        where = f"/api/v1/boards/{BOARD}/submissions"
        return self.client.post(where, data={**FACTS, **facts}, files=files, headers=headers)

    def graded(self, submission: str) -> dict[str, Any]:
        """Wait until a submission is graded."""
        for _ in range(600):
            found = self.client.get(f"/api/v1/submissions/{submission}").json()
            if found["state"] not in {"queued", "running"}:
                return dict(found)
            time.sleep(0.1)
        raise AssertionError(found)


@pytest.fixture
def served(database_url: str, tmp_path: Path) -> Iterator[Served]:
    home = tmp_path / "home"
    home.mkdir()
    where = ("--home", str(home), "--database", database_url, "--json")
    made = ("board", "create", BOARD, "--suite", "superglue", "--split", "dev")
    ensue(*made, "--labels", str(labels(tmp_path / "labels")), *where)
    with serving(home, "--database", database_url) as (_, url):
        # While the server runs, commands are handed over to it.
        user = ensue("user", "add", "ada@example.org", *where)
        found = Served(url, where, user["token"])
        yield found
        found.client.close()


def test_ensue_submit_sends_a_run_and_its_owner_publishes_it(served: Served, tmp_path: Path) -> None:
    run = tmp_path / "run"
    data = str(tmp_path / "labels")
    ensue("run", "superglue", "--model", "most-frequent", "--data", data, "--output", str(run), "--json")
    facts = [f"--{name.replace('data', 'training-data')}={value}" for name, value in FACTS.items()]
    to = ("--to", f"{served.url}/boards/{BOARD}", "--token", served.token, "--split", "dev", "--json")
    sent = ensue("submit", "superglue", str(run), *to, *facts)
    again = ensue("submit", "superglue", str(run), *to, *facts)
    assert sent["id"] == again["id"]
    graded = served.graded(sent["id"])
    grading = ensue("grade", str(run / "superglue-dev.zip"), "--labels", data, "--split", "dev", "--json")
    assert graded["scores"]["score"] == round(grading["score"], 3)
    assert httpx.get(f"{served.url}/api/v1/submissions/{sent['id']}").status_code == 404
    served.client.post(f"/api/v1/submissions/{sent['id']}/publish", json={"anonymous": True})
    (row,) = httpx.get(f"{served.url}/api/v1/boards/{BOARD}").json()["rows"]
    assert (row["rank"], row["system"], row["link"]) == (1, FACTS["system"], "")
    table = httpx.get(f"{served.url}/api/v1/boards/{BOARD}.csv").text.splitlines()
    assert len(table) == 2
    assert FACTS["system"] in table[1]
    # What is wrong with a file is told by file and line, and nothing was used up.
    broken = tmp_path / "broken.zip"
    broken.write_bytes(b"no zip")
    refused = ensue("submit", "superglue", str(broken), *to, *facts, code=2)
    assert "not a zip file" in json.dumps(refused)
    assert served.client.get(f"/api/v1/boards/{BOARD}/quota").json()["day"] == 1


def test_fifty_uploads_at_once_are_two_submissions(served: Served, tmp_path: Path) -> None:
    files = [predictions(tmp_path / f"{seed}.zip", seed) for seed in range(5)]
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda n: served.post(files[n % 5], key=f"key {n}"), range(50)))
    assert Counter(answer.status_code for answer in answers) == {201: 2, 429: 48}
    assert all("retry_at" in answer.json() for answer in answers if answer.status_code == 429)
    accepted = {answer.json()["id"] for answer in answers if answer.status_code == 201}
    found = served.client.get("/api/v1/submissions").json()
    assert {one["id"] for one in found} == accepted
    assert all(served.graded(one)["state"] == "graded" for one in accepted)


def test_one_upload_sent_twenty_times_at_once_is_one_submission(served: Served, tmp_path: Path) -> None:
    file = predictions(tmp_path / "s.zip")
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: served.post(file, key="the same"), range(20)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1
    other = served.post(file, key="the same", system="Another")
    assert (other.status_code, "Idempotency-Key" in other.json()["error"]) == (422, True)
    assert len(served.client.get("/api/v1/submissions").json()) == 1
