"""SQuALITY: stories, questions about them, and four summaries that people wrote in answer to each."""

from ensue.benchmarks.base import Benchmark

benchmark = Benchmark(
    name="squality",
    about="Summaries of stories in answer to questions, against four references; human-eval: metrics and people.",
    task="ensue.benchmarks.squality.task:TASK",
    tables="ensue.benchmarks.squality.report.table:tables",
    page="ensue.benchmarks.squality.report.page:PAGE",
    systems={
        "human": "ensue.benchmarks.squality.systems:named",
        "lead": "ensue.benchmarks.squality.systems:named",
        "oracle": "ensue.benchmarks.squality.systems:named",
        "retrieval": "ensue.benchmarks.squality.systems:named",
        "written": "ensue.benchmarks.squality.systems:named",
    },
)
