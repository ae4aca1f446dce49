"""The first tables: accounts, jobs, boards, submissions and their gradings."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "jobs",
        sa.Column("number", _NUMBER, autoincrement=True, nullable=False),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("subject", sa.String(length=32), nullable=True),
        sa.Column("arguments", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=16), server_default="queued", nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("worker", sa.String(length=32), nullable=True),
        sa.Column("lease", sa.String(length=32), nullable=True),
        sa.Column("lease_until", _TIME, nullable=True),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("expires_at", _TIME, nullable=True),
        sa.Column("started_at", _TIME, nullable=True),
        sa.Column("finished_at", _TIME, nullable=True),
        sa.CheckConstraint("(state = 'running') = (lease IS NOT NULL)", name=op.f("ck_jobs_leased")),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'graded', 'failed', 'expired', 'cancelled')",
            name=op.f("ck_jobs_state"),
        ),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_jobs")),
        sa.UniqueConstraint("id", name=op.f("uq_jobs_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_jobs_state_number"), "jobs", ["state", "number"], unique=False)
    op.create_index(op.f("ix_jobs_subject"), "jobs", ["subject"], unique=False)
    op.create_table(
        "users",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("email", sa.String(length=254), nullable=True),
        sa.Column("name", sa.String(length=200), server_default="", nullable=False),
        sa.Column("affiliation", sa.String(length=200), server_default="", nullable=False),
        sa.Column("password_hash", sa.String(length=200), nullable=True),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("deleted_at", _TIME, nullable=True),
        sa.CheckConstraint(
            "role IN ('participant', 'annotator', 'organiser', 'admin')", name=op.f("ck_users_role")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("email", name=op.f("uq_users_email")),
    )
    op.create_table(
        "boards",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=60), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("about", sa.Text(), server_default="", nullable=False),
        sa.Column("suite", sa.String(length=60), nullable=True),
        sa.Column("definition", sa.JSON(), nullable=False),
        sa.Column("split", sa.String(length=20), nullable=False),
        sa.Column("rounding", sa.Integer(), server_default="3", nullable=False),
        sa.Column("quota_day", sa.Integer(), server_default="2", nullable=False),
        sa.Column("quota_month", sa.Integer(), server_default="6", nullable=False),
        sa.Column("is_open", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("is_listed", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("labels_version", sa.Integer(), server_default="0", nullable=False),
        sa.Column("labels_digest", sa.String(length=64), nullable=True),
        sa.Column("labels_at", _TIME, nullable=True),
        sa.Column("created_by", sa.String(length=32), nullable=True),
        sa.Column("created_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["created_by"], ["users.id"], name=op.f("fk_boards_created_by"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_boards")),
        sa.UniqueConstraint("name", name=op.f("uq_boards_name")),
    )
    op.create_table(
        "events",
        sa.Column("number", _NUMBER, autoincrement=True, nullable=False),
        sa.Column("at", _TIME, nullable=False),
        sa.Column("user_id", sa.String(length=32), nullable=True),
        sa.Column("kind", sa.String(length=60), nullable=False),
        sa.Column("subject", sa.String(length=32), nullable=True),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_events_user_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_events")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_events_at"), "events", ["at"], unique=False)
    op.create_index(op.f("ix_events_subject"), "events", ["subject"], unique=False)
    op.create_table(
        "invitations",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("email", sa.String(length=254), nullable=True),
        sa.Column("note", sa.String(length=200), server_default="", nullable=False),
        sa.Column("created_by", sa.String(length=32), nullable=True),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("expires_at", _TIME, nullable=False),
        sa.Column("used_by", sa.String(length=32), nullable=True),
        sa.Column("used_at", _TIME, nullable=True),
        sa.CheckConstraint(
            "role IN ('participant', 'annotator', 'organiser', 'admin')", name=op.f("ck_invitations_role")
        ),
        sa.ForeignKeyConstraint(
            ["created_by"], ["users.id"], name=op.f("fk_invitations_created_by"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["used_by"], ["users.id"], name=op.f("fk_invitations_used_by"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invitations")),
        sa.UniqueConstraint("hash", name=op.f("uq_invitations_hash")),
    )
    op.create_table(
        "sessions",
        sa.Column("cookie_hash", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.String(length=32), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("seen_at", _TIME, nullable=False),
        sa.Column("expires_at", _TIME, nullable=False),
        sa.Column("agent", sa.String(length=200), server_default="", nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_sessions_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("cookie_hash", name=op.f("pk_sessions")),
    )
    op.create_index(op.f("ix_sessions_expires_at"), "sessions", ["expires_at"], unique=False)
    op.create_index(op.f("ix_sessions_user_id"), "sessions", ["user_id"], unique=False)
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("user_id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=100), server_default="", nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("start", sa.String(length=12), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("expires_at", _TIME, nullable=True),
        sa.Column("used_at", _TIME, nullable=True),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_tokens_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("hash", name=op.f("uq_tokens_hash")),
    )
    op.create_index(op.f("ix_tokens_user_id"), "tokens", ["user_id"], unique=False)
    op.create_table(
        "uploads",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("user_id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_uploads_user_id"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_uploads")),
    )
    op.create_index(op.f("ix_uploads_digest"), "uploads", ["digest"], unique=False)
    op.create_index(op.f("ix_uploads_user_id"), "uploads", ["user_id"], unique=False)
    op.create_table(
        "board_tasks",
        sa.Column("board_id", sa.String(length=32), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("task", sa.String(length=60), nullable=False),
        sa.Column("metric", sa.String(length=40), nullable=False),
        sa.Column("title", sa.String(length=100), server_default="", nullable=False),
        sa.Column("covers", sa.Text(), server_default="", nullable=False),
        sa.ForeignKeyConstraint(
            ["board_id"], ["boards.id"], name=op.f("fk_board_tasks_board_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("board_id", "place", name=op.f("pk_board_tasks")),
        sa.UniqueConstraint("board_id", "task", "metric", name=op.f("uq_board_tasks_board_id_task_metric")),
    )
    op.create_table(
        "submissions",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("board_id", sa.String(length=32), nullable=False),
        sa.Column("user_id", sa.String(length=32), nullable=True),
        sa.Column("upload_id", sa.String(length=32), nullable=True),
        sa.Column("kind", sa.String(length=16), server_default="submission", nullable=False),
        sa.Column("system", sa.String(length=200), nullable=False),
        sa.Column("team", sa.String(length=200), server_default="", nullable=False),
        sa.Column("description", sa.Text(), server_default="", nullable=False),
        sa.Column("parameters", sa.String(length=200), server_default="", nullable=False),
        sa.Column("sharing", sa.String(length=200), server_default="", nullable=False),
        sa.Column("data", sa.Text(), server_default="", nullable=False),
        sa.Column("link", sa.String(length=1000), server_default="", nullable=False),
        sa.Column("code", sa.String(length=1000), server_default="", nullable=False),
        sa.Column("contact", sa.String(length=254), server_default="", nullable=False),
        sa.Column("state", sa.String(length=16), server_default="queued", nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("job_id", sa.String(length=32), nullable=True),
        sa.Column("idempotency_key", sa.String(length=200), nullable=True),
        sa.Column("body_digest", sa.String(length=64), nullable=True),
        sa.Column("is_anonymous", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("published_at", _TIME, nullable=True),
        sa.CheckConstraint(
            "kind IN ('submission', 'published', 'measured', 'human')", name=op.f("ck_submissions_kind")
        ),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'graded', 'failed', 'expired', 'cancelled')",
            name=op.f("ck_submissions_state"),
        ),
        sa.ForeignKeyConstraint(
            ["board_id"], ["boards.id"], name=op.f("fk_submissions_board_id"), ondelete="RESTRICT"
        ),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("fk_submissions_job_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["upload_id"], ["uploads.id"], name=op.f("fk_submissions_upload_id"), ondelete="RESTRICT"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_submissions_user_id"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_submissions")),
        sa.UniqueConstraint(
            "user_id",
            "board_id",
            "idempotency_key",
            name=op.f("uq_submissions_user_id_board_id_idempotency_key"),
        ),
    )
    op.create_index(
        op.f("ix_submissions_board_id_published_at"),
        "submissions",
        ["board_id", "published_at"],
        unique=False,
    )
    op.create_index(
        op.f("ix_submissions_board_id_user_id_created_at"),
        "submissions",
        ["board_id", "user_id", "created_at"],
        unique=False,
    )
    op.create_table(
        "gradings",
        sa.Column("number", _NUMBER, autoincrement=True, nullable=False),
        sa.Column("submission_id", sa.String(length=32), nullable=False),
        sa.Column("job_id", sa.String(length=32), nullable=True),
        sa.Column("labels_version", sa.Integer(), nullable=False),
        sa.Column("score", sa.Float(), nullable=True),
        sa.Column("metrics", sa.JSON(), nullable=False),
        sa.Column("diagnostics", sa.JSON(), nullable=False),
        sa.Column("notes", sa.JSON(), nullable=False),
        sa.Column("version", sa.String(length=40), nullable=False),
        sa.Column("graded_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submissions.id"], name=op.f("fk_gradings_submission_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_gradings")),
        sa.UniqueConstraint("job_id", name=op.f("uq_gradings_job_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        op.f("ix_gradings_submission_id_number"), "gradings", ["submission_id", "number"], unique=False
    )
