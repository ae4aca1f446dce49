"""Ordering: does a model find the order of a document's sentences?"""

from ensue.benchmarks.base import Benchmark

benchmark = Benchmark(
    name="ordering",
    about="puts the shuffled sentences of a document into order, by beam search or from pairs of sentences",
    task="ensue.benchmarks.ordering.task:TASK",
    tables="ensue.benchmarks.ordering.report:tables",
    page="ensue.benchmarks.ordering.report:PAGE",
    people={"ordering": "ensue.benchmarks.coherence.people:ORDERING"},
)
