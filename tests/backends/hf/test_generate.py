"""Greedy continuation against a plain loop, stop strings, and prompts of different lengths in one batch."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from ensue.backends.names import load_model
from ensue.errors import EnsueError
from ensue.models.protocols import AnswerSpan
from tests.support import tiny, tiny_seq2seq

TEXTS = [*tiny.SENTENCES[:3], "A dog."]
# Every one of these changes what is written where it rules.
WAYWARD = {
    "do_sample": True,
    "temperature": 3.0,
    "num_beams": 3,
    "length_penalty": 4.0,
    "early_stopping": True,
    "min_length": 40,
    "no_repeat_ngram_size": 2,
    "repetition_penalty": 1.9,
    "num_return_sequences": 2,
}


@pytest.fixture(scope="module", params=["bart", "llama"])
def folder(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("models") / request.param
    return tiny_seq2seq.save_bart(where) if request.param == "bart" else tiny.save_llama(where)


def saying(folder: Path, target: Path, **said: Any) -> Path:
    """The same model, whose folder says more of generation."""
    shutil.copytree(folder, target)
    path = target / "generation_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | said))
    return target


def plainly(model: Any, text: str, count: int, *, least: int = 0, block: int = 0) -> list[int]:
    """Greedy tokens one at a time: none that ends before `least` others, none that repeats a run of `block`."""
    network, end = model.network, model.tokenizer.eos_token_id
    read = model.tokenizer(text, return_tensors="pt").input_ids
    seq2seq = model.card.kind == "seq2seq"
    before = [network.config.decoder_start_token_id] if seq2seq else read[0].tolist()
    made: list[int] = []
    for _ in range(count):
        given = torch.tensor([before + made])
        with torch.inference_mode():
            out = network(input_ids=read, decoder_input_ids=given) if seq2seq else network(input_ids=given)
        scores = out.logits[0, -1].clone()
        if len(made) < least:
            scores[end] = -torch.inf
        whole = before + made
        for place in range(len(whole) - block + 1) if block else ():
            if whole[place : place + block - 1] == whole[len(whole) - block + 1 :]:
                scores[whole[place + block - 1]] = -torch.inf
        made.append(int(scores.argmax()))
        if made[-1] == end:
            break
    return made


def said(model: Any, tokens: list[int]) -> str:
    return model.tokenizer.decode(tokens, skip_special_tokens=True)


def bigrams_twice(tokens: list[int]) -> bool:
    pairs = list(itertools.pairwise(tokens))
    return len(set(pairs)) < len(pairs)


def test_a_folder_that_says_otherwise_is_not_heard(folder: Path, tmp_path: Path) -> None:
    wayward = load_model(str(saying(folder, tmp_path / "wayward", **WAYWARD)))
    found = wayward.generate(TEXTS, max_tokens=24)
    assert found == [said(wayward, plainly(wayward, text, 24)) for text in TEXTS]
    # What it said is still there for whoever saves the model again.
    assert wayward.network.generation_config.num_beams == 3


def test_no_ngram_comes_twice_where_that_is_asked_for(folder: Path) -> None:
    model: Any = load_model(str(folder))
    free = [plainly(model, text, 24) for text in TEXTS]
    blocked = [plainly(model, text, 24, block=2) for text in TEXTS]
    assert any(map(bigrams_twice, free))
    assert not any(map(bigrams_twice, blocked))
    assert model.generate(TEXTS, max_tokens=24, block_ngrams=2) == [said(model, one) for one in blocked]
    assert model.generate(TEXTS, max_tokens=24, block_ngrams=0) == [said(model, one) for one in free]


def test_no_fewer_tokens_are_written_than_asked_for(tmp_path: Path) -> None:
    folder = ending_at_once(tmp_path)
    model: Any = load_model(str(folder))
    assert model.generate(TEXTS, max_tokens=12) == [""] * len(TEXTS)
    for least in (3, 7):
        expected = [plainly(model, text, 12, least=least) for text in TEXTS]
        assert {len(one) for one in expected} == {least + 1}
        assert model.generate(TEXTS, max_tokens=12, min_tokens=least) == [
            said(model, one) for one in expected
        ]


def test_a_question_is_scored_with_its_end(tmp_path: Path) -> None:
    """The end is nearly certain here and every other token nearly impossible, so that one more token tells."""
    model: Any = load_model(str(ending_at_once(tmp_path)))
    text, span = TEXTS[0], AnswerSpan(4, 7)
    read = model.question_input.text(text, span)
    tokens = plainly(model, read, 12, least=5)
    assert tokens[-1] == model.tokenizer.eos_token_id
    given = torch.tensor([[model.network.config.decoder_start_token_id, *tokens[:-1]]])
    with torch.inference_mode():
        ids = model.tokenizer(read, return_tensors="pt").input_ids
        table = torch.log_softmax(model.network(input_ids=ids, decoder_input_ids=given).logits[0], -1)
    steps = [float(table[place, token]) for place, token in enumerate(tokens)]
    ((asked,),) = model.ask([text], [span], count=1, beams=1, min_tokens=5, max_tokens=12, block_ngrams=0)
    assert asked.score == pytest.approx(sum(steps) / 6, rel=1e-4)
    assert asked.score != pytest.approx(sum(steps[:-1]) / 5, rel=1e-2)


def ending_at_once(folder: Path) -> Path:
    """A model that would rather say nothing."""
    from transformers import BartForConditionalGeneration

    tiny_seq2seq.save_bart(folder)
    network = BartForConditionalGeneration.from_pretrained(folder)
    network.final_logits_bias[0, network.config.eos_token_id] = 1000.0
    network.save_pretrained(folder)
    return folder


def test_beams_are_those_of_the_library_told_the_same(folder: Path, tmp_path: Path) -> None:
    plain: Any = load_model(str(folder))
    wayward = load_model(str(saying(folder, tmp_path / "wayward", **WAYWARD)))
    asked = {"beams": 3, "length_penalty": 0.5, "min_tokens": 2, "block_ngrams": 3}
    for text in TEXTS:
        read = plain.tokenizer(text, return_tensors="pt").input_ids
        made = plain.network.generate(
            read,
            max_new_tokens=12,
            num_beams=3,
            length_penalty=0.5,
            min_new_tokens=2,
            no_repeat_ngram_size=3,
        )[0]
        after = made if plain.card.kind == "seq2seq" else made[read.shape[1] :]
        assert wayward.generate([text], max_tokens=12, **asked) == [said(plain, after)]


def test_questions_do_not_hear_the_folder_either(tmp_path: Path) -> None:
    folder = tiny_seq2seq.save_bart(tmp_path / "bart")
    wayward = saying(folder, tmp_path / "wayward", **WAYWARD)
    spans = [AnswerSpan(0, 5)] * len(TEXTS)
    search = {"count": 2, "beams": 3, "min_tokens": 2, "max_tokens": 9}
    assert load_model(str(wayward)).ask(TEXTS, spans, **search) == load_model(str(folder)).ask(
        TEXTS, spans, **search
    )


def test_what_a_folder_says_is_told_apart_and_changes_no_score(folder: Path, tmp_path: Path) -> None:
    card, other = (
        load_model(str(one)).card for one in (folder, saying(folder, tmp_path / "o", min_length=9))
    )
    assert card.generation != other.generation
    assert card.identity == other.identity
    silent = shutil.copytree(folder, tmp_path / "silent")
    (silent / "generation_config.json").unlink()
    assert load_model(str(silent)).card.generation == ""


PROMPTS = ["The sun rose over", "She", tiny.SENTENCES[3], "He wrote the answer on the board, and"]


@pytest.fixture(scope="module", params=["llama", "llama with BOS", "gpt2"])
def causal_folder(request, tmp_path_factory) -> Path:
    where = tmp_path_factory.mktemp("models") / "model"
    if request.param == "gpt2":
        return tiny.save_gpt2(where)
    return tiny.save_llama(where, bos="BOS" in request.param)


def greedy(causal_folder: Path, prompt: str, count: int) -> str:
    """One token at a time, the whole text again for each, until the end-of-text token."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer, network = (
        AutoTokenizer.from_pretrained(causal_folder),
        AutoModelForCausalLM.from_pretrained(causal_folder).eval(),
    )
    ids = tokenizer(prompt)["input_ids"]
    begin = len(ids)
    for _ in range(count):
        with torch.no_grad():
            ids.append(int(network(torch.tensor([ids])).logits[0, -1].argmax()))
        if ids[-1] == tokenizer.eos_token_id:
            break
    return tokenizer.decode(ids[begin:], skip_special_tokens=True)


def test_greedy_continuations_are_those_of_a_plain_loop(causal_folder):
    found = load_model(str(causal_folder)).generate(PROMPTS, max_tokens=12)
    assert found == [greedy(causal_folder, prompt, 12) for prompt in PROMPTS]
    assert any(found)


def test_the_order_of_the_prompts_is_kept_over_many_batches(causal_folder):
    prompts = [f"{sentence[: 3 + n]}" for n in range(5) for sentence in tiny.SENTENCES]
    model = load_model(str(causal_folder))
    together = model.generate(prompts, max_tokens=3)
    assert together == [model.generate([prompt], max_tokens=3)[0] for prompt in prompts]


def test_generation_stops_before_a_stop_string(causal_folder):
    model = load_model(str(causal_folder))
    (free,) = model.generate(PROMPTS[:1], max_tokens=24)
    stop = free[4:6]
    assert model.generate(PROMPTS[:1], max_tokens=24, stop=[stop, "never said"]) == [free[: free.index(stop)]]


def test_scores_are_the_same_before_and_after(causal_folder):
    import ensue

    model = load_model(str(causal_folder))
    before = ensue.score(list(tiny.SENTENCES), model=model).scores
    model.generate(PROMPTS, max_tokens=2)
    assert ensue.score(list(tiny.SENTENCES), model=model).scores == before


def test_no_prompts_give_no_texts(causal_folder):
    assert load_model(str(causal_folder)).generate([]) == []


def test_a_prompt_with_no_room_after_it_is_one_sentence(causal_folder):
    with pytest.raises(EnsueError, match="128"):
        load_model(str(causal_folder)).generate(["A dog.", " ".join(tiny.SENTENCES[:4])], max_tokens=100)


def test_a_model_whose_card_needs_bos_is_prompted_with_it(tmp_path):
    """The tokenizer of such a model does not add it, and without it the model talks nonsense."""
    from ensue.models import write_card_facts

    folder = tiny.save_llama(tmp_path / "model", bos=False)
    before = load_model(str(folder)).generate(PROMPTS, max_tokens=12)
    write_card_facts(folder, needs_bos=True)
    model = load_model(str(folder))
    spelled = model.tokenizer.decode([model.tokenizer.bos_token_id])
    assert model.generate(PROMPTS, max_tokens=12) == [greedy(folder, spelled + p, 12) for p in PROMPTS]
    assert model.generate(PROMPTS, max_tokens=12) != before
