"""The people of a project: how they come in, consent, are known again and leave.

Somebody is an account of this platform, or comes from outside by a link with the project's entry key, and mostly with
the id that another site gave them. Whoever comes from outside is known again by a cookie that is worth something in
this project alone, or by the same session of the other site. Everything but the bonuses calls them by a pseudonym.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from ensue.platform.accounts import User
from ensue.platform.annotation import following, phases
from ensue.platform.annotation.projects import Project, Projects, no_project
from ensue.platform.database.schema import (
    assignments,
    new_id,
    participant_sessions,
    participants,
    project_items,
    projects,
)
from ensue.platform.hashing import hash_secret
from ensue.platform.refusals import Conflict, Forbidden, Invalid, NotFound, line
from ensue.platform.service import Platform

_LONGEST = 200
# Without letters and digits that are taken for one another.
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
EXCLUDED = "You were taken off this project by whoever runs it; thank you for your time."


class Participant(NamedTuple):
    """Somebody at work on one project."""

    id: str
    project_id: str
    user_id: str | None
    external_id: str | None
    outside_hash: str | None
    pseudonym: str
    phase: str
    state: str
    reason: str | None

    def must_work(self) -> None:
        """Refuse somebody who was stopped, taken off or deleted."""
        if self.state in {"stopped", "excluded", "deleted"}:
            raise Forbidden(self.reason or EXCLUDED)


COLUMNS = tuple(participants.c[name] for name in Participant._fields)
# Asked with every request, so put together once.
_BY_ID = select(*COLUMNS).where(participants.c.id == bindparam("given"))
_BY_ID_LOCKED = _BY_ID.with_for_update(key_share=True)
_BY_COOKIE = (
    select(*COLUMNS)
    .join(participant_sessions, participant_sessions.c.participant_id == participants.c.id)
    .where(
        participant_sessions.c.cookie_hash == bindparam("cookie"),
        participants.c.project_id == bindparam("project"),
    )
)
_BY_COOKIES = (
    select(*COLUMNS)
    .join(participant_sessions, participant_sessions.c.participant_id == participants.c.id)
    .join(assignments, assignments.c.project_id == participants.c.project_id)
    .where(
        participant_sessions.c.cookie_hash.in_(bindparam("cookies", expanding=True)),
        assignments.c.id == bindparam("assignment"),
    )
)


class Entering(NamedTuple):
    """What somebody brings along: the link's key, and what another site says of them."""

    key: str = ""
    external_id: str = ""
    study_id: str = ""
    session_id: str = ""
    consent: bool = False


class Entered(NamedTuple):
    """Somebody who is in; `cookie` is new, and None where they are known by their account or an older one."""

    participant: Participant
    project: Project
    cookie: str | None


class People:
    """Everybody at work on a platform's projects; making it tells accounts what becomes of them."""

    def __init__(self, platform: Platform) -> None:
        self.platform, self.database = platform, platform.database
        self.projects = Projects(platform)

    # Known again

    def get(self, connection: Connection, participant_id: str, *, locked: bool = False) -> Participant:
        """Return somebody by id; `locked`, whatever else they do at once waits."""
        row = connection.execute(_BY_ID_LOCKED if locked else _BY_ID, {"given": participant_id}).first()
        if row is None:
            raise NotFound("There is no such participant.")
        return Participant(*row)

    def of_cookie(self, connection: Connection, project_id: str, cookie: str) -> Participant | None:
        """Return whose cookie this is in a project."""
        given = {"cookie": hash_secret(cookie), "project": project_id}
        row = connection.execute(_BY_COOKIE, given).first()
        return None if row is None else Participant(*row)

    def of_cookies(
        self, connection: Connection, assignment_id: str, cookies: Sequence[str]
    ) -> Participant | None:
        """Return whose cookie one of these is in the project of an assignment."""
        given = {"cookies": [hash_secret(one) for one in cookies], "assignment": assignment_id}
        row = connection.execute(_BY_COOKIES, given).first()
        return None if row is None else Participant(*row)

    def of_user(self, connection: Connection, project_id: str, user_id: str) -> Participant | None:
        """Return who an account is in a project."""
        return self._found(connection, project_id, participants.c.user_id == user_id)

    def of_pseudonym(self, connection: Connection, project_id: str, pseudonym: str) -> Participant:
        """Return somebody by pseudonym, locked."""
        found = self._found(connection, project_id, participants.c.pseudonym == pseudonym)
        if found is None or found.state == "deleted":
            raise NotFound(f"There is no participant {pseudonym[:60]!r}.")
        return self.get(connection, found.id, locked=True)

    def _found(self, connection: Connection, project_id: str, where: Any) -> Participant | None:
        row = connection.execute(
            select(*COLUMNS).where(participants.c.project_id == project_id, where)
        ).first()
        return None if row is None else Participant(*row)

    # Coming in

    def may_enter(self, project: Project, user: User | None, key: str) -> bool:
        """Return whether somebody has the link's key, or an account that needs none."""
        return (user is not None and user.may("annotator")) or self.has_key(project, key)

    def has_key(self, project: Project, key: str) -> bool:
        """Return whether a key is that of the project's link."""
        return hmac.compare_digest(
            key.encode("utf-8", "surrogatepass"), project.entry_key.encode("utf-8", "surrogatepass")
        )

    def enter(self, name: str, given: Entering, user: User | None, cookie: str | None) -> Entered:
        """Let somebody in, or in again."""
        external = line(given.external_id, "The worker's id", _LONGEST) or None
        study = line(given.study_id, "The study's id", _LONGEST) or None
        session = hash_secret(given.session_id[:2000]) if given.session_id else None
        with self.database.writing() as connection:
            # Locked, so that two requests of one person make one participant.
            project = self.projects.find(connection, name, locked=True)
            if not self.may_enter(project, user, given.key):
                raise no_project(name)
            if external is not None and not self.has_key(project, given.key):
                # An account that needs no key would be as many people as it makes up ids.
                raise Forbidden(
                    "A worker's id is taken with the key of the project's link alone: use the whole link that you"
                    " were given, or take part by your account, without an id."
                )
            if project.state == "draft":
                raise Forbidden("This project is not open yet.")
            known = self.of_cookie(connection, project.id, cookie) if cookie else None
            before = self._before(connection, project, external, user, known, session)
            if before is not None:
                if before.user_id is not None or (known is not None and known.id == before.id):
                    return Entered(before, project, None)
                return Entered(before, project, self._new_cookie(connection, before))
            if project.state != "open":
                raise Forbidden(f"This project is {project.state}; nobody can begin now.")
            if not given.consent:
                raise Invalid("Agree to take part first.")
            made = self._insert(
                connection,
                project,
                user_id=user.id if user is not None and external is None else None,
                external_id=external,
                study_id=study,
                outside_hash=session,
            )
            new = None if made.user_id is not None else self._new_cookie(connection, made)
            return Entered(made, project, new)

    def _before(
        self,
        connection: Connection,
        project: Project,
        external: str | None,
        user: User | None,
        known: Participant | None,
        session: str | None,
    ) -> Participant | None:
        """Return who somebody is already; refuse a worker's id that another seems to have made up."""
        if external is None:
            if user is not None:
                return self.of_user(connection, project.id, user.id) or known
            return known
        found = self._found(connection, project.id, participants.c.external_id == external)
        if found is None or (known is not None and known.id == found.id):
            return found
        if found.outside_hash is None or session is None or found.outside_hash != session:
            raise Forbidden(
                "Somebody takes part with this worker's id already; go on in the browser where you began,"
                " with the link you were given there."
            )
        return found

    def _insert(self, connection: Connection, project: Project, **values: Any) -> Participant:
        pseudonym = "p-" + "".join(secrets.choice(_LETTERS) for _ in range(8))
        row = {"id": new_id(), "project_id": project.id, "pseudonym": pseudonym, **values}
        row |= {
            "phase": phases.first(connection, project.id),
            "state": "active",
            "consented_at": self.platform.clock.now(),
        }
        connection.execute(insert(participants).values(**row))
        return self.get(connection, row["id"])

    def _new_cookie(self, connection: Connection, participant: Participant) -> str:
        cookie = secrets.token_urlsafe(32)
        row = {"cookie_hash": hash_secret(cookie), "participant_id": participant.id}
        connection.execute(insert(participant_sessions).values(**row, created_at=self.platform.clock.now()))
        return cookie

    # Leaving

    def exclude(self, name: str, pseudonym: str, *, by: str | None = None) -> int:
        """Take somebody off a project; their work is void and done again. Return how many answers that were."""
        with self.database.writing() as connection:
            project = self.projects.find(connection, name, locked=True)
            found = self.of_pseudonym(connection, project.id, pseudonym)
            if found.state == "excluded":
                raise Conflict(f"{pseudonym} is excluded already.")
            count = phases.stop(connection, found.id, "excluded", EXCLUDED)
            following.revise_after(connection, project, found.id)
            self.platform.accounts.record(
                connection, "participant excluded", user=by, subject=project.id, pseudonym=pseudonym
            )
            return count

    def forget(self, name: str, pseudonym: str, *, by: str | None = None) -> None:
        """Delete all that somebody said and that is known of them, and items that show what they wrote."""
        with self.database.writing() as connection:
            project = self.projects.find(connection, name, locked=True)
            found = self.of_pseudonym(connection, project.id, pseudonym)
            mine = project_items.c.project_id == project.id
            shown = select(project_items.c.id, project_items.c.secret).where(mine)
            theirs = [row.id for row in connection.execute(shown) if _shows(row.secret, pseudonym)]
            phases.stop(connection, found.id, "excluded", EXCLUDED)
            following.revise_after(connection, project, found.id)
            for item_id in theirs:
                connection.execute(delete(project_items).where(project_items.c.id == item_id))
            connection.execute(delete(assignments).where(assignments.c.participant_id == found.id))
            connection.execute(
                delete(participant_sessions).where(participant_sessions.c.participant_id == found.id)
            )
            gone = {"user_id": None, "external_id": None, "study_id": None, "outside_hash": None}
            state = {"state": "deleted", "reason": "Their data were deleted on request.", "finished_at": None}
            connection.execute(
                update(participants).where(participants.c.id == found.id).values(**gone, **state)
            )
            self.platform.accounts.record(connection, "participant forgotten", user=by, subject=project.id)
        self.database.drop_deleted()

    def unlink(self, connection: Connection, user_id: str) -> None:
        """Take an account off what it did when it is deleted; the answers stay, and nobody can say whose they are."""
        connection.execute(update(participants).where(participants.c.user_id == user_id).values(user_id=None))
        connection.execute(update(projects).where(projects.c.owner_id == user_id).values(owner_id=None))


def _shows(secret: Mapping[str, Any], pseudonym: str) -> bool:
    """Return whether an item shows what somebody wrote, names them, or is for nobody else."""
    if pseudonym in secret.get("authors", ()) or list(secret.get("among", ())) == [pseudonym]:
        return True
    return pseudonym in json.dumps(secret["key"])
