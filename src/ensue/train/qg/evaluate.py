"""How well a questioner expects the questions people asked: perplexity for each question token."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ensue.errors import EnsueError
from ensue.models.protocols import AnswerSpan, Model
from ensue.train.qg.examples import QuestionExample


@runtime_checkable
class QuestionScorer(Model, Protocol):
    """A questioner that can also say how likely a given question is."""

    def question_logprobs(
        self, contexts: Sequence[str], answers: Sequence[AnswerSpan], questions: Sequence[str]
    ) -> list[npt.NDArray[np.float64]]:
        """Log-probability of every token of each question, the end token among them."""


class QuestionPerplexity(NamedTuple):
    """Perplexity over all tokens of all questions, end tokens counted, and of how many it is."""

    perplexity: float
    tokens: int
    questions: int


def evaluate_questioner(model: Model, examples: Sequence[QuestionExample]) -> QuestionPerplexity:
    """The perplexity of the examples' questions, each after its text and answer."""
    if not isinstance(model, QuestionScorer):
        raise EnsueError(f"{model.card.name} cannot say how likely a question is; name a question generator.")
    if not examples:
        raise EnsueError("There is no question to evaluate on: give questions that have an answer.")
    found = model.question_logprobs(
        [example.context for example in examples],
        [example.answer for example in examples],
        [example.question for example in examples],
    )
    tokens = sum(map(len, found))
    total = math.fsum(float(row.sum()) for row in found)
    return QuestionPerplexity(math.exp(min(-total / tokens, 700.0)), tokens, len(examples))
