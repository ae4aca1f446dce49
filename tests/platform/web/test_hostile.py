"""Hostile requests to every page and form: nothing breaks, nothing is let through or obeyed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given
from hypothesis import settings as settings_of
from hypothesis import strategies as st
from sqlalchemy import func, select
from starlette.testclient import TestClient

from ensue.platform.boards.baselines import Baselines
from ensue.platform.boards.board import Boards
from ensue.platform.clock import SetClock
from ensue.platform.database.schema import metadata, sessions, users
from ensue.platform.service import Platform
from ensue.platform.web.app import create_app
from tests.platform.boards.handing import BOARD, FACTS, make_board, participant, predictions, submit
from tests.platform.web.browser import PASSWORD, Browser

SQL = "x'; DROP TABLE users; --"
WORDS = (
    SQL,
    "' OR '1'='1",
    "a\x00b",
    "../../../etc/passwd",
    "%s%n{0}{{7*7}}${7*7}",
    "<script>alert(1)</script>",
    "a\r\nSet-Cookie: forged=1",
    "\ud83d\ude80\u202e".encode("utf-16", "surrogatepass").decode("utf-16", "replace"),
    "-1",
    "9" * 400,
)


@pytest.fixture
def app(platform: Platform) -> FastAPI:
    return create_app(platform)


@pytest.fixture
def admin(app: FastAPI, platform: Platform) -> Browser:
    browser = Browser(app)
    browser.sign_up("ada@example.org")
    platform.accounts.set_role(platform.accounts.find_email("ada@example.org").id, "admin")
    return browser


class Form(NamedTuple):
    """A form of a page: where it is sent, and the names of what is filled in."""

    action: str
    fields: tuple[str, ...]
    files: tuple[str, ...]


class Page(HTMLParser):
    """The links and forms of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.forms: list[Form] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        if tag == "a" and told.get("href", "").startswith("/"):
            self.links.append(told["href"].partition("#")[0])
        if tag == "form":
            self.forms.append(Form(told.get("action", ""), (), ()))
        if (
            tag in {"input", "textarea", "select", "button"}
            and self.forms
            and told.get("name", "csrf") != "csrf"
        ):
            form, name = self.forms[-1], (told["name"],)
            kind = "files" if told.get("type") == "file" else "fields"
            self.forms[-1] = form._replace(**{kind: getattr(form, kind) + name})


def walked(browser: Browser, most: int = 60) -> dict[str, Page]:
    """Every page that links lead to from the first."""
    found: dict[str, Page] = {}
    waiting = [
        "/",
        "/account",
        "/organise",
        "/sign-in",
        "/sign-up",
        f"/boards/{BOARD}",
        f"/boards/{BOARD}/submit",
    ]
    while waiting and len(found) < most:
        address = waiting.pop(0)
        if address in found or "/baselines" in address:
            continue
        answer = browser.get(address)
        if answer.headers.get("content-type", "").startswith("text/html"):
            found[address] = Page(answer.text)
            kinds = {re.sub(r"[?].*", "", one) for one in found}
            # Of a board's many views one is enough.
            waiting += [one for one in found[address].links if re.sub(r"[?].*", "", one) not in kinds]
    return found


def rows_of(platform: Platform) -> dict[str, int]:
    with platform.database.reading() as connection:
        return {
            name: connection.execute(select(func.count()).select_from(table)).scalar() or 0
            for name, table in metadata.tables.items()
        }


def test_every_form_filled_with_hostile_words_is_answered_and_nothing_of_it_is_obeyed(
    app: FastAPI, platform: Platform, admin: Browser, clock: SetClock, tmp_path: Path
) -> None:
    make_board(platform, tmp_path / "labels")
    pages = walked(admin)
    forms = {form for page in pages.values() for form in page.forms}
    forms = {
        form
        for form in forms
        if not form.action.startswith(("/sign-out", "/account/delete", "/account/password"))
    }
    assert len(forms) >= 8, forms
    before, token = rows_of(platform), admin.token("/account")
    for form in sorted(forms):
        for words in WORDS:
            clock.move(hours=2)
            fields = dict.fromkeys(form.fields, words)
            files = {name: (words, words.encode()) for name in form.files}
            answer = admin.post(form.action, data={**fields, "csrf": token}, files=files or None)
            assert answer.status_code < 500, (form, words, answer.text[:300])
            assert "forged" not in str(answer.headers), (form, answer.headers)
            assert "<script>alert" not in answer.text, form
            assert "root:" not in answer.text
    after = rows_of(platform)
    assert after.keys() == before.keys()
    assert after["users"] >= before["users"]
    assert admin.me()["email"] == "ada@example.org"
    assert admin.me()["role"] == "admin"


def test_hostile_words_in_every_path_and_query_are_answered(
    app: FastAPI, platform: Platform, admin: Browser, tmp_path: Path
) -> None:
    make_board(platform, tmp_path / "labels")
    document = admin.get("/api/v1/openapi.json").json()
    paths = {path for path, methods in document["paths"].items() if "get" in methods}
    paths |= {f"/boards/{{name}}{end}" for end in ("", ".csv", ".json", ".atom", "/diagnostics", "/submit")}
    paths |= {"/submissions/{id}", "/invitations/{id}", "/organise/{id}", "/try/{id}"}
    queries = ("q", "sort", "date", "page", "part", "next", "done")
    for words in WORDS:
        said = quote(words, safe="")
        for path in sorted(paths):
            answer = admin.get(re.sub(r"[{][^}]*[}]", said.replace("\\", "%5C"), path))
            assert answer.status_code < 500, (path, words)
            assert "<script>alert" not in answer.text
        for name in queries:
            for path in ("/", f"/boards/{BOARD}", f"/boards/{BOARD}/diagnostics", "/sign-in", "/submissions"):
                answer = admin.get(f"{path}?{name}={said}")
                assert answer.status_code < 500, (path, name, words)
                assert "<script>alert" not in answer.text
                assert "forged" not in answer.headers.get("location", "").replace(said, "")


@settings_of(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(data=st.data())
def test_the_api_answers_anything_as_its_document_says(app: FastAPI, platform: Platform, data: Any) -> None:
    client = TestClient(app, raise_server_exceptions=False)
    document = client.get("/api/v1/openapi.json").json()
    operations = sorted((path, method) for path, methods in document["paths"].items() for method in methods)
    path, method = data.draw(st.sampled_from(operations))
    said = document["paths"][path][method]
    some_text = st.sampled_from(WORDS) | st.text(max_size=30)
    anything = st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | some_text,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
        max_leaves=8,
    )
    names = {one["name"]: one["in"] for one in said.get("parameters", [])}
    address = re.sub(
        r"[{][^}]*[}]", lambda _: quote(data.draw(some_text), safe="", errors="replace") or "x", path
    )
    query = {name: data.draw(some_text) for name, place in names.items() if place == "query"}
    body: dict[str, Any] = {}
    if "requestBody" in said:
        known = list(_properties(said["requestBody"], document))
        keys = st.sampled_from(known) if known else st.text(max_size=8)
        drawn = data.draw(st.dictionaries(keys, anything, max_size=8) | anything)
        body = {"json": drawn}
    headers = {"authorization": f"Bearer {_token(platform)}"} if data.draw(st.booleans()) else {}
    answer = client.request(method, address, params=query, headers=headers, **body)
    assert answer.status_code < 500, (method, address, body, answer.text)
    known_answers = set(said["responses"]) | {"404", "403", "401", "413", "422", "429", "400"}
    assert str(answer.status_code) in known_answers, (method, path, answer.status_code)
    if answer.status_code >= 400:
        assert isinstance(answer.json()["error"], str)
        assert "\n" not in answer.json()["error"]


def _token(platform: Platform) -> str:
    found = getattr(platform, "fuzzed", None)
    if found is None:
        found = participant(platform, "fuzz@example.org", "organiser").token
        platform.fuzzed = found  # type: ignore[attr-defined]
    return str(found)


def _properties(body: dict[str, Any], document: dict[str, Any]) -> Iterator[str]:
    for kind in body["content"].values():
        schema = kind["schema"]
        if "$ref" in schema:
            schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        yield from schema.get("properties", {})


def test_forged_cookies_are_nobodys(app: FastAPI, platform: Platform, admin: Browser) -> None:
    cookie = str(admin.cookies["ensue_session"])
    with platform.database.reading() as connection:
        stored = str(connection.execute(select(sessions.c.cookie_hash)).scalars().first())
        user = str(connection.execute(select(users.c.id)).scalars().first())
    assert stored != cookie
    forged = [
        stored,
        hashlib.sha256(stored.encode()).hexdigest(),
        user,
        cookie + "A",
        cookie[:-1],
        cookie.swapcase(),
        "",
        "a" * 5_000,
        SQL.replace(";", "%3B"),
        "\xff\xfe",
    ]
    for one in forged:
        client = TestClient(app, raise_server_exceptions=False, follow_redirects=False)
        headers = {"cookie": f"ensue_session={one}".encode("latin-1")}
        assert client.get("/api/v1/me", headers=headers).status_code == 401, one
        assert client.get("/account", headers=headers).headers["location"].startswith("/sign-in")
    assert admin.me()["email"] == "ada@example.org"
    # The name of another cookie does not make it a session.
    client = TestClient(app, raise_server_exceptions=False)
    for name in ("ensue_visitor", "Ensue_Session", "session"):
        assert client.get("/api/v1/me", headers={"cookie": f"{name}={cookie}"}).status_code == 401
    # One of an account that ended is nobody's either.
    platform.accounts.delete(user)
    assert admin.get("/api/v1/me").status_code == 401


def test_fields_of_ten_megabytes_are_refused_in_a_sentence(
    app: FastAPI, platform: Platform, admin: Browser, tmp_path: Path
) -> None:
    make_board(platform, tmp_path / "labels")
    ada, good, huge = (
        participant(platform, "eve@example.org"),
        predictions(tmp_path / "s.zip"),
        "x" * 10_000_000,
    )
    client = TestClient(app, raise_server_exceptions=False)
    for field in (*FACTS, "sharing", "affiliation", "code", "email", "another"):
        answer = submit(client, ada, good, **{field: huge})
        assert answer.status_code in {400, 413, 422}, field
        assert len(answer.text) < 1_000
    assert submit(client, ada, good, name=huge[:1_000_000]).status_code in {201, 400, 413, 422}
    token = admin.token("/account")
    for form in ("/account", "/account/tokens", "/sign-in", "/organise/new", f"/boards/{BOARD}/submit"):
        answer = admin.post(form, data={"name": huge, "email": huge, "system": huge, "csrf": token})
        assert answer.status_code in {400, 403, 404, 405, 413, 422}, form
        assert len(answer.text) < 100_000
    assert admin.post("/account", data={huge[:900_000]: "x", "csrf": token}).status_code < 500


def test_nobody_who_is_not_signed_in_has_a_large_body_read(
    app: FastAPI, platform: Platform, tmp_path: Path
) -> None:
    make_board(platform, tmp_path / "labels")
    visitor, taken = Browser(app), 0
    token = visitor.token()

    def pieces() -> Iterator[bytes]:
        nonlocal taken
        yield b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
        for _ in range(100):
            taken += 100_000
            yield bytes(100_000)

    kind = {"content-type": "multipart/form-data; boundary=x", "x-csrf-token": token}
    for path in (f"/boards/{BOARD}/submit", "/organise/new"):
        large = {**kind, "content-length": "20000000"}
        assert visitor.post(path, content=b"x", headers=large).status_code == 401
        unsaid = visitor.post(path, content=pieces(), headers={**kind, "transfer-encoding": "chunked"})
        assert unsaid.status_code == 401
    forged = {**kind, "cookie": "ensue_session=forged", "content-length": "20000000"}
    assert Browser(app).post(f"/boards/{BOARD}/submit", content=b"x", headers=forged).status_code == 401


def test_a_key_is_its_users_and_its_boards_alone(app: FastAPI, platform: Platform, tmp_path: Path) -> None:
    make_board(platform, tmp_path / "labels")
    make_board(platform, tmp_path / "more", name="other")
    ada, bob = participant(platform), participant(platform, "bob@example.org")
    client, good = TestClient(app), predictions(tmp_path / "s.zip")
    first = submit(client, ada, good, key="k").json()["id"]
    assert submit(client, ada, good, key="k").json()["id"] == first
    assert submit(client, bob, good, key="k").json()["id"] != first
    assert submit(client, ada, good, key="k", board="other").json()["id"] != first
    again = submit(client, ada, predictions(tmp_path / "t.zip", seed=5), key="k")
    assert (again.status_code, "Idempotency-Key" in again.json()["error"]) == (422, True)
    assert submit(client, ada, good, key="k").json()["id"] == first


def test_a_clock_that_is_changed_lets_nobody_beyond_and_fails_nothing(
    app: FastAPI, platform: Platform, clock: SetClock, tmp_path: Path
) -> None:
    make_board(platform, tmp_path / "labels")
    ada, client, good = (
        participant(platform),
        TestClient(app, raise_server_exceptions=False),
        predictions(tmp_path / "s.zip"),
    )
    assert [submit(client, ada, good).status_code for _ in range(3)] == [201, 201, 429]
    clock.move(hours=-3)  # set back, on the same day
    assert submit(client, ada, good).status_code == 429
    clock.move(hours=-24)  # to the day before; what was handed in later counts all the same
    assert submit(client, ada, good).status_code == 429
    clock.move(days=2)
    assert submit(client, ada, good).status_code == 201
    browser = Browser(app)
    browser.sign_up("bob@example.org")
    clock.move(days=-400)
    assert browser.get("/account").status_code in {200, 303}
    clock.move(days=4_000)
    assert browser.get("/account").status_code == 303
    assert browser.get(f"/boards/{BOARD}").status_code == 200


def test_what_is_told_of_a_submission_does_not_depend_on_what_is_right_before_it_is_graded(
    app: FastAPI, platform: Platform, tmp_path: Path
) -> None:
    make_board(platform, tmp_path / "labels", quota_day=9)
    ada, client = participant(platform), TestClient(app)
    answers = []
    for seed in (2, 3, 4):
        made = submit(client, ada, predictions(tmp_path / f"{seed}.zip", seed=seed)).json()
        shown = client.get(f"/api/v1/submissions/{made['id']}", headers=ada.headers).json()
        del shown["id"], shown["position"]
        answers.append((made["state"], shown))
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][1]["scores"] is None


def test_words_of_callers_are_in_no_header_and_in_no_address_of_a_server_that_has_its_own(
    platform: Platform,
) -> None:
    platform.settings = replace(platform.settings, public_url="https://boards.example")
    Baselines(Boards(platform)).make_bundled()
    browser = Browser(create_app(platform), base_url="https://boards.example")
    browser.sign_up("ada@example.org")
    forged = {"x-request-id": "forged", "host": "evil.example", "x-forwarded-host": "evil.example"}
    for path in ("/", "/boards/glue.csv", "/boards/glue.atom", "/sign-in"):
        answer = browser.get(path, headers=forged)
        assert not {"forged", "evil.example"} & set(
            re.findall(r"forged|evil.example", str(answer.headers) + answer.text)
        )
    for next_page in ("//evil.example", "https://evil.example", "/\r\nSet-Cookie: forged=1"):
        fields = {"email": "ada@example.org", "password": PASSWORD, "next": next_page}
        landed = browser.submit("/sign-in", "/account", **fields)
        assert landed.status_code == 303
        assert landed.headers["location"].startswith("/")
        assert not landed.headers["location"].startswith("//")
        assert "forged" not in str(landed.headers.get_list("set-cookie"))
