"""The ways in which servers are asked for the log-probabilities of a prompt, and how their replies are read.

`echo` is OpenAI's own, which several servers have kept; `prompt_logprobs` is vLLM's; `/generate` is SGLang's, the
only one that tells log-probabilities from a given token on. What comes before that is taken from the server's cache
of prefixes, where the other two have the whole prompt computed anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ensue.backends.endpoint.client import CutShort

# A text, or its tokens.
Prompt = str | list[int]


class Token(NamedTuple):
    """A token as a server reports it, with the log-probability of the best token for its place.

    What the server does not report is None.
    """

    text: str | None
    logprob: float | None
    best: float | None = None
    id: int | None = None


class Reply(NamedTuple):
    """The tokens of a reply, and how many of them may be the prompt's, likeliest first.

    `counted` is how many tokens the server says the prompt has. `untold` of them are not told of, and stand in the
    list as the first token, together with that.
    """

    tokens: list[Token]
    lengths: tuple[int, ...]
    counted: int | None
    untold: int = 0


@dataclass(frozen=True)
class Style:
    """A way to ask for prompt log-probabilities and to read them; `native` if its path lies beside the API's root."""

    path: str
    body: Callable[[str, Prompt, int], dict[str, Any]]
    parse: Callable[[Any], Reply | None]
    native: bool = False

    def read(self, answer: Any) -> Reply | None:
        """Return the tokens in a server's answer; None where it has none of this kind."""
        try:
            return self.parse(answer)
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
            raise CutShort("sent a reply that cannot be read") from error


# A token that is all but certain may come out a little above 0.
_ROUNDED = 0.01
# Some servers refuse to generate nothing, so one token is asked for and dropped.
SCORING = {"max_tokens": 1, "temperature": 0}


def first_choice(reply: Any) -> dict[str, Any]:
    """Return the first completion in a reply."""
    try:
        choice = reply["choices"][0]
    except (KeyError, IndexError, TypeError):
        choice = None
    if not isinstance(choice, dict):
        raise CutShort("sent a reply without a completion")
    return choice


def count_prompt(reply: Any) -> int | None:
    """Return the number of tokens in the prompt, if the server reports it."""
    usage = reply.get("usage") if isinstance(reply, dict) else None
    counted = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return counted if isinstance(counted, int) else None


def completion_body(model: str, prompt: Prompt, **options: Any) -> dict[str, Any]:
    """Return what is sent to `/completions`."""
    return {"model": model, "prompt": prompt, **options}


def _read_echo(reply: Any) -> Reply | None:
    """Return the tokens of an `echo` reply: the prompt's, and the generated one at the end."""
    stated = first_choice(reply).get("logprobs")
    if not isinstance(stated, dict) or not stated.get("tokens") or not stated.get("token_logprobs"):
        return None
    texts, logprobs = stated["tokens"], stated["token_logprobs"]
    if len(texts) != len(logprobs):
        raise CutShort("sent unequal numbers of tokens and log-probabilities")
    ranked = stated.get("top_logprobs") or []
    tops = ranked if len(ranked) == len(texts) else [None] * len(texts)
    tokens = [
        Token(_text(text), _number(logprob), max(top.values(), default=None) if top else None)
        for text, logprob, top in zip(texts, logprobs, tops, strict=True)
    ]
    # One token is generated, which most servers list and some do not.
    counted = count_prompt(reply)
    lengths = (len(tokens), len(tokens) - 1) if counted == len(tokens) else (len(tokens) - 1, len(tokens))
    return Reply(tokens, lengths, counted)


def _read_prompt_logprobs(reply: Any) -> Reply | None:
    """Return the tokens of a reply with vLLM's `prompt_logprobs`: null, then a dict of candidates for each token."""
    stated = first_choice(reply).get("prompt_logprobs") or reply.get("prompt_logprobs")
    if not isinstance(stated, list):
        return None
    tokens = []
    for candidates in stated:
        if not candidates:
            tokens.append(Token(None, None))
            continue
        entries = list(candidates.items())
        number, own = _prompt_entry(entries)
        best = max((entry["logprob"] for _, entry in entries), default=None)
        id = int(number) if str(number).isdecimal() else None
        tokens.append(Token(_text(own.get("decoded_token")), _number(own.get("logprob")), best, id))
    # The first token's text is unknown, so a list cut short could pass for a whole one in a text that repeats.
    counted = count_prompt(reply)
    if counted is not None and len(tokens) < counted:
        raise CutShort("sent tokens for only a part of the text")
    return Reply(tokens, (len(tokens),), counted)


def _prompt_entry(entries: list[tuple[str, dict[str, Any]]]) -> tuple[str, dict[str, Any]]:
    """Return the prompt token's own entry among the candidates for its place.

    One best candidate is asked for, so of two entries the prompt token is the one that is not of rank 1
    (else they would be one). vLLM also lists it first, but its first releases with the V1 engine did not.
    """
    others = [entry for entry in entries if entry[1].get("rank") not in (None, 1)]
    return others[0] if len(entries) == 2 and len(others) == 1 else entries[0]


def _generate_body(model: str, prompt: Prompt, first: int) -> dict[str, Any]:
    """Return what is sent to SGLang's `/generate`, which has one model and needs no name of it."""
    return {
        "text" if isinstance(prompt, str) else "input_ids": prompt,
        "sampling_params": {"max_new_tokens": 1, "temperature": 0},
        "return_logprob": True,
        "logprob_start_len": first,
        "return_text_in_logprobs": True,
    }


def _read_generate(reply: Any) -> Reply | None:
    """Return the tokens of SGLang's reply: [log-probability, number, text] from the token asked for on.

    The first of them has no log-probability, so it is left untold with what comes before it.
    """
    about = reply.get("meta_info") if isinstance(reply, dict) else None
    if not isinstance(about, dict) or not isinstance(about.get("input_token_logprobs"), list):
        return None
    stated, counted = about["input_token_logprobs"], about.get("prompt_tokens")
    if not isinstance(counted, int) or not stated:
        return None
    if len(stated) > counted:
        raise CutShort("sent more tokens than it counts in the text")
    tokens = [Token(_text(text), _number(logprob), None, int(id)) for logprob, id, text in stated]
    untold = counted - len(stated)
    if untold:
        tokens[0] = Token(None, None)
    return Reply(tokens, (len(tokens),), counted, untold)


def _text(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise CutShort(f"sent {str(value)[:20]!r} for a token's text")
    return value


def _number(value: Any) -> float | None:
    if value is None:
        return None
    # A NaN is the model's own, and asking again would not help: the engine refuses it by its text.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CutShort(f"sent {str(value)[:20]!r} for a log-probability")
    if value > _ROUNDED:
        raise CutShort(f"sent {value:.3g} for a log-probability, which none can be")
    return float(value)


def _completion_style(parse: Callable[[Any], Reply | None], **options: Any) -> Style:
    return Style(
        "/completions",
        lambda model, prompt, first: completion_body(model, prompt, **SCORING, **options),
        parse,
    )


ECHO = _completion_style(_read_echo, echo=True, logprobs=1)
PROMPT_LOGPROBS = _completion_style(_read_prompt_logprobs, prompt_logprobs=1)
GENERATE = Style("/generate", _generate_body, _read_generate, native=True)


def scores_prompt(reply: Reply | None) -> bool:
    """Return whether a reply holds log-probabilities of its prompt, not only of the one generated token."""
    return reply is not None and sum(token.logprob is not None for token in reply.tokens[1:]) > 1
