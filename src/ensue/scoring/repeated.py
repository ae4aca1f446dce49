"""Tokenise each sentence once where texts repeat them: shuffled, reordered or with another sentence put in.

A text is cut after the ends of its sentences, before a space. That gives the tokens of the whole text where the
tokenizer divides it there anyway before it looks for tokens, which is found out and not assumed: by the parts that
the tokenizer is made of, by how it divides each piece's edges, and by some texts that are tokenised whole as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int32]

# Where a sentence may end: what comes before the space belongs to it, the space to what follows.
_END = re.compile(r"[.!?][\"')\]”’]* (?=\S)")
# Parts of a tokenizer that look at a character and its neighbours, and so never across a word and a space.
_LOCAL = {"ByteLevel", "Split", "Digits", "Punctuation", "BertPreTokenizer", "Whitespace", "WhitespaceSplit"}
_NORMALIZERS = {"NFC", "Lowercase", "BertNormalizer"}
# Pieces are tokenised instead of texts where they have at most this share of the characters.
_SHARE = 0.5
# More tokens than these are not looked for in texts.
_FEW = 8
# How much of a piece says how its edge is divided, and how many texts are tokenised whole to compare.
_EDGE, _COMPARED = 12, 8


def tokenise_repeated(
    tokenizer: Any, texts: Sequence[str], encode: Callable[[Sequence[str]], list[Ids]]
) -> list[Ids] | None:
    """Tokenise texts by the pieces they repeat; None where they repeat little or the tokenizer does not allow it."""
    if len(texts) < 2:
        return None
    cut = [_pieces(text) for text in texts]
    distinct = list(dict.fromkeys(piece for pieces in cut for piece in pieces))
    if sum(map(len, distinct)) > _SHARE * sum(map(len, texts)) or not _divides(tokenizer, texts, distinct):
        return None
    ids = dict(zip(distinct, encode(distinct), strict=True))
    found = [np.concatenate([ids[piece] for piece in pieces]) for pieces in cut]
    compared = range(0, len(texts), -(-len(texts) // _COMPARED))
    whole = encode([texts[i] for i in compared])
    if not all(np.array_equal(found[i], one) for i, one in zip(compared, whole, strict=True)):
        return None
    return found


def _pieces(text: str) -> list[str]:
    """Cut a text before the space after each sentence's end."""
    borders = [match.end() - 1 for match in _END.finditer(text)]
    return [text[begin:end] for begin, end in zip([0, *borders], [*borders, len(text)], strict=True)]


def _divides(tokenizer: Any, texts: Sequence[str], pieces: Sequence[str]) -> bool:
    """Return whether a tokenizer divides texts where these pieces of them meet."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None or backend.pre_tokenizer is None or getattr(backend.model, "dropout", None):
        return False
    kinds = _kinds(backend.pre_tokenizer, "pretokenizers")
    if not kinds <= _LOCAL or not _kinds(backend.normalizer, "normalizers") <= _NORMALIZERS:
        return False
    # Tokens that are looked for in a text before it is divided, and that take spaces or neighbours into account.
    wide = [
        token.content
        for token in backend.get_added_tokens_decoder().values()
        if token.lstrip or token.rstrip or token.single_word or " " in token.content
    ]
    if len(wide) > _FEW or any(content in text for content in wide for text in texts):
        return False
    divide = backend.pre_tokenizer.pre_tokenize_str
    for left, right in {(piece[-_EDGE:], piece[:_EDGE]) for piece in pieces}:
        if not _boundary(divide, left, " A") or (right[:1] == " " and not _boundary(divide, ".", right)):
            return False
    return True


def _kinds(component: Any, members: str) -> set[str]:
    """Name the kinds of parts that a component of a tokenizer is made of."""
    if component is None:
        return set()
    state = json.loads(component.__getstate__())
    return {part["type"] for part in (state[members] if state["type"] == "Sequence" else [state])}


def _boundary(divide: Callable[[str], Any], left: str, right: str) -> bool:
    """Return whether no word of a text reaches across where two pieces of it meet."""
    words = divide(left + right)
    return not any(begin < len(left) < end for _, (begin, end) in words)
