"""A browser for tests: it keeps cookies, and finds the token of a page's forms as a user's browser sends it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

from fastapi import FastAPI
from starlette.testclient import TestClient

PASSWORD = "correct horse battery"


class Browser(TestClient):
    """A client that asks for pages and fills in forms."""

    def __init__(
        self,
        app: FastAPI,
        base_url: str = "http://testserver",
        client: tuple[str, int] = ("testclient", 50000),
    ) -> None:
        options: dict[str, Any] = {"raise_server_exceptions": False, "follow_redirects": False}
        super().__init__(app, base_url=base_url, client=client, **options)
        self.headers["accept"] = "text/html"

    def token(self, page: str = "/sign-in") -> str:
        """The token of the forms on a page."""
        found = re.search(r'name="csrf" value="([0-9a-f]{64})"', self.get(page).text)
        assert found, f"{page} has no form"
        return found[1]

    def submit(self, path: str, page: str = "/sign-in", **fields: str) -> Any:
        """Fill in a form of a page and send it."""
        return self.post(path, data={"csrf": self.token(page), **fields})

    def sign_up(self, email: str, password: str = PASSWORD, **fields: str) -> Any:
        answer = self.submit("/sign-up", "/sign-up", email=email, password=password, **fields)
        assert answer.status_code == 303, answer.text
        return answer

    def sign_in(self, email: str, password: str = PASSWORD, **fields: str) -> Any:
        return self.submit("/sign-in", email=email, password=password, **fields)

    def me(self) -> dict[str, Any]:
        return dict(self.get("/api/v1/me").json())


class Outline(HTMLParser):
    """What a page is made of, for rules that hold for all pages."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def check_page(page: str) -> None:
    """A page fetches nothing from elsewhere, runs nothing inline; fields have labels, forms their tokens."""
    outline = Outline(page)
    labels = {attributes.get("for") for tag, attributes in outline.tags if tag == "label"}
    names = [tag for tag, _ in outline.tags]
    for tag, attributes in outline.tags:
        assert tag != "style", "an inline style sheet"
        assert tag != "script" or attributes.get("src", "").startswith("/static/"), "an inline script"  # type: ignore[union-attr]
        for name, value in attributes.items():
            assert not name.startswith("on"), f"an inline handler: {name}"
            assert name != "style", "an inline style"
            if name in {"src", "href", "action"} and tag != "a":
                assert value is not None
                assert value.startswith("/"), f"something from elsewhere: {value}"
        if tag in {"input", "select", "textarea"} and attributes.get("type") not in {
            "hidden",
            "checkbox",
            "radio",
        }:
            assert attributes.get("id") in labels, f"a field without a label: {attributes}"
        if tag == "form" and attributes.get("method") == "post":
            at = outline.tags.index((tag, attributes))
            following = next(one for one in outline.tags[at:] if one[0] == "input")[1]
            assert following.get("name") == "csrf", f"a form without its token: {attributes}"
    assert names.count("h1") == 1
    assert names.count("main") == 1
    assert outline.tags[0] == ("html", {"lang": "en"})
