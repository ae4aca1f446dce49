"""Addresses at which there is no cluster: told at once, and not after minutes."""

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
