"""A service that cannot be had is a skip at home and a failure in CI; one that fails is a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import services


@pytest.fixture
def answering(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script in the place of scripts/services."""
    script = tmp_path / "services"
    monkeypatch.setattr(services, "SERVICES", script)
    return script


def write(script: Path, words: str) -> None:
    script.write_text(f"#!/bin/sh\n{words}\n")
    script.chmod(0o755)


@pytest.mark.parametrize(("ci", "outcome"), [("", "Skipped"), ("false", "Skipped"), ("true", "Failed")])
def test_what_cannot_be_installed_is_skipped_but_in_ci(
    answering: Path, monkeypatch: pytest.MonkeyPatch, ci: str, outcome: str
) -> None:
    monkeypatch.setenv("CI", ci)
    write(answering, "echo Chromium is not installed. >&2; exit 3")
    with pytest.raises(BaseException, match=r"Chromium is not installed\.") as caught:
        services.service("chromium")
    assert type(caught.value).__name__ == outcome


def test_what_fails_is_no_skip(answering: Path) -> None:
    write(answering, "echo No free port was found. >&2; exit 1")
    with pytest.raises(AssertionError, match="No free port"):
        services.service("postgresql", "folder")
    write(answering, "echo address")
    assert services.service("postgresql", "folder") == "address"
