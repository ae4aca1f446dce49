"""What of an example is read by the encoder: one sequence of one or two texts, or one for every choice."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ensue.benchmarks.nlu.examples import Example, Form
from ensue.errors import EnsueError

GAP = "@placeholder"
# COPA asks in one word; the encoder reads a sentence.
# Nothing is asked where a choice just goes on (SWAG).
_QUESTIONS = {"cause": " What brought this about?", "effect": " What came of this?", "": ""}


class Wording(NamedTuple):
    """One sequence: its texts, and whether only the first of them may be cut when it is too long."""

    texts: tuple[str, ...]
    keep_second: bool = False


def wordings(form: Form, example: Example) -> list[Wording]:
    """The sequences of an example: one, or one for every choice in their order."""
    return _WORDINGS[form](example)


def _as_it_is(example: Example) -> list[Wording]:
    return [Wording(example.texts)]


def _choice(example: Example) -> list[Wording]:
    premise, asked = example.texts
    if asked not in _QUESTIONS:
        raise EnsueError(
            f"{example.where or example.id}: the question is {asked!r}; it must be cause or effect."
        )
    return [Wording((premise + _QUESTIONS[asked], choice), True) for choice in example.choices]


def _answers(example: Example) -> list[Wording]:
    passage, question, answer = example.texts
    return [Wording((passage, f"{question} {answer}"), True)]


def _entity(example: Example) -> list[Wording]:
    passage, query = example.texts
    if GAP not in query or not example.choices:
        raise EnsueError(f"{example.where or example.id}: a query needs {GAP} and entities to fill it with.")
    return [Wording((passage, query.replace(GAP, entity)), True) for entity in example.choices]


_WORDINGS: dict[Form, Callable[[Example], list[Wording]]] = {
    "single": _as_it_is,
    "pair": _as_it_is,
    "score": _as_it_is,
    "word": _as_it_is,
    "coreference": _as_it_is,
    "choice": _choice,
    "answers": _answers,
    "entity": _entity,
}
