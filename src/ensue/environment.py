"""Where and with what a run was made: versions, hardware, peak memory."""

from __future__ import annotations

import faulthandler
import os
import platform
import resource
import signal
import sys
from collections.abc import Callable
from functools import cache
from importlib import metadata
from typing import Any

from ensue.parallel import cores

_PACKAGES = ("ensue", "torch", "transformers", "tokenizers", "numpy", "sentencex")


def environment() -> dict[str, Any]:
    """Versions and hardware, without importing anything heavy."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: found for name in _PACKAGES if (found := _version(name))},
        "cpu": _cpu(),
        "cores": cores(),
        "gpu": _gpu(),
    }


def peak_memory() -> dict[str, int]:
    """Peak resident memory of this process in MiB, and of its GPU where torch used one."""
    scale = 1 if sys.platform == "darwin" else 1024
    found = {"cpu_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale // 2**20}
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        found["gpu_mib"] = torch.cuda.max_memory_allocated() // 2**20
    return found


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _gpu() -> str | None:
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    return str(torch.cuda.get_device_name(0))


@cache
def avoid_trapping_tiles() -> None:
    """Keep torch off the processor's matrix tiles (AMX) where it states them and traps at their use.

    Some virtual machines do, and a product of bfloat16 would end the process. Must come before the first product,
    when oneDNN reads its limit; a child tries it, in some hundredths of a second and only where there are tiles.
    """
    limit = "ONEDNN_MAX_CPU_ISA"
    if limit not in os.environ and "amx_tile" in _flags() and _dies(_multiply):
        os.environ[limit] = "AVX512_CORE_BF16"


def _multiply() -> None:
    import torch

    torch.set_num_threads(1)
    one = torch.ones((64, 64), dtype=torch.bfloat16)
    torch.nn.functional.linear(one, one)


def _dies(work: Callable[[], None]) -> bool:
    """Return whether a process that does this dies of an instruction it must not use."""
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGILL


@cache
def is_amd_with_avx512() -> bool:
    """Return whether the processor is one of AMD's that have instructions on 512 bits."""
    return _stated("vendor_id") == {"AuthenticAMD"} and "avx512f" in _flags()


def _flags() -> set[str]:
    """Return what a Linux processor says it can do."""
    return _stated("flags")


def _stated(what: str) -> set[str]:
    """Return the words that Linux has under a name for the first processor."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            found = next((line for line in lines if line.partition(":")[0].strip() == what), "")
    except OSError:
        found = ""
    return set(found.partition(":")[2].split())
