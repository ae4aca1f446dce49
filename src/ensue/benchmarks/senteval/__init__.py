"""SentEval: similarity, classification and probing tasks for sentence vectors (Conneau and Kiela 2018)."""

from ensue.benchmarks.base import Benchmark

benchmark = Benchmark(
    name="senteval",
    about="similarity, classification and probing tasks for sentence vectors (Conneau and Kiela 2018)",
    task="ensue.benchmarks.senteval.task:TASK",
    comparing="ensue.benchmarks.senteval.comparing:COMPARING",
    grader="ensue.benchmarks.senteval.grading:GRADER",
    tables="ensue.benchmarks.probing.report.table:tables",
    page="ensue.benchmarks.probing.report.page:PAGE",
)
