"""How a language model is asked for a question: the text first, so that all its answers share it, then the answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from ensue.errors import EnsueError
from ensue.models.protocols import AnswerSpan

# Words shown on each side of the answer: enough to tell which of several equal phrases is meant.
_AROUND = 5
_OPEN, _CLOSE = "[[", "]]"
_WORD = re.compile(r"\S+")

_TASK = (
    "Read the text and write one short question about it. The answer to the question must be exactly the words "
    f"between {_OPEN} and {_CLOSE}, and the question must not contain them."
)
# Invented for this purpose; three kinds of answer: a person, a time, a thing.
_SHOTS = (
    (
        "The harbour museum reopened in May after Ilse Brandt had paid for a new roof.",
        "Ilse Brandt",
        "Who paid for the new roof of the harbour museum?",
    ),
    (
        "Because the bridge was being painted, the ferry ran every ten minutes until late October.",
        "late October",
        "Until when did the ferry run every ten minutes?",
    ),
    (
        "The council voted to plant two hundred lime trees along the old canal.",
        "two hundred lime trees",
        "What did the council vote to plant along the old canal?",
    ),
)


class QuestionPrompt(NamedTuple):
    """A prompt in two parts: what all answers of a text share, and what is this answer's own."""

    shared: str
    own: str


PromptMaker = Callable[[str, AnswerSpan], QuestionPrompt]


def check_span(context: str, answer: AnswerSpan) -> None:
    """Refuse an answer that is no part of its text."""
    if not 0 <= answer.start < answer.end <= len(context) or not context[answer.start : answer.end].strip():
        raise EnsueError(
            f"Characters {answer.start} to {answer.end} are no answer in a text of {len(context)} characters: "
            f"{context[:40]!r}; give the start and end of some words in it."
        )


def marked_excerpt(context: str, answer: AnswerSpan, around: int = _AROUND) -> str:
    """The answer in double brackets with a few words before and after it.

    >>> marked_excerpt("A cat sat on the mat.", AnswerSpan(2, 5))
    'A [[cat]] sat on the mat.'
    """
    check_span(context, answer)
    before = _WORD.findall(context[: answer.start])
    after = _WORD.findall(context[answer.end :])
    # A word cut by the answer's edge stays attached to it.
    glued = context[: answer.start][-1:].strip() != ""
    left = " ".join(before[-around:]) + ("" if glued or not before else " ")
    right = context[answer.end :][:1]
    gap = "" if right.strip() or not after else " "
    middle = f"{_OPEN}{' '.join(context[answer.start : answer.end].split())}{_CLOSE}"
    return (
        ("… " if len(before) > around else "")
        + left
        + middle
        + gap
        + " ".join(after[:around])
        + (" …" if len(after) > around else "")
    )


def plain_prompt(context: str, answer: AnswerSpan) -> QuestionPrompt:
    """What our own generator is trained to continue with a space and the question."""
    return QuestionPrompt(
        f"Text: {' '.join(context.split())}\n", f"Answer: {marked_excerpt(context, answer)}\nQuestion:"
    )


def few_shot_prompt(context: str, answer: AnswerSpan) -> QuestionPrompt:
    """An instruction and three invented examples before the text, for a model without a chat template."""
    shots = [_shot(text, words, question) for text, words, question in _SHOTS]
    prompt = plain_prompt(context, answer)
    return QuestionPrompt("\n\n".join([_TASK, *shots, prompt.shared]), prompt.own)


def chat_prompt(tokenizer: Any) -> PromptMaker:
    """The same through a tokenizer's chat template, the examples as earlier turns."""

    def make(context: str, answer: AnswerSpan) -> QuestionPrompt:
        turns: list[dict[str, str]] = []
        for text, words, question in _SHOTS:
            shared, own = _plain_of(text, words)
            turns += [
                {"role": "user", "content": f"{_TASK}\n\n{shared}{own.removesuffix(chr(10) + 'Question:')}"},
                {"role": "assistant", "content": question},
            ]
        prompt = plain_prompt(context, answer)
        own = prompt.own.removesuffix("\nQuestion:")
        turns.append({"role": "user", "content": f"{_TASK}\n\n{prompt.shared}{own}"})
        whole = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        at = whole.rfind(own)
        if at < 0:  # a template that rewrites what is said
            return QuestionPrompt("", whole)
        return QuestionPrompt(whole[:at], whole[at:])

    return make


def _plain_of(text: str, words: str) -> QuestionPrompt:
    start = text.index(words)
    return plain_prompt(text, AnswerSpan(start, start + len(words)))


def _shot(text: str, words: str, question: str) -> str:
    shared, own = _plain_of(text, words)
    return f"{shared}{own} {question}"
