"""A causal language model that asks questions: a prompt for each answer, beam search, the text's prefix run once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ensue.backends.qg.prompts import PromptMaker, chat_prompt, few_shot_prompt
from ensue.errors import EnsueError, TooLong
from ensue.models.card import ModelCard
from ensue.models.protocols import AnswerSpan, Asked
from ensue.models.request import Policy, TokenPart
from ensue.scoring.finite import beginning, check_rows, not_finite
from ensue.scoring.tokens import tokenise

if TYPE_CHECKING:
    from ensue.backends.hf.beam import BeamRules, Hypothesis
    from ensue.backends.hf.beam_decoder import TokenPrompt
    from ensue.backends.hf.language import CausalModel

# Hypotheses that are lengthened at once: more only costs memory on a CPU, a GPU wants thousands.
_ROWS = {"cuda": 2048}
_CPU_ROWS = 160


class CausalQuestioner:
    """A causal model, how it is prompted, the tokens that end a question, and the one scored as a question's end."""

    def __init__(self, model: CausalModel, prompt: PromptMaker, ends: frozenset[int], end: int) -> None:
        self.model, self.prompt, self.ends, self.end = model, prompt, ends, end

    @property
    def card(self) -> ModelCard:
        return self.model.card

    def ask(
        self,
        contexts: Sequence[str],
        answers: Sequence[AnswerSpan],
        *,
        count: int = 10,
        beams: int = 10,
        min_tokens: int = 8,
        max_tokens: int = 60,
        length_penalty: float = 1.0,
        block_ngrams: int = 3,
    ) -> list[list[Asked]]:
        """For each context and the answer marked in it, at most `count` questions, the likeliest first."""
        from ensue.backends.hf.beam import BeamRules

        check_asked(contexts, answers, count, beams)
        rules = BeamRules(beams, self.ends, min_tokens, max_tokens, length_penalty, block_ngrams)
        prompts = self._prompts(contexts, answers)
        self._check_room(prompts, max_tokens)
        found: dict[TokenPrompt, list[Asked]] = {}
        for batch in self._batches(list(dict.fromkeys(prompts)), beams, max_tokens):
            for prompt, hypotheses in zip(batch, self._search(batch, rules), strict=True):
                found[prompt] = self._texts(hypotheses)[:count]
        return [found[prompt] for prompt in prompts]

    def question_logprobs(
        self, contexts: Sequence[str], answers: Sequence[AnswerSpan], questions: Sequence[str]
    ) -> list[npt.NDArray[np.float64]]:
        """Log-probability of every token of each question after its prompt, the end token among them."""
        prompts = self._prompts(contexts, answers)
        parts = []
        for prompt, said in zip(
            prompts, question_tokens(self.model.tokenizer, [after_prompt(q) for q in questions]), strict=True
        ):
            before = prompt.shared + prompt.own
            ids = np.asarray([*before, *said, self.end], dtype=np.int32)
            parts.append(TokenPart(ids, len(before)))
        found = {index: score for batch in self.model.execute(parts, frozenset()) for index, score in batch}
        logprobs = [found[index].logprobs for index in range(len(parts))]
        check_rows(logprobs, contexts, self.card)
        return logprobs

    def _prompts(self, contexts: Sequence[str], answers: Sequence[AnswerSpan]) -> list[TokenPrompt]:
        """Both parts of each prompt tokenised apart, so that the shared part is the same for all answers."""
        from ensue.backends.hf.beam_decoder import TokenPrompt

        made = [self.prompt(text, answer) for text, answer in zip(contexts, answers, strict=True)]
        shared = list(dict.fromkeys(prompt.shared for prompt in made))
        bos = self.model._bos(Policy())
        before = () if bos is None else (bos,)
        ids = dict(zip(shared, question_tokens(self.model.tokenizer, shared), strict=True))
        own = question_tokens(self.model.tokenizer, [prompt.own for prompt in made])
        return [
            TokenPrompt(before + ids[prompt.shared], mine) for prompt, mine in zip(made, own, strict=True)
        ]

    def _check_room(self, prompts: Sequence[TokenPrompt], new: int) -> None:
        limit = self.card.max_length
        if limit is None:
            return
        lengths = [len(prompt.shared) + len(prompt.own) for prompt in prompts]
        if places := [place for place, length in enumerate(lengths) if length + new > limit]:
            raise TooLong(
                f"A text of {max(lengths)} tokens with its prompt and {new} for the question do not fit the {limit} "
                f"tokens {self.card.name} takes; give it shorter texts.",
                places,
            )

    @property
    def device_kind(self) -> str:
        return self.model.device_kind

    def _batches(self, prompts: Sequence[TokenPrompt], beams: int, new: int) -> Iterator[list[TokenPrompt]]:
        """Prompts of one text together, like-long texts together, as many as rows and the cache allow."""
        rows = _ROWS.get(self.model.network.device.type, _CPU_ROWS)
        room = self.model.executor.budget.cache
        batch: list[TokenPrompt] = []
        used = 0
        # The longest first: what does not fit memory shows at once.
        for prompt in sorted(prompts, key=lambda p: (-len(p.shared), p.shared, -len(p.own), p.own)):
            known = bool(batch) and batch[-1].shared == prompt.shared
            more = (0 if known else len(prompt.shared)) + len(prompt.own) + beams * new
            if batch and ((len(batch) + 1) * beams > rows or used + more > room):
                yield batch
                batch, used = [], 0
                more = len(prompt.shared) + len(prompt.own) + beams * new
            batch.append(prompt)
            used += more
        if batch:
            yield batch

    def _search(self, batch: Sequence[TokenPrompt], rules: BeamRules) -> list[list[Hypothesis]]:
        from ensue.backends.hf.beam import Decoder, NoNumber, search
        from ensue.backends.hf.beam_decoder import PlainDecoder, SharingDecoder
        from ensue.scoring.rope import one_for_all

        executor = self.model.executor
        longest = max(len(prompt.shared) + len(prompt.own) for prompt in batch) + rules.max_tokens
        # Beyond a border where positions change, what was read before is no past to go on from.
        decoder: Decoder = (
            SharingDecoder(executor.network, batch, beams=rules.beams, max_tokens=rules.max_tokens)
            if executor.share and longest <= one_for_all(self.model.network)
            else PlainDecoder(executor.network, batch)
        )
        try:
            return search(decoder, rules)
        except NoNumber as error:
            prompt = batch[error.prompt]
            text = self.model.tokenizer.decode([*prompt.shared, *prompt.own], skip_special_tokens=True)
            dtype = self.card.identity.get("dtype")
            raise not_finite(float("nan"), model=self.card.name, dtype=dtype, what=beginning(text)) from None

    def _texts(self, hypotheses: Sequence[Hypothesis]) -> list[Asked]:
        """What the hypotheses say, each wording once, with the mean log-probability of their tokens."""
        found: dict[str, float] = {}
        for one in hypotheses:
            # A token such as "?\n" ends a question and has its last character.
            ids = [*one.tokens, *([] if one.end is None else [one.end])]
            said = self.model.tokenizer.decode(ids, skip_special_tokens=True).strip().split("\n")[0].strip()
            if said:
                found.setdefault(said, one.logprob / one.length)
        return [Asked(question, score) for question, score in found.items()]


def question_tokens(tokenizer: Any, texts: Sequence[str]) -> list[tuple[int, ...]]:
    """Token ids of texts, no special ones added; training and asking must agree on this."""
    return [tuple(row.tolist()) for row in tokenise(tokenizer, texts)]


def after_prompt(question: str) -> str:
    """A question as it follows its prompt."""
    return " " + " ".join(question.split())


def prompted_questioner(model: CausalModel) -> CausalQuestioner:
    """A causal model asked by instruction: through its chat template, or with examples where it has none.

    A question ends with the model's end token or its first line.
    """
    tokenizer = model.tokenizer
    prompt = chat_prompt(tokenizer) if getattr(tokenizer, "chat_template", None) else few_shot_prompt
    lines = {
        number
        for token, number in tokenizer.get_vocab().items()
        if "\n" in token or "Ċ" in token or token == "<0x0A>"
    }
    return CausalQuestioner(model, prompt, frozenset(lines | end_tokens(model)), tokenizer.eos_token_id)


def end_tokens(model: CausalModel) -> set[int]:
    """What the tokenizer and the model's generation settings say ends a text."""
    stated = getattr(getattr(model.network, "generation_config", None), "eos_token_id", None)
    listed = stated if isinstance(stated, list) else [stated]
    return {int(end) for end in [*listed, model.tokenizer.eos_token_id] if end is not None}


def check_asked(contexts: Sequence[str], answers: Sequence[AnswerSpan], count: int, beams: int) -> None:
    """Refuse what no questioner can do."""
    if len(contexts) != len(answers):
        raise EnsueError(f"{len(contexts)} texts and {len(answers)} answers: each text needs its answer.")
    if not 1 <= count <= beams:
        raise EnsueError(f"{beams} beams give 1 to {beams} questions, not {count}; use more beams.")
