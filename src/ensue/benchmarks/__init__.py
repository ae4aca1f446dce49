"""The benchmarks, one folder each, and what they share."""

from ensue.lazy import make_callable

make_callable(__name__)
