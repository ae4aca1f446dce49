"""What tests of several files need: a zip that unpacks to two gigabytes."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def zeros(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A zip of a few megabytes, honest about its CoLA.tsv of almost 2 GiB of zeros."""
    path = tmp_path_factory.mktemp("bomb") / "zeros.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        entry = zipfile.ZipInfo("CoLA.tsv")
        entry.compress_type = zipfile.ZIP_DEFLATED
        # Only so is the level taken for an entry that is streamed.
        entry._compresslevel = 1  # type: ignore[attr-defined]
        with archive.open(entry, "w") as file:
            block = bytes(1 << 20)
            for _ in range((2 << 10) - 1):
                file.write(block)
    return path
