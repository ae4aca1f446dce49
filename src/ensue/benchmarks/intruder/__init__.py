"""The intruder: does a model find the one sentence of a document that does not follow?"""

from ensue.benchmarks.base import Benchmark

benchmark = Benchmark(
    name="intruder",
    about="finds the one sentence of a document that does not follow: of another text, moved or altered",
    task="ensue.benchmarks.intruder.task:TASK",
    comparing="ensue.benchmarks.intruder.judging:COMPARING",
    tables="ensue.benchmarks.intruder.report.table:tables",
    grader="ensue.benchmarks.intruder.grading:GRADER",
    page="ensue.benchmarks.intruder.report.page:PAGE",
    people={"intruder": "ensue.benchmarks.intruder.people:KIND"},
)
