"""Find where in a text the tokens of a server's reply lie, and which of them are scored.

Servers disagree about offsets: vLLM counts a BOS's own name in, SGLang sends -1 for every token. They
disagree about texts too: sentencepiece tokens come without their leading space, and the bytes of a split
character come as U+FFFD or as nothing. So tokens are laid along the text's UTF-8 bytes, as they fit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.backends.endpoint.client import CutShort
from ensue.backends.endpoint.styles import Reply, Token
from ensue.errors import EnsueError
from ensue.models.request import PartScore

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
    spans = tuple((max(one.begin - start, 0), one.end - start) for one in scored)
    return PartScore(_logprobs([one.token for one in scored], text, server), spans)


def score_numbered(reply: Reply, ids: Sequence[int], start: int, text: str, server: str) -> PartScore:
    """Return the log-probabilities of the tokens from `start` on of a prompt that was sent as tokens.

    `text` is what those tokens are the beginning of; where they do not spell it, no spans are known.
    """
    if reply.counted not in (None, len(ids)):
        raise EnsueError(
            f"{server} makes {reply.counted} tokens of the {len(ids)} it was sent, so they cannot be told apart."
        )
    told = reply.tokens[start - reply.untold : len(ids) - reply.untold]
    if len(told) < len(ids) - start:
        raise CutShort("sent tokens for only a part of the text")
    if any(one.id not in (None, id) for one, id in zip(told, ids[start:], strict=True)):
        raise EnsueError(f"{server} scored other tokens than it was sent, so its scores cannot be used.")
    cuts = _lay_at_start([one.text for one in told], text.encode("utf-8"))
    spans = _character_spans(cuts, text) if cuts else []
    whole = tuple(span for span in spans if span)
    return PartScore(_logprobs(told, text, server), whole if len(whole) == len(told) else None)


def _logprobs(tokens: Sequence[Token], text: str, server: str) -> npt.NDArray[np.float64]:
    values = [token.logprob for token in tokens]
    if None in values:
        raise EnsueError(
            f"{server} left out log-probabilities in the text that begins {text[:40]!r}; turn its prefix "
            "caching off (vLLM: --no-enable-prefix-caching)."
        )
    # vLLM writes so for minus infinity, which JSON does not have.
    known = [-math.inf if x is not None and x <= _IMPOSSIBLE else x for x in values]
    return np.asarray(known, dtype=np.float64)


def boundary_unsure(placed: Sequence[PlacedToken], start: int) -> bool:
    """Return whether the boundary at `start` lies between two characters that are both split into several tokens.

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
    """Return whether the tokens make up the beginning of `data`."""
    return _lay_at_start(tokens, data) is not None


def _lay_at_start(tokens: Sequence[str | None], data: bytes) -> list[int] | None:
    """Return where each token begins, and where the last one ends, if they make up the beginning of `data`."""
    anywhere = [(0, math.inf)] * (len(tokens) + 1)
    for leniency in range(_PIECES_DROPPED + 1):
        cuts = _search(tokens, data, leniency, anywhere)
        if cuts:
            return cuts
    return None


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
