"""Encoder-decoder folders: text from text against a plain loop, questions against their own probabilities."""

from __future__ import annotations

import json

import pytest
import torch

from ensue.backends.hf.seq2seq import QuestionInput
from ensue.backends.names import load_model
from ensue.errors import EnsueError, TooLong
from ensue.models.protocols import AnswerSpan, Generator, Questioner, abilities
from tests.support import tiny, tiny_seq2seq

TEXTS = [*tiny.SENTENCES[:4], "A dog."]
ANSWERS = [AnswerSpan(text.index(" ") + 1, len(text) - 1) for text in TEXTS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_seq2seq.save_bart(tmp_path_factory.mktemp("models") / "bart", max_length=256)


@pytest.fixture(scope="module")
def model(folder):
    return load_model(str(folder))


def greedy(model, text: str, count: int) -> str:
    """One token at a time, from the start token on."""
    network, tokenizer = model.network, model.tokenizer
    read = tokenizer(text, return_tensors="pt").input_ids
    made = [network.config.decoder_start_token_id]
    for _ in range(count):
        with torch.inference_mode():
            logits = network(input_ids=read, decoder_input_ids=torch.tensor([made])).logits
        made.append(int(logits[0, -1].argmax()))
        if made[-1] == tokenizer.eos_token_id:
            break
    return tokenizer.decode(made, skip_special_tokens=True)


def test_a_folder_says_what_it_can_do(model):
    assert isinstance(model, Generator)
    assert isinstance(model, Questioner)
    assert abilities(model) == ["generate text", "ask questions"]
    assert (model.card.kind, model.card.max_length) == ("seq2seq", 256)


def test_greedy_texts_are_those_of_a_plain_loop(model):
    assert model.generate(TEXTS, max_tokens=9) == [greedy(model, text, 9) for text in TEXTS]


def test_beams_and_lengths_may_be_asked_for(model):
    found = model.generate(TEXTS, max_tokens=9, beams=3, min_tokens=5, block_ngrams=2)
    assert len(found) == len(TEXTS)
    assert model.generate([]) == []


def test_generation_stops_before_a_stop_string(model):
    (free,) = model.generate(TEXTS[:1], max_tokens=20)
    stop = free[3:5]
    assert model.generate(TEXTS[:1], max_tokens=20, stop=[stop]) == [free[: free.index(stop)]]


@pytest.mark.parametrize("penalty", [1.0, 0.5, 2.0])
def test_a_score_is_the_mean_log_probability_of_the_tokens(model, penalty):
    asked = model.ask(
        TEXTS, ANSWERS, count=3, beams=4, min_tokens=5, max_tokens=12, length_penalty=penalty, block_ngrams=3
    )
    for text, answer, found in zip(TEXTS, ANSWERS, asked, strict=True):
        assert 1 <= len(found) <= 3
        read = model.tokenizer(model.question_input.text(text, answer), return_tensors="pt").input_ids
        for one in found:
            assert any(one.score == pytest.approx(other, abs=1e-4) for other in means(model, read, penalty))


def test_the_end_of_a_question_counts_in_its_score(folder):
    """Ends made likely enough that questions have them; each score is the mean with the end, and none without."""
    model = load_model(str(folder))
    end = model.tokenizer.eos_token_id
    model.network.final_logits_bias[0, end] = 8.0
    ended = 0
    for text, answer in zip(TEXTS, ANSWERS, strict=True):
        (found,) = model.ask([text], [answer], count=3, beams=4, min_tokens=5, max_tokens=12, block_ngrams=3)
        read = model.tokenizer(model.question_input.text(text, answer), return_tensors="pt").input_ids
        expected = means(model, read, 1.0)
        assert all(min(abs(one.score - other) for other in expected) < 1e-4 for one in found)
        without = means(model, read, 1.0, keep_end=False)
        ended += sum(abs(a - b) > 1e-2 for a, b in zip(expected, without, strict=True))
    assert ended > 3


def test_questions_come_in_the_order_the_length_penalty_asks_for(folder):
    """Ends made likely enough that questions are of different lengths, else a penalty changes nothing."""
    model = load_model(str(folder))
    model.network.final_logits_bias[0, model.tokenizer.eos_token_id] = 8.0
    answer = AnswerSpan(0, 3)
    read = model.tokenizer(model.question_input.text(TEXTS[0], answer), return_tensors="pt").input_ids
    found = {}
    for penalty in (0.0, 6.0):
        search = {"num_beams": 4, "num_return_sequences": 2, "max_new_tokens": 12, "do_sample": False}
        made = model.network.generate(read, length_penalty=penalty, min_new_tokens=1, **search)
        (asked,) = model.ask(
            [TEXTS[0]],
            [answer],
            count=2,
            beams=4,
            min_tokens=1,
            max_tokens=12,
            length_penalty=penalty,
            block_ngrams=0,
        )
        found[penalty] = [one.question for one in asked]
        assert found[penalty] == [
            model.tokenizer.decode(row, skip_special_tokens=True).strip() for row in made
        ]
    assert found[0.0] != found[6.0]


def means(model, read, penalty, keep_end=True) -> list[float]:
    """The mean log-probabilities of transformers' own beams, summed up step by step."""
    found = model.network.generate(
        read,
        num_beams=4,
        num_return_sequences=3,
        min_new_tokens=5,
        max_new_tokens=12,
        length_penalty=penalty,
        no_repeat_ngram_size=3,
        do_sample=False,
    )
    out = []
    for row in found:
        made = row.tolist()
        end = model.tokenizer.eos_token_id
        made = made[: made.index(end, 1) + keep_end] if end in made[1:] else made
        with torch.inference_mode():
            logits = model.network(input_ids=read, decoder_input_ids=torch.tensor([made[:-1]])).logits[0]
        table = torch.log_softmax(logits, -1)
        steps = [float(table[place, token]) for place, token in enumerate(made[1:])]
        out.append(sum(steps) / len(steps))
    return out


def test_question_tokens_are_scored_as_in_a_plain_loop(model):
    question = "Where are you going?"
    (found,) = model.question_logprobs(TEXTS[:1], ANSWERS[:1], [question])
    labels = model.tokenizer(question)["input_ids"]
    read = model.tokenizer(model.question_input.text(TEXTS[0], ANSWERS[0]), return_tensors="pt").input_ids
    made = [model.network.config.decoder_start_token_id]
    for token, value in zip(labels, found, strict=True):
        with torch.inference_mode():
            logits = model.network(input_ids=read, decoder_input_ids=torch.tensor([made])).logits[0, -1]
        assert value == pytest.approx(float(torch.log_softmax(logits, -1)[token]), abs=1e-4)
        made.append(token)


def test_the_input_is_worded_as_the_folder_says(folder, tmp_path):
    import shutil

    text, answer = "A dog barked.", AnswerSpan(2, 5)
    assert QuestionInput().text(text, answer) == "answer: dog context: A dog barked."
    other = shutil.copytree(folder, tmp_path / "other")
    config = json.loads((other / "config.json").read_text())
    config["ensue_questions"] = {"template": "ask: {marked}", "open": "<", "close": ">"}
    (other / "config.json").write_text(json.dumps(config))
    assert load_model(str(other)).question_input.text(text, answer) == "ask: A <dog> barked."


@pytest.mark.parametrize(
    "settings", [{"template": "{answer}"}, {"template": "{reply} {context}"}, {"separator": "x"}]
)
def test_a_wording_that_lacks_something_is_one_sentence(settings):
    with pytest.raises(EnsueError, match=r"Invalid template|no setting"):
        QuestionInput.from_settings(settings)


def test_a_text_too_long_is_one_sentence_and_named(model):
    long = " ".join(tiny.SENTENCES) * 2
    with pytest.raises(EnsueError, match="256"):
        model.generate([long])
    with pytest.raises(TooLong) as caught:
        model.ask(["A dog.", long, "A cat.", long], [AnswerSpan(2, 5)] * 4, count=1, beams=1)
    assert caught.value.places == (1, 3)
    # As many as it takes are not too many.
    just, over = "Q" * 254, "Q" * 255
    assert [len(ids) for ids in model.tokenizer([just, over])["input_ids"]] == [256, 257]
    assert len(model.generate([just], max_tokens=2)) == 1
    with pytest.raises(TooLong):
        model.generate([over], max_tokens=2)
