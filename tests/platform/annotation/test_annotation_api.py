"""The API of annotation: entering, working and keeping projects, and what is refused on the way."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import select
from starlette.testclient import TestClient

from ensue.benchmarks.people import kind as kinds
from ensue.platform.annotation.answering import Answering
from ensue.platform.annotation.projects import Project
from ensue.platform.clock import SetClock
from ensue.platform.database.schema import participants
from ensue.platform.service import Platform
from ensue.platform.web.app import create_app
from tests.platform.annotation.working import STAGED, Browser, item, make, said

TOML = """
title = "Rain"
data = "rows.jsonl"
[settings]
labels = 2
[[panels]]
id = "text"
text = "{text}"
[[fields]]
id = "label"
type = "text"
label = "What do you see?"
"""


@pytest.fixture
def project(platform: Platform) -> Project:
    items = [item("t", phase="training"), item("w0"), item("w1")]
    return make(platform, items, labels=2, control_rate=0.0, completion_code="DONE", completion_url="")


def token(platform: Platform, role: str, email: str = "") -> dict[str, str]:
    email = email or f"{role}@example.org"
    user = platform.accounts.add(email, role)
    return {"Authorization": f"Bearer {platform.accounts.add_token(user.id, 'test')}"}


def test_a_round_from_outside(platform: Platform, project: Project, clock: SetClock) -> None:
    ada = Browser(platform, project, "ada")
    me = ada.get("projects/rain/me").json()
    assert (me["phase"], me["done"], me["left"], me["current"]) == ("training", 0, 1, None)
    assert me["project"]["instructions"] == "Say *yes* or no."
    taken = ada.take()
    assert taken.status_code == 201
    work = taken.json()
    assert work["item"]["form"]["panels"][0]["text"] == "This is t."
    assert "gold" not in taken.text
    assert ada.get("projects/rain/me").json()["current"] == work["id"]
    clock.move(seconds=20)
    told = ada.save(work["id"], said("no"))
    assert told.status_code == 200, told.text
    assert told.json()["feedback"] == {"right": False, "gold": {"label": "yes"}, "words": "It does."}
    assert ada.get(f"assignments/{work['id']}").json()["feedback"]["right"] is False
    for number in range(2):
        work = ada.take().json()
        draft = ada.save(work["id"], said("yes", final=False, seq=1))
        assert draft.json()["final"] is False
        beat = ada.client.post(f"/api/v1/assignments/{work['id']}/heartbeat", headers=ada.headers)
        assert beat.status_code == 200
        assert ada.take().json()["answer"]["values"] == {"label": "yes"}
        assert ada.save(work["id"], said("yes", seq=2)).json()["final"] is True
        assert ada.get("projects/rain/me").json()["done"] == number + 1
    assert ada.take().status_code == 204
    me = ada.get("projects/rain/me").json()
    assert (me["state"], me["completion"]) == ("finished", {"code": "DONE", "url": ""})
    own = ada.get("projects/rain/assignments").json()
    assert [(one["place"], one["state"], one["phase"]) for one in own] == [
        (1, "answered", "training"),
        (2, "answered", "work"),
        (3, "answered", "work"),
    ]


def test_progress_tells_nobody_what_is_a_control(platform: Platform) -> None:
    """Neither before it is answered nor after: one more is done and as many are left as after any other item."""
    controls = [item(f"c{number}", control=True) for number in range(3)]
    work = [item(f"w{number}") for number in range(9)]
    project = make(platform, work + controls, labels=1, control_rate=0.3, most_items=8)
    ada = Browser(platform, project, "ada")
    seen, held = [ada.get("projects/rain/me").json()], []
    while (taken := ada.take()).status_code == 201:
        held.append(ada.get("projects/rain/me").json())
        ada.save(taken.json()["id"], said("yes"))
        seen.append(ada.get("projects/rain/me").json())
    total = len(held)
    assert 8 < total <= 11  # there were controls among them
    assert [(me["done"], me["left"], me["total"]) for me in seen] == [
        (number, total - number, total) for number in range(total + 1)
    ]
    assert [(me["done"], me["left"], me["total"]) for me in held] == [
        (number, total - number - 1, total) for number in range(total)
    ]


def test_who_comes_when_all_is_done_is_told_before_any_practice(platform: Platform, project: Project) -> None:
    early, late = (Browser(platform, project, id) for id in ("ada", "bob"))
    held = {}
    for one in (early, late):
        one.save(one.take().json()["id"], said("yes"))  # practice
        one.save(one.take().json()["id"], said("yes"))
        held[one] = one.take().json()["id"]
    waits = Browser(platform, project, "cyd")
    assert waits.take().json()["item"]["phase"] == "training"  # what others hold may come back
    for one, work in held.items():
        assert one.save(work, said("yes")).json()["final"] is True
    last = Browser(platform, project, "dan")
    assert last.take().status_code == 204
    me = last.get("projects/rain/me").json()
    assert (me["state"], me["left"], me["completion"]) == ("finished", 0, None)
    assert last.get("projects/rain/assignments").json() == []
    Answering(platform).projects.top_up("rain", 3)
    assert last.take().json()["item"]["phase"] == "training"


def test_who_waits_for_others_is_not_told_the_code_yet(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(kinds._OWN, "staged", "tests.platform.annotation.working:STAGED")
    work = list(STAGED.build(None, {}, 0).items)
    project = make(platform, work, kind="staged", labels=2, completion_code="DONE")
    ada, bob, cyd = (Browser(platform, project, id) for id in ("ada", "bob", "cyd"))
    for _ in work:
        ada.save(ada.take().json()["id"], said("yes"))
    assert "others are at work" in ada.take().json()["waiting"]
    assert ada.get("projects/rain/me").json()["completion"] is None
    for _ in work:
        bob.save(bob.take().json()["id"], said("yes"))
    while (taken := cyd.take()).status_code == 201:
        cyd.save(taken.json()["id"], said("yes"))
    for one in (ada, cyd):
        assert one.take().status_code == 204
        assert one.get("projects/rain/me").json()["completion"]["code"] == "DONE"


def test_whoever_worked_is_told_the_code_when_a_project_is_closed(platform: Platform) -> None:
    project = make(platform, [item(f"i{number}") for number in range(2)], labels=3, completion_code="DONE")
    ada, bob, cyd = (Browser(platform, project, id) for id in ("ada", "bob", "cyd"))
    for one in (ada, cyd):
        one.save(one.take().json()["id"], said("yes"))
        assert one.get("projects/rain/me").json()["completion"] is None
    bob.take()
    part = Answering(platform)
    part.people.exclude("rain", cyd.pseudonym)
    part.projects.set_state("rain", "closed")
    told = [one.get("projects/rain/me").json()["completion"] for one in (ada, bob, cyd)]
    assert told == [{"code": "DONE", "url": ""}, None, None]


def test_an_account_needs_no_key_if_it_may_annotate(
    platform: Platform, project: Project, client: TestClient
) -> None:
    headers = token(platform, "annotator")
    assert client.get("/api/v1/projects/rain/welcome", headers=headers).json()["needs_key"] is False
    answer = client.post("/api/v1/projects/rain/enter", json={"consent": True}, headers=headers)
    assert answer.status_code == 201
    again = client.post("/api/v1/projects/rain/enter", json={"consent": True}, headers=headers)
    assert again.json()["pseudonym"] == answer.json()["pseudonym"]
    assert client.post("/api/v1/projects/rain/assignments", headers=headers).status_code == 201
    other = token(platform, "participant")
    refused = client.post("/api/v1/projects/rain/enter", json={"consent": True}, headers=other)
    assert refused.status_code == 404
    assert client.get("/api/v1/projects/rain/welcome", headers=other).status_code == 404
    with_key = {"consent": True, "key": project.entry_key}
    assert client.post("/api/v1/projects/rain/enter", json=with_key, headers=other).status_code == 201


def test_an_account_is_one_person_whatever_ids_it_makes_up(
    platform: Platform, project: Project, client: TestClient
) -> None:
    path, headers = "/api/v1/projects/rain/enter", token(platform, "annotator")
    own = client.post(path, json={"consent": True, "external_id": ""}, headers=headers)
    assert own.status_code == 201
    for id in ("zz1", "zz2"):
        made_up = client.post(path, json={"consent": True, "external_id": id}, headers=headers)
        assert (made_up.status_code, "worker's id" in made_up.json()["error"]) == (403, True)
        wrong = {"consent": True, "external_id": id, "key": project.entry_key + "x"}
        assert client.post(path, json=wrong, headers=headers).status_code == 403
    again = client.post(path, json={"consent": True, "key": project.entry_key}, headers=headers)
    assert again.json()["pseudonym"] == own.json()["pseudonym"]
    with platform.database.reading() as connection:
        assert len(connection.execute(select(participants.c.id)).all()) == 1
    keyed = {"consent": True, "external_id": "zz1", "key": project.entry_key}
    assert client.post(path, json=keyed, headers=headers).status_code == 201


def test_who_comes_in_and_who_does_not(platform: Platform, project: Project, client: TestClient) -> None:
    path, good = "/api/v1/projects/rain/enter", {"key": project.entry_key, "external_id": "ada"}
    welcome = client.get(f"/api/v1/projects/rain/welcome?key={project.entry_key}").json()
    assert (welcome["title"], welcome["needs_key"]) == ("Rain", True)
    assert client.post(path, json={**good, "key": "guessed", "consent": True}).status_code == 404
    assert client.post(path, json=good).status_code == 422  # without consent
    assert client.post(path, json={**good, "external_id": "a\x00", "consent": True}).status_code == 422
    assert client.get("/api/v1/projects/rain/me").status_code == 401
    first = Browser(platform, project, "ada")
    again = Browser(platform, project, "ada")  # another browser, the same session of the other site
    assert again.pseudonym == first.pseudonym
    forged = client.post(path, json={**good, "session_id": "made up", "consent": True})
    assert forged.status_code == 403
    assert "worker's id" in forged.json()["error"]
    assert client.post(path, json={**good, "consent": True}).status_code == 403
    with platform.database.reading() as connection:
        assert len(connection.execute(select(participants.c.id)).all()) == 1


def test_calls_by_the_cookie_need_our_pages_token(platform: Platform, project: Project) -> None:
    ada = Browser(platform, project, "ada")
    ada.headers = {}
    assert ada.take().status_code == 403
    ada.headers = {"x-csrf-token": "0" * 64}
    assert ada.take().status_code == 403


def test_another_persons_and_another_projects_things_are_not_there(
    platform: Platform, project: Project, client: TestClient
) -> None:
    ada, bob = Browser(platform, project, "ada"), Browser(platform, project, "bob")
    work = ada.take().json()["id"]
    assert bob.get(f"assignments/{work}").status_code == 404
    assert bob.save(work, said()).status_code == 404
    for what in ("heartbeat", "release"):
        answer = bob.client.post(f"/api/v1/assignments/{work}/{what}", headers=bob.headers)
        assert answer.status_code == 404
    assert client.get(f"/api/v1/assignments/{work}").status_code == 404
    assert bob.get("assignments/none").status_code == 404


def test_organisers_keep_their_own_projects(platform: Platform, client: TestClient) -> None:
    organiser, other = token(platform, "organiser"), token(platform, "organiser", "other@example.org")
    rows = "".join(json.dumps({"id": f"r{n}", "text": f"Text {n}."}) + "\n" for n in range(3))
    files: Any = [("files", ("project.toml", TOML)), ("files", ("rows.jsonl", rows))]
    form = {"kind": "custom", "name": "mine", "settings": '{"pay": 0.25}'}
    made = client.post("/api/v1/projects", data=form, files=files, headers=organiser)
    assert made.status_code == 201, made.text
    assert (made.json()["state"], made.json()["settings"]["labels"]) == ("draft", 2)
    twice = client.post("/api/v1/projects", data=form, files=files, headers=organiser)
    assert twice.status_code == 409
    bad: Any = [("files", ("project.toml", TOML.replace("{text}", "{gone}"))), files[1]]
    refused = client.post("/api/v1/projects", data={**form, "name": "bad"}, files=bad, headers=organiser)
    assert (refused.status_code, "gone" in refused.json()["error"]) == (422, True)
    assert "/work" not in refused.json()["error"]
    participant = token(platform, "participant")
    assert client.get("/api/v1/projects", headers=participant).status_code == 403
    assert client.post("/api/v1/projects", data=form, headers=participant).status_code == 403
    assert [one["name"] for one in client.get("/api/v1/projects", headers=organiser).json()] == ["mine"]
    assert client.get("/api/v1/projects", headers=other).json() == []
    own = "/api/v1/projects/mine"
    for method, path, body in (
        ("GET", "", None),
        ("GET", "/overview", None),
        ("GET", "/export", None),
        ("GET", "/export.csv", None),
        ("GET", "/bonuses.csv", None),
        ("POST", "/state", {"state": "open"}),
        ("POST", "/top-up", {"labels": 3}),
        ("POST", "/participants/p-x/exclude", None),
        ("DELETE", "/participants/p-x", None),
        ("DELETE", "", None),
    ):
        answer = client.request(method, own + path, json=body, headers=other)
        assert answer.status_code == 404, path
    assert client.post(f"{own}/state", json={"state": "ajar"}, headers=organiser).status_code == 422
    opened = client.post(f"{own}/state", json={"state": "open"}, headers=organiser)
    assert opened.json()["state"] == "open"
    link = opened.json()["path"]
    worker = TestClient(create_app(platform))
    key = link.partition("key=")[2]
    entered = worker.post("/api/v1/projects/mine/enter", json={"key": key, "consent": True})
    pseudonym = entered.json()["pseudonym"]
    headers = {"x-csrf-token": entered.json()["csrf"], "Idempotency-Key": "1"}
    work = worker.post("/api/v1/projects/mine/assignments", headers=headers).json()
    saved = {"values": {"label": '=rain, "much"'}, "final": True, "seq": 1}
    assert (
        worker.put(f"/api/v1/assignments/{work['id']}/answer", json=saved, headers=headers).status_code == 200
    )
    shown = client.get(own, headers=organiser).json()
    assert shown["progress"]["work"]["answered"] == 1
    assert [(one["annotator"], one["answers"]) for one in shown["people"]] == [(pseudonym, 1)]
    lines = [json.loads(line) for line in client.get(f"{own}/export", headers=organiser).text.splitlines()]
    assert (lines[0]["kind"], lines[1]["annotator"]) == ("custom", pseudonym)
    assert "'=rain" in client.get(f"{own}/export.csv", headers=organiser).text
    assert client.get(f"{own}/bonuses.csv", headers=organiser).text == "participant_id,amount\n"
    topped = client.post(f"{own}/top-up", json={"labels": 4}, headers=organiser)
    assert topped.json()["settings"]["labels"] == 4
    excluded = client.post(f"{own}/participants/{pseudonym}/exclude", headers=organiser)
    assert excluded.json() == {"annotator": pseudonym, "void": 1}
    stopped = worker.post("/api/v1/projects/mine/assignments", headers=headers)
    assert (stopped.status_code, "thank you" in stopped.json()["error"]) == (403, True)
    assert client.delete(f"{own}/participants/{pseudonym}", headers=organiser).status_code == 204
    assert len(client.get(f"{own}/export", headers=organiser).text.splitlines()) == 1
    assert client.delete(own, headers=organiser).status_code == 204
    assert client.get(own, headers=organiser).status_code == 404


@pytest.mark.parametrize("value", ["1e400", "NaN", "[NaN]", '{"a": 1}', "[{}]", "[[3]]"])
def test_a_setting_that_is_no_value_is_refused(platform: Platform, client: TestClient, value: str) -> None:
    owner = token(platform, "organiser") | {"Content-Type": "application/json"}
    for name in ("labels", "consent"):
        body = f'{{"kind": "shuffle", "name": "rain", "settings": {{"{name}": {value}}}}}'
        refused = client.post("/api/v1/projects", content=body, headers=owner)
        assert refused.status_code == 422, refused.text
        assert refused.json()["error"].startswith(f"{name} has ")
        assert refused.json()["error"].endswith("where one value or a list of them is expected.")
    assert client.get("/api/v1/projects", headers=owner).json() == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"seed": -1}, "seed: input should be greater than or equal to 0."),
        ({"title": "a" * 201}, "title: string should have at most 200 characters."),
        ({"settings": [3]}, "settings: input should be a valid dictionary."),
        ({"kind": None}, "kind: input should be a valid string."),
    ],
    ids=["seed", "title", "settings", "kind"],
)
def test_a_project_that_is_refused_says_what_of_it(
    platform: Platform, client: TestClient, given: dict[str, Any], words: str
) -> None:
    owner = token(platform, "organiser")
    body = {"kind": "shuffle", "name": "rain", **given}
    refused = client.post("/api/v1/projects", json=body, headers=owner)
    assert (refused.status_code, refused.json()["error"]) == (422, words)


def test_a_deleted_accounts_answers_are_nobodys(
    platform: Platform, project: Project, client: TestClient
) -> None:
    headers = token(platform, "annotator", "gone@example.org")
    client.post("/api/v1/projects/rain/enter", json={"consent": True}, headers=headers)
    platform.accounts.delete(platform.accounts.find_email("gone@example.org").id)
    with platform.database.reading() as connection:
        assert connection.execute(select(participants.c.user_id)).scalars().all() == [None]
