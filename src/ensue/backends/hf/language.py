"""What causal and masked Hugging Face language models share: weights, tokenizer, length, vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.backends.hf.encoder import count_cut, encode_texts, layer_count
from ensue.backends.hf.loading import Loaded
from ensue.errors import EnsueError
from ensue.models.card import ModelCard
from ensue.models.protocols import TextTokens
from ensue.models.request import Part, PartScore, Policy


class LanguageModel:
    """A language model and its tokenizer; a subclass brings the executor and prepares requests for it."""

    # The window of a model that states no limit.
    unstated_length: int

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self.network, self.tokenizer = loaded.network, loaded.tokenizer

    @property
    def card(self) -> ModelCard:
        return self._loaded.card

    @property
    def layer_count(self) -> int:
        return layer_count(self.network)

    @property
    def executor(self) -> Any:
        raise NotImplementedError  # each kind of model has its own

    def length(self, policy: Policy) -> int:
        """How many tokens a window takes, special ones included."""
        limit = self.card.max_length or self.unstated_length
        if policy.max_length is not None and policy.max_length > limit:
            raise EnsueError(
                f"max_length {policy.max_length} is more than the {limit} tokens {self.card.name} takes."
            )
        return policy.max_length or limit

    def execute(self, parts: Sequence[Part], done: Set[int]) -> Iterator[list[tuple[int, PartScore]]]:
        yield from self.executor.run(parts, done)

    def encode(
        self, texts: Sequence[str], *, layers: Sequence[int] | None = None, pooling: str | None = None
    ) -> npt.NDArray[np.float32]:
        return encode_texts(self._loaded, texts, layers=layers, pooling=pooling or "mean", normalise=False)

    def count_cut(self, texts: Sequence[str]) -> int:
        return count_cut(self._loaded, texts)

    def encode_tokens(self, texts: Sequence[str], layer: int | None = None) -> list[npt.NDArray[np.float32]]:
        from ensue.backends.hf.tokens import encode_tokens

        return encode_tokens(self._loaded, texts, layer)

    def text_tokens(self, texts: Sequence[str]) -> list[TextTokens]:
        from ensue.backends.hf.tokens import text_tokens

        return text_tokens(self._loaded, texts)
