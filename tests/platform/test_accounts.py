"""Accounts on both databases: who can sign in, with what, for how long, and what is left of an account that ended."""

from __future__ import annotations

import threading
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, insert, select

from ensue.platform.accounts import SESSION_DAYS, SESSION_DAYS_AT_MOST, TOKENS_AT_MOST, Accounts
from ensue.platform.clock import SetClock
from ensue.platform.database.opening import Database
from ensue.platform.database.schema import (
    boards,
    events,
    jobs,
    metadata,
    sessions,
    submissions,
    tokens,
    uploads,
    users,
)
from ensue.platform.refusals import Conflict, Forbidden, Invalid, NotFound, Unauthenticated
from ensue.platform.service import Platform

PASSWORD = "correct horse battery"


@pytest.fixture
def accounts(database: Database, clock: SetClock) -> Accounts:
    return Accounts(database, clock)


def everything(database: Database) -> str:
    """All that the database holds, as text."""
    with database.reading() as connection:
        return repr([connection.execute(select(table)).all() for table in metadata.sorted_tables])


def test_sign_up_sign_in_and_who_a_cookie_belongs_to(accounts: Accounts) -> None:
    user = accounts.sign_up("Ada@Example.ORG ", PASSWORD, name="Ada")
    assert (user.email, user.role, user.name) == ("ada@example.org", "participant", "Ada")
    cookie = accounts.sign_in("ada@example.org", PASSWORD, agent="a browser")
    assert accounts.of_session(cookie) == user
    assert accounts.of_session(cookie[:-1]) is None
    assert accounts.of_session("") is None
    with pytest.raises(Unauthenticated):
        accounts.sign_in("ada@example.org", PASSWORD + "x")
    with pytest.raises(Unauthenticated):
        accounts.sign_in("nobody@example.org", PASSWORD)
    with pytest.raises(Unauthenticated):
        accounts.sign_in("not an address", PASSWORD)
    with pytest.raises(Conflict):
        accounts.sign_up("ADA@example.org", PASSWORD)


def test_no_secret_is_stored_as_it_is(accounts: Accounts, database: Database) -> None:
    user = accounts.sign_up("ada@example.org", PASSWORD)
    secrets = [
        PASSWORD,
        accounts.sign_in("ada@example.org", PASSWORD),
        accounts.add_token(user.id, "laptop"),
        accounts.invitations.make("annotator"),
    ]
    stored = everything(database)
    assert "$argon2id$" in stored
    for secret in secrets:
        assert secret not in stored


@pytest.mark.parametrize("password", ["short", "x" * 201, ""])
def test_passwords_too_short_or_too_long_are_refused(accounts: Accounts, password: str) -> None:
    with pytest.raises(Invalid):
        accounts.sign_up("ada@example.org", password)


def test_a_password_may_be_any_text(accounts: Accounts) -> None:
    for number, password in enumerate(["пароль пароль 密碼", "\x00" * 10, "\ud800" * 10, "0123456789"]):
        accounts.sign_up(f"user{number}@example.org", password)
        accounts.sign_in(f"user{number}@example.org", password)


def test_a_user_without_a_password_cannot_sign_in(accounts: Accounts) -> None:
    accounts.add("ada@example.org", "admin")
    for password in ("", "None", PASSWORD):
        with pytest.raises(Unauthenticated):
            accounts.sign_in("ada@example.org", password)


@pytest.mark.parametrize(
    "email", ["", "ada", "@", "a b@c", "a@b\x00", "a@b\n", "ada@" + "x" * 254, "a@b@c", "\u202ea@b"]
)
def test_addresses_of_another_form_are_refused(accounts: Accounts, email: str) -> None:
    if email == "a@b\n":  # blanks around it are taken off
        accounts.add(email, "participant")
        return
    with pytest.raises(Invalid):
        accounts.add(email, "participant")


def test_a_session_ends_when_unused_or_old(accounts: Accounts, clock: SetClock) -> None:
    accounts.sign_up("ada@example.org", PASSWORD)
    cookie = accounts.sign_in("ada@example.org", PASSWORD)
    for _ in range(SESSION_DAYS_AT_MOST // (SESSION_DAYS - 1)):
        clock.move(days=SESSION_DAYS - 1)
        assert accounts.of_session(cookie) is not None
    clock.move(days=SESSION_DAYS - 1)  # used all along, and too old
    assert accounts.of_session(cookie) is None

    cookie = accounts.sign_in("ada@example.org", PASSWORD)
    clock.move(days=SESSION_DAYS)
    assert accounts.of_session(cookie) is None
    # Those that are over are removed with the next sign-in.
    accounts.sign_in("ada@example.org", PASSWORD)
    with accounts.database.reading() as connection:
        assert connection.execute(select(func.count()).select_from(sessions)).scalar() == 1


def test_sign_out_ends_one_session_and_everywhere_all(accounts: Accounts) -> None:
    user = accounts.sign_up("ada@example.org", PASSWORD)
    other = accounts.sign_up("bob@example.org", PASSWORD)
    first, second = (accounts.begin_session(user.id) for _ in range(2))
    others = accounts.begin_session(other.id)
    token = accounts.add_token(user.id)
    accounts.sign_out(first)
    assert (accounts.of_session(first), accounts.of_session(second)) == (None, user)
    accounts.sign_out_everywhere(user.id)
    assert accounts.of_session(second) is None
    assert accounts.of_token(token) == user
    accounts.sign_out_everywhere(user.id, revoke_tokens=True)
    with pytest.raises(Unauthenticated):
        accounts.of_token(token)
    assert accounts.of_session(others) == other


def test_a_new_password_ends_all_other_sessions(accounts: Accounts) -> None:
    user = accounts.sign_up("ada@example.org", PASSWORD)
    here, there = (accounts.begin_session(user.id) for _ in range(2))
    accounts.set_password(user.id, "another password", keep=here)
    assert (accounts.of_session(here), accounts.of_session(there)) == (user, None)
    with pytest.raises(Unauthenticated):
        accounts.sign_in("ada@example.org", PASSWORD)
    accounts.check_password(user.id, "another password")
    with pytest.raises(Forbidden):
        accounts.check_password(user.id, PASSWORD)


def test_tokens_forged_expired_or_revoked_are_refused(accounts: Accounts, clock: SetClock) -> None:
    user = accounts.add("ada@example.org", "participant")
    lasting = accounts.add_token(user.id, "lasting")
    brief = accounts.add_token(user.id, "brief", days=1)
    assert accounts.of_token(lasting) == accounts.of_token(brief) == user
    forged = lasting[:-1] + ("A" if lasting[-1] != "A" else "B")
    for wrong in (forged, "", "ensue_", lasting.upper(), "\x00", "\ud800", "x" * 10_000):
        with pytest.raises(Unauthenticated):
            accounts.of_token(wrong)
    clock.move(days=1)
    with pytest.raises(Unauthenticated):
        accounts.of_token(brief)
    listed = {row.name: row for row in accounts.tokens(user.id)}
    assert lasting.startswith(listed["lasting"].start)
    assert listed["lasting"].used_at == clock.now() - timedelta(days=1)
    other = accounts.add("bob@example.org", "participant")
    with pytest.raises(NotFound):
        accounts.revoke_token(other.id, listed["lasting"].id)
    accounts.revoke_token(user.id, listed["lasting"].id)
    with pytest.raises(Unauthenticated):
        accounts.of_token(lasting)


def test_there_is_an_end_to_the_number_of_tokens(accounts: Accounts) -> None:
    user = accounts.add("ada@example.org", "participant")
    for _ in range(TOKENS_AT_MOST):
        accounts.add_token(user.id)
    with pytest.raises(Conflict):
        accounts.add_token(user.id)


def test_an_invitation_gives_its_role_once(accounts: Accounts) -> None:
    admin = accounts.add("root@example.org", "admin")
    secret = accounts.invitations.make("organiser", by=admin, email="ada@example.org")
    with pytest.raises(Forbidden):
        accounts.sign_up("eve@example.org", PASSWORD, invitation=secret)
    with pytest.raises(NotFound):
        accounts.find_email("eve@example.org")
    assert accounts.sign_up("ada@example.org", PASSWORD, invitation=secret).role == "organiser"
    with pytest.raises(NotFound):
        accounts.sign_up("bob@example.org", PASSWORD, invitation=secret)


def test_an_invitation_raises_a_role_and_never_lowers_it(accounts: Accounts) -> None:
    user = accounts.add("ada@example.org", "participant")
    accounts.invitations.accept(user, accounts.invitations.make("annotator"))
    user = accounts.find(user.id)
    assert user.role == "annotator"
    accounts.invitations.accept(user, accounts.invitations.make("participant"))
    assert accounts.find(user.id).role == "annotator"


def test_an_invitation_expires(accounts: Accounts, clock: SetClock) -> None:
    secret = accounts.invitations.make("annotator", days=2)
    assert accounts.invitations.find(secret).role == "annotator"
    clock.move(days=2)
    with pytest.raises(NotFound):
        accounts.invitations.find(secret)


def test_who_may_invite_whom(accounts: Accounts) -> None:
    allowed = {"admin": 4, "organiser": 2, "annotator": 0, "participant": 0}
    for role, count in allowed.items():
        user = accounts.add(f"{role}@example.org", role)
        for number, invited in enumerate(allowed_roles()):
            if number < count:
                accounts.invitations.make(invited, by=user)
            else:
                with pytest.raises(Forbidden):
                    accounts.invitations.make(invited, by=user)
    with pytest.raises(Invalid):
        accounts.invitations.make("emperor")


def allowed_roles() -> list[str]:
    return ["participant", "annotator", "organiser", "admin"]


def test_a_racing_invitation_is_used_once(accounts: Accounts) -> None:
    secret = accounts.invitations.make("organiser")
    won: list[str] = []

    def race(number: int) -> None:
        with suppress(NotFound):
            won.append(accounts.sign_up(f"user{number}@example.org", PASSWORD, invitation=secret).role)

    threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won == ["organiser"]
    with accounts.database.reading() as connection:
        assert connection.execute(select(func.count()).select_from(users)).scalar() == 1


def test_one_address_is_one_account_however_many_race_for_it(accounts: Accounts) -> None:
    made: list[Any] = []

    def race() -> None:
        with suppress(Conflict):
            made.append(accounts.sign_up("ada@example.org", PASSWORD))

    threads = [threading.Thread(target=race) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1


def test_a_deleted_account_leaves_what_it_published_and_nothing_else(platform: Platform) -> None:
    accounts, now = platform.accounts, platform.clock.now()
    user = accounts.sign_up("ada@example.org", PASSWORD, name="Ada Lovelace")
    accounts.change(user.id, name="Ada Lovelace", affiliation="Analytical Engines")
    cookie, token = (
        accounts.begin_session(user.id, agent="Ada's browser"),
        accounts.add_token(user.id, "Ada's"),
    )
    with platform.database.writing() as connection:
        connection.execute(
            insert(boards).values(
                id="b", name="superglue", title="B", definition={}, split="test", created_at=now
            )
        )
        entries: dict[str, dict[str, Any]] = {
            "kept": {"published_at": now, "team": "The Engines", "link": "https://example.org/engines"},
            "unnamed": {"published_at": now, "team": "Ada Lovelace"},  # as where no team is named
            "hidden": {
                "published_at": now,
                "is_anonymous": True,
                "team": "Analytical",
                "link": "x",
                "code": "x",
            },
            "gone": {"published_at": None},
        }
        for name, facts in entries.items():
            size = {"digest": "0" * 64, "size": 3, "created_at": now, "name": "x.zip"}
            connection.execute(insert(uploads).values(id=f"u-{name}", user_id=user.id, **size))
            job = platform.queue.add(connection, "grade", subject=name)
            connection.execute(
                insert(submissions).values(
                    id=name,
                    board_id="b",
                    user_id=user.id,
                    upload_id=f"u-{name}",
                    job_id=job,
                    system="BERT",
                    contact="ada@example.org",
                    created_at=now,
                    **facts,
                )
            )
    accounts.delete(user.id)
    assert accounts.of_session(cookie) is None
    with pytest.raises(Unauthenticated):
        accounts.of_token(token)
    with pytest.raises(Unauthenticated):
        accounts.sign_in("ada@example.org", PASSWORD)
    with pytest.raises(NotFound):
        accounts.find(user.id)
    with pytest.raises(NotFound):
        accounts.delete(user.id)
    stored = everything(platform.database)
    for personal in ("ada@example.org", "Lovelace", "Analytical", "$argon2id$", "browser"):
        assert personal not in stored
    with platform.database.reading() as connection:
        told = select(submissions.c.id, submissions.c.team, submissions.c.link, submissions.c.code)
        assert set(connection.execute(told).all()) == {
            ("kept", "The Engines", "https://example.org/engines", ""),
            ("unnamed", "", "", ""),
            ("hidden", "", "", ""),
        }
        assert "u-gone" not in connection.execute(select(uploads.c.id)).scalars().all()
        assert connection.execute(select(func.count()).select_from(tokens)).scalar() == 0
        states = dict(connection.execute(select(jobs.c.subject, jobs.c.state)).all())  # type: ignore[arg-type]
        kinds = connection.execute(select(events.c.kind)).scalars().all()
    assert states == {"kept": "queued", "unnamed": "queued", "hidden": "queued", "gone": "cancelled"}
    assert kinds[-1] == "account deleted"
    # The address is free again.
    assert accounts.sign_up("ada@example.org", PASSWORD).id != user.id
