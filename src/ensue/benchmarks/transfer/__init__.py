"""Transfer: does a model that was trained to notice shuffled sentences notice anything else?"""

from ensue.benchmarks.base import Benchmark

benchmark = Benchmark(
    name="transfer",
    about="models trained on shuffled text, beside others, on larger blocks, other domains, intruders and ratings",
    task="ensue.benchmarks.transfer.task:TASK",
    tables="ensue.benchmarks.transfer.report.table:tables",
    page="ensue.benchmarks.transfer.report.page:PAGE",
)
