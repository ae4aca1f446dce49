"""`ensue worker` as a process with a tiny model: it connects, reads texts, comes back, may be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import ensue
from ensue.platform.service import Settings, opened
from tests.platform.processes import serving
from tests.support import tiny
from tests.support.command import here, refused, start
from tests.support.corpus import document

TEXT = " ".join(document(3, 6))
SECRET = "Zanzibarquux"


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save_llama(tmp_path_factory.mktemp("models") / "tiny-llama", max_length=512)


@contextmanager
def working(*options: object) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Start a worker; yield it and what it says once it is connected."""
    process = start("worker", "--no-qags", "--json", *options)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.stderr.read() if process.stderr else ""
        yield process, json.loads(line)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
        process.communicate()


def tried(url: str, text: str = TEXT, model: str = "tiny-llama") -> str:
    answer = httpx.post(f"{url}/api/v1/tries", json={"kind": "profile", "model": model, "text": text})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def ended(url: str, id: str) -> dict[str, Any]:
    """Look at a text until it is over."""
    for _ in range(600):
        found = dict(httpx.get(f"{url}/api/v1/tries/{id}").json())
        if found["state"] in {"done", "failed"}:
            return found
        time.sleep(0.1)
    raise AssertionError(found)


def test_a_worker_reads_a_text_as_the_command_line_does_and_leaves_in_order(
    llama: Path, tmp_path: Path
) -> None:
    with serving(tmp_path) as (_, url), working("--model", llama, "--home", tmp_path) as (worker, said):
        assert (said["url"], said["offers"]) == (url, [{"kind": "profile", "model": "tiny-llama"}])
        found = ended(url, tried(url, f"{TEXT} {SECRET} came."))
        (expected,) = ensue.profile([f"{TEXT} {SECRET} came."], model=str(llama))
        assert found["result"] == json.loads(json.dumps(expected.row()))
        worker.send_signal(signal.SIGTERM)
        out, err = worker.communicate(timeout=30)
        assert worker.returncode == 0
        assert err.splitlines()[-1] == "Stopped; requests done: 1."
        assert httpx.get(f"{url}/api/v1/tries").json()["offers"] == []
        assert SECRET not in out + err
    # Nowhere on the disk either: not in the log, the database, or a file of the home.
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


def test_a_killed_worker_gives_its_text_to_the_next_and_a_server_is_waited_for(tmp_path: Path) -> None:
    # A model that starts at once: what becomes of texts does not depend on it.
    options = ("--model", "unigram", "--home", tmp_path)
    with serving(tmp_path) as (server, url):
        with working(*options) as (worker, _):
            # It takes the text, once it has asked for one, and never says a word again.
            time.sleep(2)
            worker.send_signal(signal.SIGSTOP)
            id = tried(url, model="unigram")
            for _ in range(100):
                if httpx.get(f"{url}/api/v1/tries/{id}").json()["state"] == "running":
                    break
                time.sleep(0.05)
            worker.kill()
            assert httpx.get(f"{url}/api/v1/tries/{id}").json()["state"] == "running"
        with working(*options) as (worker, first):
            assert ended(url, id)["state"] == "done"
            assert worker.stdout is not None
            server.send_signal(signal.SIGTERM)
            assert server.wait(30) == 0
            with serving(tmp_path) as (_, other):
                again = json.loads(worker.stdout.readline())
                assert again["url"] == other
                assert again["id"] != first["id"]
                gone = httpx.get(f"{other}/api/v1/tries/{id}")
                assert gone.status_code == 404
                assert "the server was started anew" in gone.json()["error"]
                assert ended(other, tried(other, model="unigram"))["state"] == "done"


def test_a_worker_elsewhere_needs_the_token_of_an_organiser(tmp_path: Path) -> None:
    with opened(Settings(home=tmp_path)) as platform:
        tokens = {}
        for role in ("annotator", "organiser"):
            user = platform.accounts.add(f"{role}@example.org", role)
            tokens[role] = platform.accounts.add_token(user.id)
    with serving(tmp_path) as (_, url):
        options = ("worker", "--model", "unigram", "--no-qags", "--to", url)
        assert "Only those with the role organiser" in refused(here(*options, "--token", tokens["annotator"]))
        assert "The API token is not valid" in refused(here(*options, "--token", "ensue_nothing"))
        with working("--model", "unigram", "--to", f"{url}/", "--token", tokens["organiser"]):
            assert ended(url, tried(url, model="unigram"))["state"] == "done"


def test_what_a_worker_cannot_do_without_is_one_sentence(tmp_path: Path) -> None:
    refused(here("worker", "--home", tmp_path / "none"), "ensue serve --home", code=1)
    refused(here("worker", "--to", "http://127.0.0.1:1"), "--to needs a token")
    refused(here("worker", "--to", "nowhere", "--token", "x"), "is not an address")
    refused(here("worker", "--to", "http://127.0.0.1:1", "--home", tmp_path, "--token", "x"), "two servers")
    away = here("worker", "--model", "unigram", "--no-qags", "--to", "http://127.0.0.1:1", "--token", "x")
    refused(away, "does not answer", code=1)
    assert os.listdir(tmp_path) == []
