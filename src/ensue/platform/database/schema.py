"""The tables: one definition for SQLite and PostgreSQL, in SQLAlchemy Core; all times are UTC.

A row that a page or an address names has a random `id` (`new_id`), never a serial number. Secrets (passwords,
cookies, API tokens, invitations) are stored hashed. A change here needs a migration (`migrations/versions`) and its
number as `REVISION` in opening.py; a test compares them.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    false,
    text,
    true,
)

ROLES = ("participant", "annotator", "organiser", "admin")
STATES = ("queued", "running", "graded", "failed", "expired", "cancelled")

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class Time(TypeDecorator[datetime]):
    """A moment, in UTC. SQLite keeps no zone, so it is taken off on the way in and put back on the way out."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("A time without a zone was about to be stored.")
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


# SQLite numbers rows by itself only where the key is its own INTEGER.
Number = BigInteger().with_variant(Integer(), "sqlite")
_ID = String(32)
_HASH = String(64)


def new_id() -> str:
    """Return a random id that fits an address and cannot be guessed: 128 bits, 22 characters."""
    return secrets.token_urlsafe(16)


def _one_of(column: str, values: tuple[str, ...]) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(text(f"{column} IN ({listed})"), name=column)


def _reference(name: str, to: str, *, nullable: bool = False, ondelete: str = "RESTRICT") -> Column[Any]:
    return Column(name, _ID, ForeignKey(to, ondelete=ondelete), nullable=nullable)


# A deleted account keeps its row, without e-mail, name or password, while something published points to it.
users = Table(
    "users",
    metadata,
    Column("id", _ID, primary_key=True, default=new_id),
    Column("email", String(254), unique=True),  # in lower case
    Column("name", String(200), nullable=False, server_default=""),
    Column("affiliation", String(200), nullable=False, server_default=""),
    Column("password_hash", String(200)),
    Column("role", String(16), nullable=False),
    Column("created_at", Time, nullable=False),
    Column("deleted_at", Time),
    _one_of("role", ROLES),
)

sessions = Table(
    "sessions",
    metadata,
    Column("cookie_hash", _HASH, primary_key=True),
    _reference("user_id", "users.id", ondelete="CASCADE"),
    Column("created_at", Time, nullable=False),
    Column("seen_at", Time, nullable=False),
    Column("expires_at", Time, nullable=False),
    Column("agent", String(200), nullable=False, server_default=""),
    Index(None, "user_id"),
    Index(None, "expires_at"),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", _ID, primary_key=True, default=new_id),
    _reference("user_id", "users.id", ondelete="CASCADE"),
    Column("name", String(100), nullable=False, server_default=""),
    Column("hash", _HASH, nullable=False, unique=True),
    Column("start", String(12), nullable=False),  # the first characters, by which its owner tells it apart
    Column("created_at", Time, nullable=False),
    Column("expires_at", Time),
    Column("used_at", Time),
    Index(None, "user_id"),
)

invitations = Table(
    "invitations",
    metadata,
    Column("id", _ID, primary_key=True, default=new_id),
    Column("hash", _HASH, nullable=False, unique=True),
    Column("role", String(16), nullable=False),
    Column("email", String(254)),  # where given, only this address may use it
    Column("note", String(200), nullable=False, server_default=""),
    _reference("created_by", "users.id", nullable=True, ondelete="SET NULL"),
    Column("created_at", Time, nullable=False),
    Column("expires_at", Time, nullable=False),
    _reference("used_by", "users.id", nullable=True, ondelete="SET NULL"),
    Column("used_at", Time),
    _one_of("role", ROLES),
)

# `number` is the order of the queue. A lease is a token that only its holder knows; a result without it is ignored.
jobs = Table(
    "jobs",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    Column("id", _ID, nullable=False, unique=True, default=new_id),
    Column("kind", String(40), nullable=False),
    Column("subject", _ID),  # what it is about: a submission, an export
    Column("arguments", JSON, nullable=False),
    Column("state", String(16), nullable=False, server_default="queued"),
    Column("reason", Text),  # why it failed, expired or was cancelled; a sentence for its owner
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("worker", _ID),  # the home whose server runs it
    Column("lease", _ID),
    Column("lease_until", Time),
    Column("created_at", Time, nullable=False),
    Column("expires_at", Time),  # not begun by then, it expires
    Column("started_at", Time),
    Column("finished_at", Time),
    _one_of("state", STATES),
    CheckConstraint(text("(state = 'running') = (lease IS NOT NULL)"), name="leased"),
    Index(None, "state", "number"),
    Index(None, "subject"),
    sqlite_autoincrement=True,
)

# Files under `uploads/` in the home, named by their digest; one file may have several owners.
uploads = Table(
    "uploads",
    metadata,
    Column("id", _ID, primary_key=True, default=new_id),
    _reference("user_id", "users.id"),
    Column("name", String(255), nullable=False),  # as the browser gave it; never a path
    Column("digest", _HASH, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("created_at", Time, nullable=False),
    Index(None, "digest"),
    Index(None, "user_id"),
)

# `definition` is what the board was made of: a suite's name, or the contents of a board.toml.
boards = Table(
    "boards",
    metadata,
    Column("id", _ID, primary_key=True, default=new_id),
    Column("name", String(60), nullable=False, unique=True),  # in addresses
    Column("title", String(200), nullable=False),
    Column("about", Text, nullable=False, server_default=""),
    Column("suite", String(60)),
    Column("definition", JSON, nullable=False),
    Column("split", String(20), nullable=False),
    Column("rounding", Integer, nullable=False, server_default="3"),  # digits after the point of a fraction
    Column("quota_day", Integer, nullable=False, server_default="2"),
    Column("quota_month", Integer, nullable=False, server_default="6"),
    Column("is_open", Boolean, nullable=False, server_default=true()),
    Column("is_listed", Boolean, nullable=False, server_default=true()),
    Column("labels_version", Integer, nullable=False, server_default="0"),
    Column("labels_digest", _HASH),
    Column("labels_at", Time),
    _reference("created_by", "users.id", nullable=True, ondelete="SET NULL"),
    Column("created_at", Time, nullable=False),
)

# The columns of a board, in the order they are shown: the metric rows of a task that have these settings. The main
# one has the score that systems are ranked by.
board_tasks = Table(
    "board_tasks",
    metadata,
    Column("board_id", _ID, ForeignKey("boards.id", ondelete="CASCADE"), primary_key=True),
    Column("place", Integer, primary_key=True),
    Column("task", String(60), nullable=False),
    Column("metric", String(40), nullable=False),
    Column("title", String(100), nullable=False, server_default=""),
    Column("covers", Text, nullable=False, server_default=""),  # what of it is partial or surrogate data
    Column("settings", JSON, nullable=False, server_default="{}"),
    Column("is_main", Boolean, nullable=False, server_default=false()),
)

# Baselines are rows too, of kind published, measured or human, and have no user or upload.
KINDS = ("submission", "published", "measured", "human")
submissions = Table(
    "submissions",
    metadata,
    Column("id", _ID, primary_key=True, default=new_id),
    _reference("board_id", "boards.id"),
    _reference("user_id", "users.id", nullable=True),
    _reference("upload_id", "uploads.id", nullable=True),
    Column("kind", String(16), nullable=False, server_default="submission"),
    Column("system", String(200), nullable=False),
    Column("team", String(200), nullable=False, server_default=""),
    Column("description", Text, nullable=False, server_default=""),
    Column("parameters", String(200), nullable=False, server_default=""),
    Column("sharing", String(200), nullable=False, server_default=""),
    Column("data", Text, nullable=False, server_default=""),
    Column("link", String(1000), nullable=False, server_default=""),
    Column("code", String(1000), nullable=False, server_default=""),
    Column("contact", String(254), nullable=False, server_default=""),
    Column("state", String(16), nullable=False, server_default="queued"),
    Column("reason", Text),
    _reference("job_id", "jobs.id", nullable=True, ondelete="SET NULL"),  # the latest
    Column("idempotency_key", String(200)),
    Column("body_digest", _HASH),
    Column("is_anonymous", Boolean, nullable=False, server_default=false()),
    Column("created_at", Time, nullable=False),
    Column("published_at", Time),
    _one_of("state", STATES),
    _one_of("kind", KINDS),
    UniqueConstraint("user_id", "board_id", "idempotency_key"),
    Index(None, "board_id", "user_id", "created_at"),
    Index(None, "board_id", "published_at"),
)

# Every grading of a submission; the newest stands, those before are its history.
gradings = Table(
    "gradings",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    _reference("submission_id", "submissions.id", ondelete="CASCADE"),
    Column("job_id", _ID),
    Column("labels_version", Integer, nullable=False),
    Column("score", Float),  # None where a task is missing
    Column("metrics", JSON, nullable=False),  # rows as in results.json
    Column("diagnostics", JSON, nullable=False),
    Column("notes", JSON, nullable=False),
    Column("version", String(40), nullable=False),  # of ensue
    Column("graded_at", Time, nullable=False),
    Column("not_scored", JSON, nullable=False, server_default="{}"),  # why, by task or file
    Column("covers", Text, nullable=False, server_default=""),  # what the score is over
    UniqueConstraint("job_id"),
    Index(None, "submission_id", "number"),
    sqlite_autoincrement=True,
)

# Who did what, without secrets or labels. A number is never given twice, so a reader can go on from the last it saw.
events = Table(
    "events",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    Column("at", Time, nullable=False),
    _reference("user_id", "users.id", nullable=True, ondelete="SET NULL"),
    Column("kind", String(60), nullable=False),
    Column("subject", _ID),
    Column("details", JSON, nullable=False),
    Index(None, "subject"),
    Index(None, "at"),
    sqlite_autoincrement=True,
)


# Annotation: projects, their items, the people who answer, and what they said.

PROJECT_STATES = ("draft", "open", "paused", "closed")
PHASES = ("training", "qualification", "work")
PARTICIPANT_STATES = ("active", "stopped", "finished", "excluded", "deleted")
ASSIGNMENT_STATES = ("leased", "answered", "released", "expired", "void")

# The entry key is in a link that hundreds are sent, so it is kept as it is.
projects = Table(
    "projects",
    metadata,
    Column("id", _ID, primary_key=True, default=new_id),
    Column("name", String(60), nullable=False, unique=True),  # in addresses
    Column("kind", String(60), nullable=False),
    Column("title", String(200), nullable=False),
    Column("instructions", Text, nullable=False, server_default=""),  # Markdown
    Column("settings", JSON, nullable=False),
    Column("source", Text, nullable=False, server_default=""),
    Column("seed", BigInteger, nullable=False, server_default="0"),
    Column("state", String(16), nullable=False, server_default="draft"),
    Column("entry_key", String(64), nullable=False),
    _reference("owner_id", "users.id", nullable=True, ondelete="SET NULL"),
    Column("created_at", Time, nullable=False),
    _one_of("state", PROJECT_STATES),
)

# Somebody at work on one project: an account, or somebody from outside by the id another site gave them.
participants = Table(
    "participants",
    metadata,
    Column("id", _ID, primary_key=True, default=new_id),
    _reference("project_id", "projects.id", ondelete="CASCADE"),
    _reference("user_id", "users.id", nullable=True, ondelete="SET NULL"),
    Column("external_id", String(200)),
    Column("study_id", String(200)),
    Column("outside_hash", _HASH),  # of the other site's session, by which the same person is known again
    Column("pseudonym", String(20), nullable=False),
    Column("phase", String(16), nullable=False, server_default="training"),
    Column("state", String(16), nullable=False, server_default="active"),
    Column("reason", Text),
    Column("consented_at", Time, nullable=False),
    Column("finished_at", Time),
    _one_of("phase", PHASES),
    _one_of("state", PARTICIPANT_STATES),
    UniqueConstraint("project_id", "user_id"),
    UniqueConstraint("project_id", "external_id"),
    UniqueConstraint("project_id", "pseudonym"),
)

participant_sessions = Table(
    "participant_sessions",
    metadata,
    Column("cookie_hash", _HASH, primary_key=True),
    _reference("participant_id", "participants.id", ondelete="CASCADE"),
    Column("created_at", Time, nullable=False),
    Index(None, "participant_id"),
)

# `secret` holds what the annotator must not see: gold values, the item's identity. An item without `wanted` is given
# to everybody (training, qualification, controls). Who wrote what an item shows is its author and never given it.
project_items = Table(
    "project_items",
    metadata,
    Column("id", _ID, primary_key=True, default=new_id),
    _reference("project_id", "projects.id", ondelete="CASCADE"),
    Column("position", Integer, nullable=False),
    Column("phase", String(16), nullable=False, server_default="work"),
    Column("group_name", String(200), nullable=False, server_default=""),
    Column("stage", String(40), nullable=False, server_default=""),
    Column("form", JSON, nullable=False),
    Column("secret", JSON, nullable=False),
    Column("is_control", Boolean, nullable=False, server_default=false()),
    Column("wanted", Integer),
    _reference("author_id", "participants.id", nullable=True, ondelete="SET NULL"),
    _reference("only_id", "participants.id", nullable=True, ondelete="SET NULL"),  # given to this one alone
    _one_of("phase", PHASES),
    Index(None, "project_id", "phase", "position"),
)

# One person's work on one item. `place` counts the items a person took. A slot is one of the answers an item wants;
# whatever else goes wrong, no two people hold one.
assignments = Table(
    "assignments",
    metadata,
    Column("id", _ID, primary_key=True, default=new_id),
    _reference("project_id", "projects.id", ondelete="CASCADE"),
    _reference("item_id", "project_items.id", ondelete="CASCADE"),
    _reference("participant_id", "participants.id", ondelete="CASCADE"),
    Column("slot", Integer, nullable=False),
    Column("place", Integer, nullable=False),
    Column("state", String(16), nullable=False),
    Column("leased_at", Time, nullable=False),
    Column("lease_until", Time, nullable=False),
    Column("answered_at", Time),
    Column("is_right", Boolean),  # where there is a gold answer
    Column("is_hasty", Boolean, nullable=False, server_default=false()),
    _one_of("state", ASSIGNMENT_STATES),
    UniqueConstraint("item_id", "participant_id"),
    Index(None, "participant_id", "place"),
    Index(None, "project_id", "state", "lease_until"),
    Index(
        "uq_assignments_held_slot",
        "item_id",
        "slot",
        unique=True,
        sqlite_where=text("state IN ('leased', 'answered')"),
        postgresql_where=text("state IN ('leased', 'answered')"),
    ),
)

# The last value saved of each assignment; all before it are in its history.
answers = Table(
    "answers",
    metadata,
    Column("assignment_id", _ID, ForeignKey("assignments.id", ondelete="CASCADE"), primary_key=True),
    Column("given", JSON, nullable=False),
    Column("is_final", Boolean, nullable=False),
    Column("active_ms", BigInteger, nullable=False),
    Column("elapsed_ms", BigInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("saved_at", Time, nullable=False),
)

answer_history = Table(
    "answer_history",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    _reference("assignment_id", "assignments.id", ondelete="CASCADE"),
    Column("key", String(200), nullable=False),
    Column("digest", _HASH, nullable=False),  # of what was sent, so that a key means one thing
    Column("seq", BigInteger, nullable=False),
    Column("given", JSON, nullable=False),
    Column("is_final", Boolean, nullable=False),
    Column("saved_at", Time, nullable=False),
    Column("status", Integer, nullable=False),
    Column("answer", JSON, nullable=False),  # what was answered, to be answered again
    UniqueConstraint("assignment_id", "key"),
    sqlite_autoincrement=True,
)
