"""A real browser for the tests of pages."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from ensue.atomic import lock
from tests.platform.conftest import SERVICES


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, installed where it is missing and can be."""
    with lock(Path(tempfile.gettempdir()) / "ensue-services.lock"):
        found = subprocess.run([SERVICES, "chromium"], capture_output=True, text=True)
    if found.returncode == 3:
        pytest.skip(found.stderr.strip().splitlines()[-1])
    assert found.returncode == 0, found.stderr
    # Debian's script that starts it needs some commands, which a bare PATH does not have.
    path = f"{os.environ.get('PATH', '')}:/usr/local/bin:/usr/bin:/bin"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found.stdout.strip(), env={**os.environ, "PATH": path}
        )
        yield browser
        browser.close()
