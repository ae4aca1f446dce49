"""SQuALITY: stories, questions about them, and four summaries that people wrote in answer to each."""

from ensue.benchmarks.base import Baseline, Benchmark

_NAMED = "ensue.benchmarks.squality.systems:named"

benchmark = Benchmark(
    name="squality",
    about="Summaries of stories in answer to questions, against four references; human-eval: metrics and people.",
    task="ensue.benchmarks.squality.task:TASK",
    grader="ensue.benchmarks.squality.grading:GRADER",
    tables="ensue.benchmarks.squality.report.table:tables",
    page="ensue.benchmarks.squality.report.page:PAGE",
    systems={
        "human": Baseline(_NAMED, "each reference against the others"),
        "lead": Baseline(_NAMED, "a story's first sentences"),
        "oracle": Baseline(_NAMED, "the sentences that ROUGE likes best"),
        "retrieval": Baseline(_NAMED, "the sentences nearest the question"),
        "written": Baseline(_NAMED, "summaries from a file, --set summaries=FILE"),
    },
    people={"squality": "ensue.benchmarks.squality.people:KIND"},
)
