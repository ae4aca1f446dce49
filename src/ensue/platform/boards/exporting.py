"""Everything of a board as files, but its labels: what it is, who handed in what, every grading, the files."""

from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from sqlalchemy import select

from ensue.atomic import replacing, write_json, write_json_lines
from ensue.errors import EnsueError
from ensue.platform.boards.board import Boards
from ensue.platform.boards.views import gradings_of
from ensue.platform.database.schema import board_tasks, new_id, submissions, uploads, users
from ensue.platform.service import Platform

_PRIVATE = ("labels_digest", "created_by", "idempotency_key", "body_digest", "job_id")


def export_board(platform: Platform, name: str, folder: Path) -> dict[str, Any]:
    """Write a board into a new folder: board.json, submissions.jsonl and uploads/; scores are not rounded."""
    if folder.exists():
        raise EnsueError(f"{folder} is there already; name a new folder.")
    with platform.home.keeping_files(), platform.database.reading() as connection:
        board = Boards(platform).find(connection, name)
        columns = connection.execute(
            select(board_tasks).where(board_tasks.c.board_id == board.id).order_by(board_tasks.c.place)
        )
        about = _told({**board._asdict(), "columns": [_told(dict(row)) for row in columns.mappings()]})
        query = (
            select(submissions, users.c.email, uploads.c.name.label("file"), uploads.c.digest.label("upload"))
            .join(users, users.c.id == submissions.c.user_id, isouter=True)
            .join(uploads, uploads.c.id == submissions.c.upload_id, isouter=True)
            .where(submissions.c.board_id == board.id)
            .order_by(submissions.c.created_at, submissions.c.id)
        )
        rows = [dict(row) for row in connection.execute(query).mappings()]
        for row in rows:
            row["gradings"] = [_told(dict(one._mapping)) for one in gradings_of(connection, row["id"])]
        digests = {row["upload"] for row in rows if row["upload"]}
        with replacing(folder) as part:
            (part / "uploads").mkdir(mode=0o700, parents=True)
            write_json(part / "board.json", about)
            write_json_lines(part / "submissions.jsonl", (_told(row) for row in rows))
            for digest in digests:
                shutil.copyfile(platform.home.upload(digest), part / "uploads" / digest)
    return {"board": name, "folder": str(folder), "submissions": len(rows), "uploads": len(digests)}


def _told(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row for JSON, without what is the server's own."""
    return {
        key: value.isoformat() if isinstance(value, datetime) else value
        for key, value in row.items()
        if key not in _PRIVATE
    }


def zipped_board(platform: Platform, name: str) -> BinaryIO:
    """Return everything of a board as a zip that is open and lies nowhere: it goes when it is closed."""
    work = platform.home.work_folder(f"export-{new_id()}")
    try:
        export_board(platform, name, work / name)
        return Path(shutil.make_archive(str(work / "export"), "zip", work, name)).open("rb")
    finally:
        shutil.rmtree(work, ignore_errors=True)
