"""A Hugging Face masked language model: pseudo-log-likelihood scores and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from ensue.backends.hf.budget import default_budget
from ensue.backends.hf.language import LanguageModel
from ensue.errors import EnsueError
from ensue.models.request import Policy, Prepared, Request


class MaskedModel(LanguageModel):
    """A masked language model and its tokenizer."""

    unstated_length = 512

    @cached_property
    def specials(self) -> Any:
        from ensue.scoring.masked import specials_of

        return specials_of(self.tokenizer, self.card.name)

    @cached_property
    def executor(self) -> Any:
        """The executor, probed once: how this model may be run is found out, not assumed."""
        from ensue.backends.hf.verdicts import known_way
        from ensue.scoring.probe import MaskedWay, find_masked_way

        mask = self.specials.mask
        way = known_way(self._loaded, MaskedWay, lambda: find_masked_way(self.network, mask))
        budget = default_budget(self.network, self._loaded.options.batch_tokens)
        return way.executor(self.network, budget, mask)

    def room(self, policy: Policy) -> int:
        """How many tokens of text fit at once, between the special ones."""
        return self.length(policy) - len(self.specials.before) - len(self.specials.after)

    def check(self, policy: Policy) -> None:
        self.length(policy)
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
            max_length=self.length(policy),
            model=self.card.name,
        )

    def policy_signature(self, policy: Policy) -> str:
        return (
            f"pll:{policy.masked} specials:{len(self.specials.before)}+{len(self.specials.after)} first:scored "
            f"boundary:joint-lcp window:{policy.window}/{self.length(policy)} overflow:{policy.overflow} "
            f"dtype:{self.card.identity['dtype']}"
        )
