"""ChapterBreak: which chapter follows? (Sun et al. 2022)"""

from ensue.benchmarks.base import Benchmark, Builder

benchmark = Benchmark(
    name="chapterbreak",
    about="suffix identification at chapter breaks (Sun et al. 2022)",
    task="ensue.benchmarks.chapterbreak.task:TASK",
    comparing="ensue.benchmarks.chapterbreak.task:COMPARING",
    grader="ensue.benchmarks.chapterbreak.grading:GRADER",
    tables="ensue.benchmarks.chapterbreak.report.table:tables",
    page="ensue.benchmarks.chapterbreak.report.page:PAGE",
    builders={
        "chapterbreak": Builder(
            "ensue.benchmarks.chapterbreak.commands:chapterbreak",
            "ensue.benchmarks.chapterbreak.data.build:build",
        ),
    },
    people={
        "transitions": "ensue.benchmarks.chapterbreak.people:KIND",
        "chapterbreak": "ensue.benchmarks.chapterbreak.choosing:KIND",
    },
)
