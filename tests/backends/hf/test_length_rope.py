"""Models whose positions follow the length (Phi-3): what they write, ask and encode depends on no other text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ensue.backends.hf.beam import BeamRules
from ensue.backends.names import load_model
from ensue.backends.qg.questioner import prompted_questioner
from ensue.models.protocols import AnswerSpan
from tests.support import tiny

BORDER = 24
# Some stay below the border, some cross it while they are continued, and some begin beyond it.
PROMPTS = [
    "The sun rose over",
    "She",
    "He wrote the answer on the board, and",
    tiny.SENTENCES[1],
    " ".join(tiny.SENTENCES[3:6]),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save_long_rope(tmp_path_factory.mktemp("models") / "phi3", border=BORDER)


def network_of(folder: Path) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    return AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder).eval()


def greedy(folder: Path, prompt: str, count: int) -> str:
    """One token at a time, the whole text again for each."""
    tokenizer, network = network_of(folder)
    ids = tokenizer(prompt)["input_ids"]
    begin = len(ids)
    for _ in range(count):
        with torch.no_grad():
            ids.append(int(network(torch.tensor([ids])).logits[0, -1].argmax()))
        if ids[-1] == tokenizer.eos_token_id:
            break
    return str(tokenizer.decode(ids[begin:], skip_special_tokens=True))


def test_continuations_are_those_of_each_prompt_alone(folder: Path) -> None:
    tokenizer, _ = network_of(folder)
    lengths = [len(tokenizer(prompt)["input_ids"]) for prompt in PROMPTS]
    assert min(lengths) + 10 < BORDER < max(lengths)
    assert any(length <= BORDER < length + 10 for length in lengths)
    found = load_model(str(folder)).generate(PROMPTS, max_tokens=10)  # type: ignore[attr-defined]
    assert found == [greedy(folder, prompt, 10) for prompt in PROMPTS]


def test_vectors_are_those_of_each_text_alone(folder: Path) -> None:
    tokenizer, network = network_of(folder)
    together = load_model(str(folder)).encode(PROMPTS)  # type: ignore[attr-defined]
    for text, vector in zip(PROMPTS, together, strict=True):
        with torch.no_grad():
            states = network.base_model(torch.tensor([tokenizer(text)["input_ids"]]))[0][0]
        np.testing.assert_allclose(vector, states.mean(0).numpy(), atol=1e-4)


def test_questions_have_the_scores_of_a_plain_loop(tmp_path: Path) -> None:
    texts, spans = [tiny.SENTENCES[0], tiny.SENTENCES[1]], [AnswerSpan(4, 7), AnswerSpan(0, 3)]
    below: Any = load_model(str(tiny.save_long_rope(tmp_path / "below", border=800)))
    prompts = prompted_questioner(below)._prompts(texts, spans)
    # Just behind the shorter prompt, so that its question crosses the border and the other begins beyond it.
    border = min(len(prompt.shared) + len(prompt.own) for prompt in prompts) + 3
    across: Any = load_model(str(tiny.save_long_rope(tmp_path / "across", border=border)))
    for model in (below, across):
        questioner = prompted_questioner(model)
        found = questioner._search(prompts, BeamRules(2, questioner.ends, 4, 8, 1.0, 3))
        _, network = network_of(tmp_path / model.card.name)
        for prompt, hypotheses in zip(prompts, found, strict=True):
            for one in hypotheses:
                said = [*one.tokens, *([] if one.end is None else [one.end])]
                score = next_by_next(network, [*prompt.shared, *prompt.own], said)
                assert one.logprob == pytest.approx(score, abs=1e-3)


def next_by_next(network: Any, before: list[int], said: list[int]) -> float:
    """Each token's log-probability after all before it, which are run again for each."""
    total = 0.0
    for place, token in enumerate(said):
        with torch.no_grad():
            logits = network(torch.tensor([[*before, *said[:place]]])).logits[0, -1]
        total += float(torch.log_softmax(logits, -1)[token])
    return total
