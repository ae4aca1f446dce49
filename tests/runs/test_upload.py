"""Sending a submission, against a small board in this process that speaks the platform's protocol."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ensue.errors import EnsueError, RunFailed
from ensue.runs.upload import Address, address_of, key_of, upload
from tests.benchmarks.nlu import folders
from tests.support.command import here, refused
from tests.support.run_folders import write_items

TOKEN = "token-of-a-participant"


class SmallBoard(ThreadingHTTPServer):
    """Takes submissions by their key; `answers` are given before any is taken, None for a broken connection."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.taken: dict[str, dict[str, bytes]] = {}
        self.requests: list[tuple[str, str | None]] = []
        self.answers: list[tuple[int, Any] | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: SmallBoard

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        message = BytesParser(policy=HTTP).parsebytes(head + body)
        parts = {
            str(part.get_param("name", header="content-disposition")): part for part in message.iter_parts()
        }
        self.server.requests.append((self.path, self.headers["Authorization"]))
        if self.server.answers:
            answer = self.server.answers.pop(0)
            if answer is None:
                self.close_connection = True
                return
            self.answer(*answer)
            return
        key = self.headers["Idempotency-Key"]
        fields = {name: part.get_payload(decode=True) for name, part in parts.items()}
        fields["filename"] = str(parts["file"].get_filename()).encode()
        status = 200 if key in self.server.taken else 201
        self.server.taken.setdefault(key, fields)
        place = list(self.server.taken).index(key)
        self.answer(status, {"id": f"s{place}", "state": "queued", "position": place + 1})

    def answer(self, status: int, said: Any) -> None:
        body = said if isinstance(said, bytes) else json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def board() -> Iterator[SmallBoard]:
    with SmallBoard() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    items = [
        {
            "id": f"{task}/{split}/{id}",
            "task": task,
            "settings": {"split": split},
            "scores": {},
            "outputs": {"predicted": one},
        }
        for task, splits in folders.glue_predictions().items()
        for split, found in splits.items()
        for id, one in found.items()
    ]
    return write_items(tmp_path / "run", "glue", items, model={"name": "bowline"})


def send(board: SmallBoard, run: Path, *options: object) -> Any:
    return here("submit", "glue", run, "--split", "dev", "--to", board.url, "--token", TOKEN, *options)


def test_a_run_is_sent_with_what_is_said_about_it_and_a_retry_is_one_submission(
    board: SmallBoard, run: Path
) -> None:
    about = ("--description", "A knot; it holds.", "--parameters", "12 million", "--training-data", "none")
    more = (
        "--sharing",
        "all",
        "--affiliation",
        "Knots",
        "--code",
        "https://example.org",
        "--email",
        "a@example.org",
    )
    done = send(board, run, *about, *more, "--link", "https://example.org/knot", "--json")
    assert (done.code, done.err) == (0, "")
    said = json.loads(done.out)
    assert said == {
        "id": "s0",
        "state": "queued",
        "position": 1,
        "page": f"{board.url}/submissions/s0",
        "file": str(run / "glue-dev.zip"),
    }
    ((path, bearer),) = board.requests
    assert (path, bearer) == ("/api/v1/boards/glue/submissions", f"Bearer {TOKEN}")
    (fields,) = board.taken.values()
    assert fields == {
        "system": b"bowline",
        "description": b"A knot; it holds.",
        "parameters": b"12 million",
        "data": b"none",
        "link": b"https://example.org/knot",
        "sharing": b"all",
        "affiliation": b"Knots",
        "code": b"https://example.org",
        "email": b"a@example.org",
        "filename": b"glue-dev.zip",
        "file": (run / "glue-dev.zip").read_bytes(),
    }
    again = send(board, run, *about, *more, "--link", "https://example.org/knot")
    assert again.code == 0
    assert again.out.splitlines()[-1].startswith("sent: s0 is queued, place 1 in the queue: http")
    assert len(board.taken) == 1
    # With other words it is another submission: a server refuses a key that comes with something else.
    assert send(board, run, *about, "--system", "sheet bend").code == 0
    assert len(board.taken) == 2


@pytest.mark.parametrize("state", ["failed", "expired", "cancelled"])
def test_what_ended_without_a_grade_is_sent_once_more_with_a_key_of_its_own(
    board: SmallBoard, tmp_path: Path, state: str
) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text('{"id": "1", "prediction": "x"}\n')
    ended = (201, {"id": "ended", "state": state, "position": None})
    for _ in range(2):
        board.answers = [ended]
        done = here("submit", "harbour", file, "--to", board.url, "--token", TOKEN, "--json")
        assert (json.loads(done.out)["id"], json.loads(done.out)["state"]) == ("s0", "queued")
    (key,) = board.taken
    assert key != key_of(file, None, {})
    board.answers = [ended] * 100
    done = here("submit", "harbour", file, "--to", board.url, "--token", TOKEN)
    assert done.code == 1
    assert f"/submissions/ended and those before it are {state}; nothing was sent." in done.sentence


def test_another_run_file_or_word_has_another_key(tmp_path: Path, run: Path) -> None:
    file = tmp_path / "a.zip"
    file.write_bytes(b"one")
    keys = {key_of(file, None, {}), key_of(file, run, {})}
    (run / "run.json").write_text('{"model": {"name": "other"}}')
    keys.add(key_of(file, run, {}))
    file.write_bytes(b"two")
    keys.add(key_of(file, run, {}))
    keys.add(key_of(file, run, {"description": "Mended."}))
    assert len(keys) == 5
    assert key_of(file, run, {}) in keys
    with pytest.raises(EnsueError, match=r"none.zip cannot be sent: No such file"):
        key_of(tmp_path / "none.zip", None, {})


def test_a_file_is_sent_as_it_is(board: SmallBoard, tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"id": "1", "prediction": "x"}\n')
    done = here("submit", "harbour", path, "--to", f"{board.url}/boards/boats%20of%20May", "--token", TOKEN)
    assert done.code == 0
    assert board.requests[0][0] == "/api/v1/boards/boats%20of%20May/submissions"
    (fields,) = board.taken.values()
    assert fields == {"file": path.read_bytes(), "filename": b"mine.jsonl"}
    refused(here("submit", "harbour", path), "add --to URL")


def test_no_answer_is_asked_again_with_the_same_key(board: SmallBoard, run: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.zip"
    file.write_bytes(b"content")
    address = Address(board.url, "glue")
    board.answers = [None, (503, {"error": "Starting."})]
    sent = upload(address, file, TOKEN, {}, "key", waits=(0.0, 0.0))
    assert (sent.id, len(board.requests), list(board.taken)) == ("s0", 3, ["key"])
    board.answers = [None, None, None]
    with pytest.raises(
        RunFailed, match=r"gave no answer .*; the same command sends the same submission again"
    ):
        upload(address, file, TOKEN, {}, "key", waits=(0.0, 0.0))
    board.answers = [(503, {"error": "Starting."})] * 3
    with pytest.raises(RunFailed, match=r"could not take the submission \(Starting\); send it again later"):
        upload(address, file, TOKEN, {}, "key", waits=(0.0, 0.0))


def test_problems_are_printed_by_line_and_as_json(board: SmallBoard, run: Path) -> None:
    problems = [
        {"file": "CoLA.tsv", "line": 3, "problem": "the label 'x' is none of 0, 1."},
        {"file": "RTE.tsv", "line": 0, "problem": "is missing from the zip."},
        {"file": "", "line": 0, "problem": "an \x1b[31mold\n zip."},
    ]
    board.answers = [(422, {"problems": problems})] * 2
    done = send(board, run)
    assert done.code == 2
    assert done.err.splitlines() == [
        f"ensue: The board glue at {board.url} does not take the submission for 3 problems; no quota was used.",
        "  CoLA.tsv, line 3: the label 'x' is none of 0, 1.",
        "  RTE.tsv: is missing from the zip.",
        "  an  [31mold  zip.",
    ]
    assert json.loads(send(board, run, "--json").out) == {"problems": problems}


ANSWERS = {
    "the quota": (
        (429, {"error": "Two a day.", "retry_at": "2026-11-17T00:00:00Z"}),
        1,
        "takes no more for now (Two a day); try again from 2026-11-17T00:00:00Z on.",
    ),
    "a bad token": ((401, {"error": "Unknown token."}), 2, "refuses the token: Unknown token."),
    "no such board": ((404, {"error": "Not found."}), 2, "has no board 'glue' that is open to you"),
    "another body": (
        (422, {"error": "The key was used for another file."}),
        2,
        "(The key was used for another file)",
    ),
    "too large": ((413, {"error": "Too large."}), 2, "refuses the submission (Too large)"),
    "a redirection": ((302, b""), 1, "could not take the submission (302)"),
    "no JSON": ((201, b"<html>"), 1, "could not take the submission (201)"),
    "another JSON": ((201, [1]), 1, "could not take the submission (201)"),
    "a failure": (
        (500, {"error": "job 7"}),
        1,
        "could not take the submission (job 7); send it again later.",
    ),
    "a flood": ((201, b'"' + b"x" * (2 << 20) + b'"'), 1, "could not take the submission (201)"),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_what_the_board_says_is_one_sentence(board: SmallBoard, run: Path, case: str) -> None:
    answer, code, words = ANSWERS[case]
    board.answers = [answer]
    done = send(board, run)
    assert (done.code, done.sentence.count("\n")) == (code, 0)
    assert words in done.sentence
    assert TOKEN not in done.sentence


def test_what_cannot_be_sent(run: Path) -> None:
    refused(here("submit", "glue", run, "--split", "dev", "--to", "http://127.0.0.1:1"), "--to needs a token")
    refused(here("submit", "glue", run, "--split", "dev", "--link", "x"), "(link) goes with --to URL")
    for url in ("ftp://a", "example.org", "http://", "http://a:b", "http://a/?q=1", "http://[::1"):
        with pytest.raises(EnsueError, match="is not an address; give one such as"):
            address_of(url, "glue")
    with pytest.raises(EnsueError, match="holds a name or password") as raised:
        address_of("https://user:secret@example.org", "glue")
    assert "secret" not in str(raised.value)
    with pytest.raises(EnsueError, match="The token is not one that a server gave"):
        upload(Address("http://127.0.0.1:1", "b"), run / "run.json", "tok\nen", {}, "key", waits=())


def test_a_server_that_is_not_there_is_named(run: Path) -> None:
    with pytest.raises(RunFailed, match=r"http://127\.0\.0\.1:1 gave no answer"):
        upload(Address("http://127.0.0.1:1", "b"), run / "run.json", TOKEN, {}, "key", waits=())
