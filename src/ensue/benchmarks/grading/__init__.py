"""Grading without a model: what a board is, whose predictions it takes, and what it makes of them.

The command line and a server call the same `open_board`; nothing here imports torch.
"""

from ensue.benchmarks.grading.board import (
    Board,
    Column,
    Graded,
    Grader,
    SubmitRequest,
    Submitted,
    grade,
    grader_of,
    open_board,
)
from ensue.benchmarks.grading.problems import Limits, Problem, Refused

__all__ = [
    "Board",
    "Column",
    "Graded",
    "Grader",
    "Limits",
    "Problem",
    "Refused",
    "SubmitRequest",
    "Submitted",
    "grade",
    "grader_of",
    "open_board",
]
