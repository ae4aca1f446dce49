"""The registry's entry of GLUE."""

from __future__ import annotations

from ensue.benchmarks.glue.data import read_hub_task, read_task
from ensue.benchmarks.glue.suite import SPECS
from ensue.benchmarks.nlu.task import NluBenchmark

benchmark = NluBenchmark(
    "glue",
    "nine tasks of sentence understanding and a diagnostic (Wang et al. 2019)",
    SPECS,
    read_task,
    read_hub_task,
)
