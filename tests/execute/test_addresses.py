"""Clusters that are not there or do not start: told at once, and in a sentence."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.support.command import in_process_of_its_own, refused


@pytest.mark.parametrize("form", ["ray:{}:{}", "ray://{}:{}"])
@pytest.mark.parametrize("where", ["nobody", "no port"])
def test_a_cluster_that_is_not_there(form: str, where: str, tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("One day.")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = form.format("127.0.0.1", port if where == "nobody" else 99_999)
    said = in_process_of_its_own("score", texts, "--model", "unigram", "--executor", address)
    refused(said, "There is no Ray cluster at", "start one with `ray start --head` there")


def test_a_cluster_that_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("One day.")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    # No folder can be made in a file.
    monkeypatch.setenv("RAY_TMPDIR", str(texts))
    said = in_process_of_its_own("score", texts, "--model", "unigram", "--executor", "ray")
    refused(said, "Ray could not be started on this machine", "may write to", code=1)
