"""Fixtures of the SentEval tests: a small data folder and an encoder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.senteval.folders import WordEncoder, write_downstream


@pytest.fixture
def encoder() -> WordEncoder:
    return WordEncoder()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """All tasks but the probing ones."""
    write_downstream(tmp_path / "senteval" / "downstream")
    return tmp_path / "senteval"
