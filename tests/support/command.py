"""The `ensue` command as a user runs it: in a process of its own, or in this one where that is all the same."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

ENSUE = str(Path(sys.executable).parent / "ensue")
# One thread, and no network: what is not here is not there.
QUIET = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "COLUMNS": "100"}


class Finished(NamedTuple):
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The one sentence a failed command says; anything more, or a traceback, fails the test."""
        assert "Traceback" not in self.err, self.err
        said = [line for line in self.err.splitlines() if not _is_progress(line)]
        assert len(said) == 1, self.err
        assert said[0].startswith("ensue: "), self.err
        return said[0].removeprefix("ensue: ")


def _is_progress(line: str) -> bool:
    told = " % of " in line or re.fullmatch(r"[^:]+: [\d,]+ [a-z ]+ read", line)
    return bool(told) or line.startswith(("converting ", "fetching "))


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, **QUIET, **more}


def start(*arguments: object, cwd: Path | None = None, **env: str) -> subprocess.Popen[str]:
    """The command, running."""
    return subprocess.Popen(
        [ENSUE, *map(str, arguments)],
        cwd=cwd,
        env=environment(**env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Where tests themselves run in the background, an interrupt would be passed over by all they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def in_process_of_its_own(*arguments: object, cwd: Path | None = None, **env: str) -> Finished:
    """The command, run to its end in its own process."""
    done = subprocess.run(
        [ENSUE, *map(str, arguments)],
        cwd=cwd,
        env=environment(**env),
        capture_output=True,
        text=True,
        timeout=120,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def here(*arguments: object) -> Finished:
    """The command run by its own entry point in this process, which spares the imports."""
    from ensue.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    code: Any = 0
    with (
        mock.patch.object(sys, "argv", ["ensue", *map(str, arguments)]),
        mock.patch.dict(os.environ, QUIET),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as stopped:
            code = stopped.code or 0
    return Finished(int(code), out.getvalue(), err.getvalue())


def refused(finished: Finished, *words: str, code: int = 2) -> str:
    """The sentence of a refused command, which must name what it is about."""
    sentence = finished.sentence
    assert (finished.code, finished.out) == (code, "")
    for word in words:
        assert word in sentence
    return sentence


def write_lines(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """A JSON Lines file of the rows."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
