"""Send a submission to a board: one POST that may be repeated, since the board knows it again by its key."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from ensue.errors import EnsueError, RunFailed

if TYPE_CHECKING:
    import httpx

# Seconds to wait before each further attempt, where no answer came or the server was not ready.
_WAITS = (1.0, 4.0)
_NOT_READY = (502, 503, 504)
# A submission that ended so used no quota, and sending it again is meant as another.
_ENDED = ("failed", "expired", "cancelled")
_MOST_ENDED = 20
_CONNECT_SECONDS, _ANSWER_SECONDS = 10.0, 120.0
# An answer is read so far; what it says is shown so far.
_ANSWER_BYTES, _SHOWN = 1 << 20, 400


class Address(NamedTuple):
    """Where a board is: the server's root, and the board's name."""

    root: str
    board: str

    @property
    def submissions(self) -> str:
        return f"{self.root}/api/v1/boards/{quote(self.board, safe='')}/submissions"


class Sent(NamedTuple):
    """A submission as the board has taken it; `page` is where its owner sees it."""

    id: str
    state: str
    position: int | None
    page: str


class NotTaken(EnsueError):
    """A submission that the board found something wrong with; `problems` as it says them."""

    def __init__(self, where: str, problems: list[dict[str, Any]]) -> None:
        self.problems = problems
        lines = "".join(f"\n  {_in_words(problem)}" for problem in problems)
        noun = "problem" if len(problems) == 1 else "problems"
        super().__init__(
            f"{where} does not take the submission for {len(problems)} {noun}; no quota was used.{lines}"
        )


def address_of(url: str, suite: str) -> Address:
    """Return the board that a URL names: a board's page, or a server whose board is called as the benchmark is.

    >>> address_of("https://example.org/boards/may/", "glue")
    Address(root='https://example.org', board='may')
    >>> address_of("http://127.0.0.1:8000", "glue").submissions
    'http://127.0.0.1:8000/api/v1/boards/glue/submissions'
    """
    try:
        split = urlsplit(url)
        _ = split.port
    except ValueError:
        raise EnsueError(
            f"--to {url} is not an address; give one such as https://HOST/boards/NAME."
        ) from None
    if split.scheme not in ("http", "https") or not split.hostname or split.query or split.fragment:
        raise EnsueError(f"--to {url} is not an address; give one such as https://HOST/boards/NAME.")
    if split.username is not None or split.password is not None:
        raise EnsueError("--to holds a name or password; give a token with --token or ENSUE_TOKEN instead.")
    before, found, board = split.path.rstrip("/").rpartition("/boards/")
    if found and board and "/" not in board:
        return Address(f"{split.scheme}://{split.netloc}{before}", unquote(board))
    return Address(f"{split.scheme}://{split.netloc}{split.path.rstrip('/')}", suite)


def key_of(file: Path, run: Path | None, fields: Mapping[str, str]) -> str:
    """Return a key of a run, a file and the words with it, so that sending the same again is no second submission."""
    digest = hashlib.sha256(json.dumps(dict(fields), sort_keys=True).encode())
    try:
        for path in (file, *([run / "run.json"] if run is not None else [])):
            with path.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
    except OSError as error:
        raise EnsueError(f"{file} cannot be sent: {error.strerror or error}.") from None
    return digest.hexdigest()


def send(address: Address, file: Path, token: str, fields: Mapping[str, str], key: str) -> Sent:
    """Send a file to a board; where it was sent before and that failed, expired or was cancelled, once more.

    The key of each further submission follows from the one that ended, so a retry of it is still one.
    """
    for _ in range(_MOST_ENDED):
        sent = upload(address, file, token, fields, key)
        if sent.state not in _ENDED:
            return sent
        key = hashlib.sha256(f"{key} {sent.id}".encode()).hexdigest()
    raise RunFailed(f"{sent.page} and those before it are {sent.state}; nothing was sent.")


def upload(
    address: Address,
    file: Path,
    token: str,
    fields: Mapping[str, str],
    key: str,
    waits: tuple[float, ...] = _WAITS,
) -> Sent:
    """Send a file to a board, again where no answer came; what the board finds wrong is raised as `NotTaken`."""
    import httpx

    if not token.isascii() or not token.isprintable() or not token.strip():
        raise EnsueError("The token is not one that a server gave; copy it again from your account's page.")
    headers = {"Authorization": f"Bearer {token.strip()}", "Idempotency-Key": key}
    timeout = httpx.Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS)
    with httpx.Client(timeout=timeout, follow_redirects=False) as client:
        for wait in (*waits, None):
            try:
                status, body = _post(client, address.submissions, headers, file, fields)
                if status not in _NOT_READY or wait is None:
                    return _sent(address, status, body)
            except httpx.TransportError as error:
                if wait is None:
                    said = str(error) or type(error).__name__
                    raise RunFailed(
                        f"{address.root} gave no answer ({said}); the same command sends the same submission again."
                    ) from None
            except httpx.InvalidURL as error:
                raise EnsueError(f"{address.root} is not an address ({error}).") from None
            if wait is not None:
                time.sleep(wait)
    raise AssertionError("the last attempt returns or raises")


def _post(
    client: httpx.Client, url: str, headers: Mapping[str, str], file: Path, fields: Mapping[str, str]
) -> tuple[int, Any]:
    """Return the status and what the answer says; None where that is no JSON."""
    with file.open("rb") as stream:
        sending = {"file": (file.name, stream, "application/octet-stream")}
        with client.stream("POST", url, headers=headers, data=dict(fields), files=sending) as answer:
            read = bytearray()
            for chunk in answer.iter_bytes():
                read += chunk
                if len(read) > _ANSWER_BYTES:
                    return answer.status_code, None
    try:
        return answer.status_code, json.loads(bytes(read))
    except (ValueError, RecursionError):
        return answer.status_code, None


def _sent(address: Address, status: int, body: Any) -> Sent:
    """Return what was sent, or raise what the board says about it."""
    said = body if isinstance(body, dict) else {}
    if status in (200, 201) and isinstance(said.get("id"), str) and isinstance(said.get("state"), str):
        position = said.get("position")
        page = f"{address.root}/submissions/{quote(said['id'], safe='')}"
        return Sent(said["id"], said["state"], position if isinstance(position, int) else None, page)
    where = f"The board {address.board} at {address.root}"
    problems = said.get("problems")
    if status == 422 and isinstance(problems, list) and problems:
        raise NotTaken(where, [one for one in problems if isinstance(one, dict)])
    words = _plain(said["error"]).rstrip(".") if isinstance(said.get("error"), str) else ""
    if status == 429:
        until = f"; try again from {_plain(str(said['retry_at']))} on" if said.get("retry_at") else ""
        raise RunFailed(f"{where} takes no more for now ({words or 'the quota is spent'}){until}.")
    if status in (401, 403):
        advice = words or "it is not valid; make another on your account's page"
        raise EnsueError(f"{where} refuses the token: {advice}.")
    if status == 404:
        raise EnsueError(f"{address.root} has no board {address.board!r} that is open to you.")
    if 400 <= status < 500:
        raise EnsueError(f"{where} refuses the submission ({words or status}).")
    raise RunFailed(f"{where} could not take the submission ({words or status}); send it again later.")


def _in_words(problem: Mapping[str, Any]) -> str:
    """Return a problem as `ensue grade` says it."""
    file, line = _plain(str(problem.get("file") or "")), problem.get("line")
    where = f"{file}, line {line}" if file and isinstance(line, int) and line else file
    words = _plain(str(problem.get("problem") or "a problem without words"))
    return f"{where}: {words}" if where else words


def _plain(text: str) -> str:
    """Return what a server says, fit for a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:_SHOWN])
