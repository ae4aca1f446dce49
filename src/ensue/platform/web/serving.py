"""What whoever runs the server needs: health, counts, files of the pages, and commands from the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, FastAPI, Request
from sqlalchemy import func, select
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from ensue.errors import EnsueError
from ensue.platform.commands import COMMANDS
from ensue.platform.database.schema import STATES, jobs
from ensue.platform.refusals import NotFound
from ensue.platform.service import Platform
from ensue.platform.web import observing
from ensue.platform.web.identity import ThePlatform, from_command_line

router = APIRouter(include_in_schema=False)


class _Static(StaticFiles):
    """Files that browsers may keep for an hour where the version is in the address, and ask about otherwise.

    A module that another imports has none, and must not be older than it.
    """

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        keeping = "max-age=3600" if scope["query_string"].startswith(b"v=") else "no-cache"
        response.headers["Cache-Control"] = f"public, {keeping}"
        return response


def install(app: FastAPI, platform: Platform) -> None:
    app.include_router(router)
    app.mount("/static", _Static(directory=Path(__file__).parent / "static"), name="static")


@router.get("/healthz")
def healthz(platform: ThePlatform) -> Response:
    """Say whether the database answers and jobs are run."""
    try:
        revision = platform.database.revision()
    except EnsueError:
        return JSONResponse({"status": "no database"}, 503)
    if platform.worker is not None and not platform.worker.alive():
        return JSONResponse({"status": "jobs are not run"}, 503)
    return JSONResponse(
        {"status": "ok", "database": platform.database.url.get_backend_name(), "schema": revision}
    )


@router.get("/metrics")
def metrics(request: Request, platform: ThePlatform) -> Response:
    """Return counts in Prometheus's text format."""
    with platform.database.reading() as connection:
        counted = connection.execute(select(jobs.c.state, func.count()).group_by(jobs.c.state))
        states = {row[0]: row[1] for row in counted}
    lines = [
        *request.app.state.counts.lines(),
        "# TYPE ensue_jobs gauge",
        *(f"ensue_jobs{observing.labels(state=state)} {states.get(state, 0)}" for state in STATES),
        "# TYPE ensue_memory_bytes gauge",
        f"ensue_memory_bytes {memory()}",
    ]
    return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")


def memory() -> int:
    """Return the bytes of memory that this process has now."""
    try:
        fields = Path("/proc/self/statm").read_text().split()
    except OSError:
        return 0
    import resource

    return int(fields[1]) * resource.getpagesize()


@router.post("/internal/{command}", dependencies=[Depends(from_command_line)])
def internal(command: str, platform: ThePlatform, arguments: Annotated[dict[str, Any], Body()]) -> Any:
    """Perform a command that a process on this machine hands over because the home is open here."""
    if command not in COMMANDS:
        raise NotFound(f"There is no command {command}.")
    return COMMANDS[command](platform, arguments)
