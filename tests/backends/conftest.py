"""What the tests of the endpoint share: tiny models and a real HTTP server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.completions_server import CompletionsServer, LocalModel, serving, tiny_model


@pytest.fixture(scope="module")
def plain() -> LocalModel:
    return tiny_model()


@pytest.fixture(scope="module")
def with_bos() -> LocalModel:
    return tiny_model(bos=True)


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ENSUE_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def server(plain: LocalModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CompletionsServer]:
    monkeypatch.setenv("ENSUE_HOME", str(tmp_path / "home"))
    with serving(plain) as running:
        yield running
