"""Where and with what a run was made: versions, hardware, peak memory."""

from __future__ import annotations

import platform
import resource
import sys
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
