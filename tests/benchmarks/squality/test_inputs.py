"""What a model reads: question, story, question, never more than it takes, and nothing left out without need."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ensue.benchmarks.squality.inputs import (
    Layout,
    Room,
    estimated,
    layout_of,
    retrieved,
    room_of,
    token_counter,
    truncated,
)
from ensue.errors import EnsueError
from ensue.models.card import ModelCard
from tests.support.tiny import _byte_level, _fast

STORY = some.lists(some.sampled_from(["mill", "river", "fog,", "ferry."]), max_size=40).map(" ".join)
QUESTION = "Where does it happen?"
PLAIN = Layout(causal=False, separator="</s>")


def words(texts):  # type: ignore[no-untyped-def]
    return [len(re.findall(r"\w+|[^\w\s]", text)) for text in texts]


class Named:
    """A model that is a card only."""

    def __init__(self, **facts):  # type: ignore[no-untyped-def]
        self.card = replace(ModelCard(name="m", kind="seq2seq", source="test"), **facts)


class Tokenised(Named):
    tokenizer = _fast(_byte_level(("<s>", "</s>"), before=("<s>",), after=("</s>",)), eos="</s>", sep="</s>")


def test_the_question_stands_before_and_after() -> None:
    assert PLAIN("Where\nis it?", "By a river.") == "Where is it? </s> By a river. </s> Where is it?"
    prompt = Layout(causal=True)("Where?", "By a river.")
    assert prompt.startswith("Question: Where?\n\nStory:\nBy a river.\n\nQuestion: Where?")
    assert prompt.endswith("Answer:")


def test_the_layout_is_that_of_the_model() -> None:
    assert layout_of(Named()) == Layout(False, "[SEP]")
    assert layout_of(Named(kind="causal")).causal
    assert layout_of(Named(kind="endpoint")).causal
    assert layout_of(Tokenised()) == Layout(False, "</s>")


def test_a_chat_template_is_used_where_it_is_asked_for_and_there() -> None:
    class Chatting(Tokenised):
        tokenizer = _fast(_byte_level(("<s>", "</s>")), eos="</s>")

    Chatting.tokenizer.chat_template = "{{ messages[0]['role'] }}: {{ messages[0]['content'] }} | reply:"
    found = layout_of(Chatting(kind="causal"), "chat")("Where?", "By a river.")
    assert found.startswith("user: Read the story")
    assert found.endswith("Question: Where?\n\nStory:\nBy a river.\n\nQuestion: Where? | reply:")
    room = room_of(Chatting(kind="causal", max_length=150), None, 10)
    cut = truncated(layout_of(Chatting(kind="causal"), "chat"), "Where?", "By a river. " * 90, room)
    assert cut.left_out
    assert cut.text.endswith("| reply:")
    assert room.count([cut.text])[0] <= 140
    for model in (Tokenised(kind="causal"), Named(kind="endpoint")):
        with pytest.raises(EnsueError, match="m has no chat template here"):
            layout_of(model, "chat")


@pytest.mark.parametrize("causal", [False, True])
@given(story=STORY, limit=some.integers(0, 80))
def test_as_many_first_words_as_fit(causal: bool, story: str, limit: int) -> None:
    layout = Layout(causal, "</s>")
    room = Room(limit, words)
    if words([layout(QUESTION, "")])[0] > limit:
        if words([layout(QUESTION, story)])[0] > limit:
            with pytest.raises(EnsueError, match="alone does not fit"):
                truncated(layout, QUESTION, story, room)
        return
    found = truncated(layout, QUESTION, story, room)
    pieces = story.split()
    # A loop over every cut, the longest first.
    for kept in range(len(pieces), -1, -1):
        text = layout(QUESTION, " ".join(pieces[:kept]))
        if words([text])[0] <= limit:
            break
    assert (found.text, found.left_out) == (text, len(pieces) - kept)


@given(
    some.lists(some.sampled_from(["The mill.", "Fog, again fog.", "A ferry ran on."]), max_size=9),
    some.integers(20, 50),
    some.randoms(),
)
def test_retrieved_sentences_fit_and_stand_in_order(sentences, limit, draw) -> None:  # type: ignore[no-untyped-def]
    sentences = [f"{n} {sentence}" for n, sentence in enumerate(sentences)]
    order = list(range(len(sentences)))
    draw.shuffle(order)
    room = Room(limit, words)
    found = retrieved(PLAIN, QUESTION, sentences, order, room)
    assert words([found.text])[0] <= limit
    numbers = [int(number) for number in re.findall(r"\d+", found.text)]
    assert numbers == sorted(numbers)
    assert len(numbers) == len(sentences) - found.left_out
    if found.left_out and numbers:
        assert (
            order[0] in numbers or words([sentences[order[0]]])[0] > limit - words([PLAIN(QUESTION, "")])[0]
        )


def test_room_is_the_models_less_what_it_writes() -> None:
    assert room_of(Named(max_length=100), None, 30).limit == 100
    assert room_of(Named(max_length=100, kind="causal"), None, 30).limit == 70
    assert room_of(Named(max_length=100, kind="causal", needs_bos=True), None, 30).limit == 69
    assert room_of(Named(max_length=100), 50, 30).limit == 50
    assert room_of(Named(max_length=100), 500, 30).limit == 100
    assert room_of(Named(), None, 30).limit is None
    with pytest.raises(EnsueError, match=r"m takes 20 tokens.*set max_tokens lower"):
        room_of(Named(max_length=20, kind="causal"), None, 30)


def test_tokens_are_counted_with_the_models_tokenizer_where_it_is_here() -> None:
    room = room_of(Tokenised(), None, 1)
    text = "The ferry had not run since spring."
    assert room.count([text, ""]) == [len(Tokenised.tokenizer(text)["input_ids"]), 2]
    assert (
        token_counter(Tokenised.tokenizer)(["a </s> b"])[0]
        < token_counter(Tokenised.tokenizer)(["a </x> b"])[0]
    )
    assert estimated(["one two three four five", ""]) == [8, 0]


def test_what_has_no_limit_is_left_whole() -> None:
    room = Room(None, words)
    assert truncated(PLAIN, QUESTION, "The mill.", room).left_out == 0
    assert retrieved(PLAIN, QUESTION, ["The mill.", "Fog."], [1, 0], room).text == PLAIN(
        QUESTION, "The mill. Fog."
    )
