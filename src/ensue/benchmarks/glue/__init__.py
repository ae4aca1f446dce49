"""GLUE: nine tasks of sentence understanding and a diagnostic set (Wang et al. 2019)."""

from ensue.benchmarks.base import Benchmark, Builder
from ensue.benchmarks.nlu import SYSTEMS

benchmark = Benchmark(
    name="glue",
    about="nine tasks of sentence understanding and a diagnostic (Wang et al. 2019)",
    task="ensue.benchmarks.glue.task:TASK",
    comparing="ensue.benchmarks.glue.task:COMPARING",
    tables="ensue.benchmarks.nlu.report.table:tables",
    page="ensue.benchmarks.nlu.report.page:PAGE",
    systems=SYSTEMS,
    people={"classification": "ensue.benchmarks.nlu.people:KIND"},
    builders={
        "qnli": Builder(
            "ensue.benchmarks.nlu.builders.commands:qnli", "ensue.benchmarks.nlu.builders.qnli:build_qnli"
        ),
        "wnli": Builder(
            "ensue.benchmarks.nlu.builders.commands:wnli",
            "ensue.benchmarks.nlu.builders.winograd:build_wnli",
        ),
        "rte": Builder(
            "ensue.benchmarks.nlu.builders.commands:rte", "ensue.benchmarks.nlu.builders.entailment:build_rte"
        ),
    },
    grader="ensue.benchmarks.nlu.submissions.grading:GLUE",
)
