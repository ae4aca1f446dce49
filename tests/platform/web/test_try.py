"""Trying a text by pages and API, with a worker that the test plays: every state, every refusal, nothing leaked."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

import ensue
from ensue.benchmarks.qags.inspecting import Inspection, pieces_of
from ensue.benchmarks.qags.scoring import QuestionRow
from ensue.platform.clock import SetClock
from ensue.platform.service import Platform
from ensue.platform.trying import results
from ensue.platform.web.app import create_app
from tests.platform.boards.handing import participant
from tests.platform.web.browser import Browser, check_page
from tests.support.pages import EVIL

TEXT = f"Rain fell. {EVIL} was there. We went home."
SUMMARY = "Ruth Olsen <b>left</b> for Ellery."
PROFILE = {"kind": "profile", "model": "unigram"}
QAGS = {"kind": "qags", "model": "asker and answerer"}


@pytest.fixture
def browser(platform: Platform) -> Iterator[Browser]:
    with_cookies = Browser(create_app(platform))
    yield with_cookies
    with_cookies.close()


class Worker:
    """A worker as the server sees it."""

    def __init__(self, client: TestClient, platform: Platform, *offers: dict[str, str]) -> None:
        self.client = client
        who = participant(platform, "worker@example.org", "organiser")
        self.headers = {**who.headers, "Accept": "application/json"}
        answer = self.post("/api/v1/workers", {"offers": list(offers)})
        assert answer.status_code == 201, answer.text
        self.path = f"/api/v1/workers/{answer.json()['id']}"

    def post(self, path: str, body: Any = None) -> Any:
        return self.client.post(path, json=body or {}, headers=self.headers)

    def take(self) -> dict[str, Any]:
        answer = self.post(f"{self.path}/next?wait=0")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def beat(self, lease: str, **said: Any) -> int:
        return int(
            self.client.put(f"{self.path}/leases/{lease}", json=said, headers=self.headers).status_code
        )

    def hand(self, lease: str, **handed: Any) -> Any:
        return self.post(f"{self.path}/leases/{lease}/result", handed)


def profile_of(text: str) -> Any:
    return results.write("profile", ensue.profile([text], model="unigram")[0])


def inspection() -> Any:
    lines = (
        QuestionRow("Who left?", "Ruth Olsen", "Ruth Olsen", EVIL, 0.0, -0.5, 0, 10, False),
        QuestionRow("Where to?", "Ellery", "Ellery", "Ellery", 1.0, -0.5, 27, 33, False),
    )
    found = Inspection(0.5, lines, pieces_of(SUMMARY, lines), {"short": 2}, "asker", "answerer")
    return results.write("qags", found)


def page(browser: Browser, address: str, status: int = 200) -> str:
    answer = browser.get(address)
    assert answer.status_code == status, answer.text
    check_page(answer.text)
    return str(answer.text)


def test_the_page_says_plainly_that_no_worker_is_connected(browser: Browser) -> None:
    for address in ("/try", "/try?kind=qags", "/try?kind=nonsense", "/try?example=1"):
        assert "No worker is connected" in page(browser, address)
    answer = browser.submit("/try", "/sign-in", kind="profile", model="unigram", text=TEXT)
    assert answer.status_code == 503
    check_page(answer.text)
    assert "No worker with this model is connected now" in answer.text
    # What was pasted is still there.
    assert "We went home." in answer.text
    assert EVIL not in answer.text


def test_a_text_is_taken_read_shown_and_deleted(browser: Browser, platform: Platform) -> None:
    worker = Worker(browser, platform, PROFILE)
    assert "<option>unigram</option>" in page(browser, "/try?example=1")
    sent = browser.submit("/try", "/try", **PROFILE, text=TEXT)
    assert sent.status_code == 303
    address = sent.headers["location"]
    assert "It is next." in page(browser, address)
    leased = worker.take()
    assert (leased["kind"], leased["model"], leased["texts"]) == ("profile", "unigram", {"text": TEXT})
    assert worker.beat(leased["lease"], done=1200, total=2400, unit="tokens") == 204
    assert "It is being read now. 1,200 of 2,400 tokens." in page(browser, address)
    assert worker.hand(leased["lease"], result=profile_of(TEXT)).status_code == 204
    shown = page(browser, address)
    assert shown.count('class="s"') == 3
    assert "&lt;script&gt;alert" in shown
    assert EVIL not in shown
    assert "Kept until 16 Nov 2026, 12:15 UTC" in shown
    style = browser.get("/try/results.css")
    assert style.headers["content-type"].startswith("text/css")
    assert ".low1" in style.text
    assert ".doubt" in style.text
    deleted = browser.submit(f"{address}/delete", "/try")
    assert (deleted.status_code, deleted.headers["location"]) == (303, "/try")
    assert "It is gone" in page(browser, address, 404)
    assert worker.beat(leased["lease"]) == 404


def test_a_summary_is_questioned_and_its_doubts_are_marked(browser: Browser, platform: Platform) -> None:
    worker = Worker(browser, platform, PROFILE, QAGS)
    sent = browser.submit("/try", "/try?kind=qags", **QAGS, source=f"Nobody left. {EVIL}", summary=SUMMARY)
    address = sent.headers["location"]
    leased = worker.take()
    assert leased["texts"] == {"source": f"Nobody left. {EVIL}", "summary": SUMMARY}
    assert worker.hand(leased["lease"], result=inspection()).status_code == 204
    shown = page(browser, address)
    assert '<mark class="doubt" title="likeness 0.00 over 1 questions">Ruth Olsen</mark>' in shown
    assert ">Ellery</span>" in shown
    assert "0.500" in shown
    assert EVIL not in shown
    found = browser.get(f"/api/v1/tries/{address.rpartition('/')[2]}").json()
    assert found["result"]["inconsistent"] == [
        {"text": "Ruth Olsen", "start": 0, "end": 10, "similarity": 0.0}
    ]


def test_a_refusal_of_the_worker_is_its_sentence(browser: Browser, platform: Platform) -> None:
    worker = Worker(browser, platform, PROFILE)
    address = browser.submit("/try", "/try", **PROFILE, text=TEXT).headers["location"]
    lease = worker.take()["lease"]
    assert worker.hand(lease, reason="It has no sentence.").status_code == 204
    assert "It has no sentence." in page(browser, address)


def test_a_result_that_is_not_of_this_text_is_refused(browser: Browser, platform: Platform) -> None:
    worker = Worker(browser, platform, PROFILE, QAGS)
    browser.submit("/try", "/try", **PROFILE, text=TEXT)
    browser.submit("/try", "/try", **QAGS, source=TEXT, summary="Another summary.")
    first, second = worker.take(), worker.take()
    good = profile_of(TEXT)
    turned = {**good, "sentences": good["sentences"][::-1]}
    for result in (None, {}, [], profile_of("Something else."), {**good, "stands_out": 3}, turned):
        assert worker.hand(first["lease"], result=result).status_code == 422
    for result in (None, good, inspection()):
        assert worker.hand(second["lease"], result=result).status_code == 422
    assert worker.hand(first["lease"], result=good).status_code == 204


@pytest.mark.parametrize(
    ("form", "status", "words"),
    [
        ({"text": ""}, 422, "The text is missing"),
        ({"text": "x" * 20_001}, 422, "The text has 20,001 characters; at most 20,000"),
        ({"text": "x", "model": "gpt-5"}, 503, "No worker with this model"),
        ({"kind": "qags", "source": "x", "summary": "y"}, 503, "No worker with this model"),
    ],
    ids=["empty", "long", "model", "kind"],
)
def test_what_is_not_taken_is_one_sentence(
    browser: Browser, platform: Platform, form: dict[str, str], status: int, words: str
) -> None:
    Worker(browser, platform, PROFILE)
    answer = browser.submit("/try", "/try", **{**PROFILE, **form})
    assert (answer.status_code, words in answer.text) == (status, True)
    check_page(answer.text)
    told = browser.post(
        "/api/v1/tries", json={**PROFILE, **form}, headers={"X-CSRF-Token": browser.token("/try")}
    )
    assert (told.status_code, words in told.json()["error"]) == (status, True)


def test_visitors_are_limited_and_forms_need_their_token(
    browser: Browser, platform: Platform, clock: SetClock
) -> None:
    worker = Worker(browser, platform, PROFILE)
    assert browser.post("/try", data={**PROFILE, "text": TEXT}).status_code == 403
    for _ in range(20):
        assert browser.submit("/try", "/try", **PROFILE, text=TEXT).status_code == 303
        worker.hand(worker.take()["lease"], reason="Enough.")
    spent = browser.submit("/try", "/try", **PROFILE, text=TEXT)
    assert spent.status_code == 429
    assert "try again in 10 min" in spent.text
    clock.move(minutes=10, seconds=1)
    gone = browser.submit("/try", "/sign-in", **PROFILE, text=TEXT)
    assert gone.status_code == 503  # its worker was not heard of for long


def test_only_organisers_connect_workers_and_see_texts(browser: Browser, platform: Platform) -> None:
    worker = Worker(browser, platform, PROFILE)
    browser.submit("/try", "/try", **PROFILE, text=TEXT)
    other = participant(platform, "other@example.org", "annotator")
    for headers, status in (({}, 401), (other.headers, 403), ({"Authorization": "Home nothing"}, 404)):
        stranger = TestClient(browser.app)
        for method, path, body in (
            ("POST", "/api/v1/workers", {"offers": [PROFILE]}),
            ("POST", f"{worker.path}/next?wait=0", {}),
            ("PUT", f"{worker.path}/leases/x", {}),
            ("POST", f"{worker.path}/leases/x/result", {"reason": "x"}),
            ("DELETE", worker.path, {}),
        ):
            answer = stranger.request(method, path, json=body, headers=headers)
            assert answer.status_code == status, (method, path, answer.text)
    assert worker.take()["texts"] == {"text": TEXT}
    assert worker.post(f"{worker.path}/next?wait=0").status_code == 204
    assert browser.delete(worker.path, headers=worker.headers).status_code == 204
    assert worker.post(f"{worker.path}/next?wait=0").status_code == 404


def test_no_text_is_logged(browser: Browser, platform: Platform, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    worker = Worker(browser, platform, PROFILE)
    secret = "Zanzibarquux went home."
    browser.submit("/try", "/try", **PROFILE, text=secret)
    worker.hand(worker.take()["lease"], result=profile_of(secret))
    browser.submit("/try", "/try", **PROFILE, text=secret * 2000)
    assert caplog.records
    assert not any("Zanzibarquux" in f"{record.__dict__}" for record in caplog.records)
