"""The registry's entry of SuperGLUE."""

from __future__ import annotations

from ensue.benchmarks.nlu.task import NluBenchmark
from ensue.benchmarks.superglue.data import read_hub_task, read_task
from ensue.benchmarks.superglue.suite import SPECS

benchmark = NluBenchmark(
    "superglue", "eight harder tasks and two diagnostics (Wang et al. 2019)", SPECS, read_task, read_hub_task
)
