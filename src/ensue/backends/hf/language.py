"""Hugging Face language models, left-to-right and masked: they score and encode text, and causal ones write it."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence, Set
from functools import cached_property
from typing import Any

from ensue.backends.hf.encoder import VectorModel
from ensue.backends.hf.loading import ModelFolder, load
from ensue.backends.hf.running import default_budget, known_way
from ensue.backends.qg.questioner import CausalQuestioner, prompted_questioner
from ensue.errors import EnsueError
from ensue.models.protocols import AnswerSpan, Asked
from ensue.models.request import Part, PartScore, Policy, Prepared, Request
from ensue.scoring.tokens import own_bos, prepare_causal, tokenise


class LanguageModel(VectorModel):
    """A language model and its tokenizer; a subclass brings the executor and prepares requests for it."""

    # The window of a model that states no limit.
    unstated_length: int

    @property
    def executor(self) -> Any:
        raise NotImplementedError  # each kind of model has its own

    def length(self, policy: Policy) -> int:
        """Return how many tokens a window takes, special ones included."""
        limit = self.card.max_length or self.unstated_length
        if policy.max_length is not None and policy.max_length > limit:
            raise EnsueError(
                f"max_length {policy.max_length} is more than the {limit} tokens {self.card.name} takes."
            )
        return policy.max_length or limit

    def execute(self, parts: Sequence[Part], done: Set[int]) -> Iterator[list[tuple[int, PartScore]]]:
        yield from self.executor.run(parts, done)

    def divide(self, parts: Sequence[Part], done: Set[int]) -> Iterator[Any]:
        """Divide scoring into shares that need nothing of each other."""
        yield from self.executor.divide(parts, done)

    def work(self, share: Any) -> Iterator[list[Any]]:
        """Do a share of scoring."""
        yield from self.executor.work(share)


class CausalModel(LanguageModel):
    """A causal language model and its tokenizer."""

    # Recurrent models state none.
    unstated_length = 1_048_576

    @cached_property
    def executor(self) -> Any:
        """The executor, probed once: how this model may be run is found out, not assumed."""
        from ensue.scoring.probe import CausalWay, TreeWay, find_causal_way, find_tree_way

        options = self._loaded.options
        way = known_way(self._loaded, CausalWay, lambda: find_causal_way(self.network))
        if not options.share_prefixes:
            way = way._replace(share=False, pack=False)
        return way.executor(
            self.network,
            default_budget(self.network, options.batch_tokens),
            options.compile,
            lambda network: known_way(self._loaded, TreeWay, lambda: find_tree_way(network)).trees,
        )

    def in_lanes(self, longest: int) -> Any | None:
        """Return the executor where prompts, the longest of so many tokens with what follows it, may be searched in
        lanes; None where transformers' own generation is to do it."""
        from ensue.scoring.rope import one_for_all

        # Beyond a border where positions change, what was read before is no past to go on from.
        return self.executor if longest <= one_for_all(self.network) and self._has_lanes else None

    @cached_property
    def _has_lanes(self) -> bool:
        from ensue.backends.hf.lane_search import LaneWay, find_lane_way

        try:
            if not self.executor.share:
                return False
            return known_way(self._loaded, LaneWay, lambda: find_lane_way(self.executor.network)).lanes
        except EnsueError:  # a model that cannot be scored may still write
            return False

    def execute_more(
        self, parts: Sequence[Part], done: Set[int], *, share: float, last: bool
    ) -> Generator[list[tuple[int, PartScore]], None, set[int]]:
        """Score parts that are such a share of all; return those left to be given again with more."""
        if hasattr(self.executor, "run_more"):
            left: set[int] = yield from self.executor.run_more(parts, done, share, last)
            return left
        yield from self.executor.run(parts, done)
        return set()

    def _bos(self, policy: Policy) -> int | None:
        """Return the BOS where the tokenizer itself, or the model card, asks for one, unless the policy overrides."""
        bos = self.tokenizer.bos_token_id
        if policy.bos == "never":
            return None
        if policy.bos == "always" or self.card.needs_bos:
            if bos is None:
                raise EnsueError(f"The tokenizer of {self.card.name} has no BOS token to put first.")
            return int(bos)
        return own_bos(self.tokenizer)

    def room(self, policy: Policy) -> int:
        """Return how many tokens of text fit at once, beside a BOS."""
        return self.length(policy) - (self._bos(policy) is not None)

    def as_chat(self, prompt: str, policy: Policy) -> str:
        """Return the prompt as a user's turn in the tokenizer's chat template, up to where the reply begins."""
        if not getattr(self.tokenizer, "chat_template", None):
            raise EnsueError(
                f"{self.card.name} has no chat template, so it was not trained to be talked to; leave chat out."
            )
        turns = [{"role": "user", "content": prompt}]
        try:
            text = str(self.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))
        except Exception as error:  # a template is a program of its own
            raise EnsueError(f"The chat template of {self.card.name} cannot be used: {error}.") from error
        # Many templates write BOS out, which is put first anyway.
        return text if self._bos(policy) is None else text.removeprefix(self.tokenizer.bos_token)

    def check(self, policy: Policy) -> None:
        self._bos(policy)
        self.length(policy)
        if policy.masked != "original":
            raise EnsueError(
                f"masked={policy.masked} is for masked language models; {self.card.name} is causal."
            )

    def prepare(self, requests: Sequence[Request], policy: Policy) -> list[Prepared]:
        return prepare_causal(
            requests,
            policy,
            tokenizer=self.tokenizer,
            bos=self._bos(policy),
            max_length=self.length(policy),
            model=self.card.name,
        )

    def policy_signature(self, policy: Policy) -> str:
        bos = self._bos(policy)
        first = "first:conditions" if bos is None else "first:scored"
        return (
            f"bos:{'none' if bos is None else bos} {first} boundary:joint-lcp "
            f"window:{policy.window}/{self.length(policy)} overflow:{policy.overflow} "
            f"dtype:{self.card.identity['dtype']}"
        )

    def generate(
        self, prompts: Sequence[str], *, max_tokens: int = 64, stop: Sequence[str] = (), **options: Any
    ) -> list[str]:
        """Continue each prompt (greedily unless `options` say otherwise), like-long prompts together."""
        from ensue.backends.hf.generate import generate

        bos = self._bos(Policy())
        before = [] if bos is None else [bos]
        return generate(
            self.network,
            self.tokenizer,
            [[*before, *ids.tolist()] for ids in tokenise(self.tokenizer, prompts)],
            max_tokens=max_tokens,
            stop=stop,
            limit=self.card.max_length,
            model=self.card.name,
            options=options,
            in_lanes=self.in_lanes,
        )

    def cut_texts(self, texts: Sequence[str], tokens: int, *, last: bool = False) -> list[str]:
        """Return the first so many tokens of each text, or the last ones."""
        cut = [ids[-tokens:] if last else ids[:tokens] for ids in tokenise(self.tokenizer, texts)]
        return [self.tokenizer.decode(ids, clean_up_tokenization_spaces=False) for ids in cut]

    def ask(
        self, contexts: Sequence[str], answers: Sequence[AnswerSpan], **settings: Any
    ) -> list[list[Asked]]:
        """Ask by instruction about the marked answers; `settings` are fields of `QuestionSearch`."""
        return self._questioner.ask(contexts, answers, **settings)

    @cached_property
    def _questioner(self) -> CausalQuestioner:
        return prompted_questioner(self)


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
        from ensue.scoring.probe import MaskedWay, find_masked_way

        mask = self.specials.mask
        way = known_way(self._loaded, MaskedWay, lambda: find_masked_way(self.network, mask))
        budget = default_budget(self.network, self._loaded.options.batch_tokens)
        return way.executor(self.network, budget, mask)

    def room(self, policy: Policy) -> int:
        """Return how many tokens of text fit at once, between the special ones."""
        before, after, _ = self._specials(policy)
        return self.length(policy) - len(before) - len(after)

    def _specials(self, policy: Policy) -> Any:
        from ensue.scoring.masked import specials_under

        return specials_under(policy, self.specials)

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
        from ensue.scoring.masked import window_under

        before, after, _ = self._specials(policy)
        return (
            f"pll:{policy.masked} specials:{len(before)}+{len(after)} first:scored "
            f"boundary:joint-lcp window:{window_under(policy)}/{self.length(policy)} overflow:{policy.overflow} "
            f"dtype:{self.card.identity['dtype']}"
        )


def load_causal(folder: ModelFolder) -> CausalModel:
    """Load a folder as a left-to-right language model."""
    return CausalModel(load(folder, "AutoModelForCausalLM", "causal"))


def load_masked(folder: ModelFolder) -> MaskedModel:
    """Load a folder as a masked language model."""
    return MaskedModel(load(folder, "AutoModelForMaskedLM", "masked"))
