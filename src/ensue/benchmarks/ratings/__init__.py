"""Ratings: does what a model makes of texts agree with how coherent people find them?"""

from ensue.benchmarks.base import Benchmark

benchmark = Benchmark(
    name="ratings",
    about="holds log-likelihoods and sentence profiles of texts against people's ratings of their coherence",
    task="ensue.benchmarks.ratings.task:TASK",
    tables="ensue.benchmarks.ratings.report:tables",
    page="ensue.benchmarks.ratings.report:PAGE",
)
