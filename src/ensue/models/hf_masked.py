"""A Hugging Face masked language model: pseudo-log-likelihood scores and vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.errors import EnsueError
from ensue.models.budget import default_budget
from ensue.models.card import ModelCard
from ensue.models.hf import Loaded
from ensue.models.hf_encoder import encode_texts
from ensue.scoring.request import Part, PartScore, Policy, Prepared, Request


class MaskedModel:
    """A masked language model and its tokenizer."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self.network, self.tokenizer = loaded.network, loaded.tokenizer

    @property
    def card(self) -> ModelCard:
        return self._loaded.card

    @cached_property
    def specials(self) -> Any:
        from ensue.scoring.masked import specials_of

        return specials_of(self.tokenizer, self.card.name)

    @cached_property
    def executor(self) -> Any:
        from ensue.scoring.masked import MaskedExecutor
        from ensue.scoring.network import Network

        budget = default_budget(self.network, self._loaded.options.batch_tokens)
        return MaskedExecutor(Network(self.network), budget, self.specials.mask)

    def _length(self, policy: Policy) -> int:
        limit = self.card.max_length or 512
        if policy.max_length is not None and policy.max_length > limit:
            raise EnsueError(
                f"max_length {policy.max_length} is more than the {limit} tokens {self.card.name} takes."
            )
        return policy.max_length or limit

    def check(self, policy: Policy) -> None:
        self._length(policy)
        if policy.bos != "auto":
            raise EnsueError(
                f"bos={policy.bos} is for causal models; {self.card.name} is a masked language model."
            )

    def prepare(self, requests: Sequence[Request], policy: Policy) -> list[Prepared]:
        from ensue.scoring.masked import prepare_masked

        return prepare_masked(
            requests,
            policy,
            tokenizer=self.tokenizer,
            specials=self.specials,
            max_length=self._length(policy),
            model=self.card.name,
        )

    def execute(self, parts: Sequence[Part], done: Set[int]) -> Iterator[list[tuple[int, PartScore]]]:
        yield from self.executor.run(parts, done)

    def policy_signature(self, policy: Policy) -> str:
        return (
            f"pll:{policy.masked} specials:{len(self.specials.before)}+{len(self.specials.after)} first:scored "
            f"boundary:joint-lcp window:{policy.window}/{self._length(policy)} overflow:{policy.overflow} "
            f"dtype:{self.card.identity['dtype']}"
        )

    def encode(
        self, texts: Sequence[str], *, layers: Sequence[int] | None = None, pooling: str | None = None
    ) -> npt.NDArray[np.float32]:
        return encode_texts(self._loaded, texts, layers=layers, pooling=pooling or "mean", normalise=False)
