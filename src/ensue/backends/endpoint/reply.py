"""Read the tokens of a completion server's reply, and find where in the text each of them lies.

Servers disagree about offsets: vLLM counts a BOS's own name in, SGLang sends -1 for every token. They
disagree about texts too: sentencepiece tokens come without their leading space, and the bytes of a split
character come as U+FFFD or as nothing. So tokens are laid along the text's UTF-8 bytes, as they fit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ensue.backends.endpoint.client import CutShort
from ensue.errors import EnsueError
from ensue.models.request import PartScore


class Token(NamedTuple):
    """A token as a server reports it, with the log-probability of the best token for its place.

    What the server does not report is None.
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
        """Return the tokens in a server's answer; None where it has none of this kind."""
        try:
            return self.parse(answer)
        except (AttributeError, KeyError, TypeError) as error:
            raise CutShort("sent a reply that cannot be read") from error


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
        Token(text, _number(logprob), max(top.values(), default=None) if top else None)
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
        entries = list(candidates.values())
        own = _prompt_entry(entries)
        best = max((entry["logprob"] for entry in entries), default=None)
        tokens.append(Token(own.get("decoded_token"), _number(own.get("logprob")), best))
    # The first token's text is unknown, so a list cut short could pass for a whole one in a text that repeats.
    counted = count_prompt(reply)
    if counted is not None and len(tokens) < counted:
        raise CutShort("sent tokens for only a part of the text")
    return Reply(tokens, (len(tokens),), counted)


def _prompt_entry(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the prompt token's own entry among the candidates for its place.

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


def scores_prompt(reply: Reply | None) -> bool:
    """Whether a reply holds log-probabilities of its prompt, not only of the one generated token."""
    return reply is not None and sum(token.logprob is not None for token in reply.tokens[1:]) > 1


_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
# How freely tokens are read, each step after the one before has failed: as they are, with a split character's
# pieces as U+FFFD; with sentencepiece's spaces; with pieces as nothing; with pieces missing from any token.
_SPACES, _PIECES_EMPTY, _PIECES_DROPPED = 1, 2, 3
# A search that has failed from so many places for each token will not succeed.
_MOST_DEAD_ENDS = 30
_IMPOSSIBLE = -9999.0


class PlacedToken(NamedTuple):
    """A token and the characters it has a part in."""

    token: Token
    begin: int
    end: int


def place_tokens(reply: Reply, text: str, server: str) -> list[PlacedToken]:
    """Return the tokens of the prompt, each with its place in the text.

    Raises CutShort where the tokens stop before the text does.
    """
    if any(token.text is None for token in reply.tokens[1:]):
        raise EnsueError(f"{server} does not say which text its tokens stand for, so they cannot be placed.")
    data = text.encode("utf-8")
    texts = [token.text for token in reply.tokens]
    for length in reply.lengths:
        cuts = lay_along(texts[:length], data)
        if cuts:
            spans = _character_spans(cuts, text)
            # A token without bytes at the very end is a generated one.
            return [
                PlacedToken(token, *span) for token, span in zip(reply.tokens, spans, strict=False) if span
            ]
    if any(lie_at_start(texts[:length], data) for length in reply.lengths):
        raise CutShort("sent tokens for only a part of the text")
    raise EnsueError(
        f"The tokens that {server} sent do not spell the text that begins {text[:40]!r}: its tokenizer "
        "rewrites text, so its scores cannot be placed."
    )


def score_placed(placed: Sequence[PlacedToken], text: str, start: int, server: str) -> PartScore:
    """Return the log-probabilities of the tokens that end after character `start`, but for the text's first."""
    scored = [one for one in placed[1:] if one.end > start]
    logprobs = [one.token.logprob for one in scored]
    if None in logprobs:
        raise EnsueError(
            f"{server} left out log-probabilities in the text that begins {text[:40]!r}; turn its prefix "
            "caching off (vLLM: --no-enable-prefix-caching)."
        )
    # vLLM writes so for minus infinity, which JSON does not have.
    logprobs = [-math.inf if x is not None and x <= _IMPOSSIBLE else x for x in logprobs]
    spans = tuple((max(one.begin - start, 0), one.end - start) for one in scored)
    return PartScore(np.asarray(logprobs, dtype=np.float64), spans)


def boundary_unsure(placed: Sequence[PlacedToken], start: int) -> bool:
    """Whether the boundary at `start` lies between two characters that are both split into several tokens.

    The pieces of split characters look alike (U+FFFD), so in a row of them only the ends are sure.
    """
    after = next((index for index, one in enumerate(placed) if one.end > start), 0)
    return after > 0 and _is_piece(placed[after - 1].token) and _is_piece(placed[after].token)


def _is_piece(token: Token) -> bool:
    return not token.text or "\ufffd" in token.text or bool(_BYTE.fullmatch(token.text))


def divide(placed: Sequence[PlacedToken], text: str, start: int, after: int) -> Sequence[PlacedToken]:
    """Return the tokens placed anew so that the last `after` of them begin at `start`; as they were if none can."""
    first = len(placed) - after
    texts = [one.token.text for one in placed]
    before, behind = text[:start].encode("utf-8"), text[start:].encode("utf-8")
    left, right = lay_along(texts[:first], before), lay_along(texts[first:], behind)
    if not left or not right:
        return placed
    spans = _character_spans([*left, *(len(before) + cut for cut in right[1:])], text)
    return [PlacedToken(one.token, *span) if span else one for one, span in zip(placed, spans, strict=True)]


def lay_along(tokens: Sequence[str | None], data: bytes) -> list[int] | None:
    """Return where each token begins in UTF-8 `data`, and where the last one ends; None if they do not make it up.

    >>> lay_along(["<s>", "He", "llo"], b"Hello")
    [0, 0, 2, 5]
    """
    for leniency in range(_PIECES_DROPPED + 1):
        cuts = _search(tokens, data, leniency, _room_needed(tokens, leniency))
        if cuts:
            return cuts
    return None


def lie_at_start(tokens: Sequence[str | None], data: bytes) -> bool:
    """Whether the tokens make up the beginning of `data`."""
    anywhere = [(0, math.inf)] * (len(tokens) + 1)
    return any(_search(tokens, data, leniency, anywhere) for leniency in range(_PIECES_DROPPED + 1))


def _search(
    tokens: Sequence[str | None], data: bytes, leniency: int, room: Sequence[tuple[float, float]]
) -> list[int] | None:
    """Try the ends of one token after the other, such that the bytes left over are within `room` for the rest.

    A place from which a token led nowhere is not tried again, and after too many such the search ends.
    """
    if not tokens:
        return None
    dead_ends: set[tuple[int, int]] = set()
    begins = [0]
    choices = [_first_ends(tokens, data, leniency)]
    while choices and len(dead_ends) < _MOST_DEAD_ENDS * len(tokens):
        after = len(choices)
        least, most = room[after]
        for end in choices[-1]:
            if least <= len(data) - end <= most and (after, end) not in dead_ends:
                begins.append(end)
                break
        else:
            choices.pop()
            dead_ends.add((after - 1, begins.pop()))
            continue
        if after == len(tokens):
            return begins
        choices.append(_ends(tokens[after] or "", data, begins[-1], leniency))
    return None


def _room_needed(tokens: Sequence[str | None], leniency: int) -> list[tuple[float, float]]:
    """Return the least and the most bytes that the tokens from each one on take."""
    room: list[tuple[float, float]] = [(0, 0)]
    for token in reversed(tokens):
        text = (token or "").replace("▁", " ").lstrip(" ") if leniency else token or ""
        most = len(text.encode("utf-8", "replace"))
        least = 1 if _BYTE.fullmatch(text) else most - 2 * text.count("\ufffd")
        room.append((room[-1][0] + least, room[-1][1] + (math.inf if leniency else most)))
    return room[::-1]


def _first_ends(tokens: Sequence[str | None], data: bytes, leniency: int) -> Iterator[int]:
    """Yield where the first token may end: it may be a BOS, which takes no place, or unknown."""
    first = tokens[0]
    if first is not None:
        yield from _ends(first, data, 0, leniency)
    yield 0
    if first is None:
        yield from range(1, len(data) + 1)


def _ends(token: str, data: bytes, begin: int, leniency: int) -> Iterator[int]:
    """Yield where a token that begins at `begin` may end, likeliest first."""
    raw = token.encode("utf-8", "replace")
    if data.startswith(raw, begin):
        yield begin + len(raw)
    byte = _BYTE.fullmatch(token)
    if byte and data[begin : begin + 1] == bytes.fromhex(byte[1]):
        yield begin + 1
    if leniency >= _SPACES:
        yield from _spaced_ends(token, data, begin)
    if "\ufffd" in token:
        for end in range(min(begin + len(raw), len(data)), begin + len(token) - 1, -1):
            if data[begin:end].decode("utf-8", "replace") == token:
                yield end
    if leniency >= (_PIECES_DROPPED if token else _PIECES_EMPTY):
        for end in range(min(begin + len(raw) + 6, len(data)), begin + len(raw), -1):
            if data[begin:end].decode("utf-8", "ignore") == token:
                yield end


def _spaced_ends(token: str, data: bytes, begin: int) -> Iterator[int]:
    """Yield where a sentencepiece token may end: ▁ is a space, and one before a word is left out or invented."""
    spaced = token.replace("▁", " ").encode("utf-8", "replace")
    if data.startswith(spaced, begin):
        yield begin + len(spaced)
    word, indent = spaced.lstrip(b" "), begin
    while data[indent : indent + 1] == b" ":
        indent += 1
    if (indent > begin or begin == 0) and data.startswith(word, indent):
        yield indent + len(word)


def _character_spans(cuts: Sequence[int], text: str) -> list[tuple[int, int] | None]:
    """Return the characters each token has a byte of; a token without bytes belongs to the character after it."""
    character = [index for index, char in enumerate(text) for _ in char.encode("utf-8")]
    return [
        (character[begin], character[max(end - 1, begin)] + 1) if begin < len(character) else None
        for begin, end in pairwise(cuts)
    ]
