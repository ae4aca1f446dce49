"""`masked=released` against the authors' arithmetic, in plain torch: no special tokens, windows that weigh alike."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from ensue.backends.names import load_model
from ensue.benchmarks.shuffle.task import TASK
from ensue.models.protocols import Scorer, require, room_of
from ensue.models.request import Policy, Request
from ensue.scoring import masked
from ensue.scoring.engine import score, signature
from ensue.scoring.tokens import Released
from tests.support import tiny
from tests.support.corpus import document

RELEASED = Policy(masked="released")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Longer than the authors' windows, which must not grow with it.
    return tiny.save_bert(tmp_path_factory.mktemp("bert"), max_length=540)


@pytest.fixture(scope="module")
def scorer(folder: Path) -> Scorer:
    return require(load_model(str(folder)), Scorer, "A test")


def masked_means(folder: Path, text: str, *, stride: int, longest: int) -> list[float]:
    """The mean log-probability of each window's tokens, each masked once, nothing put around them."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = tokenizer(text)["input_ids"][1:-1]
    means = []
    for begin in range(0, len(ids), stride):
        window = torch.tensor(ids[max(begin + stride - longest, 0) : begin + stride])
        copies = window.repeat(len(window), 1)
        copies.fill_diagonal_(tokenizer.mask_token_id)
        found = []
        with torch.no_grad():
            for row in range(0, len(copies), 64):
                table = model(copies[row : row + 64]).logits.log_softmax(-1)
                found += [table[at, row + at, window[row + at]].item() for at in range(len(table))]
        means.append(math.fsum(found) / len(found))
    return means


def test_windows_are_the_authors() -> None:
    assert masked.RELEASED_MASKED == (256, False, 512)


@pytest.mark.parametrize(("sentences", "windows"), [(1, 1), (3, 2), (5, 3)])
def test_the_score_is_the_mean_of_the_windows_means(
    folder: Path, scorer: Scorer, monkeypatch: pytest.MonkeyPatch, sentences: int, windows: int
) -> None:
    """Windows of an eighth: the reference runs each as often as it has tokens."""
    monkeypatch.setattr(masked, "RELEASED_MASKED", Released(stride=32, by_advance=False, longest=64))
    text = " ".join(document(3, sentences))
    (found,) = score(scorer, [Request(text)], policy=RELEASED).scores
    means = masked_means(folder, text, stride=32, longest=64)
    assert len(means) == windows
    assert found.logprob_per_token == pytest.approx(sum(means) / len(means), abs=2e-5)
    assert found.logprob == pytest.approx(found.tokens * found.logprob_per_token)


def test_windows_of_a_masked_model_average_as_the_paper_says(folder: Path, scorer: Scorer) -> None:
    """Of the default too: half-overlapping windows between special tokens, their totals averaged."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    text = " ".join(document(5, 4))
    (found,) = score(scorer, [Request(text)], policy=Policy(max_length=30)).scores
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval()
    first, *ids, last = tokenizer(text)["input_ids"]
    size = 28
    totals = []
    for begin in [*range(0, len(ids) - size, size // 2), len(ids) - size]:
        window = torch.tensor([first, *ids[begin : begin + size], last])
        total = 0.0
        for at in range(1, size + 1):
            copy = window.clone()
            copy[at] = tokenizer.mask_token_id
            with torch.no_grad():
                total += model(copy[None]).logits[0, at].log_softmax(-1)[window[at]].item()
        totals.append(total)
    assert len(totals) > 2
    assert found.logprob == pytest.approx(sum(totals) / len(totals), abs=1e-3)


def test_the_signature_and_the_room_say_what_is_done(scorer: Scorer) -> None:
    assert "pll:released specials:0+0" in signature(scorer, RELEASED)
    assert "window:released/540" in signature(scorer, RELEASED)
    assert (room_of(scorer, RELEASED), room_of(scorer, Policy())) == (540, 538)
    assert TASK.settings["masked"].read("released") == "released"
