"""What the server writes down: one JSON object a line on standard error, without secrets or labels.

Of an error its kind and the places in the code are written down, never its words, which may quote what a user sent.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

log = logging.getLogger("ensue.platform")


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        facts = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            facts["error"] = where(record.exc_info[1])
        return json.dumps(facts, ensure_ascii=False, default=str)


def start_logging() -> None:
    """Write what is logged to standard error, one JSON object a line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("ensue.platform", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO if name == "ensue.platform" else logging.WARNING)


def tell(event: str, *, level: int = logging.INFO, error: BaseException | None = None, **facts: Any) -> None:
    """Log an event with its facts."""
    log.log(level, event, extra={"facts": facts}, exc_info=error)


def where(error: BaseException) -> dict[str, Any]:
    """Return the kind of an error and where it arose, without its words."""
    frames = traceback.extract_tb(error.__traceback__)
    return {
        "kind": type(error).__name__,
        "where": [
            f"{frame.filename.rpartition('site-packages/')[2]}:{frame.lineno}" for frame in frames[-8:]
        ],
    }
