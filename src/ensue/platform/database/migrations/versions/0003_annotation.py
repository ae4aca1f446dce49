"""Annotation: projects, items, participants, assignments, answers and their history."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TIME = sa.DateTime(timezone=True)
_HELD = sa.text("state IN ('leased', 'answered')")


def upgrade() -> None:
    op.create_table(
        "projects",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=60), nullable=False),
        sa.Column("kind", sa.String(length=60), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("instructions", sa.Text(), server_default="", nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("source", sa.Text(), server_default="", nullable=False),
        sa.Column("seed", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("state", sa.String(length=16), server_default="draft", nullable=False),
        sa.Column("entry_key", sa.String(length=64), nullable=False),
        sa.Column("owner_id", sa.String(length=32), nullable=True),
        sa.Column("created_at", _TIME, nullable=False),
        sa.CheckConstraint("state IN ('draft', 'open', 'paused', 'closed')", name=op.f("ck_projects_state")),
        sa.ForeignKeyConstraint(
            ["owner_id"], ["users.id"], name=op.f("fk_projects_owner_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_projects")),
        sa.UniqueConstraint("name", name=op.f("uq_projects_name")),
    )
    op.create_table(
        "participants",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("project_id", sa.String(length=32), nullable=False),
        sa.Column("user_id", sa.String(length=32), nullable=True),
        sa.Column("external_id", sa.String(length=200), nullable=True),
        sa.Column("study_id", sa.String(length=200), nullable=True),
        sa.Column("outside_hash", sa.String(length=64), nullable=True),
        sa.Column("pseudonym", sa.String(length=20), nullable=False),
        sa.Column("phase", sa.String(length=16), server_default="training", nullable=False),
        sa.Column("state", sa.String(length=16), server_default="active", nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("consented_at", _TIME, nullable=False),
        sa.Column("finished_at", _TIME, nullable=True),
        sa.CheckConstraint(
            "phase IN ('training', 'qualification', 'work')", name=op.f("ck_participants_phase")
        ),
        sa.CheckConstraint(
            "state IN ('active', 'stopped', 'finished', 'excluded', 'deleted')",
            name=op.f("ck_participants_state"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_participants_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_participants_user_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_participants")),
        sa.UniqueConstraint("project_id", "external_id", name=op.f("uq_participants_project_id_external_id")),
        sa.UniqueConstraint("project_id", "pseudonym", name=op.f("uq_participants_project_id_pseudonym")),
        sa.UniqueConstraint("project_id", "user_id", name=op.f("uq_participants_project_id_user_id")),
    )
    op.create_table(
        "participant_sessions",
        sa.Column("cookie_hash", sa.String(length=64), nullable=False),
        sa.Column("participant_id", sa.String(length=32), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["participant_id"],
            ["participants.id"],
            name=op.f("fk_participant_sessions_participant_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("cookie_hash", name=op.f("pk_participant_sessions")),
    )
    op.create_index(
        op.f("ix_participant_sessions_participant_id"),
        "participant_sessions",
        ["participant_id"],
        unique=False,
    )
    op.create_table(
        "project_items",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("project_id", sa.String(length=32), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("phase", sa.String(length=16), server_default="work", nullable=False),
        sa.Column("group_name", sa.String(length=200), server_default="", nullable=False),
        sa.Column("stage", sa.String(length=40), server_default="", nullable=False),
        sa.Column("form", sa.JSON(), nullable=False),
        sa.Column("secret", sa.JSON(), nullable=False),
        sa.Column("is_control", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("wanted", sa.Integer(), nullable=True),
        sa.Column("author_id", sa.String(length=32), nullable=True),
        sa.Column("only_id", sa.String(length=32), nullable=True),
        sa.CheckConstraint(
            "phase IN ('training', 'qualification', 'work')", name=op.f("ck_project_items_phase")
        ),
        sa.ForeignKeyConstraint(
            ["author_id"], ["participants.id"], name=op.f("fk_project_items_author_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["only_id"], ["participants.id"], name=op.f("fk_project_items_only_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_project_items_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_project_items")),
    )
    op.create_index(
        op.f("ix_project_items_project_id_phase_position"),
        "project_items",
        ["project_id", "phase", "position"],
        unique=False,
    )
    op.create_table(
        "assignments",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("project_id", sa.String(length=32), nullable=False),
        sa.Column("item_id", sa.String(length=32), nullable=False),
        sa.Column("participant_id", sa.String(length=32), nullable=False),
        sa.Column("slot", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("leased_at", _TIME, nullable=False),
        sa.Column("lease_until", _TIME, nullable=False),
        sa.Column("answered_at", _TIME, nullable=True),
        sa.Column("is_right", sa.Boolean(), nullable=True),
        sa.Column("is_hasty", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.CheckConstraint(
            "state IN ('leased', 'answered', 'released', 'expired', 'void')",
            name=op.f("ck_assignments_state"),
        ),
        sa.ForeignKeyConstraint(
            ["item_id"], ["project_items.id"], name=op.f("fk_assignments_item_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["participant_id"],
            ["participants.id"],
            name=op.f("fk_assignments_participant_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_assignments_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_assignments")),
        sa.UniqueConstraint("item_id", "participant_id", name=op.f("uq_assignments_item_id_participant_id")),
    )
    op.create_index(
        op.f("ix_assignments_participant_id_place"), "assignments", ["participant_id", "place"], unique=False
    )
    op.create_index(
        op.f("ix_assignments_project_id_state_lease_until"),
        "assignments",
        ["project_id", "state", "lease_until"],
        unique=False,
    )
    op.create_index(
        "uq_assignments_held_slot",
        "assignments",
        ["item_id", "slot"],
        unique=True,
        sqlite_where=_HELD,
        postgresql_where=_HELD,
    )
    op.create_table(
        "answer_history",
        sa.Column("number", _NUMBER, autoincrement=True, nullable=False),
        sa.Column("assignment_id", sa.String(length=32), nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("given", sa.JSON(), nullable=False),
        sa.Column("is_final", sa.Boolean(), nullable=False),
        sa.Column("saved_at", _TIME, nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("answer", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["assignment_id"],
            ["assignments.id"],
            name=op.f("fk_answer_history_assignment_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_answer_history")),
        sa.UniqueConstraint("assignment_id", "key", name=op.f("uq_answer_history_assignment_id_key")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "answers",
        sa.Column("assignment_id", sa.String(length=32), nullable=False),
        sa.Column("given", sa.JSON(), nullable=False),
        sa.Column("is_final", sa.Boolean(), nullable=False),
        sa.Column("active_ms", sa.BigInteger(), nullable=False),
        sa.Column("elapsed_ms", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("saved_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["assignment_id"], ["assignments.id"], name=op.f("fk_answers_assignment_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("assignment_id", name=op.f("pk_answers")),
    )
