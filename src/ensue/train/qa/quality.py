"""How well a model answers questions: SQuAD's exact match and F1, over questions with and without an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ensue.errors import EnsueError
from ensue.metrics.answers import best_over, exact_match, normalised, token_f1
from ensue.models.protocols import Answerer
from ensue.text.io.squad import Answer, Example


@dataclass(frozen=True)
class AnswerFigures:
    """Means over questions, as SQuAD 2.0's evaluation gives them; None where there is no such question."""

    exact: float
    f1: float
    has_answer_exact: float | None
    has_answer_f1: float | None
    no_answer: float | None

    def as_dict(self) -> dict[str, float]:
        """Return the means there are, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}


def evaluate_answerer(answerer: Answerer, examples: Sequence[Example]) -> AnswerFigures:
    """Ask every question of its text and hold the answers against the marked ones."""
    found = answerer.answer([one.question for one in examples], [one.context for one in examples])
    return figures_of(examples, [one.text for one in found])


def figures_of(examples: Sequence[Example], given: Sequence[str]) -> AnswerFigures:
    """Return the figures of answers already given, one a question; an empty one says that there is none."""
    if not examples:
        raise EnsueError("There is no question to measure answers on; name a file that asks some.")
    judged = [scores(text, one.answers) for one, text in zip(examples, given, strict=True)]
    exact, f1 = (np.array(values) for values in zip(*judged, strict=True))
    answerable = np.array([bool(one.answers) for one in examples])
    return AnswerFigures(
        exact=float(exact.mean()),
        f1=float(f1.mean()),
        has_answer_exact=_mean(exact[answerable]),
        has_answer_f1=_mean(f1[answerable]),
        no_answer=_mean(exact[~answerable]),
    )


def scores(given: str, answers: Sequence[Answer]) -> tuple[float, float]:
    """Exact match and F1 with the nearest answer; where none is right, saying nothing scores 1 in both.

    >>> scores("in Lisbon", [Answer("Lisbon", 12)])
    (0.0, 0.6666666666666666)
    >>> scores("", [])
    (1.0, 1.0)
    """
    # As the official evaluation does: an answer of which normalising leaves nothing is none.
    texts = [answer.text for answer in answers if normalised(answer.text)]
    if not texts:
        silent = float(not normalised(given))
        return silent, silent
    return best_over(exact_match, given, texts), best_over(token_f1, given, texts)


def best_threshold(examples: Sequence[Example], given: Sequence[str], odds: Sequence[float]) -> float:
    """Return the threshold on the log-odds of an answer that gives the best mean F1, halfway between two odds."""
    answered = np.array([scores(text, one.answers)[1] for text, one in zip(given, examples, strict=True)])
    silent = np.array([scores("", one.answers)[1] for one in examples])
    order = np.argsort(-np.asarray(odds, dtype=np.float64), kind="stable")
    ranked = np.asarray(odds, dtype=np.float64)[order]
    # Entry k: the k surest questions answered, all others met with silence.
    totals = silent.sum() + np.concatenate([[0.0], np.cumsum((answered - silent)[order])])
    # Questions of equal odds are answered together or not at all.
    totals[1:-1][ranked[1:] == ranked[:-1]] = -np.inf
    best = int(totals.argmax())
    if best == 0:
        return float(ranked[0] + 1.0)
    if best == len(ranked):
        return float(ranked[-1] - 1.0)
    return float((ranked[best - 1] + ranked[best]) / 2)


def _mean(values: npt.NDArray[np.float64]) -> float | None:
    return float(values.mean()) if len(values) else None
