"""A page that somebody looks at, watched for everything that no page may do.

Every page is looked at with axe, must not scroll sideways, may ask nobody but the server for anything and may not
report an error. A walk is made wide and light, and narrow and dark; each page is then looked at in the other colours
of the same width, in which nothing but contrast can differ. Screenshots are left in `build/screenshots`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

SCREENSHOTS = Path(__file__).parents[3] / "build" / "screenshots"
LOOKS = [
    pytest.param((1280, "light"), id="1280-light"),
    pytest.param((400, "dark"), id="400-dark"),
]


class Visit:
    """A page of one visitor."""

    def __init__(self, page: Page, address: str, look: str) -> None:
        self.page, self.address, self.look = page, address, look
        self.width, self.scheme = look.split("-")
        self.complaints: list[str] = []
        page.on("console", lambda message: self._hear(message.type, message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self._ask(request.url))

    def _hear(self, kind: str, words: str) -> None:
        # That the server refused something on purpose is reported, too.
        if kind in {"error", "warning"} and "the server responded with a status of 4" not in words:
            self.complaints.append(words)

    def _ask(self, url: str) -> None:
        if not url.startswith((self.address, "data:")):
            self.complaints.append(f"asked {url}")

    def check(self, name: str) -> None:
        """Look at the page as it is, and have axe look at it, which takes seconds where a table is long."""
        self.look_at(name)
        found = Axe().run(self.page)
        assert not found.response["violations"], f"{name}: {found.generate_report()}"
        self._check_other_colours(name)

    def _check_other_colours(self, name: str) -> None:
        other: Any = {"light": "dark", "dark": "light"}[self.scheme]
        own: Any = self.scheme
        # Colours that change little by little would be judged half-way.
        self.page.emulate_media(color_scheme=other, reduced_motion="reduce")
        self.page.screenshot(path=SCREENSHOTS / f"{name}-{self.width}-{other}.png")
        found = self.page.evaluate("axe.run({ runOnly: ['color-contrast'], resultTypes: ['violations'] })")
        self.page.emulate_media(color_scheme=own, reduced_motion="null")
        assert not found["violations"], f"{name}, {other}: {found['violations']}"

    def looks(self) -> Iterator[None]:
        """Give the page the size and colours of each look in turn, for what is not walked through in each."""
        before = self.page.viewport_size
        for width, scheme in ((1280, "light"), (400, "dark")):
            colours: Any = scheme
            self.look, self.width, self.scheme = f"{width}-{scheme}", str(width), scheme
            self.page.set_viewport_size({"width": width, "height": 800})
            self.page.emulate_media(color_scheme=colours)
            yield
        if before is not None:
            self.page.set_viewport_size(before)
        self.page.emulate_media(color_scheme="light")

    def look_at(self, name: str) -> None:
        """Look at the page as it is."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}-{self.look}.png")
        wide = self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert wide <= 0, f"{name} is {wide} pixels too wide"
        assert self.complaints == [], name
