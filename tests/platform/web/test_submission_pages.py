"""Handing in, following and publishing by pages alone, as a browser without scripts does it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ensue.platform.service import Platform
from ensue.platform.web.app import create_app
from tests.platform.boards import handing
from tests.platform.boards.handing import BOARD, FACTS
from tests.platform.web.browser import Browser, check_page

FORM = f"/boards/{BOARD}/submit"


@pytest.fixture
def browser(platform: Platform, tmp_path: Path) -> Browser:
    handing.make_board(platform, tmp_path / "labels", title="Small")
    browser = Browser(create_app(platform))
    browser.sign_up("ada@example.org", name="Ada")
    return browser


@pytest.fixture
def zipped(tmp_path: Path) -> bytes:
    return handing.predictions(tmp_path / "a.zip").read_bytes()


def hand_in(browser: Browser, file: bytes | None, key: str = "", **facts: str) -> Any:
    page = browser.get(FORM).text
    check_page(page)
    made = re.search(r'name="key" value="([^"]+)"', page)
    assert made
    data = {"csrf": browser.token(FORM), "key": key or made[1], **FACTS, **facts}
    files = {} if file is None else {"file": ("predictions.zip", file)}
    return browser.post(FORM, data=data, files=files)


def read(browser: Browser, path: str, status: int = 200) -> str:
    answer = browser.get(path)
    assert answer.status_code == status, answer.text
    check_page(answer.text)
    return answer.text


def test_a_visitor_signs_in_first(platform: Platform, browser: Browser) -> None:
    visitor = Browser(create_app(platform))
    assert visitor.get(FORM).headers["location"] == f"/sign-in?next={FORM}"
    assert visitor.get("/submissions").headers["location"] == "/sign-in?next=/submissions"
    assert visitor.submit(FORM).headers["location"] == f"/sign-in?next={FORM}"
    assert visitor.get("/boards/nothing/submit").status_code == 404


def test_from_a_form_to_the_board_and_off_it_again(
    platform: Platform, browser: Browser, zipped: bytes
) -> None:
    made = hand_in(browser, zipped, sharing="all", affiliation="Uppsala")
    assert made.status_code == 303
    path = made.headers["location"]
    waiting = read(browser, path)
    assert "at place 1" in waiting
    assert 'http-equiv="refresh"' in waiting
    assert "1 of 2 today" in read(browser, FORM)
    assert handing.grade_all(platform) == 1

    graded = read(browser, path)
    assert "You alone see it until you publish it." in graded
    assert ">BoolQ</th>" in graded
    assert "Diagnostics" in graded
    visitor = Browser(create_app(platform))
    assert visitor.get(path).status_code == 404
    assert "Majority" not in read(visitor, f"/boards/{BOARD}")
    assert "Majority" in read(browser, "/submissions")

    published = browser.submit(f"{path}/publish", path)
    assert published.headers["location"] == f"{path}?done=published"
    assert "It is published and on the board." in read(browser, published.headers["location"])
    assert "Uppsala" in read(visitor, f"/boards/{BOARD}")
    assert "rank 1" in read(visitor, path)
    assert "Publish" not in re.sub("<dt>Published</dt>", "", read(visitor, path))

    browser.submit(f"{path}/publish", path, anonymous="1")
    for page in (read(visitor, f"/boards/{BOARD}"), read(visitor, path)):
        assert "Uppsala" not in page
        assert "https://example.org/majority" not in page
        assert "anonymous" in page
    browser.submit(f"{path}/withdraw", path)
    assert visitor.get(path).status_code == 404
    assert "Majority" not in read(visitor, f"/boards/{BOARD}")


def test_problems_of_a_file_are_listed_and_nothing_is_counted(browser: Browser, zipped: bytes) -> None:
    answer = hand_in(browser, b"not a zip", description="kept <b>as typed</b>")
    assert answer.status_code == 422
    check_page(answer.text)
    assert "The file has 1 problem" in answer.text
    assert re.search(r'<ul id="problem-list"[^>]*><li>', answer.text)
    assert "kept &lt;b&gt;as typed&lt;/b&gt;" in answer.text
    assert "0 of 2 today" in read(browser, FORM)


def test_what_is_missing_is_named(browser: Browser, zipped: bytes) -> None:
    assert "link is missing" in hand_in(browser, zipped, link="").text
    assert "Choose a file" in hand_in(browser, None).text


def test_a_form_sent_twice_is_one_submission_and_the_quota_is_told(browser: Browser, zipped: bytes) -> None:
    first, again = (hand_in(browser, zipped, key="once").headers["location"] for _ in range(2))
    assert first == again
    assert hand_in(browser, zipped).status_code == 303
    spent = hand_in(browser, zipped)
    assert spent.status_code == 429
    assert "The quota of small is spent" in spent.text
    assert "from 17 Nov 2026, 00:00 UTC" in read(browser, "/submissions")


def test_cancelling_gives_the_quota_back(browser: Browser, zipped: bytes) -> None:
    path = hand_in(browser, zipped).headers["location"]
    browser.submit(f"{path}/cancel", path)
    assert "0 of 2 today" in read(browser, FORM)
    refused = browser.submit(f"{path}/publish", path)
    assert refused.status_code == 409
    check_page(refused.text)


def test_another_users_submission_is_not_there(platform: Platform, browser: Browser, zipped: bytes) -> None:
    path = hand_in(browser, zipped).headers["location"]
    other = Browser(create_app(platform))
    other.sign_up("eve@example.org")
    assert other.get(path).status_code == 404
    for act in ("publish", "withdraw", "cancel"):
        assert other.submit(f"{path}/{act}", "/account").status_code == 404


def test_a_board_that_takes_nothing_says_so(platform: Platform, browser: Browser) -> None:
    from ensue.platform.boards.board import Boards

    Boards(platform).change(BOARD, {"is_open": False})
    assert "This board is closed" in read(browser, FORM)
    assert "Submit predictions" not in read(browser, f"/boards/{BOARD}")


def test_new_labels_leave_the_old_scores_in_the_history(
    platform: Platform, browser: Browser, zipped: bytes, tmp_path: Path
) -> None:
    from ensue.platform.boards.submissions import Submissions

    path, visitor = hand_in(browser, zipped).headers["location"], Browser(create_app(platform))
    handing.grade_all(platform)
    browser.submit(f"{path}/publish", path)
    assert "Labels replaced" not in read(visitor, f"/boards/{BOARD}")
    Submissions(platform).replace_labels(BOARD, handing.change_labels(tmp_path / "labels"))
    assert "The board has new labels since 16 Nov 2026" in read(browser, path)
    assert "It is being graded again. The board has new labels" in read(visitor, path)
    board = read(visitor, f"/boards/{BOARD}")
    assert (
        "Labels replaced on 16 Nov 2026, 12:00 UTC</strong> (version 2): 0 systems graded again, 1 still"
        in board
    )
    assert '<span class="badge">old labels</span>' in board
    handing.grade_all(platform)
    for page in (read(browser, path), read(visitor, path)):
        assert page.index("version 2") < page.index("version 1")
        assert "being graded again" not in page
    board = read(visitor, f"/boards/{BOARD}")
    assert "(version 2): 1 system graded again. What each had" in board
    assert "old labels" not in board
