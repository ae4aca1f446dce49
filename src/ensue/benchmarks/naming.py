"""Choice by generation: a model is shown texts under letters and asked to name one.

For models whose log-likelihoods cannot be had (chat servers, llama.cpp's). It measures something else than
log-likelihoods do: whether a model understands the question, can compare whole texts and keeps to a form, not what
it expects to read. So it is done only on request (`--set by=generation`), every row and signature says so, and such
a run is not compared with one by log-likelihood.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import RunContext, Setting
from ensue.benchmarks.marks import BY
from ensue.benchmarks.writing import write_texts
from ensue.models.protocols import Generator, portion_of
from ensue.records import digest_of, plain

LETTERS = "ABCDEFGHIJKLMNOP"
SETTINGS = {
    "answer_tokens": Setting(16, "generation: maximum number of tokens of a reply", read.whole()),
}
UNNAMED = "replies that name no text, counted as wrong"

_REPLIES = plain("named-choices")
_ON_CPU, _ELSEWHERE = 16, 256
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)
_THING = r"(?:text|option|letter|choice|version|beginning|candidate)"
_QUOTES = r"[\s:*_\"'“‘(\[{`]*"
# What a reply may look like, surest first: the letter alone or before a stop; "the answer is B"; "Text B …".
_ALONE = re.compile(rf"\A{_QUOTES}(?:{_THING}{_QUOTES})?([A-P])(?:[\W_]*\Z|[.):\]*\"'”’,;\n])", re.IGNORECASE)
_ANSWER = re.compile(
    rf"\b(?i:answer|choice)\b(?:\s+(?:is|would be|should be|must be))?{_QUOTES}"
    rf"(?:(?i:the\s+)?(?i:{_THING}){_QUOTES})?([A-P])(?![\w'’])"
)
_NAMED = re.compile(rf"\b(?i:{_THING}){_QUOTES}([A-P])(?![\w'’])")


class Choice(NamedTuple):
    """Texts of which one is right, the first; `id` is what the order of their letters is drawn by.

    `before` is read before them and `question` after them.
    """

    id: str
    before: str
    texts: tuple[str, ...]
    question: str


class Chosen(NamedTuple):
    """What a model chose: the place of a text (the right one's is 0) or None, its reply, and the letters' order."""

    place: int | None
    reply: str
    order: tuple[int, ...]


def order_of(choice: Choice, seed: int) -> tuple[int, ...]:
    """Return which text stands at each letter."""
    order = list(range(len(choice.texts)))
    random.Random(f"{seed}/{choice.id}/letters").shuffle(order)
    return tuple(order)


def prompt_of(choice: Choice, order: Sequence[int]) -> str:
    """Write the texts under letters and ask for one."""
    shown = [f"Text {LETTERS[at]}:\n{choice.texts[place].strip()}" for at, place in enumerate(order)]
    letters = [LETTERS[at] for at in range(len(order))]
    those = f"{', '.join(letters[:-1])} or {letters[-1]}"
    return "\n\n".join(
        [
            choice.before,
            *shown,
            f"{choice.question} Reply with one letter, {those}, and nothing else.\nAnswer:",
        ]
    )


def named_letter(reply: str, count: int) -> int | None:
    """Return the place of the letter that a reply names, None where it names none or several.

    >>> [named_letter(reply, 2) for reply in ("B", " (b).", "The answer is Text A.", "A dog runs.", "A or B", "C")]
    [1, 1, 0, None, None, None]
    """
    said = _THOUGHT.sub(" ", reply)
    if "<think>" in said:
        return None
    for pattern, last in ((_ALONE, False), (_ANSWER, True), (_NAMED, False)):
        found = [LETTERS.index(letter.upper()) for letter in pattern.findall(said)]
        known = [place for place in found if place < count]
        if known and last:
            return known[-1]
        if len(set(known)) == 1:
            return known[0]
    return None


def choose(
    generator: Generator, choices: Sequence[Choice], seed: int, tokens: int, context: RunContext
) -> list[Chosen]:
    """Ask a model to choose; what an interrupted run was told is taken as it is."""
    orders = [order_of(choice, seed) for choice in choices]
    prompts = [prompt_of(choice, order) for choice, order in zip(choices, orders, strict=True)]
    card = generator.card
    who = digest_of(card.identity, card.generation, card.kind, card.max_length, tokens)
    replies = write_texts(
        generator,
        prompts,
        [digest_of(who, prompt) for prompt in prompts],
        context.records,
        _REPLIES,
        portion=portion_of(generator, on_cpu=_ON_CPU, elsewhere=_ELSEWHERE),
        progress=context.progress,
        unit="choices",
        max_tokens=tokens,
    )
    chosen = []
    for reply, order in zip(replies, orders, strict=True):
        at = named_letter(reply, len(order))
        chosen.append(Chosen(None if at is None else order[at], reply, order))
    return chosen


def unnamed(chosen: Sequence[Chosen]) -> Counter[str]:
    """Count the replies that name no text, for a run's notes."""
    count = sum(one.place is None for one in chosen)
    return Counter({UNNAMED: count} if count else {})


def outputs_of(chosen: Chosen) -> dict[str, Any]:
    """Return what an item keeps of a reply, from which it can be read again."""
    return {"reply": chosen.reply, "letters": list(chosen.order)}


def signature_of(generator: Generator, tokens: int) -> str:
    """Return what a signature says of a model that is asked to name its choice."""
    card = generator.card
    talk = " talk:chat" if card.identity.get("talk") else ""
    return f"model:{card.signed_name} weights:{card.mark} by:{BY} greedy tokens:{tokens} letters:drawn{talk}"
