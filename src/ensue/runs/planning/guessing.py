"""A tokenizer for a model that is not here: another model's, or so many characters a token."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

from ensue.errors import EnsueError

GUESS = 4.3


def find_tokenizer(name: str | None) -> tuple[Any, str]:
    """Return a tokenizer, and what is assumed with it; a number stands for characters a token."""
    if name is None or _is_number(name):
        size = GUESS if name is None else float(name)
        if not 1 <= size <= 20:
            raise EnsueError(f"A token has 1 to 20 characters, not {name}.")
        return GuessedTokenizer(size), f"{size:g} characters a token, for want of a tokenizer"
    from transformers import AutoTokenizer

    from ensue.backends.names import pull_model
    from ensue.fetch.catalog import catalog

    entry = catalog().get(name)
    folder = name if entry is None else str(pull_model(entry))
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder)
    except Exception as error:  # the library raises many unrelated types
        said = " ".join(str(error).split())[:160]
        raise EnsueError(
            f"The tokenizer of {name} cannot be loaded ({type(error).__name__}): {said}"
        ) from error
    return tokenizer, f"texts have as many tokens as by the tokenizer of {name}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class GuessedTokenizer:
    """Cuts texts every so many characters: as many tokens as are likely, with no meaning of their own."""

    is_fast = True
    bos_token_id = None
    eos_token_id = 0
    pad_token_id = 0
    mask_token_id = None
    name_or_path = "a guess"
    model_max_length = 10**30
    chat_template = None

    def __init__(self, size: float) -> None:
        self.size = size
        self.special_tokens_map: dict[str, str] = {}

    def __call__(
        self, texts: str | Sequence[str], *, return_offsets_mapping: bool = False, **_: Any
    ) -> dict[str, Any]:
        """Return the ids, and where asked the places, of one text or of several."""
        several = [texts] if isinstance(texts, str) else texts
        places = [self._places(text) for text in several]
        ids = [
            [zlib.crc32(text[begin:end].encode("utf-8", "replace")) % 50_000 for begin, end in own]
            for text, own in zip(several, places, strict=True)
        ]
        found: dict[str, Any] = {"input_ids": ids[0] if isinstance(texts, str) else ids}
        if return_offsets_mapping:
            found["offset_mapping"] = places[0] if isinstance(texts, str) else places
        return found

    def _places(self, text: str) -> list[tuple[int, int]]:
        count = max(round(len(text) / self.size), 1) if text else 0
        ends = [min(round((i + 1) * self.size), len(text)) for i in range(count - 1)] + [len(text)] * bool(
            count
        )
        return [(0 if not i else ends[i - 1], end) for i, end in enumerate(ends)]

    def get_vocab(self) -> dict[str, int]:
        return {}
