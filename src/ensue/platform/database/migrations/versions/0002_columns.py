"""Columns of boards are told apart by settings too, one is the main one; a grading says what it covers."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    with op.batch_alter_table("board_tasks") as table:
        table.drop_constraint("uq_board_tasks_board_id_task_metric", type_="unique")
        table.add_column(sa.Column("settings", sa.JSON(), server_default="{}", nullable=False))
        table.add_column(sa.Column("is_main", sa.Boolean(), server_default=sa.false(), nullable=False))
    with op.batch_alter_table("gradings") as table:
        table.add_column(sa.Column("not_scored", sa.JSON(), server_default="{}", nullable=False))
        table.add_column(sa.Column("covers", sa.Text(), server_default="", nullable=False))
