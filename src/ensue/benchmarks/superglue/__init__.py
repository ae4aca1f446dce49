"""SuperGLUE: eight harder tasks and two diagnostic sets (Wang et al. 2019)."""

from ensue.benchmarks.base import Baseline, Benchmark, Builder

benchmark = Benchmark(
    name="superglue",
    about="eight harder tasks and two diagnostics (Wang et al. 2019)",
    task="ensue.benchmarks.superglue.task:TASK",
    comparing="ensue.benchmarks.superglue.task:COMPARING",
    tables="ensue.benchmarks.nlu.report.table:tables",
    page="ensue.benchmarks.nlu.report.page:PAGE",
    systems={
        "most-frequent": Baseline("ensue.benchmarks.nlu.systems:named", "the commonest label"),
        "hypothesis-only": Baseline("ensue.benchmarks.nlu.systems:named", "the second text alone"),
        "cbow": Baseline("ensue.benchmarks.nlu.systems:named", "bags of word vectors, trained"),
        "bilstm": Baseline("ensue.benchmarks.nlu.systems:named", "the paper's BiLSTM, trained"),
        "bilstm-attention": Baseline(
            "ensue.benchmarks.nlu.systems:named", "the same with attention between the texts"
        ),
    },
    builders={
        "wsc": Builder(
            "ensue.benchmarks.nlu.builders.commands:wsc",
            "ensue.benchmarks.nlu.builders.winograd:build_winograd",
        ),
    },
    commands={
        "grade": "ensue.benchmarks.nlu.submissions.commands:grade",
        "submit": "ensue.benchmarks.nlu.submissions.commands:submit",
    },
)
