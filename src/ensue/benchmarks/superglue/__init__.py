"""SuperGLUE: eight harder tasks and two diagnostic sets (Wang et al. 2019)."""

from ensue.benchmarks.base import Benchmark

benchmark = Benchmark(
    name="superglue",
    about="eight harder tasks and two diagnostics (Wang et al. 2019)",
    task="ensue.benchmarks.superglue.task:TASK",
    comparing="ensue.benchmarks.superglue.task:COMPARING",
    tables="ensue.benchmarks.nlu.report.table:tables",
    page="ensue.benchmarks.nlu.report.page:PAGE",
    systems={
        "most-frequent": "ensue.benchmarks.nlu.systems:named",
        "hypothesis-only": "ensue.benchmarks.nlu.systems:named",
        "cbow": "ensue.benchmarks.nlu.systems:named",
        "bilstm": "ensue.benchmarks.nlu.systems:named",
        "bilstm-attention": "ensue.benchmarks.nlu.systems:named",
    },
    builders={
        "wsc": "ensue.benchmarks.nlu.builders.commands:wsc",
    },
    commands={
        "grade": "ensue.benchmarks.nlu.submissions.commands:grade",
        "submit": "ensue.benchmarks.nlu.submissions.commands:submit",
    },
)
