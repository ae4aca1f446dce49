"""What every contender's process does: read the job, score, and report time, memory and scores."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

Job = dict[str, Any]


def contend(setup: Callable[[Job], Callable[[], list[float]]]) -> None:
    """Load outside the clock, score inside it, and print one JSON line."""
    job: Job = json.loads(sys.stdin.read())
    import torch

    torch.set_num_threads(job["threads"])
    work = setup(job)
    wall, cpu = time.perf_counter(), time.process_time()
    scores = work()
    result = {
        "scores": scores,
        "wall_seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - cpu,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print("RESULT " + json.dumps(result), flush=True)
