"""Targeted pairs: does a model prefer the one of two endings that follows?"""

from ensue.benchmarks.base import Benchmark

benchmark = Benchmark(
    name="pairs",
    about="minimal pairs on coherence: connectives, re-mentions, time order, contradictions; or your own",
    task="ensue.benchmarks.pairs.task:TASK",
    tables="ensue.benchmarks.pairs.report:tables",
    page="ensue.benchmarks.pairs.report:PAGE",
)
