"""Servers and commands as processes of their own, as a user starts them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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


def children(pid: int) -> list[int]:
    """Return the processes that do the jobs of a server."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == pid:
                found.append(int(folder.name))
    return found
