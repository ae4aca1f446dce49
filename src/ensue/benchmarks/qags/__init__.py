"""QAGS: is a summary consistent with its source, by questions whose answers both should share."""

from ensue.benchmarks.base import Baseline, Benchmark, Builder

benchmark = Benchmark(
    name="qags",
    about="consistency of summaries by questions, held against human judgments (Wang et al. 2020)",
    task="ensue.benchmarks.qags.task:TASK",
    default_model="smollm2-qg",
    comparing="ensue.benchmarks.qags.comparing:COMPARING",
    grader="ensue.benchmarks.qags.grading:GRADER",
    tables="ensue.benchmarks.qags.report.table:tables",
    page="ensue.benchmarks.qags.report.page:PAGE",
    systems={
        "source-overlap": Baseline("ensue.benchmarks.qags.task:named", "the metrics that need no model")
    },
    builders={"squad": Builder("ensue.benchmarks.qags.commands:squad")},
    commands={"qags": "ensue.benchmarks.qags.commands:qags"},
    people={"consistency": "ensue.benchmarks.qags.people:KIND"},
)
