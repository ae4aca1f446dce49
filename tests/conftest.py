"""Fixtures all tests share: real models when asked for, one torch thread, nothing from the network but wheels."""

from __future__ import annotations

import os

# Before torch and numpy are imported: a process runs on every core, and more threads would wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from ensue.environment import avoid_trapping_tiles
from tests.support.effort import effort

# A busy machine is slow; that is no fault of a test.
settings.register_profile(
    "patient",
    max_examples=effort(30, 1_000),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("patient")

# Tests call torch by themselves, too.
avoid_trapping_tiles()

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@pytest.fixture(scope="session")
def smollm2_folder() -> Path:
    """The converted default model, fetched on first use."""
    from ensue.backends.names import pull_model
    from ensue.fetch.catalog import catalog

    return pull_model(catalog()["smollm2"])
