"""Insertion: does a model put a sentence that was taken out of a document back where it stood?"""

from ensue.benchmarks.base import Benchmark

benchmark = Benchmark(
    name="insertion",
    about="puts a sentence that was taken out of a document back into its place",
    task="ensue.benchmarks.insertion.task:TASK",
    tables="ensue.benchmarks.insertion.report:tables",
    page="ensue.benchmarks.insertion.report:PAGE",
    people={"insertion": "ensue.benchmarks.coherence.people:INSERTION"},
)
