"""PostgreSQL and Chromium for tests, from `scripts/services`, installed where they are missing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SERVICES = Path(__file__).parents[2] / "scripts" / "services"
_CANNOT = 3  # it is not here and cannot be installed


def service(*arguments: str | Path) -> str:
    """Return what a service says. Skip where it cannot be had here; with CI=true, where all can be had, fail."""
    done = subprocess.run([SERVICES, *arguments], capture_output=True, text=True, check=False)
    if done.returncode == _CANNOT:
        why = done.stderr.strip().splitlines()[-1]
        if os.environ.get("CI", "").lower() in {"", "0", "false"}:
            pytest.skip(why)
        pytest.fail(f"{why} CI must not pass without it.\n{done.stderr[-2000:]}", pytrace=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
