"""The ways in which completion servers tell the log-probabilities of a prompt, and how to read them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ensue.backends.endpoint.client import CutShort


class Token(NamedTuple):
    """A token as a server tells of it, with the log-probability of the best token for its place.

    What the server does not tell is None.
    """

    text: str | None
    logprob: float | None
    best: float | None = None


class Reply(NamedTuple):
    """The tokens of a reply, and how many of them may be the prompt's, likeliest first.

    `counted` is how many tokens the server says the prompt has.
    """

    tokens: list[Token]
    lengths: tuple[int, ...]
    counted: int | None


@dataclass(frozen=True)
class Style:
    """A way to ask for prompt log-probabilities and to read them."""

    options: dict[str, Any]
    parse: Callable[[Any], Reply | None]

    def read(self, answer: Any) -> Reply | None:
        """The tokens in a server's answer; None where it has none of this kind."""
        try:
            return self.parse(answer)
        except (AttributeError, KeyError, TypeError) as error:
            raise CutShort("sent a reply that cannot be read") from error


def first_choice(reply: Any) -> dict[str, Any]:
    """The first completion in a reply."""
    try:
        choice = reply["choices"][0]
    except (KeyError, IndexError, TypeError):
        choice = None
    if not isinstance(choice, dict):
        raise CutShort("sent a reply without a completion")
    return choice


def count_prompt(reply: Any) -> int | None:
    """The number of tokens in the prompt, if the server tells."""
    usage = reply.get("usage") if isinstance(reply, dict) else None
    counted = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return counted if isinstance(counted, int) else None


def _read_echo(reply: Any) -> Reply | None:
    """The tokens of an `echo` reply: the prompt's, and the generated one at the end."""
    told = first_choice(reply).get("logprobs")
    if not isinstance(told, dict) or not told.get("tokens") or not told.get("token_logprobs"):
        return None
    texts, logprobs = told["tokens"], told["token_logprobs"]
    if len(texts) != len(logprobs):
        raise CutShort("sent unequal numbers of tokens and log-probabilities")
    ranked = told.get("top_logprobs") or []
    tops = ranked if len(ranked) == len(texts) else [None] * len(texts)
    tokens = [
        Token(text, _number(logprob), max(top.values(), default=None) if top else None)
        for text, logprob, top in zip(texts, logprobs, tops, strict=True)
    ]
    # One token is generated, which most servers list and some do not.
    counted = count_prompt(reply)
    lengths = (len(tokens), len(tokens) - 1) if counted == len(tokens) else (len(tokens) - 1, len(tokens))
    return Reply(tokens, lengths, counted)


def _read_prompt_logprobs(reply: Any) -> Reply | None:
    """The tokens of a reply with vLLM's `prompt_logprobs`: null, then a dict of candidates for each token."""
    told = first_choice(reply).get("prompt_logprobs") or reply.get("prompt_logprobs")
    if not isinstance(told, list):
        return None
    tokens = []
    for candidates in told:
        if not candidates:
            tokens.append(Token(None, None))
            continue
        entries = list(candidates.values())
        own = _prompt_entry(entries)
        best = max((entry["logprob"] for entry in entries), default=None)
        tokens.append(Token(own.get("decoded_token"), _number(own.get("logprob")), best))
    # The first token's text is untold, so a list cut short could pass for a whole one in a text that repeats.
    counted = count_prompt(reply)
    if counted is not None and len(tokens) < counted:
        raise CutShort("sent tokens for only a part of the text")
    return Reply(tokens, (len(tokens),), counted)


def _prompt_entry(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """The prompt token's own entry among the candidates for its place.

    One best candidate is asked for, so of two entries the prompt token is the one that is not of rank 1
    (else they would be one). vLLM also lists it first, but its first releases with the V1 engine did not.
    """
    others = [entry for entry in entries if entry.get("rank") not in (None, 1)]
    return others[0] if len(entries) == 2 and len(others) == 1 else entries[0]


def _number(value: Any) -> float | None:
    if value is None:
        return None
    # A NaN is the model's own, and asking again would not help: the engine refuses it by its text.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CutShort(f"sent {str(value)[:20]!r} for a log-probability")
    return float(value)


ECHO = Style({"echo": True, "logprobs": 1}, _read_echo)
PROMPT_LOGPROBS = Style({"prompt_logprobs": 1}, _read_prompt_logprobs)


def tells_prompt(reply: Reply | None) -> bool:
    """Whether a reply tells log-probabilities of its prompt, not only of the one generated token."""
    return reply is not None and sum(token.logprob is not None for token in reply.tokens[1:]) > 1
