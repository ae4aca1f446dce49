"""Causal models that ask: prompts, rules of the questions, texts in any company, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ensue.backends.names import load_model
from ensue.backends.qg.generator import as_generator
from ensue.backends.qg.questioner import (
    chat_prompt,
    few_shot_prompt,
    marked_excerpt,
    plain_prompt,
    prompted_questioner,
)
from ensue.errors import EnsueError, TooLong
from ensue.models.protocols import AnswerSpan, Questioner
from tests.support import tiny

TEXT = "The old mill by the river burned down in May, and the mill at the bridge was sold."
WORDS = st.text("ab c.,\n", min_size=1, max_size=60)
CHAT = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def span(text: str, words: str, nth: int = 0) -> AnswerSpan:
    start = -1
    for _ in range(nth + 1):
        start = text.index(words, start + 1)
    return AnswerSpan(start, start + len(words))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tiny.save_llama(tmp_path_factory.mktemp("models") / "model", max_length=1024)


@pytest.fixture(scope="module")
def model(folder):
    return load_model(str(folder))


def test_an_excerpt_shows_which_of_equal_words_is_meant():
    assert marked_excerpt(TEXT, span(TEXT, "mill"), 2) == "The old [[mill]] by the …"
    assert marked_excerpt(TEXT, span(TEXT, "mill", 1), 2) == "… and the [[mill]] at the …"
    assert marked_excerpt(TEXT, span(TEXT, "sold"), 2) == "… bridge was [[sold]]."
    assert marked_excerpt("unmade", AnswerSpan(2, 6), 2) == "un[[made]]"


@given(text=WORDS, ends=st.tuples(st.integers(0, 60), st.integers(0, 60)))
def test_an_excerpt_wide_enough_is_the_text_with_marks(text, ends):
    start, end = min(ends), max(ends)
    if not text[start:end].strip() or end > len(text):
        with pytest.raises(EnsueError, match="no answer"):
            marked_excerpt(text, AnswerSpan(start, end))
        return
    shown = marked_excerpt(text, AnswerSpan(start, end), 100)
    before, _, rest = shown.partition("[[")
    answer, _, after = rest.partition("]]")
    assert answer == " ".join(text[start:end].split())
    assert "".join((before + after).split()) == "".join((text[:start] + text[end:]).split())


@pytest.mark.parametrize("make", [plain_prompt, few_shot_prompt])
def test_all_answers_of_a_text_share_the_first_part_of_the_prompt(make):
    one, two = make(TEXT, span(TEXT, "mill")), make(TEXT, span(TEXT, "May"))
    assert one.shared == two.shared
    assert one.own != two.own
    assert TEXT in one.shared
    assert one.own.endswith("\nQuestion:")


def test_a_chat_template_is_used_and_shared(folder):
    tokenizer = load_model(str(folder)).tokenizer
    tokenizer.chat_template = CHAT
    one, two = (chat_prompt(tokenizer)(TEXT, span(TEXT, words)) for words in ("mill", "May"))
    assert one.shared == two.shared
    assert one.shared.count("<|assistant|>") == 3
    assert one.own == f"Answer: {marked_excerpt(TEXT, span(TEXT, 'mill'))}<|assistant|>"


def test_a_causal_model_is_a_questioner(model):
    assert isinstance(model, Questioner)
    (asked,) = model.ask([TEXT], [span(TEXT, "May")], count=2, beams=3, max_tokens=12)
    assert 1 <= len(asked) <= 2
    assert all("\n" not in one.question and one.question for one in asked)


@pytest.mark.parametrize("make", [prompted_questioner, as_generator])
def test_questions_keep_to_length_and_repeat_no_trigram(model, make):
    questioner = make(model)
    answers = [span(TEXT, words) for words in ("mill", "May", "the river", "sold")]
    (prompts, rules) = questioner._prompts([TEXT] * 4, answers), {"min_tokens": 8, "max_tokens": 14}
    from ensue.backends.hf.beam import BeamRules

    beam = BeamRules(4, questioner.ends, 8, 14, 1.0, 3)
    for found in questioner._search(prompts, beam):
        assert found
        for one in found:
            assert 8 <= len(one.tokens) <= 14
            grams = [one.tokens[i : i + 3] for i in range(len(one.tokens) - 2)]
            assert len(set(grams)) == len(grams)
    asked = questioner.ask([TEXT] * 4, answers, count=4, beams=4, **rules)
    assert [len({one.question for one in found}) for found in asked] == [len(found) for found in asked]


def test_a_score_is_the_mean_log_probability_of_the_question(model):
    """Of a hypothesis that ended by itself, as the tokens of the prompt and of the question are fed again."""
    questioner = as_generator(model)
    answer = span(TEXT, "May")
    (prompt,) = questioner._prompts([TEXT], [answer])
    from ensue.backends.hf.beam import BeamRules

    (found,) = questioner._search([prompt], BeamRules(5, questioner.ends, 0, 40, 1.0, 3))
    means: dict[str, float] = {}
    for one in found:
        said = [*one.tokens, *([] if one.end is None else [one.end])]
        ids = torch.tensor([[*prompt.shared, *prompt.own, *said]])
        with torch.inference_mode():
            table = torch.log_softmax(model.network(ids).logits[0, :-1], -1)
        steps = table.gather(1, ids[0, 1:, None])[-len(said) :, 0]
        assert one.logprob == pytest.approx(float(steps.sum()), abs=1e-3)
        assert one.length == len(said)
        words = model.tokenizer.decode(said, skip_special_tokens=True).split("\n")[0].strip()
        means.setdefault(words, float(steps.mean()))
    # What questions are ranked by over all answers is the mean, so that a long one can win.
    (asked,) = questioner.ask([TEXT], [answer], count=5, beams=5, min_tokens=0, max_tokens=40)
    assert len(asked) > 1
    assert {one.question: one.score for one in asked} == pytest.approx(
        {words: mean for words, mean in means.items() if words}, abs=1e-4
    )


def test_questions_end_with_the_token_of_the_adapter(model):
    answer = span(TEXT, "May")
    own = as_generator(model)
    (prompt,) = own._prompts([TEXT], [answer])
    from ensue.backends.hf.beam import BeamRules

    ((said, *_),) = own._search([prompt], BeamRules(1, own.ends, 0, 6, 1.0, 0))
    # The third token it would say by itself, taken for the end.
    questioner = as_generator(model, model.tokenizer.convert_ids_to_tokens(said.tokens[2]))
    ((cut, *_),) = questioner._search([prompt], BeamRules(1, questioner.ends, 0, 6, 1.0, 0))
    assert (cut.tokens, cut.end) == (said.tokens[: said.tokens.index(said.tokens[2])], said.tokens[2])
    steps, before = (one.question_logprobs([TEXT], [answer], ["Who was it?"])[0] for one in (questioner, own))
    np.testing.assert_allclose(steps[:-1], before[:-1], atol=1e-5)
    assert abs(steps[-1] - before[-1]) > 1e-3
    with pytest.raises(EnsueError, match="ends its questions with '<no-such-token>'"):
        as_generator(model, "<no-such-token>")


def test_company_changes_nothing(model):
    questioner = as_generator(model)
    texts = [*tiny.SENTENCES[:6], *tiny.SENTENCES[:6], TEXT]
    answers = [span(text, text.split()[place % 3]) for place, text in enumerate(texts)]
    rules = {"count": 3, "beams": 3, "max_tokens": 12}
    together = questioner.ask(texts, answers, **rules)
    for text, answer, found in zip(texts, answers, together, strict=True):
        (alone,) = questioner.ask([text], [answer], **rules)
        assert [one.question for one in alone] == [one.question for one in found]
        np.testing.assert_allclose([one.score for one in alone], [one.score for one in found], atol=1e-4)
    assert questioner.ask(texts, answers, **rules) == together


def test_small_batches_change_nothing(folder, model):
    from ensue.backends.qg import questioner as module

    texts = [TEXT] * 4
    answers = [span(TEXT, words) for words in ("mill", "May", "the river", "sold")]
    rules = {"count": 2, "beams": 2, "max_tokens": 10}
    questioner = as_generator(model)
    prompts = questioner._prompts(texts, answers)
    assert len(list(questioner._batches(prompts, 2, 10))) == 1
    one_each = list(questioner._batches(prompts, module._CPU_ROWS, 10))
    assert [len(batch) for batch in one_each] == [1] * 4
    assert sorted(p for batch in one_each for p in batch) == sorted(prompts)
    assert len(questioner.ask(texts, answers, **rules)) == 4


def test_nothing_asked_is_no_work(model):
    assert model.ask([], []) == []


@pytest.mark.parametrize(
    ("texts", "answers", "more", "words"),
    [
        ([TEXT], [], {}, "each text needs its answer"),
        ([TEXT], [AnswerSpan(4, 900)], {}, "no answer"),
        ([TEXT], [AnswerSpan(3, 4)], {}, "no answer"),
        ([TEXT], [AnswerSpan(0, 3)], {"count": 5, "beams": 2}, "use more beams"),
        ([TEXT * 30], [AnswerSpan(0, 3)], {}, "shorter texts"),
        ([TEXT], [AnswerSpan(0, 3)], {"min_tokens": 9, "max_tokens": 8}, "Invalid beams="),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(model, texts, answers, more, words):
    with pytest.raises(EnsueError, match=words):
        model.ask(texts, answers, **more)


@pytest.mark.slow
def test_the_default_model_asks_about_a_person(smollm2_folder):
    text = "The harbour museum in Selby was opened by Ilse Brandt, a shipwright."
    model = load_model("smollm2")
    (asked,) = model.ask([text], [span(text, "Ilse Brandt")], count=5, beams=5, max_tokens=20)
    assert any("?" in one.question for one in asked)


def test_texts_with_no_room_for_a_question_are_named(folder, model):
    long = " ".join(tiny.SENTENCES) * 8
    spans = [span(TEXT, "mill"), AnswerSpan(0, 3), span(TEXT, "mill", 1)]
    with pytest.raises(TooLong, match="1024") as caught:
        model.ask([TEXT, long, TEXT], spans, count=1, beams=1, max_tokens=9)
    assert caught.value.places == (1,)
    # The room ends where prompt and question together fill it: one more token is one too many.
    filling = f"{TEXT} " * 5
    prompt = model._questioner._prompts([filling], spans[:1])[0]
    room = 1024 - len(prompt.shared) - len(prompt.own)
    assert 0 < room < 100
    assert len(model.ask([filling], spans[:1], count=1, beams=1, min_tokens=1, max_tokens=room)) == 1
    with pytest.raises(TooLong):
        model.ask([filling], spans[:1], count=1, beams=1, max_tokens=room + 1)
