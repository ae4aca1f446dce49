"""The Shuffle Test: does a model prefer a text in its own order? (Laban et al. 2021)"""

from ensue.benchmarks.base import Benchmark

benchmark = Benchmark(
    name="shuffle",
    about="zero-shot Shuffle Test and k-Block Shuffle Test (Laban et al. 2021)",
    task="ensue.benchmarks.shuffle.task:TASK",
    grader="ensue.benchmarks.shuffle.grading:GRADER",
    tables="ensue.benchmarks.shuffle.report.table:tables",
    page="ensue.benchmarks.shuffle.report.page:PAGE",
    people={"shuffle": "ensue.benchmarks.shuffle.people:KIND"},
)
