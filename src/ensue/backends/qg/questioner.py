"""A causal language model that asks questions: a prompt for each answer, beam search, the text's prefix run once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.errors import EnsueError, TooLong
from ensue.models.card import ModelCard
from ensue.models.protocols import AnswerSpan, Asked, QuestionSearch
from ensue.models.request import Policy, TokenPart
from ensue.scoring.finite import beginning, check_rows, not_finite
from ensue.scoring.tokens import tokenise

if TYPE_CHECKING:
    from ensue.backends.hf.beam import BeamRules, Hypothesis, TokenPrompt
    from ensue.backends.hf.language import CausalModel


# Words shown on each side of the answer: enough to tell which of several equal phrases is meant.
_AROUND = 5
_OPEN, _CLOSE = "[[", "]]"
# How a prompt ends where no chat template says whose turn it is.
_ASKED = "\nQuestion:"
_WORD = re.compile(r"\S+")

_TASK = (
    "Read the text and write one short question about it. The answer to the question must be exactly the words "
    f"between {_OPEN} and {_CLOSE}, and the question must not contain them."
)
# Invented for this purpose; three kinds of answer: a person, a time, a thing.
_SHOTS = (
    (
        "The harbour museum reopened in May after Ilse Brandt had paid for a new roof.",
        "Ilse Brandt",
        "Who paid for the new roof of the harbour museum?",
    ),
    (
        "Because the bridge was being painted, the ferry ran every ten minutes until late October.",
        "late October",
        "Until when did the ferry run every ten minutes?",
    ),
    (
        "The council voted to plant two hundred lime trees along the old canal.",
        "two hundred lime trees",
        "What did the council vote to plant along the old canal?",
    ),
)


class QuestionPrompt(NamedTuple):
    """A prompt in two parts: what all answers of a text share, and what is this answer's own."""

    shared: str
    own: str


PromptMaker = Callable[[str, AnswerSpan], QuestionPrompt]


def check_span(context: str, answer: AnswerSpan) -> None:
    """Refuse an answer that is no part of its text."""
    if not 0 <= answer.start < answer.end <= len(context) or not context[answer.start : answer.end].strip():
        raise EnsueError(
            f"Characters {answer.start} to {answer.end} are no answer in a text of {len(context)} characters: "
            f"{context[:40]!r}; give the start and end of some words in it."
        )


def marked_excerpt(context: str, answer: AnswerSpan, around: int = _AROUND) -> str:
    """Return the answer in double brackets with a few words before and after it.

    >>> marked_excerpt("A cat sat on the mat.", AnswerSpan(2, 5))
    'A [[cat]] sat on the mat.'
    """
    check_span(context, answer)
    before = _WORD.findall(context[: answer.start])
    after = _WORD.findall(context[answer.end :])
    # A word cut by the answer's edge stays attached to it.
    glued = context[: answer.start][-1:].strip() != ""
    left = " ".join(before[-around:]) + ("" if glued or not before else " ")
    right = context[answer.end :][:1]
    gap = "" if right.strip() or not after else " "
    middle = f"{_OPEN}{' '.join(context[answer.start : answer.end].split())}{_CLOSE}"
    return (
        ("… " if len(before) > around else "")
        + left
        + middle
        + gap
        + " ".join(after[:around])
        + (" …" if len(after) > around else "")
    )


def plain_prompt(context: str, answer: AnswerSpan) -> QuestionPrompt:
    """Return what our own generator is trained to continue with a space and the question."""
    return QuestionPrompt(
        f"Text: {' '.join(context.split())}\n", f"Answer: {marked_excerpt(context, answer)}{_ASKED}"
    )


def few_shot_prompt(context: str, answer: AnswerSpan) -> QuestionPrompt:
    """Return an instruction and three invented examples before the text, for a model without a chat template."""
    shots = ["".join(_plain_of(text, words)) + f" {question}" for text, words, question in _SHOTS]
    prompt = plain_prompt(context, answer)
    return QuestionPrompt("\n\n".join([_TASK, *shots, prompt.shared]), prompt.own)


def chat_prompt(tokenizer: Any) -> PromptMaker:
    """Make the same prompt through a tokenizer's chat template, the examples as earlier turns."""

    def turn(prompt: QuestionPrompt) -> dict[str, str]:
        said = f"{prompt.shared}{prompt.own.removesuffix(_ASKED)}"
        return {"role": "user", "content": f"{_TASK}\n\n{said}"}

    def make(context: str, answer: AnswerSpan) -> QuestionPrompt:
        turns: list[dict[str, str]] = []
        for text, words, question in _SHOTS:
            turns += [turn(_plain_of(text, words)), {"role": "assistant", "content": question}]
        prompt = plain_prompt(context, answer)
        own = prompt.own.removesuffix(_ASKED)
        turns.append(turn(prompt))
        whole = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        at = whole.rfind(own)
        if at < 0:  # a template that rewrites what is said
            return QuestionPrompt("", whole)
        return QuestionPrompt(whole[:at], whole[at:])

    return make


def _plain_of(text: str, words: str) -> QuestionPrompt:
    start = text.index(words)
    return plain_prompt(text, AnswerSpan(start, start + len(words)))


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

    def ask(self, contexts: Sequence[str], answers: Sequence[AnswerSpan], **search: Any) -> list[list[Asked]]:
        """Ask about the answer marked in each context; `search` are fields of `QuestionSearch`."""
        from ensue.backends.hf.beam import BeamRules

        check_asked(contexts, answers)
        count, beams, least, most, penalty, ngrams = astuple(QuestionSearch(**search))
        rules = BeamRules(beams, self.ends, least, most, penalty, ngrams)
        prompts = self._prompts(contexts, answers)
        self._check_room(prompts, most)
        found: dict[TokenPrompt, list[Asked]] = {}
        for prompt, hypotheses in self._found(list(dict.fromkeys(prompts)), rules):
            found[prompt] = self._texts(hypotheses)[:count]
        return [found[prompt] for prompt in prompts]

    def question_logprobs(
        self, contexts: Sequence[str], answers: Sequence[AnswerSpan], questions: Sequence[str]
    ) -> list[npt.NDArray[np.float64]]:
        """Return the log-probability of every token of each question after its prompt, the end token among them."""
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
        """Tokenise both parts of each prompt apart, so that the shared part is the same for all answers."""
        from ensue.backends.hf.beam import TokenPrompt

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
        """Group prompts of one text, and like-long texts, as many as rows and the cache allow."""
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

    def _found(
        self, prompts: list[TokenPrompt], rules: BeamRules
    ) -> Iterator[tuple[TokenPrompt, list[Hypothesis]]]:
        """Yield every prompt with its hypotheses, the best first."""
        from ensue.backends.hf.beam import NoNumber
        from ensue.backends.hf.lane_search import search_lanes

        longest = max((len(one.shared) + len(one.own) for one in prompts), default=0) + rules.max_tokens
        batches = self._batches(prompts, rules.beams, rules.max_tokens)
        executor = self.model.in_lanes(longest)
        for batch in [prompts] if executor is not None else batches:
            try:
                if executor is not None:
                    room = executor.budget
                    found = search_lanes(executor.network, batch, rules, room=room.cache, batch=room.batch)
                    yield from ((batch[place], hypotheses) for place, hypotheses in found)
                else:
                    yield from zip(batch, self._search(batch, rules), strict=True)
            except NoNumber as error:
                prompt = batch[error.prompt]
                text = self.model.tokenizer.decode([*prompt.shared, *prompt.own], skip_special_tokens=True)
                dtype = self.card.identity.get("dtype")
                what = beginning(text)
                raise not_finite(float("nan"), model=self.card.name, dtype=dtype, what=what) from None

    def _search(self, batch: Sequence[TokenPrompt], rules: BeamRules) -> list[list[Hypothesis]]:
        from ensue.backends.hf.beam import Decoder, PlainDecoder, SharingDecoder, search
        from ensue.scoring.rope import one_for_all

        executor = self.model.executor
        longest = max(len(prompt.shared) + len(prompt.own) for prompt in batch) + rules.max_tokens
        # Beyond a border where positions change, what was read before is no past to go on from.
        decoder: Decoder = (
            SharingDecoder(executor.network, batch, beams=rules.beams, max_tokens=rules.max_tokens)
            if executor.share and longest <= one_for_all(self.model.network)
            else PlainDecoder(executor.network, batch)
        )
        return search(decoder, rules)

    def _texts(self, hypotheses: Sequence[Hypothesis]) -> list[Asked]:
        """Return what the hypotheses say, each wording once, with the mean log-probability of their tokens."""
        found: dict[str, float] = {}
        for one in hypotheses:
            # A token such as "?\n" ends a question and has its last character.
            ids = [*one.tokens, *([] if one.end is None else [one.end])]
            said = self.model.tokenizer.decode(ids, skip_special_tokens=True).strip().split("\n")[0].strip()
            if said:
                found.setdefault(said, one.logprob / one.length)
        return [Asked(question, score) for question, score in found.items()]


def question_tokens(tokenizer: Any, texts: Sequence[str]) -> list[tuple[int, ...]]:
    """Tokenise texts without special tokens; training and asking must agree on this."""
    return [tuple(row.tolist()) for row in tokenise(tokenizer, texts)]


def after_prompt(question: str) -> str:
    """Return a question as it follows its prompt."""
    return " " + " ".join(question.split())


def prompted_questioner(model: CausalModel) -> CausalQuestioner:
    """Ask a causal model by instruction: through its chat template, or with examples where it has none.

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


def end_tokens(model: Any) -> set[int]:
    """Return what the tokenizer and the model's generation settings say ends a text."""
    stated = getattr(getattr(model.network, "generation_config", None), "eos_token_id", None)
    listed = stated if isinstance(stated, list) else [stated]
    return {int(end) for end in [*listed, model.tokenizer.eos_token_id] if end is not None}


def check_asked(contexts: Sequence[str], answers: Sequence[AnswerSpan]) -> None:
    """Refuse texts without an answer each."""
    if len(contexts) != len(answers):
        raise EnsueError(f"{len(contexts)} texts and {len(answers)} answers: each text needs its answer.")
