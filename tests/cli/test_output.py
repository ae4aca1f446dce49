"""Standard output that cannot be written, and readers that go away."""

from __future__ import annotations

import os
import subprocess

import pytest

from ensue import console
from tests.support.command import ENSUE, environment, start, write_lines


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("command", [["models", "list"], ["models", "list", "--json"], ["--version"]])
def test_what_cannot_be_written_to_standard_output_is_one_sentence(command):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [ENSUE, *command], stdout=full, stderr=subprocess.PIPE, text=True, env=environment()
        )
    assert done.stderr == "ensue: The output cannot be used: No space left on device.\n"
    assert done.returncode == 2


def test_a_reader_that_goes_away_is_no_traceback(tmp_path):
    path = write_lines(tmp_path / "many.jsonl", [{"text": f"Text number {i}."} for i in range(5000)])
    with start("score", path, "--model", "random", "--json") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith('{"id": "many:1"')
        process.stdout.close()
        said = process.stderr.read()
        assert process.wait(60) == 1
    assert "Traceback" not in said
    assert "Exception ignored" not in said


def test_no_share_is_told_of_a_total_that_nobody_knows(capsys):
    with console.progress_bar("suffixlm") as told:
        told(3, 0, "works read")
        told(4, 8, "works kept")
    assert capsys.readouterr().err.splitlines() == [
        "suffixlm: 3 works read",
        "suffixlm: 50 % of 8 works kept",
    ]


def test_lines_of_progress_begin_anew_with_each_task(capsys):
    with console.progress_bar("glue bilstm") as told:
        for unit in ("updates of RTE at most", "updates of CB at most"):
            for done in (1, 5, 10, 11, 20):
                told(done, 100, unit)
    assert capsys.readouterr().err.splitlines() == [
        f"glue bilstm: {percent} % of 100 {unit}"
        for unit in ("updates of RTE at most", "updates of CB at most")
        for percent in (1, 10, 20)
    ]
