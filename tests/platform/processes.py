"""Servers and commands as processes of their own, as a user starts them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def serving(home: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start `ensue serve` on a free port; yield the process and its address once it answers."""
    command = [sys.executable, "-m", "ensue", "serve", "--home", str(home), "--port", "0", "--json", *options]
    with (home / "serve.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, (home / "serve.log").read_text()
        yield process, json.loads(line)["url"]
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
