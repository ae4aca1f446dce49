"""What a process does about a processor that states more than it can do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from ensue import environment


def test_a_process_that_dies_of_an_instruction_is_told_from_one_that_does_not() -> None:
    assert environment._dies(lambda: os.kill(os.getpid(), signal.SIGILL))
    assert not environment._dies(lambda: None)
    assert not environment._dies(lambda: os.kill(os.getpid(), signal.SIGTERM))


def test_torch_is_kept_off_tiles_only_where_they_trap(monkeypatch: pytest.MonkeyPatch) -> None:
    for flags, dies, before, after in (
        ({"amx_tile"}, True, None, "AVX512_CORE_BF16"),
        ({"amx_tile"}, False, None, None),
        ({"avx2"}, True, None, None),
        ({"amx_tile"}, True, "AVX2", "AVX2"),
    ):
        monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
        if before:
            monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", before)
        monkeypatch.setattr(environment, "_flags", lambda flags=flags: flags)
        monkeypatch.setattr(environment, "_dies", lambda work, dies=dies: dies)
        environment.avoid_trapping_tiles.__wrapped__()
        assert os.environ.get("ONEDNN_MAX_CPU_ISA") == after


def test_a_product_of_bfloat16_ends_no_process_that_loads_models() -> None:
    """The real thing, on whatever processor this is, in a process that knows of no limit yet."""
    code = (
        "from ensue.backends.hf.loading import need_torch; need_torch('This'); import torch; "
        "print(torch.nn.functional.linear(torch.ones(64, 64).bfloat16(), torch.ones(64, 64).bfloat16()).sum().item())"
    )
    free = {name: value for name, value in os.environ.items() if name != "ONEDNN_MAX_CPU_ISA"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=free, check=False)
    assert (done.returncode, done.stdout.split()) == (0, ["262144.0"]), done.stderr[-300:]
