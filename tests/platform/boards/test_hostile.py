"""Hostile submissions: what is sent is refused in one sentence or taken as it is; nothing breaks, nothing leaks."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as settings_of
from hypothesis import strategies as st
from sqlalchemy import select
from starlette.testclient import TestClient

from ensue.platform.boards.board import Boards, Wanted
from ensue.platform.database.schema import submissions, uploads
from ensue.platform.service import Platform, Settings
from tests.platform.boards.handing import (
    BOARD,
    FACTS,
    Participant,
    grade_all,
    make_board,
    participant,
    predictions,
    submit,
)

SCRIPT = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{7*7}}"
SECRET = "zebrafish"


@pytest.fixture
def settings(database_url: str, clock: object, tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", database=database_url, clock=clock, largest_upload=300_000)  # type: ignore[arg-type]


@pytest.fixture
def ada(platform: Platform, tmp_path: Path) -> Participant:
    make_board(platform, tmp_path / "labels", quota_day=1000, quota_month=1000)
    return participant(platform)


@pytest.fixture
def good(tmp_path: Path) -> bytes:
    return predictions(tmp_path / "s.zip").read_bytes()


@pytest.fixture(autouse=True)
def nothing_is_left(platform: Platform) -> Iterator[None]:
    yield
    assert list(platform.home.work.iterdir()) == []
    with platform.database.reading() as connection:
        named = set(connection.execute(select(uploads.c.digest)).scalars())
    assert {path.name for path in platform.home.uploads.iterdir()} == named


def sentence(answer: httpx.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    words = answer.json()["error"]
    assert words.endswith((".", "…"))
    assert "\n" not in words
    return str(words)


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def test_script_in_every_field_comes_back_as_it_went_in_and_as_no_page(
    platform: Platform, client: TestClient, ada: Participant, good: bytes
) -> None:
    facts = dict.fromkeys(("system", "description", "parameters", "data", "sharing", "affiliation"), SCRIPT)
    made = submit(client, ada, good, name=f"{SCRIPT}.zip", **facts)
    assert made.status_code == 201, made.text
    grade_all(platform)
    where = f"/api/v1/submissions/{made.json()['id']}"
    assert client.post(f"{where}/publish", headers=ada.headers).status_code == 200
    for address in (where, f"/api/v1/boards/{BOARD}"):
        answer = client.get(address)
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert client.get(where).json()["system"] == SCRIPT
    pages = (f"/boards/{BOARD}", f"/boards/{BOARD}.atom", f"/boards/{BOARD}?q=%3Cscript%3E", "/")
    for address in pages:
        page = client.get(address)
        assert page.status_code == 200
        assert "<script>alert" not in page.text
        assert "onerror=alert(2)>" not in page.text


WRONG = [
    ("link", "javascript:alert(1)"),
    ("link", "data:text/html,x"),
    ("link", "https://"),
    ("link", "https://a b"),
    ("link", "http://[::1"),
    ("link", "//example.org"),
    ("code", "JaVaScRiPt:alert(1)"),
    ("email", "nobody"),
    ("email", "a@b@c"),
    ("system", ""),
    ("system", "   "),
    ("system", "x" * 201),
    ("system", "a\nb"),
    ("system", "a\x00b"),
    ("system", "a\u202eb"),
    ("description", "x" * 20_001),
    ("parameters", "\x1b[31m"),
    ("data", ""),
]


def test_a_field_that_will_not_do_is_refused_in_a_sentence(
    client: TestClient, ada: Participant, good: bytes
) -> None:
    for field, value in WRONG:
        words = sentence(submit(client, ada, good, **{field: value}), 422)
        assert "<" not in words


NAMES = ["../../../etc/passwd", "/etc/passwd", "..\\..\\windows\\system.ini", "a\x00b.zip", "", "." * 300]


def test_names_of_files_lead_nowhere(
    platform: Platform, client: TestClient, ada: Participant, good: bytes
) -> None:
    for name in [*NAMES, "\u202egpj.exe"]:
        made = submit(client, ada, good, name=name)
        if made.status_code != 201:
            # A part without a name is no file.
            assert sentence(made, 422)
            continue
        shown = client.get(f"/api/v1/submissions/{made.json()['id']}", headers=ada.headers).json()["file"]
        assert 1 <= len(shown) <= 255
        assert not set("/\\\x00\u202e") & set(shown)


def test_any_text_in_any_field_is_answered_in_a_sentence(
    platform: Platform, client: TestClient, ada: Participant, good: bytes
) -> None:
    # Closed, so that what will do is refused too, after everything else was looked at.
    Boards(platform).change(BOARD, {"is_open": False})
    any_text = st.text(max_size=300)
    names = [*FACTS, "sharing", "affiliation", "code", "email", "other"]

    @settings_of(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(facts=st.dictionaries(st.sampled_from(names), any_text), name=any_text, key=st.binary(max_size=30))
    def hand_in(facts: dict[str, str], name: str, key: bytes) -> None:
        headers = {**ada.headers, "Idempotency-Key": bytes(byte for byte in key if byte not in b"\r\n\x00")}
        where = f"/api/v1/boards/{BOARD}/submissions"
        files = {"file": (name, good)}
        answer = client.post(where, data={**FACTS, **facts}, files=files, headers=headers)
        assert answer.status_code in {400, 409, 422}, answer.text
        sentence(answer, answer.status_code)
        platform.clock.move(minutes=1)  # type: ignore[attr-defined]

    hand_in()


def test_hostile_zips_are_refused_with_problems_and_use_no_quota(
    client: TestClient, ada: Participant, good: bytes
) -> None:
    bomb = zipped({"BoolQ.jsonl": b"\n" * 60_000_000, "COPA.jsonl": b'{"idx": 0, "label": 0}\n' * 2_000_000})
    nested = zipped({"BoolQ.jsonl": zipped({f"{n}": bytes(10**7) for n in range(8)})})
    paths = zipped({"../../BoolQ.jsonl": b"x", "/etc/COPA.jsonl": b"x", "C:\\CB.jsonl": b"x", "a\x00b": b"x"})
    many = zipped({f"{n}.txt": b"" for n in range(2_000)})
    deep = zipped({"BoolQ.jsonl": b"[" * 100_000, "COPA.jsonl": b'{"idx": 1e999, "label": NaN}'})
    for hostile in (
        bomb,
        nested,
        paths,
        many,
        deep,
        good[: len(good) // 2],
        b"PK\x05\x06" + bytes(18),
        b"\x00",
    ):
        answer = submit(client, ada, hostile)
        sentence(answer, 422)
        problems = answer.json()["problems"]
        assert problems
        assert all(set(one) == {"file", "line", "problem"} for one in problems)
        assert len(answer.content) < 100_000
    assert client.get(f"/api/v1/boards/{BOARD}/quota", headers=ada.headers).json()["day"] == 0


def test_bodies_that_are_no_upload_are_refused(client: TestClient, ada: Participant, good: bytes) -> None:
    where, headers = f"/api/v1/boards/{BOARD}/submissions", ada.headers
    form = {**headers, "Content-Type": "multipart/form-data; boundary=x"}
    sentence(client.post(where, headers=headers), 422)
    sentence(client.post(where, json=FACTS, headers=headers), 422)
    sentence(client.post(where, data={**FACTS, "file": "text"}, headers=headers), 422)
    sentence(client.post(where, data=FACTS, files={"other": ("a", good)}, headers=headers), 422)
    two = [("file", ("a", good)), ("file", ("b", good))]
    sentence(client.post(where, data=FACTS, files=two, headers=headers), 400)
    many = {f"field{n}": "x" for n in range(100)}
    sentence(client.post(where, data={**FACTS, **many}, files={"file": ("a", good)}, headers=headers), 400)
    for body in (
        b"",
        b"--x",
        b"--x\r\n\r\n",
        b"--x\r\nContent-Disposition: form-data\r\n\r\na\r\n--x--",
        bytes(999),
    ):
        assert client.post(where, content=body, headers=form).status_code in {400, 422}
    nothing = {**headers, "Content-Type": "multipart/form-data"}
    assert client.post(where, content=b"--x", headers=nothing).status_code in {400, 422}
    empty = submit(client, ada, b"")
    assert "empty" in empty.json()["problems"][0]["problem"]


def test_bodies_that_are_too_large_are_refused_before_they_are_read(
    client: TestClient, ada: Participant, good: bytes
) -> None:
    sentence(submit(client, ada, bytes(300_001)), 413)
    where = f"/api/v1/boards/{BOARD}/submissions"
    told = {
        **ada.headers,
        "Content-Length": str(5 * 10**9),
        "Content-Type": "multipart/form-data; boundary=x",
    }
    sentence(client.post(where, content=b"x", headers=told), 413)

    def endless() -> Iterator[bytes]:
        yield b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
        for _ in range(200):
            yield bytes(100_000)

    sentence(
        client.post(where, content=endless(), headers={**ada.headers, "Content-Type": told["Content-Type"]}),
        413,
    )


def test_keys_that_will_not_do_are_refused(client: TestClient, ada: Participant, good: bytes) -> None:
    for key in ("k" * 201, "a\tb", "caf\u00e9", "\x7f"):
        headers = {**ada.headers, "Idempotency-Key": key.encode()}
        answer = client.post(
            f"/api/v1/boards/{BOARD}/submissions", data=FACTS, files={"file": ("a", good)}, headers=headers
        )
        assert "Idempotency-Key" in sentence(answer, 422)


FORGED = [
    "x",
    "0" * 22,
    "a" * 5000,
    "%00",
    "..%2f..%2fetc",
    "\u2603",
    "' OR 1=1 --",
    "%ff",
    "submissions",
    "new",
]


ADDRESSES = [
    ("GET", "submissions/{}"),
    ("POST", "submissions/{}/publish"),
    ("POST", "submissions/{}/withdraw"),
    ("POST", "submissions/{}/cancel"),
    ("GET", "boards/{}"),
    ("GET", "boards/{}.csv"),
    ("GET", "boards/{}/quota"),
    ("GET", "boards/{}/submissions"),
    ("POST", "boards/{}/submissions"),
]


def test_forged_ids_and_names_are_not_found(client: TestClient, ada: Participant) -> None:
    for forged in FORGED:
        for method, address in ADDRESSES:
            sentence(client.request(method, f"/api/v1/{address.format(forged)}", headers=ada.headers), 404)


def test_another_users_things_are_not_found_and_visitors_are_asked_who_they_are(
    platform: Platform, client: TestClient, ada: Participant, good: bytes
) -> None:
    made = submit(client, ada, good).json()["id"]
    bob = participant(platform, "bob@example.org", "admin")
    assert client.get("/api/v1/submissions", headers=bob.headers).json() == []
    for step in ("publish", "withdraw", "cancel"):
        where = f"/api/v1/submissions/{made}/{step}"
        sentence(client.post(where, headers=bob.headers), 404)
        sentence(client.post(where), 401)
        sentence(client.post(where, headers={"Authorization": "Bearer ensue_forged"}), 401)
    sentence(client.get("/api/v1/submissions"), 401)
    sentence(client.post(f"/api/v1/boards/{BOARD}/submissions", content=b"x"), 401)
    shown = client.get(f"/api/v1/submissions/{made}", headers=ada.headers).json()
    assert (shown["state"], shown["published_at"]) == ("queued", None)


def test_an_anonymous_submission_says_nothing_of_whose_it_is(
    platform: Platform, client: TestClient, ada: Participant, good: bytes
) -> None:
    naming = {"affiliation": "University of X", "code": "https://example.org/x", "email": "x@example.org"}
    made = submit(client, ada, good, **naming).json()["id"]
    grade_all(platform)
    where = f"/api/v1/submissions/{made}"
    client.post(f"{where}/publish", json={"anonymous": True}, headers=ada.headers)
    told = "".join(
        client.get(one).text for one in (where, f"/api/v1/boards/{BOARD}", f"/api/v1/boards/{BOARD}.csv")
    )
    for word in ("University of X", "example.org", ada.user.id, "ada@"):
        assert word not in told


def test_labels_are_in_no_answer_reason_or_log(
    platform: Platform, client: TestClient, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    gold = "".join(json.dumps({"id": f"{n}", "label": f"{SECRET} {n}"}) + "\n" for n in range(20))
    (folder / "gold.jsonl").write_text(gold)
    toml = 'name = "Own"\n[tasks.words]\nlabels = "gold.jsonl"\nmetrics = ["rouge1"]\n'
    Boards(platform).create(Wanted("own", toml=toml), folder)
    ada = participant(platform)
    lines = [json.dumps({"id": f"{n}", "prediction": f"a guess {n}"}) for n in range(20)]
    told = [submit(client, ada, "\n".join(lines).encode(), board="own", name="p.jsonl")]
    assert told[0].status_code == 201, told[0].text
    grade_all(platform)
    where = f"/api/v1/submissions/{told[0].json()['id']}"
    told.append(client.get(where, headers=ada.headers))
    assert told[-1].json()["state"] == "graded", told[-1].text
    for wrong in ("\n".join(lines[:-1]), lines[0] * 2, '{"id": "99", "prediction": "x"}', "[]", "{"):
        told.append(submit(client, ada, wrong.encode(), board="own", name="p.jsonl"))
        assert told[-1].status_code == 422
    # Labels that were damaged on the disk: the grader's own words would quote them.
    told.append(submit(client, ada, "\n".join(lines).encode(), board="own", name="p.jsonl"))
    (file,) = platform.home.labels.rglob("gold.jsonl")
    file.write_text(f'{{"id": "0", "label": "{SECRET}"\n{SECRET}')
    grade_all(platform)
    told.append(client.get(f"/api/v1/submissions/{told[-1].json()['id']}", headers=ada.headers))
    assert told[-1].json()["state"] == "failed"
    assert "tell whoever runs it" in told[-1].json()["reason"]
    told.append(submit(client, ada, "\n".join(lines).encode(), board="own", name="p.jsonl"))
    sentence(told[-1], 503)
    told += [client.get(one) for one in ("/api/v1/boards/own", "/api/v1/boards", "/metrics", "/boards/own")]
    for answer in told:
        assert SECRET not in answer.text
        assert str(platform.home.path) not in answer.text
    assert SECRET not in caplog.text
    with platform.database.reading() as connection:
        assert SECRET not in repr(connection.execute(select(submissions)).all())
