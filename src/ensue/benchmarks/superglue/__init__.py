"""SuperGLUE: eight harder tasks and two diagnostic sets (Wang et al. 2019)."""

from ensue.benchmarks.base import Benchmark, Builder
from ensue.benchmarks.nlu import SYSTEMS

benchmark = Benchmark(
    name="superglue",
    about="eight harder tasks and two diagnostics (Wang et al. 2019)",
    task="ensue.benchmarks.superglue.task:TASK",
    comparing="ensue.benchmarks.superglue.task:COMPARING",
    tables="ensue.benchmarks.nlu.report.table:tables",
    page="ensue.benchmarks.nlu.report.page:PAGE",
    systems=SYSTEMS,
    people={"classification": "ensue.benchmarks.nlu.people:KIND"},
    builders={
        "wsc": Builder(
            "ensue.benchmarks.nlu.builders.commands:wsc",
            "ensue.benchmarks.nlu.builders.winograd:build_wsc",
        ),
    },
    grader="ensue.benchmarks.nlu.submissions.grading:SUPERGLUE",
)
