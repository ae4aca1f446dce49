"""The Shuffle Test against an independent implementation: plain torch, one text at a time."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ensue
from ensue.models.card import ModelCard
from ensue.models.request import Part, PartScore, Policy, Prepared, Request, TextPart
from tests.support import tiny
from tests.support.command import read_lines, write_lines
from tests.support.corpus import document, write_corpus

TIE = 1e-4


class Naive:
    """A causal model as transformers loads it, and nothing else."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def ids(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def logprobs(self, ids: Sequence[int]) -> list[float]:
        """Of every token but the first, which conditions the rest."""
        with torch.no_grad():
            table = self.model(torch.tensor([list(ids)])).logits[0].double().log_softmax(-1)
        return [table[place, token].item() for place, token in enumerate(ids[1:])]


def whole(naive: Naive, text: str, length: int) -> tuple[float, float]:
    found = naive.logprobs(naive.ids(text))
    return sum(found), sum(found) / len(found)


def averaged(naive: Naive, text: str, length: int) -> tuple[float, float]:
    """Windows of `length` that overlap by half, the last at the end of the text, averaged (the paper)."""
    ids = naive.ids(text)
    begins = [*range(0, len(ids) - length, length // 2), len(ids) - length]
    windows = [naive.logprobs(ids[begin : begin + length]) for begin in begins]
    return float(np.mean([sum(w) for w in windows])), float(np.mean([sum(w) / len(w) for w in windows]))


def strided(naive: Naive, text: str, length: int) -> tuple[float, float]:
    """Every token but the first scored once, after at least half a window."""
    ids = naive.ids(text)
    found = naive.logprobs(ids[:length])
    while len(found) < len(ids) - 1:
        reached = len(found) + 1
        end = min(reached + length // 2, len(ids))
        found += naive.logprobs(ids[end - length : end])[-(end - reached) :]
    return sum(found), sum(found) / len(found)


def released(naive: Naive, text: str, length: int) -> tuple[float, float]:
    """The authors' released loop: windows of at most `length` tokens that end at i + 512, …, each one's mean
    loss times the tokens it advances, summed, divided by the number of tokens."""
    ids = naive.ids(text)
    stride = min(512, length)
    total = 0.0
    for i in range(0, len(ids), stride):
        begin, end = max(i + stride - length, 0), min(i + stride, len(ids))
        loss = -float(np.mean(naive.logprobs(ids[begin:end])))
        total += loss * (end - i)
    mean = -total / len(ids)
    return mean * len(ids), mean


Scoring = Callable[[Naive, str, int], tuple[float, float]]


def judged(original: tuple[float, float], shuffled: tuple[float, float]) -> dict[str, float]:
    """Which text is preferred: nats for totals, perplexities per token, and no more than 1e-4 is a tie."""
    total = original[0] - shuffled[0]
    perplexity = math.exp(-shuffled[1]) - math.exp(-original[1])
    return {
        "accuracy": float(total > TIE),
        "ties": float(abs(total) <= TIE),
        "accuracy_per_token": float(perplexity > TIE),
        "ties_per_token": float(abs(perplexity) <= TIE),
    }


def text_of(sentences: Sequence[str], size: int, order: Sequence[int], joiner: str = " ") -> str:
    blocks = [sentences[begin : begin + size] for begin in range(0, len(sentences), size)]
    return joiner.join(sentence for i in order for sentence in blocks[i])


def check_against(
    run: ensue.Run,
    rows: Sequence[dict[str, Any]],
    naive: Naive,
    scoring: Scoring,
    length: int = 128,
    **how: Any,
) -> None:
    """Every item's numbers and verdicts, and every metric, computed again."""
    cut, joiner = how.get("max_sentences", 20), how.get("joiner", " ")
    sentences = {row["id"]: row["sentences"][:cut] for row in rows}
    originals = {name: scoring(naive, joiner.join(s), length) for name, s in sentences.items()}
    verdicts: dict[int, list[dict[str, float]]] = {}
    for item in run.items:
        size, outputs, name = item["settings"]["block_size"], item["outputs"], item["cluster"]
        text = text_of(sentences[name], size, outputs["order"], joiner)
        assert text != joiner.join(sentences[name])
        shuffled = scoring(naive, text, length)
        for key, (total, mean) in {"original": originals[name], "shuffled": shuffled}.items():
            assert outputs[key]["logprob"] == pytest.approx(total, rel=1e-5, abs=1e-3)
            assert outputs[key]["logprob_per_token"] == pytest.approx(mean, abs=1e-4)
        verdict = judged(originals[name], shuffled)
        assert item["scores"] == verdict
        verdicts.setdefault(size, []).append(verdict)
    rows_of = [row for row in run.results["metrics"] if row["task"] == "shuffle" and row["metric"] in verdict]
    assert {row["settings"]["block_size"] for row in rows_of} == set(verdicts)
    for row in rows_of:
        found = [verdict[row["metric"]] for verdict in verdicts[row["settings"]["block_size"]]]
        assert (row["value"], row["n"]) == (pytest.approx(float(np.mean(found))), len(found))


@pytest.fixture(scope="module")
def llama(tmp_path_factory) -> Path:
    return tiny.save_llama(tmp_path_factory.mktemp("models") / "llama", max_length=512)


def test_accuracy_is_that_of_a_plain_loop(llama, tmp_path):
    data = write_corpus(tmp_path / "corpus.jsonl", (6, 9, 2))
    run = ensue.run("shuffle", model=str(llama), data=data, output=tmp_path / "run", shuffles=8)
    check_against(run, read_lines(data), Naive(llama), whole)
    values = {row["value"] for row in run.results["metrics"] if row["metric"] == "accuracy"}
    assert len(values) > 1, "the corpus is too easy to tell right from wrong"
    assert run.results["skipped"] == {f"too short for block size {k}": 1 for k in (2, 3, 4, 5)}


def test_a_joiner_and_a_limit_of_sentences_make_other_texts(llama, tmp_path):
    data = write_corpus(tmp_path / "corpus.jsonl", (9, 5))
    how = {"joiner": "\n\n", "max_sentences": 6}
    run = ensue.run(
        "shuffle", model=str(llama), data=data, output=tmp_path / "run", shuffles=4, block_size=2, **how
    )
    check_against(run, read_lines(data), Naive(llama), whole, **how)
    assert run.results["notes"] == {"documents cut to 6 sentences": 1}
    assert "joiner:'\\n\\n'" in run.results["signature"]


@pytest.mark.parametrize(
    ("window", "scoring"), [("average", averaged), ("strided", strided), ("released", released)]
)
def test_documents_longer_than_the_model(tmp_path, window, scoring):
    folder = tiny.save_gpt2(tmp_path / "gpt2", max_length=128)
    data = write_corpus(tmp_path / "corpus.jsonl", (12, 8))
    run = ensue.run(
        "shuffle",
        model=str(folder),
        data=data,
        output=tmp_path / "run",
        window=window,
        shuffles=4,
        block_size=3,
    )
    check_against(run, read_lines(data), Naive(folder), scoring)
    assert run.results["notes"]["windowed"] == 2 + len({json.dumps(i["outputs"]) for i in run.items})


@pytest.mark.parametrize(
    ("window", "scoring"), [("average", averaged), ("strided", strided), ("released", released)]
)
def test_windows_of_a_model_longer_than_the_released_stride(tmp_path, window, scoring):
    folder = tiny.save_llama(tmp_path / "llama", max_length=700)
    data = write_corpus(tmp_path / "corpus.jsonl", (36, 45))
    run = ensue.run(
        "shuffle",
        model=str(folder),
        data=data,
        output=tmp_path / "run",
        window=window,
        shuffles=2,
        block_size=10,
        max_sentences=None,
    )
    naive = Naive(folder)
    assert min(len(naive.ids(" ".join(row["sentences"]))) for row in read_lines(data)) > 1024
    check_against(run, read_lines(data), naive, scoring, 700, max_sentences=None)


def test_released_differs_from_the_paper_only_where_a_text_is_longer_than_512_tokens(llama, tmp_path):
    data = write_corpus(tmp_path / "corpus.jsonl", (5, 6))
    found = [
        ensue.run(
            "shuffle", model=str(llama), data=data, output=tmp_path / window, window=window, block_size=2
        ).items
        for window in ("released", "average")
    ]
    for one, other in zip(*found, strict=True):
        for key in ("original", "shuffled"):
            a, b = one["outputs"][key], other["outputs"][key]
            assert a["logprob_per_token"] == pytest.approx(b["logprob_per_token"], abs=1e-9)
        assert one["scores"]["accuracy"] == other["scores"]["accuracy"]


class Stated:
    """A scorer that gives each text the log-likelihood stated for it, all on one token."""

    def __init__(self, stated: dict[str, float]) -> None:
        self.stated = stated
        self.card = ModelCard(name="stated", kind="test", source="a test", identity={"seed": "0"})

    def check(self, policy: Policy) -> None:
        pass

    def prepare(self, requests: Sequence[Request], policy: Policy) -> list[Prepared]:
        return [Prepared((TextPart(request.continuation, 0),)) for request in requests]

    def execute(self, parts: Sequence[Part], done: Set[int]) -> Iterator[list[tuple[int, PartScore]]]:
        for place, part in enumerate(parts):
            assert isinstance(part, TextPart)
            yield [(place, PartScore(np.asarray([self.stated[part.text]])))]

    def policy_signature(self, policy: Policy) -> str:
        return "stated"


@pytest.mark.parametrize(
    ("original", "shuffled", "total", "mean"),
    [
        # Perplexities near 1: nats and perplexity differ alike.
        (-1e-9, -0.5e-4, "same", "same"),
        (-1e-9, -2e-4, "good", "good"),
        (-2e-4, -1e-9, "bad", "bad"),
        # Perplexity e^8: a gap of 0.9e-4 nats is 0.27 in perplexity.
        (-8.0, -8.00009, "same", "good"),
        (-8.00009, -8.0, "same", "bad"),
        (-8.0, -8.00000002, "same", "same"),
        (-8.0, -8.00011, "good", "good"),
        (-3.0, -3.0, "same", "same"),
        # So unlikely that the perplexity of both is beyond any number.
        (-9000.0, -9001.0, "good", "same"),
    ],
)
def test_ties_are_those_of_the_released_code(tmp_path, original, shuffled, total, mean):
    data = write_lines(tmp_path / "two.jsonl", [{"sentences": ["One.", "Two."]}])
    model = Stated({"One. Two.": original, "Two. One.": shuffled})
    run = ensue.run("shuffle", model=model, data=data, output=tmp_path / "run", block_size=1)
    (item,) = run.items
    assert item["scores"] == {
        "accuracy": float(total == "good"),
        "ties": float(total == "same"),
        "accuracy_per_token": float(mean == "good"),
        "ties_per_token": float(mean == "same"),
    }
    if max(-original, -shuffled) < 700:
        assert item["scores"] == judged((original, original), (shuffled, shuffled))


def test_repeated_sentences_never_give_the_original_text(llama, tmp_path):
    rows = [{"id": "a", "sentences": ["No.", "No. No.", "Yes.", "No."]}]
    data = write_lines(tmp_path / "corpus.jsonl", rows)
    run = ensue.run("shuffle", model=str(llama), data=data, output=tmp_path / "run", block_size=1)
    check_against(run, rows, Naive(llama), whole)


def test_a_masked_model_is_judged_by_its_pseudo_log_likelihood(tmp_path):
    """Each token masked in turn, in a plain loop."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    folder = tiny.save_bert(tmp_path / "bert")
    rows = [{"id": "a", "sentences": document(1, 3)}]
    data = write_lines(tmp_path / "corpus.jsonl", rows)
    run = ensue.run(
        "shuffle", model=str(folder), data=data, output=tmp_path / "run", block_size=1, shuffles=2
    )
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForMaskedLM.from_pretrained(folder).eval()

    def score(text: str) -> float:
        ids = tokenizer(text, return_tensors="pt")["input_ids"]
        total = 0.0
        for place in range(1, ids.shape[1] - 1):
            masked = ids.clone()
            masked[0, place] = tokenizer.mask_token_id
            with torch.no_grad():
                total += model(masked).logits[0, place].double().log_softmax(-1)[ids[0, place]].item()
        return total

    original = score(" ".join(rows[0]["sentences"]))
    assert len(run.items) == 2
    for item in run.items:
        shuffled = score(text_of(rows[0]["sentences"], 1, item["outputs"]["order"]))
        assert item["outputs"]["original"]["logprob"] == pytest.approx(original, abs=2e-3)
        assert item["outputs"]["shuffled"]["logprob"] == pytest.approx(shuffled, abs=2e-3)
        assert item["scores"]["accuracy"] == float(original - shuffled > TIE)
