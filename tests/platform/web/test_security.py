"""What guards requests: forged forms, headers, cookies, limits on size and number, and what is written to the log."""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.requests import Request

from ensue.platform.clock import SetClock
from ensue.platform.database.opening import Database
from ensue.platform.logs import JsonLines
from ensue.platform.refusals import Forbidden, TooMany
from ensue.platform.service import Platform
from ensue.platform.web.app import create_app
from ensue.platform.web.security import RATES, Rate, RateLimits, check_form_token
from tests.platform.conftest import NOON
from tests.platform.web.browser import PASSWORD, Browser


@pytest.fixture
def app(platform: Platform) -> FastAPI:
    return create_app(platform)


def changing(app: FastAPI) -> list[tuple[str, str]]:
    """Every route that changes something."""
    included = [getattr(route, "original_router", app.router) for route in app.routes]
    routers = {id(router): router for router in included}.values()
    routes = [route for router in routers for route in router.routes if isinstance(route, APIRoute)]
    return [(method, route.path) for route in routes for method in route.methods - {"GET", "HEAD", "OPTIONS"}]


# Forged forms


def test_who_was_given_no_form_is_refused_before_the_body_is_read() -> None:
    async def receive() -> Any:
        raise AssertionError("the body is read")

    headers = [(b"content-type", b"multipart/form-data; boundary=x")]
    request = Request({"type": "http", "method": "POST", "path": "/", "headers": headers}, receive)
    with pytest.raises(Forbidden):
        asyncio.run(check_form_token(request))


def test_no_route_takes_a_change_from_a_signed_in_browser_without_its_token(
    app: FastAPI, platform: Platform
) -> None:
    browser, other = Browser(app), Browser(app)
    browser.sign_up("ada@example.org")
    platform.accounts.set_role(platform.accounts.find_email("ada@example.org").id, "admin")
    other.sign_up("eve@example.org")
    foreign = other.token("/account")
    routes = [(method, path) for method, path in changing(app) if not path.startswith("/internal/")]
    assert len(routes) >= 10
    for method, path in routes:
        address = path.replace("{", "").replace("}", "")
        for token in ("", foreign, "0" * 64, "é"):
            form = {"csrf": token, "confirmation": PASSWORD}
            answer = browser.request(method, address, data=form)
            assert answer.status_code == 403, (method, path, answer.text)
            header = browser.request(
                method, address, json={}, headers={"x-csrf-token": token.encode("utf-8")}
            )
            assert header.status_code == 403, (method, path)
        assert browser.request(method, address).status_code == 403
    assert browser.me()["email"] == "ada@example.org"


def test_a_visitor_cannot_be_signed_in_by_another_site(app: FastAPI) -> None:
    Browser(app).sign_up("eve@example.org")
    victim = Browser(app)
    answer = victim.post("/sign-in", data={"email": "eve@example.org", "password": PASSWORD})
    assert answer.status_code == 403
    token = Browser(app).token()
    victim.get("/sign-in")
    answer = victim.post("/sign-in", data={"email": "eve@example.org", "password": PASSWORD, "csrf": token})
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://testserver.evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_what_a_browser_says_comes_from_another_site_is_refused_whatever_it_carries(
    app: FastAPI, headers: dict[str, str]
) -> None:
    browser = Browser(app)
    browser.sign_up("ada@example.org")
    form = {"csrf": browser.token("/account"), "name": "Eve"}
    assert browser.post("/account", data=form, headers=headers).status_code == 403
    own = {"origin": "http://testserver", "sec-fetch-site": "same-origin"}
    assert browser.post("/account", data=form, headers=own).status_code == 303


def test_a_script_of_ours_sends_the_token_in_a_header(app: FastAPI) -> None:
    browser = Browser(app)
    browser.sign_up("ada@example.org")
    token = {"x-csrf-token": browser.token("/account")}
    assert browser.post("/api/v1/me/tokens", json={}).status_code == 403
    assert browser.post("/api/v1/me/tokens", json={}, headers=token).status_code == 201


def test_a_cookie_does_not_count_beside_an_api_token(app: FastAPI) -> None:
    browser = Browser(app)
    browser.sign_up("ada@example.org")
    answer = browser.post("/account", data={"name": "Eve"}, headers={"authorization": "Bearer nonsense"})
    assert answer.status_code == 401
    assert browser.me()["name"] == ""


def test_commands_are_taken_from_this_machine_alone(app: FastAPI, platform: Platform) -> None:
    browser, user = Browser(app), {"email": "eve@example.org", "role": "admin"}
    for key in ("", "Home ", "Home None", "Home x"):
        assert (
            browser.post("/internal/user.add", json=user, headers={"authorization": key}).status_code == 404
        )
    app.state.command_key = "the key"
    good = {"authorization": "Home the key"}
    for more in ({"x-forwarded-for": "1.2.3.4"}, {"forwarded": "for=1.2.3.4"}):
        assert browser.post("/internal/user.add", json=user, headers={**good, **more}).status_code == 404
    assert browser.post("/internal/nonsense", json=user, headers=good).status_code == 404
    assert browser.post("/internal/user.add", json=user, headers=good).status_code == 200


# Headers and cookies


def test_every_answer_has_the_headers(app: FastAPI) -> None:
    @app.get("/broken")
    def broken() -> None:
        raise RuntimeError("the label is entailment")

    browser = Browser(app)
    answers = {
        path: browser.get(path)
        for path in (
            "/",
            "/healthz",
            "/static/ensue.css",
            "/nowhere",
            "/broken",
            "/api/v1/me",
            "/api/v1/openapi.json",
        )
    }
    assert [answer.status_code for answer in answers.values()] == [200, 200, 200, 404, 500, 401, 200]
    for path, answer in answers.items():
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        # What has no version in its address is asked about each time.
        kept = "public, no-cache" if path.startswith("/static/") else "no-store"
        assert answer.headers["cache-control"] == kept
        assert len(answer.headers["x-request-id"]) == 22


@pytest.mark.parametrize(
    ("path", "status"), [("/", 200), ("/healthz", 200), ("/nowhere", 404), ("/sign-out", 405)]
)
def test_head_answers_as_get_does_without_the_body(app: FastAPI, path: str, status: int) -> None:
    browser = Browser(app)
    head, get = browser.head(path), browser.get(path)
    assert (head.status_code, head.content) == (status, b"")
    assert (get.status_code, head.headers["content-type"]) == (status, get.headers["content-type"])


def test_cookies_are_out_of_reach_of_scripts_and_other_sites(app: FastAPI, platform: Platform) -> None:
    answer = Browser(app).sign_up("ada@example.org")
    cookie = next(
        value for value in answer.headers.get_list("set-cookie") if value.startswith("ensue_session=")
    )
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= set(cookie.split("; "))
    assert "Secure" not in cookie  # plain http, as on this machine alone
    platform.settings = replace(platform.settings, public_url="https://boards.example")
    secure = Browser(create_app(platform), base_url="https://boards.example")
    answer = secure.sign_up("bob@example.org")
    for cookie in answer.headers.get_list("set-cookie"):
        if "Max-Age=0" not in cookie:
            assert "Secure" in cookie
    assert answer.headers["strict-transport-security"] == "max-age=31536000"


# How much


def test_bodies_too_large_are_refused_whatever_they_say_of_their_size(app: FastAPI) -> None:
    browser = Browser(app)
    token = browser.token()
    form = f"csrf={token}&email=ada@example.org&password=".encode()
    kind = {"content-type": "application/x-www-form-urlencoded"}

    def pieces() -> Iterator[bytes]:
        yield form
        for _ in range(40):
            yield b"x" * 50_000

    said = browser.post("/sign-in", content=form + b"x" * 2_000_000, headers=kind)
    unsaid = browser.post("/sign-in", content=pieces(), headers=kind)
    for answer in (said, unsaid):
        assert answer.status_code == 413
        assert "The body is larger than 1 MB, the most taken here." in answer.text
    assert browser.post("/sign-in", content=b"", headers={**kind, "content-length": "-5"}).status_code == 413
    json = browser.post("/api/v1/me/tokens", content=b"[" * 2_000_000, headers={"authorization": "Bearer x"})
    assert json.status_code == 413
    assert list(json.json()) == ["error"]


def test_a_body_that_comes_too_slowly_is_given_up(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ensue.platform.web.security._PATIENCE", 0.3)
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(0.1)
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [
        (b"content-type", b"application/json"),
        (b"authorization", b"Bearer x"),
        (b"host", b"testserver"),
    ]
    address = {
        "path": "/api/v1/me/tokens",
        "raw_path": b"/api/v1/me/tokens",
        "query_string": b"",
        "root_path": "",
    }
    scope = {
        "type": "http",
        "method": "POST",
        "scheme": "http",
        "headers": headers,
        "http_version": "1.1",
        **address,
    }
    asyncio.run(app(scope, receive, send))
    assert sent[0]["status"] == 408
    assert sent[1]["body"] == b'{"error":"The body came too slowly; try again."}'


def test_a_part_may_take_more_where_it_says_so(app: FastAPI) -> None:
    app.state.larger_bodies["/api/v1/me/tokens"] = 3_000_000
    big = Browser(app).post(
        "/api/v1/me/tokens", content=b" " * 2_000_000, headers={"authorization": "Bearer x"}
    )
    assert big.status_code == 401


# How often


def test_sign_in_is_limited_by_account_and_by_address(app: FastAPI, clock: SetClock) -> None:
    browser = Browser(app)
    browser.sign_up("ada@example.org")
    browser.submit("/sign-out", "/")
    for _ in range(RATES["sign-in by account"].most):
        assert browser.sign_in("ada@example.org", "wrong password").status_code == 401
    refused = browser.sign_in("ADA@example.org ")  # the right password, too late
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "300"
    assert "try again in 5 min" in refused.text
    left = RATES["sign-in by address"].most - RATES["sign-in by account"].most - 1
    for number in range(left):
        assert browser.sign_in(f"user{number}@example.org", "wrong password").status_code == 401
    assert browser.sign_in("another@example.org", "wrong password").status_code == 429
    elsewhere = Browser(app, client=("203.0.113.7", 1))
    assert elsewhere.sign_in("ada@example.org").status_code == 303  # she is not locked out
    clock.move(seconds=301)
    assert browser.sign_in("ada@example.org").status_code == 303


def test_sign_in_to_one_account_is_limited_from_wherever(app: FastAPI) -> None:
    assert RATES["sign-in from anywhere"] == Rate(100, 300)
    app.state.rates.rates["sign-in from anywhere"] = Rate(5, 300)
    codes = []
    for number in range(6):
        browser = Browser(app, client=(f"203.0.113.{number}", 1))
        codes.append(browser.sign_in("ada@example.org", "wrong password").status_code)
    assert codes == [401] * 5 + [429]


def test_sign_up_is_limited(app: FastAPI) -> None:
    codes = []
    for number in range(RATES["sign-up"].most + 1):
        fields = {"email": f"user{number}@example.org", "password": PASSWORD}
        codes.append(Browser(app).submit("/sign-up", "/sign-up", **fields).status_code)
    assert codes == [303] * RATES["sign-up"].most + [429]


@settings(max_examples=50)
@given(steps=st.lists(st.tuples(st.integers(-20, 60), st.sampled_from("ab")), max_size=60))
def test_a_rate_is_never_exceeded_and_nobody_pays_for_another(steps: list[tuple[int, str]]) -> None:
    clock = SetClock(NOON)
    limits = RateLimits(clock, {"try": Rate(3, 100)})
    taken: dict[str, list[float]] = {"a": [], "b": []}
    for move, caller in steps:
        clock.move(seconds=move)
        now = clock.now().timestamp()
        # Those of the last 100 seconds; a clock set back forgets what it has not come to yet.
        taken[caller] = [time for time in taken[caller] if now - 100 < time <= now]
        if len(taken[caller]) < 3:
            limits.take("try", caller)
            taken[caller].append(now)
        else:
            with pytest.raises(TooMany) as refusal:
                limits.take("try", caller)
            assert refusal.value.retry_at.timestamp() == pytest.approx(min(taken[caller]) + 100)


def test_counting_callers_takes_no_more_than_so_much_memory(clock: SetClock) -> None:
    limits = RateLimits(clock, {"try": Rate(1, 100)})
    for number in range(25_000):
        limits.take("try", str(number))
    assert len(limits._times) == 20_000


# What is written down


def test_the_log_has_no_secrets(app: FastAPI, platform: Platform, caplog: pytest.LogCaptureFixture) -> None:
    @app.get("/broken/{name}")
    def broken(name: str) -> None:
        raise RuntimeError(f"the label is {name}")

    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonLines())
    logging.getLogger("ensue.platform").addHandler(handler)
    logging.getLogger("ensue.platform").setLevel(logging.DEBUG)
    browser = Browser(app)
    browser.sign_up("ada@example.org")
    secret = platform.accounts.invitations.make("annotator")
    browser.get(f"/invitations/{secret}")
    browser.get("/sign-in?next=/account&password=in-the-query")
    page = browser.submit("/account/tokens", "/account", name="laptop").text
    token = "ensue_" + page.split("<code>ensue_")[1].split("</code>")[0]
    browser.get("/api/v1/me", headers={"authorization": f"Bearer {token}"})
    answer = browser.get("/broken/entailment")
    assert answer.status_code == 500
    assert "entailment" not in answer.text
    logging.getLogger("ensue.platform").removeHandler(handler)
    told = written.getvalue()
    assert '"route": "/invitations/{secret}"' in told
    assert '"kind": "RuntimeError"' in told
    assert answer.headers["x-request-id"] in told
    for hidden in (PASSWORD, token, secret, "entailment", "in-the-query", "ada@example.org"):
        assert hidden not in told
    assert str(browser.cookies["ensue_session"]) not in told


def test_counts_are_prometheus_text_by_route(app: FastAPI, platform: Platform) -> None:
    browser = Browser(app)
    for path in ("/", "/", "/nowhere/secret", "/invitations/secret"):
        browser.get(path)
    with platform.database.writing() as connection:
        platform.queue.add(connection, "grade")
    text = browser.get("/metrics").text
    assert 'ensue_requests_total{route="/",method="GET",status="200"} 2' in text
    assert 'ensue_requests_total{route="none",method="GET",status="404"} 1' in text
    assert 'ensue_jobs{state="queued"} 1' in text
    assert 'secret"' not in text
    assert "ensue_request_seconds_count 4" in text
    for line in text.splitlines():
        assert line.startswith("# TYPE ") or len(line.rsplit(" ", 1)) == 2
        if not line.startswith("#"):
            float(line.rsplit(" ", 1)[1])


def test_a_database_that_is_away_is_said_to_be(app: FastAPI, platform: Platform) -> None:
    browser = Browser(app)
    browser.sign_up("ada@example.org")
    away = Database("postgresql://ada:s3cret@127.0.0.1:1/ensue")
    platform.database = platform.accounts.database = away
    assert browser.get("/healthz").status_code == 503
    for path, kind in (("/account", "text/html"), ("/api/v1/me", "application/json")):
        answer = browser.get(path, headers={"accept": kind})
        assert answer.status_code == 503
        assert "The database cannot be reached; try again in a minute." in answer.text
        assert "s3cret" not in answer.text
        assert answer.headers["content-type"].startswith(kind)


# Anything at all

PATHS = ["/", "/sign-in", "/account", "/invitations/", "/api/v1/me/tokens/", "/static/", "/internal/"]
CONTENT = ["application/json", "multipart/form-data; boundary=x", "multipart/form-data", "text/html", ""]


@settings(max_examples=150, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"]),
    path=st.sampled_from(
        ["/", "/sign-in", "/account", "/invitations/", "/api/v1/me/tokens/", "/static/", "/internal/"]
    ),
    rest=st.text(max_size=20),
    query=st.text(max_size=20),
    body=st.binary(max_size=100) | st.text(max_size=50).map(lambda words: words.encode("utf-8", "replace")),
    kind=st.sampled_from(
        ["application/json", "multipart/form-data; boundary=x", "multipart/form-data", "text/html", ""]
    ),
    bearer=st.none() | st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20),
    page=st.booleans(),
)
def test_nothing_makes_the_server_fail(
    app: FastAPI,
    method: str,
    path: str,
    rest: str,
    query: str,
    body: bytes,
    kind: str,
    bearer: str | None,
    page: bool,
) -> None:
    from urllib.parse import quote

    headers = {"content-type": kind, "accept": "text/html" if page else "*/*"}
    if bearer is not None:
        headers["authorization"] = f"Bearer {bearer}"
    address = path + quote(rest, errors="replace") + "?" + quote(query, errors="replace")
    answer = Browser(app).request(method, address, content=body, headers=headers)
    assert answer.status_code < 500, (method, address)
