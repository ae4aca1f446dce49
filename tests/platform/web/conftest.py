"""A real browser for the tests of pages."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.support.services import service


@pytest.fixture(scope="session")
def chromium_program() -> str:
    """Debian's Chromium, installed where it is missing and can be."""
    return service("chromium")


@pytest.fixture(scope="module")
def chromium(chromium_program: str) -> Iterator[Browser]:
    """A browser that is open."""
    # Debian's script that starts it needs some commands, which a bare PATH does not have.
    path = f"{os.environ.get('PATH', '')}:/usr/local/bin:/usr/bin:/bin"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium_program, env={**os.environ, "PATH": path}
        )
        yield browser
        browser.close()
