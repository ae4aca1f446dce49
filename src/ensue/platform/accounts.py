"""Accounts: users and their roles, passwords, sessions, API tokens, and how an account ends.

A cookie, a token and an invitation are random secrets shown once; the database has their SHA-256. A password is
hashed with argon2 outside any transaction, so that the one writer never waits for it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, delete, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from ensue.platform.clock import Clock
from ensue.platform.database.opening import Database
from ensue.platform.database.schema import ROLES, events, invitations, new_id, sessions, tokens, users
from ensue.platform.hashing import hash_password, hash_secret, password_matches
from ensue.platform.invitations import Invitations, known_role
from ensue.platform.refusals import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    Unauthenticated,
    email_address,
    line,
)

SESSION_DAYS = 14  # since it was last used
SESSION_DAYS_AT_MOST = 90
TOKENS_AT_MOST = 50
_SEEN_EVERY = timedelta(hours=1)  # how often a session or token is marked as used, to spare the writer
TOKEN_PREFIX = "ensue_"


class User(NamedTuple):
    """An account that exists, without its secrets."""

    id: str
    email: str
    name: str
    affiliation: str
    role: str
    created_at: datetime

    def may(self, role: str) -> bool:
        """Return whether this user has a role or one above it."""
        return ROLES.index(self.role) >= ROLES.index(role)


class Accounts:
    """What can be done with accounts in one database.

    What else belongs to an account (submissions, answers) is removed or made nameless by the functions in
    `on_deletion`, called with the connection and the user's id in the transaction that deletes the account.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self.database, self.clock = database, clock
        self.invitations = Invitations(database, clock, self.record)
        self.on_deletion: list[Callable[[Connection, str], None]] = []

    # Users

    def add(self, email: str, role: str, *, password: str | None = None, name: str = "") -> User:
        """Add a user; without a password, one who can only use API tokens until an admin sets one."""
        address, name, role = email_address(email), line(name, "The name", 200), known_role(role)
        hashed = hash_password(password) if password is not None else None
        with self.database.writing() as connection:
            return self._insert(connection, address, role, hashed, name)

    def sign_up(self, email: str, password: str, *, name: str = "", invitation: str = "") -> User:
        """Add a participant, or whatever an invitation says; the invitation is used up with it."""
        address, name = email_address(email), line(name, "The name", 200)
        hashed = hash_password(password)
        with self.database.writing() as connection:
            role = "participant"
            invited = self.invitations.unused(connection, invitation, locked=True) if invitation else None
            if invited:
                if invited.email not in (None, address):
                    raise Forbidden("This invitation is for another e-mail address.")
                role = invited.role
            user = self._insert(connection, address, role, hashed, name)
            if invited:
                self.invitations.use(connection, invited, user)
            return user

    def _insert(self, connection: Connection, email: str, role: str, hashed: str | None, name: str) -> User:
        user = User(new_id(), email, name, "", role, self.clock.now())
        try:
            with connection.begin_nested():
                connection.execute(insert(users).values(**user._asdict(), password_hash=hashed))
        except IntegrityError:
            raise Conflict(f"There is an account with the address {email} already; sign in.") from None
        self.record(connection, "user added", user=user.id, subject=user.id, role=role)
        return user

    def find(self, user_id: str) -> User:
        """Return a user by id."""
        with self.database.reading() as connection:
            return self._found(connection, users.c.id == user_id)

    def find_email(self, email: str) -> User:
        """Return a user by e-mail address."""
        with self.database.reading() as connection:
            return self._found(connection, users.c.email == email_address(email), named=email)

    def _found(self, connection: Connection, where: Any, *, locked: bool = False, named: str = "") -> User:
        query = select(*_USER).where(where, users.c.deleted_at.is_(None))
        row = connection.execute(query.with_for_update() if locked else query).first()
        if row is None:
            raise NotFound(f"There is no user {named[:254]!r}." if named else "There is no such user.")
        return User(*row)

    def change(self, user_id: str, *, name: str, affiliation: str) -> None:
        """Change what a user says of themselves."""
        values = {
            "name": line(name, "The name", 200),
            "affiliation": line(affiliation, "The affiliation", 200),
        }
        with self.database.writing() as connection:
            connection.execute(update(users).where(users.c.id == user_id).values(**values))

    def set_role(self, user_id: str, role: str) -> None:
        """Give a user another role."""
        role = known_role(role)
        with self.database.writing() as connection:
            self._found(connection, users.c.id == user_id, locked=True)
            connection.execute(update(users).where(users.c.id == user_id).values(role=role))
            self.record(connection, "role changed", subject=user_id, role=role)

    def set_password(self, user_id: str, password: str, *, keep: str = "") -> None:
        """Set a password and end the user's sessions, but for that of the cookie `keep`."""
        hashed = hash_password(password)
        with self.database.writing() as connection:
            connection.execute(update(users).where(users.c.id == user_id).values(password_hash=hashed))
            connection.execute(
                delete(sessions).where(
                    sessions.c.user_id == user_id, sessions.c.cookie_hash != hash_secret(keep)
                )
            )
            self.record(connection, "password set", user=user_id, subject=user_id)

    def check_password(self, user_id: str, password: str) -> None:
        """Refuse unless this is the user's password."""
        with self.database.reading() as connection:
            query = select(users.c.password_hash).where(users.c.id == user_id)
            hashed = connection.execute(query).scalar()
        if not password_matches(hashed, password):
            raise Forbidden("The password is not right.")

    def delete(self, user_id: str) -> None:
        """End an account: its sessions, tokens and personal facts go; what was published stays, without its owner."""
        with self.database.writing() as connection:
            self._found(connection, users.c.id == user_id, locked=True)
            for part in self.on_deletion:
                part(connection, user_id)
            connection.execute(delete(sessions).where(sessions.c.user_id == user_id))
            connection.execute(delete(tokens).where(tokens.c.user_id == user_id))
            unused = (invitations.c.created_by == user_id) & invitations.c.used_at.is_(None)
            connection.execute(delete(invitations).where(unused))
            gone = {"email": None, "name": "", "affiliation": "", "password_hash": None}
            connection.execute(
                update(users).where(users.c.id == user_id).values(**gone, deleted_at=self.clock.now())
            )
            self.record(connection, "account deleted", subject=user_id)

    # Sessions

    def sign_in(self, email: str, password: str, *, agent: str = "") -> str:
        """Check a password, begin a session and return its cookie; an unknown address takes as long to refuse."""
        try:
            address = email_address(email)
        except Invalid:
            address = ""
        with self.database.reading() as connection:
            query = select(users.c.id, users.c.password_hash).where(users.c.email == address)
            row = connection.execute(query).first()
        if not password_matches(row.password_hash if row else None, password) or row is None:
            raise Unauthenticated("The e-mail address or the password is not right.")
        return self.begin_session(row.id, agent=agent)

    def begin_session(self, user_id: str, *, agent: str = "") -> str:
        """Begin a session and return its cookie."""
        cookie, now = secrets.token_urlsafe(32), self.clock.now()
        with self.database.writing() as connection:
            self._found(connection, users.c.id == user_id, locked=True)
            connection.execute(delete(sessions).where(_ended(now)))
            connection.execute(
                insert(sessions).values(
                    cookie_hash=hash_secret(cookie),
                    user_id=user_id,
                    created_at=now,
                    seen_at=now,
                    expires_at=now + timedelta(days=SESSION_DAYS_AT_MOST),
                    agent="".join(character for character in agent if character.isprintable())[:200],
                )
            )
            self.record(connection, "signed in", user=user_id, subject=user_id)
        return cookie

    def of_session(self, cookie: str) -> User | None:
        """Return whose session a cookie is, or None where it is nobody's."""
        now = self.clock.now()
        with self.database.reading() as connection:
            query = (
                select(*_USER, sessions.c.seen_at)
                .join(sessions, sessions.c.user_id == users.c.id)
                .where(
                    sessions.c.cookie_hash == hash_secret(cookie), ~_ended(now), users.c.deleted_at.is_(None)
                )
            )
            row = connection.execute(query).first()
        if row is None:
            return None
        if now - row.seen_at >= _SEEN_EVERY:
            with self.database.writing() as connection:
                mark = (
                    update(sessions).where(sessions.c.cookie_hash == hash_secret(cookie)).values(seen_at=now)
                )
                connection.execute(mark)
        return User(*row[:-1])

    def sign_out(self, cookie: str) -> None:
        """End a session."""
        with self.database.writing() as connection:
            connection.execute(delete(sessions).where(sessions.c.cookie_hash == hash_secret(cookie)))

    def sign_out_everywhere(self, user_id: str, *, revoke_tokens: bool = False) -> None:
        """End all sessions of a user, and their API tokens too where asked."""
        with self.database.writing() as connection:
            connection.execute(delete(sessions).where(sessions.c.user_id == user_id))
            if revoke_tokens:
                connection.execute(delete(tokens).where(tokens.c.user_id == user_id))
            self.record(connection, "signed out everywhere", user=user_id, subject=user_id)

    def sessions(self, user_id: str) -> list[Row[Any]]:
        """Return a user's sessions, the one used last first."""
        columns = (sessions.c.created_at, sessions.c.seen_at, sessions.c.agent)
        query = select(*columns).where(sessions.c.user_id == user_id, ~_ended(self.clock.now()))
        with self.database.reading() as connection:
            return list(connection.execute(query.order_by(sessions.c.seen_at.desc())))

    # API tokens

    def add_token(self, user_id: str, name: str = "", *, days: float | None = None) -> str:
        """Make an API token and return it; it cannot be read again."""
        name, now = line(name, "The token's name", 100), self.clock.now()
        token = TOKEN_PREFIX + secrets.token_urlsafe(32)
        with self.database.writing() as connection:
            self._found(connection, users.c.id == user_id, locked=True)
            held = connection.execute(select(tokens.c.id).where(tokens.c.user_id == user_id)).all()
            if len(held) >= TOKENS_AT_MOST:
                raise Conflict(f"There are {TOKENS_AT_MOST} tokens already; revoke one.")
            connection.execute(
                insert(tokens).values(
                    user_id=user_id,
                    name=name,
                    hash=hash_secret(token),
                    start=token[:12],
                    created_at=now,
                    expires_at=now + timedelta(days=days) if days is not None else None,
                )
            )
            self.record(connection, "token added", user=user_id, subject=user_id)
        return token

    def of_token(self, token: str) -> User:
        """Return whose API token this is; refuse one that is nobody's, revoked or expired."""
        now = self.clock.now()
        valid = or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > now)
        with self.database.reading() as connection:
            query = (
                select(*_USER, tokens.c.used_at)
                .join(tokens, tokens.c.user_id == users.c.id)
                .where(tokens.c.hash == hash_secret(token), valid, users.c.deleted_at.is_(None))
            )
            row = connection.execute(query).first()
        if row is None:
            raise Unauthenticated("The API token is not valid; make a new one on your account's page.")
        if row.used_at is None or now - row.used_at >= _SEEN_EVERY:
            with self.database.writing() as connection:
                connection.execute(
                    update(tokens).where(tokens.c.hash == hash_secret(token)).values(used_at=now)
                )
        return User(*row[:-1])

    def tokens(self, user_id: str) -> list[Row[Any]]:
        """Return a user's API tokens, without what they are."""
        columns = (tokens.c.id, tokens.c.name, tokens.c.start)
        times = (tokens.c.created_at, tokens.c.expires_at, tokens.c.used_at)
        query = select(*columns, *times).where(tokens.c.user_id == user_id).order_by(tokens.c.created_at)
        with self.database.reading() as connection:
            return list(connection.execute(query))

    def revoke_token(self, user_id: str, token_id: str) -> None:
        """End one of a user's API tokens."""
        where = (tokens.c.id == token_id) & (tokens.c.user_id == user_id)
        with self.database.writing() as connection:
            if not connection.execute(delete(tokens).where(where)).rowcount:
                raise NotFound("There is no such token.")
            self.record(connection, "token revoked", user=user_id, subject=user_id)

    # What happened

    def record(
        self,
        connection: Connection,
        kind: str,
        *,
        user: str | None = None,
        subject: str | None = None,
        **details: Any,
    ) -> None:
        """Write down who did what; never a secret, a label or a personal fact."""
        row = {"at": self.clock.now(), "user_id": user, "kind": kind, "subject": subject, "details": details}
        connection.execute(insert(events).values(**row))


_USER = (
    users.c.id,
    users.c.email,
    users.c.name,
    users.c.affiliation,
    users.c.role,
    users.c.created_at,
)


def _ended(now: datetime) -> Any:
    """Return the condition under which a session is over."""
    return or_(sessions.c.expires_at <= now, sessions.c.seen_at <= now - timedelta(days=SESSION_DAYS))
