"""The pages of annotation: who may see them, what organisers do there, and that nothing in them can do harm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from ensue.platform.annotation.answering import Answering, Given
from ensue.platform.annotation.people import Entering
from ensue.platform.annotation.projects import Project, Projects, Wanted
from ensue.platform.clock import SetClock
from ensue.platform.service import Platform
from ensue.platform.web.app import create_app
from ensue.platform.web.markdown import rendered
from tests.platform.web.annotated import FORMS, items, make
from tests.platform.web.browser import PASSWORD, Browser, check_page
from tests.support.pages import EVIL

TOML = """
title = "Which is better?"
data = "pairs.jsonl"
[[panels]]
id = "a"
text = "{one}"
[[fields]]
id = "better"
type = "choice"
label = "Is it good?"
options = [{value = "y", label = "Yes"}, {value = "n", label = "No"}]
"""


@pytest.fixture
def browser(platform: Platform) -> Iterator[Browser]:
    with_cookies = Browser(create_app(platform))
    yield with_cookies
    with_cookies.close()


def sign_in(browser: Browser, platform: Platform, role: str, email: str = "ada@example.org") -> str:
    user = platform.accounts.add(email, role)
    platform.accounts.set_password(user.id, PASSWORD)
    assert browser.sign_in(email).status_code == 303
    return user.id


def answered(platform: Platform, project: Project, *said: tuple[str, ...]) -> list[str]:
    """Have people answer every item of a project, each as is said; return their pseudonyms."""
    part, names = Answering(platform), []
    for number, answers in enumerate(said):
        given = Entering(project.entry_key, f"worker {number}", "s", f"session {number}", consent=True)
        entered = part.people.enter(project.name, given, None, None).participant
        names.append(entered.pseudonym)
        for place, answer in enumerate(answers):
            taken = part.assigning.take(entered.id)
            assert isinstance(taken, str)
            assert isinstance(platform.clock, SetClock)
            platform.clock.move(seconds=9)
            values = {"answer": answer}
            part.save(entered.id, taken, f"{number} {place}", Given(values, True, 1, 9000, 9000))
    return names


def test_markdown_can_do_nothing() -> None:
    shown = rendered(
        f"# One\n\n{EVIL} [a](javascript:alert(1)) ![b](https://example.org/c.png) <b onclick=x>"
    )
    assert "<h2>One</h2>" in shown
    for wrong in (EVIL, "<img", 'javascript:alert(1)"', "<b "):
        assert wrong not in shown


def test_an_organiser_makes_opens_follows_and_closes_a_project(browser: Browser, platform: Platform) -> None:
    sign_in(browser, platform, "organiser")
    page = browser.get("/projects").text
    check_page(page)
    assert "There is none yet." in page
    token = browser.token("/projects/new/custom")
    files = [("file", ("project.toml", TOML)), ("file", ("pairs.jsonl", '{"one": "<i>A</i>"}\n'))]
    fields = {"csrf": token, "name": "mine", "set-labels": "2"}
    refused = browser.post("/projects/new/custom", data=fields, files=files[:1])
    assert refused.status_code == 422
    check_page(refused.text)
    assert "pairs.jsonl" in refused.text
    made = browser.post("/projects/new/custom", data=fields, files=files)
    assert (made.status_code, made.headers["location"]) == (303, "/projects/mine?done=made"), made.text
    page = browser.get("/projects/mine?done=made").text
    check_page(page)
    assert "0 of 2 answers" in page
    opened = browser.submit("/projects/mine/state", "/projects/mine", state="open")
    assert opened.headers["location"] == "/projects/mine?done=open"
    with platform.database.reading() as connection:
        project = Answering(platform).projects.find(connection, "mine")
    assert project.state == "open"
    assert f"/annotate/mine?key={project.entry_key}" in browser.get("/projects/mine").text
    assert browser.submit("/projects/mine/top-up", "/projects/mine", labels="3").status_code == 303
    assert "0 of 3 answers" in browser.get("/projects/mine").text
    less = browser.submit("/projects/mine/top-up", "/projects/mine", labels="1")
    assert less.status_code == 422
    assert "give a number above it" in less.text
    assert browser.submit("/projects/mine/state", "/projects/mine", state="paused").status_code == 303
    browser.submit("/projects/mine/state", "/projects/mine", state="closed")
    assert ">closed<" in browser.get("/projects").text


def test_projects_of_one_title_are_told_apart_and_notes_are_shown(
    browser: Browser, platform: Platform
) -> None:
    by = sign_in(browser, platform, "organiser")
    projects = Projects(platform)
    built: dict[str, Any] = {"instructions": "", "settings": {"labels": 2}, "items": [], "source": ""}
    notes = ["2 texts are too short & left out", EVIL]
    for name, title in (("first", "Rain"), ("second", "Rain"), ("third", "Snow")):
        projects.insert(Wanted(name, "custom"), {**built, "title": title, "notes": notes}, by=by)
        projects.set_state(name, "open")
    page = browser.get("/projects").text
    open_to_you = page[page.index("Open to you") :]
    assert "<bdi>Rain</bdi> (first)</a>" in open_to_you
    assert "<bdi>Rain</bdi> (second)</a>" in open_to_you
    assert "<bdi>Snow</bdi></a>" in open_to_you
    page = browser.get("/projects/first").text
    check_page(page)
    assert "2 texts are too short &amp; left out" in page
    assert EVIL not in page


def test_numbers_are_shown_and_people_are_excluded_and_forgotten(
    browser: Browser, platform: Platform
) -> None:
    owner = sign_in(browser, platform, "organiser")
    known = [replace(one, gold={"answer": "y"}) for one in items(FORMS["choice"], 8)]
    project = make(platform, "judged", known, labels=2, by=owner, control_rate=0.0, pay=2.5, currency="EUR")
    entering = Entering(project.entry_key, "looks", "s", "looks in", consent=True)
    Answering(platform).people.enter("judged", entering, None, None)
    first = ("y", "n", "y", "n", "y", "n", "y", "?")
    ada, bob = answered(platform, project, first, ("y", "n", "y", "n", "y", "n", "y", "y"))
    page = browser.get("/projects/judged/numbers").text
    check_page(page)
    assert "Median 9.0 s" in page
    # Of sixteen answers nine are y: four of one, five of the other.
    scores = page[page.index("<h2>Scores</h2>") : page.index("<h2>Agreement</h2>")]
    assert '<th scope="col">accuracy majority</th>' in scores
    assert "<td>0.562<br>" in scores
    assert all(f"<td>{share} (" in page for share in ("0.50", "0.62"))
    assert "≤ 10 s: 16." in page
    # 2.50 for nine seconds are a thousand an hour; whoever only looked in is none of those who answered.
    assert '1,000.00</p><p class="soft">EUR paid for an hour' in page
    assert '40.00</p><p class="soft">EUR owed to everybody' in page
    assert '2</p><p class="soft">people, and 1 without an answer that counts' in page
    assert "<td>nominal</td>" in page.replace(' class="words"', "")
    assert ada in page
    assert "16 of 16 answers" in browser.get("/projects/judged").text
    path = f"/projects/judged/participants/{ada}"
    assert browser.submit(f"{path}/exclude", "/projects/judged").status_code == 303
    page = browser.get("/projects/judged").text
    check_page(page)
    assert "8 of 16 answers" in page
    unsure = browser.submit(f"{path}/delete", "/projects/judged")
    assert (unsure.status_code, "Tick the box" in unsure.text) == (422, True)
    assert browser.submit(f"{path}/delete", "/projects/judged", sure="1").status_code == 303
    page = browser.get("/projects/judged").text
    assert ada not in page
    assert bob in page


def test_an_organiser_looks_through_the_items_before_anybody_comes(
    browser: Browser, platform: Platform
) -> None:
    by = sign_in(browser, platform, "organiser")
    work = items(FORMS["choice"], 2)
    practice = replace(items(FORMS["choice"], 1, phase="training")[0], gold={"answer": "y"}, words="It does.")
    control = replace(items(FORMS["choice"], 1, control=True)[0], key={"id": EVIL}, gold={"answer": "n"})
    make(platform, "looked", [*work, control, practice], by=by, consent="You **agree**.", control_rate=0.1)
    page = browser.get("/projects/looked/items").text
    check_page(page)
    assert "Item 1 of 4" in page
    assert "You <strong>agree</strong>." in page
    told = [browser.get(f"/api/v1/projects/looked/items/{place}").json() for place in range(1, 5)]
    assert [(one["phase"], one["control"]) for one in told] == [
        ("training", False),
        ("work", False),
        ("work", False),
        ("work", True),
    ]
    assert (told[0]["gold"], told[0]["words"]) == ({"answer": "y"}, "It does.")
    assert told[1]["form"]["fields"][0]["label"] == "Does it follow?"
    assert told[1]["gold"] is None
    for place in (0, 5, -1, 10**8, 10**30):
        assert browser.get(f"/api/v1/projects/looked/items/{place}").status_code == 404
    for at, shown in (("4", 4), ("99", 4), ("0", 1), ("x", 1), ("9" * 30, 1)):
        assert f"Item {shown} of 4" in browser.get(f"/projects/looked/items?at={at}").text
    found = browser.get("/projects/looked/items", params={"id": EVIL}).text
    check_page(found)
    assert "Item 4 of 4" in found
    assert "No item is called nothing" in browser.get("/projects/looked/items?id=nothing").text
    make(platform, "empty", [], by=by)
    assert "There is no item yet." in browser.get("/projects/empty/items").text
    browser.cookies.clear()
    assert browser.get("/projects/looked/items").headers["location"] == "/sign-in?next=/projects/looked/items"
    sign_in(browser, platform, "organiser", "eve@example.org")
    for path in ("/projects/looked/items", "/api/v1/projects/looked/items/1"):
        assert browser.get(path).status_code == 404


def test_a_project_is_its_organisers_alone(browser: Browser, platform: Platform) -> None:
    project = make(platform, "theirs", items(FORMS["choice"], 1))
    (name,) = answered(platform, project, ("y",))
    paths = ("/projects", "/projects/theirs", "/projects/theirs/numbers")
    for path in paths:
        assert browser.get(path).headers["location"] == f"/sign-in?next={path}"
    sign_in(browser, platform, "organiser")
    assert "theirs" not in browser.get("/projects").text.split("Open to you")[0]
    for path in paths[1:]:
        assert browser.get(path).status_code == 404
    token = browser.token("/account")
    for path in ("state", "top-up", f"participants/{name}/exclude", f"participants/{name}/delete"):
        sent = {"csrf": token, "state": "closed", "labels": "9", "sure": "1"}
        assert browser.post(f"/projects/theirs/{path}", data=sent).status_code == 404
    assert browser.post("/projects/theirs/state", data={"state": "closed"}).status_code == 403
    with platform.database.reading() as connection:
        assert Answering(platform).projects.find(connection, "theirs").state == "open"
    # Whoever only submits predictions has no part in this.
    plain = Browser(browser.app)
    plain.sign_up("plain@example.org")
    assert plain.get("/projects").status_code == 403
    assert plain.get("/projects/new").status_code == 403
    assert "/projects" not in plain.get("/account").text


def test_entering_needs_the_key_and_says_when_a_project_is_shut(browser: Browser, platform: Platform) -> None:
    consent = f"# Consent\n\nBe kind. {EVIL}"
    project = make(platform, "study", items(FORMS["choice"], 1), consent=consent, contact="eve@example.org")
    for path in ("/annotate/study", "/annotate/study?key=x", "/annotate/none?key=x"):
        page = browser.get(path)
        check_page(page.text)
        assert (page.status_code, "This link leads nowhere." in page.text) == (404, True)
        assert "Project study" not in page.text
    page = browser.get(project.path).text
    check_page(page)
    assert "Be kind." in page
    assert "eve@example.org" in page
    assert EVIL not in page
    assert browser.get("/annotate/study/work").headers["location"] == "/annotate/study"
    # An annotator needs no key.
    sign_in(browser, platform, "annotator")
    assert '<a href="/annotate/study">' in browser.get("/projects").text
    assert browser.get("/annotate/study").status_code == 200
    part = Answering(platform)
    for state, words in (("paused", "is paused at the moment"), ("closed", "is closed")):
        part.projects.set_state("study", state)
        page = browser.get(project.path).text
        assert words in page
        assert "Begin" not in page


def test_the_work_page_has_the_instructions_and_nothing_inline(browser: Browser, platform: Platform) -> None:
    sign_in(browser, platform, "annotator")
    make(platform, "study", items(FORMS["choice"], 1))
    token = browser.token("/account")
    entered = browser.post(
        "/api/v1/projects/study/enter", json={"consent": True}, headers={"X-CSRF-Token": token}
    )
    assert entered.status_code == 201
    page = browser.get("/annotate/study/work").text
    check_page(page)
    assert "<h2>What to do</h2>" in page
    assert "<script>alert(1)" not in page
    assert "needs JavaScript" in page
