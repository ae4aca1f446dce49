"""Greedy continuation against a plain loop, stop strings, and prompts of different lengths in one batch."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from ensue.backends.names import load_model
from ensue.errors import EnsueError
from tests.support import tiny

PROMPTS = ["The sun rose over", "She", tiny.SENTENCES[3], "He wrote the answer on the board, and"]


@pytest.fixture(scope="module", params=["llama", "llama with BOS", "gpt2"])
def folder(request, tmp_path_factory) -> Path:
    where = tmp_path_factory.mktemp("models") / "model"
    if request.param == "gpt2":
        return tiny.save_gpt2(where)
    return tiny.save_llama(where, bos="BOS" in request.param)


def greedy(folder: Path, prompt: str, count: int) -> str:
    """One token at a time, the whole text again for each, until the end-of-text token."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer, network = (
        AutoTokenizer.from_pretrained(folder),
        AutoModelForCausalLM.from_pretrained(folder).eval(),
    )
    ids = tokenizer(prompt)["input_ids"]
    begin = len(ids)
    for _ in range(count):
        with torch.no_grad():
            ids.append(int(network(torch.tensor([ids])).logits[0, -1].argmax()))
        if ids[-1] == tokenizer.eos_token_id:
            break
    return tokenizer.decode(ids[begin:], skip_special_tokens=True)


def test_greedy_continuations_are_those_of_a_plain_loop(folder):
    found = load_model(str(folder)).generate(PROMPTS, max_tokens=12)
    assert found == [greedy(folder, prompt, 12) for prompt in PROMPTS]
    assert any(found)


def test_the_order_of_the_prompts_is_kept_over_many_batches(folder):
    prompts = [f"{sentence[: 3 + n]}" for n in range(5) for sentence in tiny.SENTENCES]
    model = load_model(str(folder))
    together = model.generate(prompts, max_tokens=3)
    assert together == [model.generate([prompt], max_tokens=3)[0] for prompt in prompts]


def test_generation_stops_before_a_stop_string(folder):
    model = load_model(str(folder))
    (free,) = model.generate(PROMPTS[:1], max_tokens=24)
    stop = free[4:6]
    assert model.generate(PROMPTS[:1], max_tokens=24, stop=[stop, "never said"]) == [free[: free.index(stop)]]


def test_scores_are_the_same_before_and_after(folder):
    import ensue

    model = load_model(str(folder))
    before = ensue.score(list(tiny.SENTENCES), model=model).scores
    model.generate(PROMPTS, max_tokens=2)
    assert ensue.score(list(tiny.SENTENCES), model=model).scores == before


def test_no_prompts_give_no_texts(folder):
    assert load_model(str(folder)).generate([]) == []


def test_a_prompt_with_no_room_after_it_is_one_sentence(folder):
    with pytest.raises(EnsueError, match="128"):
        load_model(str(folder)).generate(["A dog.", " ".join(tiny.SENTENCES[:4])], max_tokens=100)


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
