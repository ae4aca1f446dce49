"""Make and judge the items of SuperGLUE."""

from __future__ import annotations

from ensue.benchmarks.nlu.comparing import NluComparing
from ensue.benchmarks.nlu.task import NluTask
from ensue.benchmarks.superglue.data import read_hub_task, read_task
from ensue.benchmarks.superglue.suite import SPECS

TASK = NluTask("superglue", SPECS, read_task, read_hub_task)
COMPARING = NluComparing(SPECS)
