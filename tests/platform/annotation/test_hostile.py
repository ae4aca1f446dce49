"""Hostile inputs to annotation: large, deep, strange and replayed answers are refused, or kept as they are."""

from __future__ import annotations

import json

import pytest

from ensue.benchmarks.people.form import Field, Form
from ensue.benchmarks.people.kind import WorkItem
from ensue.platform.annotation.projects import Project
from ensue.platform.service import Platform
from tests.platform.annotation.working import Browser, item, make, said

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture
def project(platform: Platform) -> Project:
    return make(platform, [item("w0"), item("w1")], labels=2, control_rate=0.0)


def test_what_is_no_answer_is_refused_and_nothing_is_saved(platform: Platform, project: Project) -> None:
    ada = Browser(platform, project, "ada")
    work = ada.take().json()["id"]
    path = f"/api/v1/assignments/{work}/answer"
    headers = {**ada.headers, "Idempotency-Key": "k", "Content-Type": "application/json"}
    deep = '{"values": {"why": ' + "[" * 50_000 + "]" * 50_000 + '}, "seq": 1}'
    for body, status in (
        (json.dumps(said() | {"values": {"label": "yes", "why": "a" * 1_000_001}}), 413),
        (json.dumps(said() | {"values": {"label": "yes", "why": "a" * 100_001}}), 422),
        (json.dumps(said() | {"values": {"label": "yes", "w" * 1000: 1}}), 422),
        (json.dumps(said() | {"seq": -1}), 422),
        (json.dumps(said() | {"seq": 10**30}), 422),
        (json.dumps(said() | {"active_ms": 1e400}), 422),
        (json.dumps(said() | {"values": [1]}), 422),
        ('{"values": {"label": NaN}, "seq": 1}', 422),
        ('{"values": {"why": "\\ud800"}, "seq": 1}', 422),
        ('{"values": {"why": "\\u0000"}, "seq": 1}', 422),
        ("no json", 422),
        (deep, 400),
    ):
        answer = ada.client.put(path, content=body, headers=headers)
        assert answer.status_code == status, (body[:80], answer.text[:200])
        assert answer.json()["error"].strip()
    assert ada.get(f"assignments/{work}").json()["answer"] is None
    without = ada.client.put(path, json=said(), headers=ada.headers)
    assert without.status_code == 422  # no key
    assert ada.save(work, said(), key="k" * 201).status_code == 422


def test_what_no_database_holds_is_refused_where_nobody_asked_for_it(platform: Platform) -> None:
    """A field that another hides is kept in the history alone, and a number may have any length."""
    asked = item("w").form.fields[0]
    more = Field("more", "text", "More", when={"field": "label", "equals": "yes"})
    scale = Field("scale", "scale", "How much?", {"least": 0, "most": 10}, required=False)
    form = Form(item("w").form.panels, (asked, more, scale))
    project = make(platform, [WorkItem(form, {"id": "w"})], labels=1)
    ada = Browser(platform, project, "ada")
    work = ada.take().json()["id"]
    headers = {**ada.headers, "Idempotency-Key": "k", "Content-Type": "application/json"}
    for value in ('"more": "\\ud800"', '"more": "\\u0000"', '"more": NaN', f'"scale": 1{"0" * 400}'):
        for final in ("true", "false"):
            body = f'{{"values": {{"label": "no", {value}}}, "seq": 1, "final": {final}}}'
            answer = ada.client.put(f"/api/v1/assignments/{work}/answer", content=body, headers=headers)
            assert (answer.status_code, final) == (422, final), (value, answer.text)
            assert answer.json()["problems"]
    assert ada.get(f"assignments/{work}").json()["answer"] is None
    left = {"label": "no", "more": "from before"}
    assert ada.save(work, said(values=left)).status_code == 200


def test_script_is_text(platform: Platform, project: Project) -> None:
    ada = Browser(platform, project, "ada")
    work = ada.take().json()["id"]
    values = {"label": "yes", "why": SCRIPT}
    assert ada.save(work, said(values=values)).status_code == 200
    kept = ada.get(f"assignments/{work}")
    assert kept.json()["answer"]["values"] == values
    assert kept.headers["content-type"] == "application/json"
    assert kept.headers["x-content-type-options"] == "nosniff"


def test_a_key_of_ones_own_says_nothing_of_anothers_work(platform: Platform, project: Project) -> None:
    ada, bob = Browser(platform, project, "ada"), Browser(platform, project, "bob")
    hers, his = ada.take().json()["id"], bob.take().json()["id"]
    first = ada.save(hers, said("yes"), key="same")
    assert bob.save(hers, said("yes"), key="same").status_code == 404  # a replay is no way in
    assert bob.save(his, said("no"), key="same").status_code == 200  # keys are of one assignment
    assert ada.save(hers, said("yes"), key="same").json() == first.json()
    assert ada.save(hers, said("no"), key="same").status_code == 422


def test_names_that_are_none(platform: Platform, project: Project) -> None:
    ada = Browser(platform, project, "ada")
    for name in ("..%2f..", "%00", "rain%00", "RAIN", "rain'--", "a" * 5000):
        assert ada.get(f"projects/{name}/me").status_code == 404
        assert ada.get(f"assignments/{name}").status_code == 404
