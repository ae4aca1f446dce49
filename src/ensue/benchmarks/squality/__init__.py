"""SQuALITY: stories, questions about them, and four summaries that people wrote in answer to each."""

from ensue.benchmarks.base import Baseline, Benchmark

benchmark = Benchmark(
    name="squality",
    about="Summaries of stories in answer to questions, against four references; human-eval: metrics and people.",
    task="ensue.benchmarks.squality.task:TASK",
    tables="ensue.benchmarks.squality.report.table:tables",
    page="ensue.benchmarks.squality.report.page:PAGE",
    systems={
        "human": Baseline("ensue.benchmarks.squality.systems:named", "each reference against the others"),
        "lead": Baseline("ensue.benchmarks.squality.systems:named", "a story's first sentences"),
        "oracle": Baseline("ensue.benchmarks.squality.systems:named", "the sentences that ROUGE likes best"),
        "retrieval": Baseline(
            "ensue.benchmarks.squality.systems:named", "the sentences nearest the question"
        ),
        "written": Baseline(
            "ensue.benchmarks.squality.systems:named", "summaries from a file, --set summaries=FILE"
        ),
    },
)
