"""An organiser's pages, as a browser without scripts uses them: boards made, changed, given labels, taken home."""

from __future__ import annotations

import io
import json
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from ensue.platform.boards.board import Boards
from ensue.platform.service import Platform
from ensue.platform.web.app import create_app
from tests.platform.boards import handing
from tests.platform.web.browser import PASSWORD, Browser, check_page

TOML = """
name = "Harbour"
about = "What happened to the boats?"
split = "spring"
[tasks.fate]
labels = "{split}.csv"
metrics = ["accuracy"]
"""
SPRING = "id,label\n1,sunk\n2,home\n3,home\n4,home\n"
OWN = {"board.toml": TOML, "spring.csv": SPRING}
MORE = {"quota_day": "3", "quota_month": "9", "rounding": "2"}


@pytest.fixture
def database_url(tmp_path: Path, sqlite_file: Path) -> str:
    """SQLite alone: what these pages ask of a database is asked of both elsewhere."""
    shutil.copy(sqlite_file, tmp_path / "database.sqlite3")
    return f"sqlite:///{tmp_path / 'database.sqlite3'}"


@pytest.fixture
def organiser(platform: Platform) -> Browser:
    return signed_in(platform, "olga@example.org", "organiser")


def signed_in(platform: Platform, email: str, role: str) -> Browser:
    platform.accounts.add(email, role, password=PASSWORD)
    browser = Browser(create_app(platform))
    assert browser.sign_in(email).status_code == 303
    return browser


def zipped(files: dict[str, str] | Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        if isinstance(files, Path):
            for path in sorted(files.rglob("*")):
                archive.write(path, path.relative_to(files.parent))
        else:
            for name, content in files.items():
                archive.writestr(name, content)
    return buffer.getvalue()


def send(browser: Browser, path: str, page: str, zip: bytes | None = None, **fields: Any) -> Any:
    """Send a form with a zip, or the files of a folder, as a browser does."""
    files: Any = [("file", ("labels.zip" if zip else "", zip or b""))]
    files += [("folder", (name, content)) for name, content in fields.pop("folder", {"": ""}).items()]
    return browser.post(path, data={"csrf": browser.token(page), **fields}, files=files)


def make(browser: Browser, zip: bytes | None = None, **fields: Any) -> Any:
    return send(
        browser, "/organise/new", "/organise/new", zip, **{"name": "harbour", "suite": "", **MORE, **fields}
    )


def change(browser: Browser, name: str, act: str, zip: bytes | None = None, **fields: Any) -> Any:
    return send(browser, f"/organise/{name}/{act}", f"/organise/{name}", zip, **fields)


def read(browser: Browser, path: str, status: int = 200) -> str:
    answer = browser.get(path)
    assert answer.status_code == status, answer.text
    check_page(answer.text)
    return answer.text


def refused(answer: Any, words: str, status: int = 422) -> None:
    assert answer.status_code == status, answer.text
    check_page(answer.text)
    found = re.search(r'id="problem-words">([^<]*)<', answer.text)
    assert found
    assert re.search(words, found[1]), found[1]


def hand_in(platform: Platform, browser: Browser, path: Path, who: str = "ada@example.org") -> str:
    """Have a participant hand something in, grade and publish it; return its id."""
    ada = handing.participant(platform, who)
    answer = handing.submit(browser, ada, handing.predictions(path))
    assert answer.status_code == 201, answer.text
    assert handing.grade_all(platform) == 1
    made = str(answer.json()["id"])
    browser.post(f"/api/v1/submissions/{made}/publish", headers=ada.headers)
    return made


PAGES = ["/organise", "/organise/new", "/organise/small"]
ACTS = ["settings", "open", "close", "labels", "regrade", "baselines", "export"]


def test_only_who_made_a_board_and_admins_may_change_it(
    platform: Platform, organiser: Browser, tmp_path: Path
) -> None:
    me = platform.accounts.find_email("olga@example.org")
    handing.make_board(platform, tmp_path / "labels")
    Boards(platform).create(handing.wanted_board(name="mine"), handing.labels(tmp_path / "more"), by=me.id)
    visitor, ada = Browser(create_app(platform)), signed_in(platform, "ada@example.org", "annotator")
    admin = signed_in(platform, "root@example.org", "admin")
    for path in PAGES:
        assert visitor.get(path).status_code == 401
        assert ada.get(path).status_code == 403
        read(admin, path)
    assert "Organise" not in read(ada, "/")
    assert 'href="/organise"' in read(organiser, "/")
    mine = read(organiser, "/organise")
    assert ('href="/organise/mine"' in mine, 'href="/organise/small"' in mine) == (True, False)
    assert 'href="/organise/small"' in read(admin, "/organise")
    for who, may in ((visitor, False), (ada, False), (organiser, False), (admin, True)):
        assert ("organise it" in read(who, "/boards/small")) == may
    assert "organise it" in read(organiser, "/boards/mine")
    read(organiser, "/organise/small", 403)
    read(organiser, "/organise/nothing", 404)
    before = Boards(platform)
    for act in ACTS:
        assert visitor.submit(f"/organise/small/{act}").status_code == 401
        assert ada.submit(f"/organise/small/{act}", "/account").status_code == 403
        assert organiser.submit(f"/organise/small/{act}", "/organise").status_code == 403
        assert organiser.submit(f"/organise/nothing/{act}", "/organise").status_code == 404
        assert organiser.post(f"/organise/mine/{act}", data={}).status_code == 403, "without the form's token"
    assert organiser.post("/organise/new", data={"name": "x"}).status_code == 403
    with platform.database.reading() as connection:
        assert [board.is_open for board in before.all(connection)] == [True, True]


@pytest.mark.parametrize("as_folder", [False, True])
def test_a_board_of_ones_own_is_made_of_an_upload(
    platform: Platform, organiser: Browser, as_folder: bool
) -> None:
    read(organiser, "/organise/new")
    folder = {f"harbour/{name}": content for name, content in OWN.items()}
    made = make(organiser, folder=folder) if as_folder else make(organiser, zipped(OWN))
    assert (made.status_code, made.headers.get("location")) == (303, "/organise/harbour?done=made"), made.text
    page = read(organiser, made.headers["location"])
    assert "The board is made and takes submissions." in page
    assert "Harbour" in read(Browser(create_app(platform)), "/boards/harbour")
    with platform.database.reading() as connection:
        board = Boards(platform).find(connection, "harbour")
    me = platform.accounts.find_email("olga@example.org")
    assert (board.title, board.split, board.quota_day, board.rounding) == ("Harbour", "spring", 3, 2)
    assert board.created_by == me.id
    kept = platform.home.labels / board.id / str(board.labels_digest)
    assert sorted(path.name for path in kept.rglob("*") if path.is_file()) == ["board.toml", "spring.csv"]
    ada = handing.participant(platform)
    file = b"id,prediction\n1,home\n2,home\n3,sunk\n4,home\n"
    answer = handing.submit(organiser, ada, file, board="harbour", name="mine.csv")
    handing.grade_all(platform)
    shown = organiser.get(f"/api/v1/submissions/{answer.json()['id']}", headers=ada.headers).json()
    assert shown["scores"]["score"] == 0.5


def test_a_board_of_a_suite_is_made_of_the_labels_uploaded(
    platform: Platform, organiser: Browser, tmp_path: Path
) -> None:
    labels = zipped(handing.labels(tmp_path / "labels"))
    made = make(
        organiser, labels, name="small", suite="superglue", split="dev", title="Small <b>", partial="1"
    )
    assert made.status_code == 303, made.text
    page = read(organiser, "/organise/small")
    assert "Small &lt;b&gt;" in page
    assert "superglue, dev split, takes .zip" in page
    hand_in(platform, organiser, tmp_path / "s.zip")
    page = read(organiser, "/organise/small")
    assert "1 submission, 1 of them published" in page
    assert "ada@example.org" in page


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "Choose a zip or a folder"),
        ({"folder": {"spring.csv": SPRING}}, r"no board\.toml at its top"),
        ({"folder": OWN, "suite": "superglue"}, r"has a board\.toml, so it is no superglue"),
        ({"folder": {**OWN, "spring.csv": SPRING + "1,lost\n"}}, "spring.csv, line 6"),
        ({"zip": zipped({**OWN, "../out": ""})}, "leads out of the zip"),
        ({"folder": OWN, "name": "../x"}, "cannot name a board"),
        ({"zip": zipped(OWN), "quota_day": "many"}, "quota a day is not a whole number"),
        ({"folder": OWN, "rounding": "9"}, "rounding is 9"),
        ({"folder": OWN, "settings": "seed"}, "not of the form key=value"),
    ],
)
def test_what_will_not_do_is_said_on_the_form_and_nothing_is_made(
    platform: Platform, organiser: Browser, fields: dict[str, Any], words: str
) -> None:
    answer = make(organiser, about="kept <i>", **fields)
    refused(answer, words)
    assert "kept &lt;i&gt;" in answer.text
    assert str(platform.home.path) not in answer.text
    with platform.database.reading() as connection:
        assert Boards(platform).all(connection) == []
    assert [path for path in platform.home.labels.rglob("*") if path.is_file()] == []
    assert list(platform.home.work.iterdir()) == []


def test_a_script_is_told_where_to_go_or_what_is_wrong(platform: Platform, organiser: Browser) -> None:
    organiser.headers["accept"] = "application/json"
    token = {"csrf": Browser.token(organiser, "/organise/new")}
    data = {**token, "name": "harbour", "suite": "", **MORE}
    wrong = organiser.post("/organise/new", data=data, files={"file": ("a.zip", b"x")})
    assert (wrong.status_code, list(wrong.json())) == (422, ["error"])
    made = organiser.post("/organise/new", data=data, files={"file": ("a.zip", zipped(OWN))})
    assert (made.status_code, made.json()) == (201, {"location": "/organise/harbour?done=made"})


def test_a_board_is_changed_closed_opened_and_unlisted(platform: Platform, organiser: Browser) -> None:
    make(organiser, zipped(OWN))
    visitor = Browser(create_app(platform))
    said = {"title": "Port", "about": "Boats.", "quota_day": "1", "quota_month": "2", "rounding": "4"}
    assert (
        change(organiser, "harbour", "settings", **said).headers["location"] == "/organise/harbour?done=saved"
    )
    assert "Port" not in read(visitor, "/")
    assert "Port" in read(visitor, "/boards/harbour")
    change(organiser, "harbour", "settings", **said, listed="1")
    assert "Port" in read(visitor, "/")
    with platform.database.reading() as connection:
        board = Boards(platform).find(connection, "harbour")
    assert (board.quota_day, board.quota_month, board.rounding, board.about) == (1, 2, 4, "Boats.")
    change(organiser, "harbour", "close")
    assert "closed" in read(visitor, "/boards/harbour")
    assert "Close the board" not in read(organiser, "/organise/harbour")
    change(organiser, "harbour", "open")
    assert "Submit predictions" in read(visitor, "/boards/harbour")
    refused(change(organiser, "harbour", "settings", **{**said, "quota_day": "0"}), "quota a day is 0")
    refused(change(organiser, "harbour", "settings", **{**said, "rounding": "two"}), "not a whole number")
    page = read(organiser, "/organise/harbour")
    assert page.index("open yes") < page.index("open no") < page.index("title Port")


def test_labels_are_replaced_and_everything_is_graded_again(
    platform: Platform, organiser: Browser, tmp_path: Path
) -> None:
    given = handing.labels(tmp_path / "labels")
    make(organiser, zipped(given), name="small", suite="superglue", split="dev")
    made = hand_in(platform, organiser, tmp_path / "s.zip")
    before = organiser.get(f"/api/v1/submissions/{made}").json()["scores"]["score"]
    same = change(organiser, "small", "labels", zipped(given))
    assert same.headers["location"] == "/organise/small?done=same"
    refused(change(organiser, "small", "labels", zipped({"x": "y"})), "The upload has no labels")
    refused(change(organiser, "small", "labels", zipped({"board.toml": TOML})), "is not the board")
    done = change(organiser, "small", "labels", zipped(handing.change_labels(given)))
    assert done.headers["location"] == "/organise/small?done=labels"
    page = read(organiser, done.headers["location"])
    assert "1 grading" in page
    assert "labels given, version 2; 1 graded again" in page
    assert handing.grade_all(platform) == 1
    assert organiser.get(f"/api/v1/submissions/{made}").json()["scores"]["score"] != before
    change(organiser, "small", "regrade")
    assert handing.grade_all(platform) == 1
    assert "graded again with the labels it has: 1" in read(organiser, "/organise/small")


def test_baselines_and_the_export(platform: Platform, organiser: Browser, tmp_path: Path) -> None:
    given = handing.labels(tmp_path / "labels")
    make(organiser, zipped(given), name="small", suite="superglue", split="dev")
    made = hand_in(platform, organiser, tmp_path / "s.zip")
    assert change(organiser, "small", "baselines").headers["location"] == "/organise/small?done=baselines"
    refused(change(organiser, "small", "baselines", b"x ="), "not like a published.toml")
    refused(change(organiser, "small", "baselines", b"\xff"), "not text in UTF-8")
    answer = organiser.submit("/organise/small/export", "/organise/small")
    assert answer.headers["content-type"] == "application/zip"
    assert 'filename="small-2026-11-16.zip"' in answer.headers["content-disposition"]
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        rows = [json.loads(line) for line in archive.read("small/submissions.jsonl").splitlines()]
        names = archive.namelist()
    assert made in {row["id"] for row in rows}
    assert len(rows) == 12
    assert not [name for name in names if "BoolQ" in name]
    assert list(platform.home.work.iterdir()) == []


def test_a_board_that_shows_baselines_alone_is_taken_over(
    platform: Platform, organiser: Browser, tmp_path: Path
) -> None:
    from ensue.platform.boards.baselines import Baselines

    Baselines(Boards(platform)).make_bundled()
    assert 'href="/organise/superglue"' not in read(organiser, "/organise")
    labels = zipped(handing.labels(tmp_path / "labels"))
    assert make(organiser, labels, name="superglue", suite="superglue", split="dev").status_code == 303
    assert 'href="/organise/superglue"' in read(organiser, "/organise")
    again = make(organiser, labels, name="superglue", suite="superglue", split="dev")
    refused(again, "already", 409)


def test_invitations_are_listed_and_revoked_by_who_made_them(platform: Platform, organiser: Browser) -> None:
    page = organiser.submit("/invitations", "/invitations", role="participant", note="for <Ada>").text
    found = re.search(r"/invitations/([\w-]+)</code>", page)
    assert found
    assert "for &lt;Ada&gt;" in page
    assert "whoever has the link" in page
    other = signed_in(platform, "otto@example.org", "organiser")
    assert "for &lt;Ada&gt;" not in read(other, "/invitations")
    id = re.search(r"/invitations/([\w-]+)/revoke", page)
    assert id
    assert other.submit(f"/invitations/{id[1]}/revoke", "/invitations").status_code == 404
    assert organiser.submit(f"/invitations/{id[1]}/revoke", "/invitations").status_code == 303
    assert "for &lt;Ada&gt;" not in read(organiser, "/invitations")
    assert Browser(create_app(platform)).get(f"/invitations/{found[1]}").status_code == 404
