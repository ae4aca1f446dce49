"""Questions with their answers' places, from articles in SQuAD's format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ensue.models.protocols import AnswerSpan
from ensue.text.io.squad import Answer, Article, examples_of


class QuestionExample(NamedTuple):
    """A text, an answer in it, and the question somebody asked for that answer."""

    article: str
    context: str
    answer: AnswerSpan
    question: str


class Found(NamedTuple):
    """The examples of some articles, and why other questions are not among them."""

    examples: list[QuestionExample]
    skipped: dict[str, int]


def question_examples(articles: Iterable[Article]) -> Found:
    """One example a question: with the answer most people marked, the first of several such.

    Questions without an answer cannot be asked for one, and an equal question to an equal answer is taken once.
    """
    skipped: Counter[str] = Counter()
    kept: dict[QuestionExample, None] = {}
    for row in examples_of(articles):
        if not row.answers:
            skipped["unanswerable"] += 1
            continue
        question = " ".join(row.question.split())
        if not question:
            skipped["empty question"] += 1
            continue
        answer = chosen_answer(row.answers)
        example = QuestionExample(row.article, row.context, answer, question)
        if example in kept:
            skipped["asked twice"] += 1
        kept[example] = None
    return Found(list(kept), dict(skipped))


def chosen_answer(answers: Sequence[Answer]) -> AnswerSpan:
    """The answer most people marked; of equally many the one marked first.

    >>> chosen_answer([Answer("old mill", 4), Answer("mill", 8), Answer("mill", 8)])
    AnswerSpan(start=8, end=12)
    """
    (text, start), _ = Counter(answers).most_common(1)[0]
    return AnswerSpan(start, start + len(text))
