"""A model's tokenizer as a measure of length: texts counted and cut by tokens."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from ensue.backends.names import pull_model
from ensue.errors import EnsueError
from ensue.fetch.catalog import catalog
from ensue.lazy import from_extra


def load_tokenizer(name: str) -> ModelTokens:
    """Return the tokenizer of a short name, folder or hub id; refuse now one that cannot be loaded."""
    _load(name)
    return ModelTokens(name)


@dataclass(frozen=True)
class ModelTokens:
    """The tokenizer of a short name, folder or hub id, which each process loads when it first cuts by it."""

    name: str

    def count(self, text: str) -> int:
        return len(self._places(text))

    def last(self, text: str, count: int) -> str:
        """Return the shortest end of a text with `count` tokens, or all of it."""
        places = self._places(text)
        for first in range(len(places) - count, 0, -1):
            found = text[places[first][0] :].lstrip()
            # A piece can have fewer tokens than it had inside the text.
            if self.count(found) >= count:
                return found
        return text

    def first(self, text: str, count: int) -> str:
        """Return the shortest beginning of a text with `count` tokens, or all of it."""
        places = self._places(text)
        for last in range(count - 1, len(places)):
            found = text[: places[last][1]].rstrip()
            if self.count(found) >= count:
                return found
        return text

    def _places(self, text: str) -> list[tuple[int, int]]:
        """Return where each token begins and ends; a character of several tokens is the place of each of them."""
        encoded = _load(self.name)(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        return [(begin, end) for begin, end in encoded["offset_mapping"] if end > begin]


@cache
def _load(name: str) -> Any:
    entry = catalog().get(name)
    folder = name if entry is None else str(pull_model(entry))
    loader = from_extra("transformers:AutoTokenizer", "Cutting by tokens", "transformers", "models")
    try:
        tokenizer = loader.from_pretrained(folder)
    except Exception as error:  # the library raises many unrelated types
        said = " ".join(str(error).split()).partition(". ")[0][:300].rstrip(".")
        raise EnsueError(
            f"The tokenizer of {name} cannot be loaded ({type(error).__name__}: {said})."
        ) from error
    if not tokenizer.is_fast:
        raise EnsueError(
            f"The tokenizer of {name} does not say where its tokens lie; choose another --tokenizer."
        )
    return tokenizer
