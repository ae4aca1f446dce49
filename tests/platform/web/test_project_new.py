"""The page that makes projects: of every kind what the command line makes of the same data, or one sentence."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape
from sqlalchemy import select

from bench.annotation_rounds import CASES
from ensue.benchmarks.people.export import UPLOADED, Export
from ensue.benchmarks.people.kind import COMMON, kind, kinds, settings_of
from ensue.errors import EnsueError
from ensue.platform.annotation.answering import Answering
from ensue.platform.annotation.building import build
from ensue.platform.annotation.projects import Project
from ensue.platform.database.schema import project_items, projects
from ensue.platform.service import Platform, Settings, opened
from ensue.platform.web.app import create_app
from ensue.platform.web.project_new_pages import code
from ensue.platform.web.security import SMALL_BODY
from tests.platform.web.browser import Browser, Outline, check_page
from tests.platform.web.test_project_pages import TOML, sign_in

Files = list[tuple[str, tuple[str, bytes]]]


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    """A platform on SQLite; what a database does with projects is tested elsewhere."""
    with opened(Settings(home=tmp_path / "home")) as found:
        yield found


@pytest.fixture
def browser(platform: Platform) -> Iterator[Browser]:
    with_cookies = Browser(create_app(platform))
    sign_in(with_cookies, platform, "organiser")
    yield with_cookies
    with_cookies.close()


def as_files(data: str) -> Files:
    """Return data as a browser sends files, or a folder of them."""
    path = Path(data)
    if path.name == "project.toml":
        return [("file", (one.name, one.read_bytes())) for one in sorted(path.parent.iterdir())]
    if path.is_file():
        return [("file", (path.name, path.read_bytes()))]
    return [
        ("folder", (f"{path.name}/{one.relative_to(path)}", one.read_bytes()))
        for one in sorted(path.rglob("*"))
        if one.is_file()
    ]


def zipped(files: Files, name: str = "data.zip") -> Files:
    """Return the same as one zip."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for _, (path, content) in files:
            archive.writestr(path, content)
    return [("file", (name, buffer.getvalue()))]


def send(browser: Browser, name: str, files: Files, /, **fields: str) -> Any:
    token = browser.token(f"/projects/new/{name}")
    return browser.post(f"/projects/new/{name}", data={"csrf": token, **fields}, files=files or None)


def made(platform: Platform, name: str) -> tuple[Project, list[dict[str, Any]]]:
    """Return a project and its items, but for what is new in each."""
    with platform.database.reading() as connection:
        project = Answering(platform).projects.find(connection, name)
        query = select(project_items).where(project_items.c.project_id == project.id)
        rows = connection.execute(query.order_by(project_items.c.position)).mappings().all()
    known = ("phase", "group_name", "stage", "form", "secret", "is_control", "wanted")
    return project, [{key: row[key] for key in known} for row in rows]


def nothing_is_left(platform: Platform) -> bool:
    with platform.database.reading() as connection:
        none = connection.execute(select(projects.c.id)).first() is None
    return none and list(platform.home.work.iterdir()) == []


def test_every_kind_has_its_form_with_all_settings_of_the_command_line(browser: Browser) -> None:
    page = browser.get("/projects/new").text
    check_page(page)
    for name in kinds():
        assert f'href="/projects/new/{name}"' in page
        form = browser.get(f"/projects/new/{name}").text
        check_page(form)
        fields = {
            at.get("name"): at for tag, at in Outline(form).tags if tag in ("input", "select", "textarea")
        }
        known = settings_of(kind(name))
        assert {f"set-{key}" for key in known} == {one for one in fields if one and one.startswith("set-")}
        for key, one in known.items():
            assert str(code(one.about)) in form, key
    assert fields  # of the last
    assert browser.get("/projects/new/knitting").status_code == 404
    token = browser.token("/projects/new/custom")
    sent = browser.post("/projects/new/knitting", data={"csrf": token, "name": "scarf"})
    assert sent.status_code == 404


@pytest.mark.parametrize("form", ["files", "zip"])
@pytest.mark.parametrize("name", sorted(CASES))
def test_the_page_makes_what_the_command_line_makes(
    browser: Browser, platform: Platform, tmp_path: Path, name: str, form: str
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    case = CASES[name](folder, None)
    files = [] if case.data is None else as_files(case.data)
    if form == "zip":
        if not files:
            pytest.skip("without data there is nothing to zip")
        files = zipped(files)
    fields = {f"set-{key}": str(value) for key, value in case.settings.items()}
    found = send(browser, case.kind, files, name="mine", seed="1", **fields)
    assert found.headers.get("location") == "/projects/mine?done=made", found.text[-3000:]
    project, items = made(platform, "mine")
    expected = build(case.kind, case.data, case.settings, 1)
    assert project.settings == expected["settings"]
    assert (project.state, project.title) == ("draft", expected["title"])
    assert json.loads(json.dumps(items)) == json.loads(json.dumps(expected["items"]))
    page = browser.get("/projects/mine").text
    check_page(page)
    for note in expected["notes"]:
        assert str(escape(note)) in page
    assert ("What was said of the data" in page) is bool(expected["notes"])
    assert list(platform.home.work.iterdir()) == []
    if files:
        assert project.source.endswith(UPLOADED)
        export = Export("mine", case.kind, (), source=project.source)
        with pytest.raises(EnsueError, match=r"were uploaded as .* name them with --data"):
            export.data()
        assert export.data("elsewhere") == "elsewhere"


def story_rows() -> list[dict[str, Any]]:
    responses = [{"worker_id": str(n), "response_text": f"Words of {n}."} for n in range(4)]
    asked = {"question_number": 1, "question_text": "What is the plot of the story?", "responses": responses}
    return [{"metadata": {"passage_id": "9001"}, "document": "She waits.", "questions": [asked]}]


def lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


SYSTEMS = lines([{"id": "9001/1", "system": "lead", "summary": "She waits, it says."}])


def test_a_file_that_a_setting_names_is_sent_along(browser: Browser, platform: Platform) -> None:
    files = [("file", ("test.jsonl", lines(story_rows()))), ("set-systems", ("sums.jsonl", SYSTEMS))]
    found = send(browser, "squality", files, **{"name": "rated", "set-stages": "rating"})
    assert found.status_code == 303, found.text[-2000:]
    project, items = made(platform, "rated")
    assert project.title == "Rate answers about a story"
    assert project.settings["systems"] == "sums.jsonl"  # and no path of the server
    assert "She waits, it says." in json.dumps(items)
    broken = [files[0], ("set-systems", ("sums.jsonl", b'{"id": 3}\n'))]
    refused = send(browser, "squality", broken, **{"name": "other", "set-stages": "rating"})
    assert refused.status_code == 422
    assert "sums.jsonl, line 1 has no id, system and summary." in refused.text
    assert str(platform.home.path) not in refused.text


def test_no_file_of_the_server_is_read_for_anybody(
    browser: Browser, platform: Platform, tmp_path: Path
) -> None:
    (tmp_path / "secret.jsonl").write_bytes(SYSTEMS)
    files = [("file", ("test.jsonl", lines(story_rows())))]
    fields = {"set-stages": "rating", "set-systems": str(tmp_path / "secret.jsonl")}
    refused = send(browser, "squality", files, name="mine", **fields)
    assert (refused.status_code, "systems is a file; send the file itself" in refused.text) == (422, True)
    token = browser.token("/account")
    body = {"kind": "squality", "name": "mine", "settings": {"systems": str(tmp_path / "secret.jsonl")}}
    answer = browser.post("/api/v1/projects", json=body, headers={"X-CSRF-Token": token})
    assert (answer.status_code, "send the file itself" in answer.text) == (422, True)
    assert nothing_is_left(platform)


def link() -> Files:
    entry = zipfile.ZipInfo("news.txt")
    entry.external_attr = 0o120777 << 16
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(entry, "/etc/passwd")
    return [("file", ("data.zip", buffer.getvalue()))]


_TEXT: Files = [("file", ("a.txt", b"One. Two. Three. Four. Five. Six."))]
_WRONG: Mapping[str, tuple[str, Files, dict[str, str], str]] = {
    "no data": ("consistency", [], {}, "Choose the data. JSON lines with an `article`"),
    "no name": ("shuffle", _TEXT, {"name": ""}, "cannot be a project"),
    "a bad name": ("shuffle", _TEXT, {"name": "../x"}, "cannot be a project"),
    "a bad setting": (
        "shuffle",
        _TEXT,
        {"set-labels": "many"},
        "Invalid labels=many: expected a whole number",
    ),
    "an unknown setting": ("shuffle", _TEXT, {"set-colour": "red"}, "has no setting"),
    "a bad seed": ("shuffle", _TEXT, {"seed": "-1"}, "The seed is not a whole number."),
    "no zip": ("shuffle", [("file", ("a.zip", b"PK?"))], {}, "The zip cannot be used: not a zip file"),
    "two zips": ("shuffle", zipped(_TEXT) + zipped(_TEXT), {}, "Choose one zip alone"),
    "a way out": ("shuffle", zipped([("", ("../out.txt", b"x"))]), {}, "leads out of the zip"),
    "a link": ("shuffle", link(), {}, "a link, not a file"),
    "broken lines": ("consistency", [("file", ("s.jsonl", b"{\n"))], {}, "s.jsonl"),
    "another form": ("transitions", [("file", ("s.json", b"[]"))], {}, "s.json"),
    "no folder": ("classification", _TEXT, {"set-task": "superglue/RTE"}, "has no file of RTE"),
    "no task": ("classification", _TEXT, {}, "superglue/RTE"),
    "no toml": ("custom", _TEXT, {}, "a.txt is not TOML"),
    "a deep toml": (
        "custom",
        [("file", ("project.toml", b"a=" + b"[" * 5000 + b"]" * 5000))],
        {},
        "nested too deeply",
    ),
    "more people than there are": (
        "shuffle",
        _TEXT,
        {"set-labels": "99999999999"},
        "expected a whole number from 1 to 1,000",
    ),
    "a lease for ever": ("shuffle", _TEXT, {"set-lease_minutes": "9999999999"}, "from 1 to 100,000"),
    "a script at the end": (
        "shuffle",
        _TEXT,
        {"set-completion_url": "javascript:alert(1)"},
        "expected an address that begins with https://",
    ),
    "a control character": (
        "shuffle",
        _TEXT,
        {"set-consent": "Yes\x07no"},
        "consent has a control character",
    ),
    "half a character of one's own": (
        "custom",
        [("file", ("project.toml", TOML.encode())), ("file", ("pairs.jsonl", b'{"one": "\\ud800"}\n'))],
        {},
        "holds half a character",
    ),
}


@pytest.mark.parametrize("what", sorted(_WRONG))
def test_what_will_not_do_is_one_sentence_beside_the_form_and_nothing_is_made(
    browser: Browser, platform: Platform, what: str
) -> None:
    name, files, fields, words = _WRONG[what]
    given = {"name": "mine", "title": "Kept as it was", **fields}
    page = send(browser, name, files, **given)
    assert page.status_code == 422
    check_page(page.text)
    said = page.text.partition('id="problem-words">')[2].partition("</p>")[0].replace("&#39;", "'")
    assert words in said, said
    assert said.endswith((".", "?", "…"))
    assert str(platform.home.path) not in page.text
    assert 'value="Kept as it was"' in page.text
    token = browser.token(f"/projects/new/{name}")
    headers = {"accept": "application/json", "X-CSRF-Token": token}
    asked = browser.post(f"/projects/new/{name}", data=given, files=files or None, headers=headers)
    assert (asked.status_code, words in asked.json()["error"]) == (422, True)
    assert nothing_is_left(platform)


def test_data_of_more_than_what_is_taken_anywhere_is_taken(browser: Browser) -> None:
    row = {"text": "The ferry left. It was wet. They stood at the rail. By noon they were there.", "more": ""}
    rows = [{**row, "id": n, "more": "x" * (SMALL_BODY // 8)} for n in range(9)]
    content = "".join(json.dumps(one) + "\n" for one in rows).encode()
    found = send(browser, "shuffle", [("file", ("texts.jsonl", content))], name="mine")
    assert found.headers.get("location") == "/projects/mine?done=made", found.text[-3000:]


def test_a_script_is_told_where_the_project_is_and_a_name_is_taken_once(
    browser: Browser, platform: Platform
) -> None:
    token = browser.token("/projects/new/shuffle")
    headers = {"accept": "application/json", "X-CSRF-Token": token}
    given = {"name": "mine", "set-controls": "1"}
    for expected in (201, 409):
        answer = browser.post("/projects/new/shuffle", data=given, headers=headers)
        assert answer.status_code == expected, answer.text
    _, items = made(platform, "mine")
    assert sum(one["is_control"] for one in items) == 1
    # Whoever is no organiser makes none, and a form without its token is refused.
    assert browser.post("/projects/new/shuffle", data={"name": "other"}).status_code == 403
    plain = Browser(browser.app)
    assert plain.get("/projects/new/shuffle").status_code in (303, 401)
    plain.sign_up("plain@example.org")
    token = plain.token("/account")
    assert plain.post("/projects/new/shuffle", data={"csrf": token, "name": "other"}).status_code == 403


@pytest.mark.parametrize(
    "settings", [{"consent": "\ud800"}, {"\ud800": "1"}, {"consent": "a\x00b"}, {"contact": "x" * 100_001}]
)
def test_settings_that_no_page_should_show_are_one_sentence(
    browser: Browser, platform: Platform, settings: dict[str, str]
) -> None:
    token = {"X-CSRF-Token": browser.token("/account"), "Content-Type": "application/json"}
    body = json.dumps({"kind": "shuffle", "name": "mine", "settings": settings})
    answer = browser.post("/api/v1/projects", content=body.encode(), headers=token)
    assert answer.status_code == 422, answer.text
    assert answer.json()["error"].endswith(("leave it out.", "are taken."))
    assert nothing_is_left(platform)


def test_the_api_takes_the_same_files(browser: Browser, platform: Platform) -> None:
    token = {"X-CSRF-Token": browser.token("/account")}
    files = [("data", ("test.jsonl", lines(story_rows()))), ("systems", ("sums.jsonl", SYSTEMS))]
    fields = {"kind": "squality", "name": "rated", "settings": '{"stages": "rating"}'}
    answer = browser.post("/api/v1/projects", data=fields, files=files, headers=token)
    assert answer.status_code == 201, answer.text
    assert "She waits, it says." in json.dumps(made(platform, "rated")[1])
    custom = [("a", ("project.toml", TOML.encode())), ("b", ("pairs.jsonl", b'{"one": "A"}\n'))]
    answer = browser.post(
        "/api/v1/projects", data={"kind": "custom", "name": "own"}, files=custom, headers=token
    )
    assert answer.status_code == 201, answer.text
    described = {one["name"]: one for one in browser.get("/api/v1/annotation-kinds").json()}
    assert described["shuffle"]["settings"]["split"]["choices"] == ["sentences", "lines"]
    assert set(COMMON) <= described["shuffle"]["settings"].keys()
