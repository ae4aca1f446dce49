"""What a model is given to summarise: the question, the story and the question again, cut to what the model takes.

A sequence-to-sequence model gets them divided by its separator (§5.5.2), a causal one as a prompt that ends where the
summary begins. What does not fit is cut from the story's end, or, where sentences are retrieved first, the sentences
furthest from the question are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ensue.benchmarks.summaries.extractive import fill
from ensue.errors import EnsueError
from ensue.models.protocols import Model

# Where a causal model would begin to ask itself the next question, its summary is over.
STOPS = ("\n\nQuestion:", "\n\nStory:")
# Where a model's tokenizer is not here (an endpoint), so many tokens are taken for a word; English has fewer.
_TOKENS_A_WORD = 1.6
_SEPARATOR = "[SEP]"
_WORD = re.compile(r"\S+")

# What a model that follows instructions is told first.
_INSTRUCTION = "Read the story and answer the question with a summary of one to four paragraphs."
STYLES = ("plain", "chat")

Count = Callable[[Sequence[str]], list[int]]


class Layout(NamedTuple):
    """How question and story are put together; `chat` is a tokenizer whose chat template makes the prompt."""

    causal: bool
    separator: str = _SEPARATOR
    chat: Any = None

    def __call__(self, question: str, story: str) -> str:
        asked = " ".join(question.split())
        if self.chat is not None:
            said = f"{_INSTRUCTION}\n\nQuestion: {asked}\n\nStory:\n{story}\n\nQuestion: {asked}"
            turns = [{"role": "user", "content": said}]
            return str(self.chat.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))
        if self.causal:
            return f"Question: {asked}\n\nStory:\n{story}\n\nQuestion: {asked}\n\nAnswer:"
        return f"{asked} {self.separator} {story} {self.separator} {asked}"


@dataclass(frozen=True)
class Room:
    """How many tokens a model takes of what it reads (None: no limit), and how they are counted."""

    limit: int | None
    count: Count

    def fits(self, text: str) -> bool:
        return self.limit is None or self.count([text])[0] <= self.limit


class ModelInput(NamedTuple):
    """What a model reads, and how many words or sentences of the story it had to do without."""

    text: str
    left_out: int


def layout_of(model: Model, style: str = "plain") -> Layout:
    """Return how to ask a model, with its tokenizer's own separator or, in style `chat`, its chat template."""
    tokenizer = getattr(model, "tokenizer", None)
    if style == "chat":
        if not getattr(tokenizer, "chat_template", None):
            raise EnsueError(f"{model.card.name} has no chat template here; leave prompt at plain.")
        return Layout(causal=True, chat=tokenizer)
    return layout_for(model.card.kind != "seq2seq", tokenizer)


def layout_for(causal: bool, tokenizer: Any) -> Layout:
    """Return the same from the kind of model and its tokenizer, for training."""
    own = getattr(tokenizer, "sep_token", None)
    return Layout(causal, str(own) if own else _SEPARATOR)


def room_of(model: Model, most: int | None, new: int) -> Room:
    """Return the room a model has; a causal one must have room for the `new` tokens of its summary, too."""
    tokenizer = getattr(model, "tokenizer", None)
    count = estimated if tokenizer is None else token_counter(tokenizer)
    limit = model.card.max_length
    if limit is not None and model.card.kind != "seq2seq":
        # One more for a BOS that the model's card, and not its tokenizer, asks for.
        limit -= new + int(model.card.needs_bos)
    limits = [one for one in (limit, most) if one is not None]
    if limits and min(limits) < 1:
        raise EnsueError(
            f"{model.card.name} takes {model.card.max_length} tokens, which leaves nothing for a story beside "
            f"a summary of {new}; set max_tokens lower."
        )
    return Room(min(limits, default=None), count)


def token_counter(tokenizer: Any) -> Count:
    """Return what counts the tokens of texts, special ones included."""

    def count(texts: Sequence[str]) -> list[int]:
        found = tokenizer(list(texts), return_attention_mask=False, verbose=False)["input_ids"]
        return [len(ids) for ids in found]

    return count


def estimated(texts: Sequence[str]) -> list[int]:
    """Estimate how many tokens texts have, by their words; rather too many than too few."""
    return [round(_TOKENS_A_WORD * len(text.split())) for text in texts]


def truncated(layout: Layout, question: str, story: str, room: Room) -> ModelInput:
    """Give as many of the story's first words as fit between question and question."""
    whole = layout(question, story)
    if room.fits(whole):
        return ModelInput(whole, 0)
    assert room.limit is not None, "what has no limit fits"
    ends = [0, *(word.end() for word in _WORD.finditer(story))]
    # A word is at least a token, so no more words than tokens can fit.
    low, high = 0, min(len(ends) - 1, room.limit)
    _refuse_long(layout, question, room)
    while low < high:
        middle = (low + high + 1) // 2
        if room.fits(layout(question, story[: ends[middle]])):
            low = middle
        else:
            high = middle - 1
    return ModelInput(layout(question, story[: ends[low]]), len(ends) - 1 - low)


def retrieved(
    layout: Layout, question: str, sentences: Sequence[str], order: Sequence[int], room: Room
) -> ModelInput:
    """Give the sentences that fit, the nearest to the question first, in the story's order."""
    whole = layout(question, " ".join(sentences))
    if room.fits(whole):
        return ModelInput(whole, 0)
    assert room.limit is not None, "what has no limit fits"
    _refuse_long(layout, question, room)
    empty, base, *costs = room.count(["", layout(question, ""), *sentences])
    taken = fill(order, [max(cost - empty, 1) for cost in costs], room.limit - base)
    while taken:
        text = layout(question, " ".join(sentences[place] for place in taken))
        if room.fits(text):
            return ModelInput(text, len(sentences) - len(taken))
        # Joined, sentences may have a few tokens more than each by itself.
        taken.remove(max(taken, key=order.index))
    return ModelInput(layout(question, ""), len(sentences))


def _refuse_long(layout: Layout, question: str, room: Room) -> None:
    if not room.fits(layout(question, "")):
        raise EnsueError(
            f"The question {question[:60]!r} alone does not fit the {room.limit} tokens there is room for; set "
            f"max_input higher or max_tokens lower."
        )
