"""DiscoEval: discourse probes of sentence vectors (Chen et al. 2019)."""

from ensue.benchmarks.base import Benchmark, Builder

benchmark = Benchmark(
    name="discoeval",
    about="twelve discourse probes of sentence vectors (Chen et al. 2019)",
    task="ensue.benchmarks.discoeval.task:TASK",
    comparing="ensue.benchmarks.discoeval.judging:COMPARING",
    grader="ensue.benchmarks.discoeval.grading:GRADER",
    tables="ensue.benchmarks.probing.report.table:tables",
    page="ensue.benchmarks.probing.report.page:PAGE",
    builders={
        "discoeval": Builder(
            "ensue.benchmarks.discoeval.commands:discoeval", "ensue.benchmarks.discoeval.builders.build:build"
        ),
        "rst-json": Builder(
            "ensue.benchmarks.discoeval.commands:rst_json", "ensue.benchmarks.discoeval.rst:convert_rst"
        ),
    },
)
