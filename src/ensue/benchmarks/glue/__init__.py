"""GLUE: nine tasks of sentence understanding and a diagnostic set (Wang et al. 2019)."""

from ensue.benchmarks.base import Benchmark

benchmark = Benchmark(
    name="glue",
    about="nine tasks of sentence understanding and a diagnostic (Wang et al. 2019)",
    task="ensue.benchmarks.glue.task:TASK",
    comparing="ensue.benchmarks.glue.task:COMPARING",
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
        "qnli": "ensue.benchmarks.nlu.builders.commands:qnli",
        "wnli": "ensue.benchmarks.nlu.builders.commands:wnli",
        "rte": "ensue.benchmarks.nlu.builders.commands:rte",
    },
    commands={
        "grade": "ensue.benchmarks.nlu.submissions.commands:grade",
        "submit": "ensue.benchmarks.nlu.submissions.commands:submit",
    },
)
