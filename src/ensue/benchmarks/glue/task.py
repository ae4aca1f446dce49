"""Make and judge the items of GLUE."""

from __future__ import annotations

from ensue.benchmarks.glue.data import read_hub_task, read_task
from ensue.benchmarks.glue.suite import SPECS
from ensue.benchmarks.nlu.comparing import NluComparing
from ensue.benchmarks.nlu.task import NluTask

TASK = NluTask(
    "glue",
    SPECS,
    read_task,
    read_hub_task,
)
COMPARING = NluComparing(SPECS)
