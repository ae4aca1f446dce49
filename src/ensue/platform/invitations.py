"""Invitations: links that may be used once, by one who has no account to make one, by others for their role."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Connection, Row, delete, insert, select, update

from ensue.platform.clock import Clock
from ensue.platform.database.opening import Database
from ensue.platform.database.schema import ROLES, invitations, users
from ensue.platform.hashing import hash_secret
from ensue.platform.refusals import Forbidden, Invalid, NotFound, email_address, line

if TYPE_CHECKING:
    from ensue.platform.accounts import User

INVITATION_DAYS = 14


class Invitation(NamedTuple):
    """An invitation that may still be used."""

    id: str
    role: str
    email: str | None


class Invitations:
    """The invitations of one database; `record` writes down who did what."""

    def __init__(self, database: Database, clock: Clock, record: Callable[..., None]) -> None:
        self.database, self.clock, self._record = database, clock, record

    def make(
        self,
        role: str,
        *,
        by: User | None = None,
        email: str = "",
        note: str = "",
        days: float = INVITATION_DAYS,
    ) -> str:
        """Make an invitation and return its secret; an organiser invites participants and annotators alone."""
        role, now = known_role(role), self.clock.now()
        if by is not None and not by.may("admin") and (not by.may("organiser") or role not in ROLES[:2]):
            raise Forbidden(f"Your role does not let you invite somebody as {role}.")
        secret = secrets.token_urlsafe(24)
        with self.database.writing() as connection:
            connection.execute(
                insert(invitations).values(
                    hash=hash_secret(secret),
                    role=role,
                    email=email_address(email) if email.strip() else None,
                    note=line(note, "The note", 200),
                    created_by=by.id if by else None,
                    created_at=now,
                    expires_at=now + timedelta(days=days),
                )
            )
            self._record(connection, "invited", user=by.id if by else None, role=role)
        return secret

    def find(self, secret: str) -> Invitation:
        """Return an invitation that may still be used."""
        with self.database.reading() as connection:
            return self.unused(connection, secret)

    def open_of(self, user: User) -> list[Row[Any]]:
        """Return the invitations that may still be used: a user's own, all to an admin; without the links."""
        told = ("id", "role", "email", "note", "created_at", "expires_at")
        query = select(*(invitations.c[name] for name in told)).where(*self._may_be_used())
        if not user.may("admin"):
            query = query.where(invitations.c.created_by == user.id)
        with self.database.reading() as connection:
            return list(connection.execute(query.order_by(invitations.c.created_at.desc(), invitations.c.id)))

    def revoke(self, user: User, invitation_id: str) -> None:
        """End an invitation that nobody has used."""
        mine = [invitations.c.id == invitation_id, *self._may_be_used()]
        if not user.may("admin"):
            mine.append(invitations.c.created_by == user.id)
        with self.database.writing() as connection:
            if not connection.execute(delete(invitations).where(*mine)).rowcount:
                raise NotFound("There is no such invitation; it may have been used.")
            self._record(connection, "invitation revoked", user=user.id)

    def _may_be_used(self) -> tuple[Any, Any]:
        return (invitations.c.used_at.is_(None), invitations.c.expires_at > self.clock.now())

    def accept(self, user: User, secret: str) -> None:
        """Give a user the role of an invitation, where it is above theirs, and use it up."""
        with self.database.writing() as connection:
            invited = self.unused(connection, secret, locked=True)
            if invited.email not in (None, user.email):
                raise Forbidden("This invitation is for another e-mail address.")
            self.use(connection, invited, user)
            if not user.may(invited.role):
                connection.execute(update(users).where(users.c.id == user.id).values(role=invited.role))
                self._record(connection, "role changed", user=user.id, subject=user.id, role=invited.role)

    def unused(self, connection: Connection, secret: str, *, locked: bool = False) -> Invitation:
        """Return an invitation that may still be used; `locked`, by nobody else before the transaction ends."""
        columns = (invitations.c.id, invitations.c.role, invitations.c.email)
        query = select(*columns).where(invitations.c.hash == hash_secret(secret), *self._may_be_used())
        row = connection.execute(query.with_for_update() if locked else query).first()
        if row is None:
            raise NotFound("This invitation is used, has expired or never was; ask for another.")
        return Invitation(*row)

    def use(self, connection: Connection, invited: Invitation, user: User) -> None:
        """Use an invitation up."""
        used = {"used_by": user.id, "used_at": self.clock.now()}
        connection.execute(update(invitations).where(invitations.c.id == invited.id).values(**used))


def known_role(role: str) -> str:
    """Return a role that there is."""
    if role not in ROLES:
        raise Invalid(f"There is no role {role!r}; there is {', '.join(ROLES)}.")
    return role
