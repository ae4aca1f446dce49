"""The pages and the API of accounts, as a browser and a program use them, on both databases."""

from __future__ import annotations

import pytest
from fastapi import FastAPI

from ensue.platform.clock import SetClock
from ensue.platform.service import Platform
from ensue.platform.web.app import create_app
from tests.platform.web.browser import PASSWORD, Browser, check_page


@pytest.fixture
def app(platform: Platform) -> FastAPI:
    return create_app(platform)


def test_from_sign_up_to_a_deleted_account(app: FastAPI) -> None:
    browser = Browser(app)
    assert "/sign-in" in browser.get("/").text
    answer = browser.sign_up("ada@example.org", name="Ada")
    assert answer.headers["location"] == "/"
    assert browser.me()["email"] == "ada@example.org"
    assert ">Ada</a>" in browser.get("/").text

    assert browser.submit("/sign-out", "/").status_code == 303
    assert browser.me() == {"error": "Sign in first, or send an API token (Authorization: Bearer TOKEN)."}
    wrong = browser.sign_in("ada@example.org", "wrong password")
    assert wrong.status_code == 401
    assert "The e-mail address or the password is not right." in wrong.text
    assert 'value="ada@example.org"' in wrong.text
    assert browser.sign_in("ada@example.org", next="/account").headers["location"] == "/account"

    answer = browser.submit("/account", "/account", name="Countess", affiliation="Engines")
    assert answer.headers["location"] == "/account?done=saved"
    assert "Saved." in browser.get("/account?done=saved").text
    assert (browser.me()["name"], browser.me()["affiliation"]) == ("Countess", "Engines")

    refused = browser.submit("/account/delete", "/account", confirmation="wrong password")
    assert refused.status_code == 403
    assert browser.submit("/account/delete", "/account", confirmation=PASSWORD).status_code == 303
    assert "error" in browser.me()
    assert browser.sign_in("ada@example.org").status_code == 401


def test_tokens_made_on_the_page_are_shown_once_and_work_until_revoked(app: FastAPI) -> None:
    browser = Browser(app)
    browser.sign_up("ada@example.org")
    page = browser.submit("/account/tokens", "/account", name="laptop", days="90").text
    token = page.split("<code>ensue_")[1].split("</code>")[0]
    program = Browser(app)
    program.headers |= {"authorization": f"Bearer ensue_{token}", "accept": "application/json"}
    assert program.me()["email"] == "ada@example.org"
    assert token not in browser.get("/account").text
    made = program.post("/api/v1/me/tokens", json={"name": "other", "days": 1})
    assert made.status_code == 201
    listed = program.get("/api/v1/me/tokens").json()
    assert [one["name"] for one in listed] == ["laptop", "other"]
    assert made.json()["token"].startswith(listed[1]["start"])
    assert program.delete(f"/api/v1/me/tokens/{listed[1]['id']}").status_code == 204
    assert program.delete(f"/api/v1/me/tokens/{listed[1]['id']}").status_code == 404
    browser.submit(f"/account/tokens/{listed[0]['id']}/revoke", "/account")
    answer = program.get("/api/v1/me")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json() == {"error": "The API token is not valid; make a new one on your account's page."}


def test_another_users_token_is_not_there(app: FastAPI) -> None:
    ada, eve = Browser(app), Browser(app)
    ada.sign_up("ada@example.org")
    eve.sign_up("eve@example.org")
    ada.submit("/account/tokens", "/account", name="laptop")
    token = ada.get("/api/v1/me/tokens").json()[0]["id"]
    assert eve.submit(f"/account/tokens/{token}/revoke", "/account").status_code == 404
    assert len(ada.get("/api/v1/me/tokens").json()) == 1


def test_sign_out_everywhere_ends_the_other_browser_too(app: FastAPI) -> None:
    here, there = Browser(app), Browser(app)
    here.sign_up("ada@example.org")
    there.sign_in("ada@example.org")
    assert there.me()["email"] == "ada@example.org"
    here.submit("/sign-out/everywhere", "/account")
    assert "error" in here.me()
    assert "error" in there.me()


def test_a_changed_password_keeps_this_browser_alone(app: FastAPI) -> None:
    here, there = Browser(app), Browser(app)
    here.sign_up("ada@example.org")
    there.sign_in("ada@example.org")
    wrong = here.submit("/account/password", "/account", current="nonsense", password="another password")
    assert wrong.status_code == 403
    short = here.submit("/account/password", "/account", current=PASSWORD, password="short")
    assert short.status_code == 422
    done = here.submit("/account/password", "/account", current=PASSWORD, password="another password")
    assert done.status_code == 303
    assert here.me()["email"] == "ada@example.org"
    assert "error" in there.me()


def test_an_invitation_from_its_page_to_the_account_it_makes(app: FastAPI, platform: Platform) -> None:
    admin, guest = Browser(app), Browser(app)
    admin.sign_up("root@example.org")
    assert admin.get("/invitations").status_code == 403
    platform.accounts.set_role(platform.accounts.find_email("root@example.org").id, "admin")
    page = admin.submit("/invitations", "/invitations", role="organiser", email="ada@example.org").text
    link = page.split("<code>http://testserver")[1].split("</code>")[0]
    page = guest.get(link).text
    assert "You are invited as organiser." in page
    assert 'value="ada@example.org"' in page
    secret = link.rpartition("/")[2]
    refused = guest.submit("/sign-up", link, email="eve@example.org", password=PASSWORD, invitation=secret)
    assert refused.status_code == 403
    guest.sign_up("ada@example.org", invitation=secret)
    assert guest.me()["role"] == "organiser"
    assert Browser(app).get(link).status_code == 404
    # An organiser invites no admins, whatever the form is made to say.
    refused = guest.submit("/invitations", "/invitations", role="admin")
    assert refused.status_code == 403

    page = admin.submit("/invitations", "/invitations", role="organiser").text
    link = page.split("<code>http://testserver")[1].split("</code>")[0]
    user = Browser(app)
    user.sign_up("bob@example.org")
    accepted = user.submit("/invitations/accept", link, invitation=link.rpartition("/")[2])
    assert accepted.headers["location"] == "/account?done=accepted"
    assert user.me()["role"] == "organiser"


def test_where_accounts_are_by_invitation_nobody_else_signs_up(settings: object, platform: Platform) -> None:
    from dataclasses import replace

    platform.settings = replace(platform.settings, open_sign_up=False)
    browser = Browser(create_app(platform))
    assert "by invitation" in browser.get("/sign-up").text
    refused = browser.submit("/sign-up", "/sign-in", email="eve@example.org", password=PASSWORD)
    assert refused.status_code == 403
    secret = platform.accounts.invitations.make("participant")
    browser.submit(
        "/sign-up", f"/invitations/{secret}", email="ada@example.org", password=PASSWORD, invitation=secret
    )
    assert browser.me()["email"] == "ada@example.org"


@pytest.mark.parametrize(
    "path", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:x", "/a\nb"]
)
def test_signing_in_leads_nowhere_else(app: FastAPI, path: str) -> None:
    browser = Browser(app)
    browser.sign_up("ada@example.org")
    browser.submit("/sign-out", "/")
    assert browser.sign_in("ada@example.org", next=path).headers["location"] == "/"


def test_every_page_runs_nothing_inline_and_escapes_what_users_write(
    app: FastAPI, platform: Platform
) -> None:
    evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
    browser = Browser(app)
    browser.sign_up("ada@example.org", name=evil)
    platform.accounts.set_role(platform.accounts.find_email("ada@example.org").id, "admin")
    browser.submit("/account", "/account", name=evil, affiliation=evil)
    browser.headers["user-agent"] = evil
    browser.submit("/account/tokens", "/account", name=evil)
    secret = platform.accounts.invitations.make("annotator", note=evil)
    pages = [
        browser.get(path) for path in ("/", "/account", "/invitations", "/nowhere", f"/invitations/{secret}")
    ]
    browser.submit("/sign-out", "/")
    pages.append(browser.sign_in(evil, evil, next=evil))
    pages.append(browser.submit("/sign-up", "/sign-up", email=evil, name=evil, password="x"))
    pages += [browser.get("/sign-in"), browser.get("/sign-up"), browser.get(f"/invitations/{secret}")]
    for page in pages:
        assert page.headers["content-type"].startswith("text/html")
        check_page(page.text)
        assert "<script>alert" not in page.text
        assert "<img" not in page.text


def test_who_must_sign_in_first_comes_back_to_the_page_they_wanted(app: FastAPI) -> None:
    browser = Browser(app)
    asked = browser.get("/invitations?x=1&y=2", headers={"accept": "text/html"})
    assert asked.status_code == 401
    assert 'href="/sign-in?next=/invitations%3Fx%3D1%26y%3D2"' in asked.text
    page = browser.get("/sign-in?next=/invitations%3Fx%3D1%26y%3D2").text
    assert 'name="next" value="/invitations?x=1&amp;y=2"' in page


def test_a_session_is_over_when_its_time_is_up(app: FastAPI, clock: SetClock) -> None:
    browser = Browser(app)
    browser.sign_up("ada@example.org")
    clock.move(days=15)
    assert "error" in browser.me()
    assert browser.get("/account").headers["location"] == "/sign-in?next=/account"
    assert browser.sign_in("ada@example.org").status_code == 303


def test_what_the_api_is_given_in_another_form_is_one_sentence(app: FastAPI, platform: Platform) -> None:
    user = platform.accounts.add("ada@example.org", "participant")
    program = Browser(app)
    program.headers["authorization"] = f"Bearer {platform.accounts.add_token(user.id)}"
    for body in (
        {"days": -1},
        {"days": "soon"},
        {"name": "x" * 101},
        {"name": "\x00"},
        [],
    ):
        answer = program.post("/api/v1/me/tokens", json=body)
        assert answer.status_code == 422, body
        assert list(answer.json()) == ["error"]
        assert answer.json()["error"].endswith(".")
    for broken in (b"{", b"\xff\xfe", b'{"name": "\\ud800"}'):
        answer = program.post(
            "/api/v1/me/tokens", content=broken, headers={"content-type": "application/json"}
        )
        assert answer.status_code in {400, 422}
        assert list(answer.json()) == ["error"]
    for header in ("Bearer", "Basic YTpi", "Bearer \x01", ""):
        assert program.get("/api/v1/me", headers={"authorization": header}).status_code == 401
