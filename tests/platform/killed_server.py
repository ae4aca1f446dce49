"""A server with a kind of job of its own, for tests that kill it: python -m tests.platform.killed_server HOME URL."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from sqlalchemy import Connection, insert, select

from ensue.platform.database.schema import events, jobs
from ensue.platform.jobs import Job, Kind
from ensue.platform.service import Platform, Settings
from ensue.platform.web import app as application
from ensue.platform.web import server


def install(app: FastAPI, platform: Platform) -> None:
    """Jobs that double a number; what they gave is written down in the transaction that ends them."""

    def done(connection: Connection, job: Job, result: Any) -> None:
        facts = {
            "at": platform.clock.now(),
            "kind": "result",
            "subject": job.id,
            "details": {"result": result},
        }
        connection.execute(insert(events).values(**facts))

    platform.queue.add_kind(Kind("double", "tests.platform.chores:double", done=done))

    @app.post("/api/v1/double/{number}")
    def double(number: int) -> dict[str, str]:
        with platform.database.writing() as connection:
            return {"id": platform.queue.add(connection, "double", arguments={"number": number})}

    @app.get("/api/v1/double")
    def all_of_them() -> dict[str, Any]:
        with platform.database.reading() as connection:
            given = connection.execute(
                select(events.c.subject, events.c.details).where(events.c.kind == "result")
            )
            results: dict[str, list[Any]] = {}
            for row in given:
                results.setdefault(row.subject, []).append(row.details["result"])
            states = connection.execute(select(jobs.c.id, jobs.c.state, jobs.c.reason))
            return {row.id: [row.state, row.reason, results.get(row.id, [])] for row in states}


def main(home: str, url: str) -> None:
    application.PARTS = (*application.PARTS, __spec__.name)
    ready: Callable[[str], None] = lambda address: print(address, flush=True)  # noqa: E731
    server.serve(Settings(home=Path(home), database=url, jobs_at_once=2), "127.0.0.1", 0, ready)


if __name__ == "__main__":
    main(*sys.argv[1:])
