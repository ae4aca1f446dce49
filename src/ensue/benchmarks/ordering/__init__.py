"""Ordering: does a model find the order of a document's sentences?"""

from ensue.benchmarks.base import Benchmark

benchmark = Benchmark(
    name="ordering",
    about="puts the shuffled sentences of a document into order, from pairs of sentences, whole orders or a search",
    task="ensue.benchmarks.ordering.task:TASK",
    tables="ensue.benchmarks.ordering.report:tables",
    page="ensue.benchmarks.ordering.report:PAGE",
    people={"ordering": "ensue.benchmarks.coherence.people:ORDERING"},
)
