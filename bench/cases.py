"""The jobs contenders are given, made from the bundled documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ensue.benchmarks.shuffle.permute import document_seed, sentence_order, shuffled_orders
from ensue.scoring.request import Policy, Request
from ensue.text.bundled import bundled_documents

Requests = list[dict[str, Any]]


def shared_context(
    model: Any, examples: int = 2, context: int = 1024, choices: int = 6, length: int = 128
) -> Requests:
    """Examples of one long context with several continuations, as ChapterBreak has them."""
    text = " ".join(s for d in bundled_documents().items for s in d.sentences)
    ids = np.asarray(model.tokenizer(text, add_special_tokens=False)["input_ids"])
    out: Requests = []
    for example in range(examples):
        rolled = np.roll(ids, -example * 700)
        before = model.tokenizer.decode(rolled[:context])
        for choice in range(choices):
            begin = (context + choice * 211) % (len(ids) - length)
            after = " " + model.tokenizer.decode(rolled[begin : begin + length]).strip()
            out.append(_request(model, before, after))
    return out


def shuffle_test(
    model: Any, documents: int, tokens: int = 400, sizes: tuple[int, ...] = (1, 2, 3, 4, 5)
) -> Requests:
    """All distinct texts of a Shuffle Test on documents of 20 sentences and about 400 tokens."""
    bundled = [d.sentences for d in bundled_documents().items]
    out: dict[str, dict[str, Any]] = {}
    for number in range(documents):
        # Two bundled documents side by side give sentences of the length news has.
        pairs = [f"{a} {b}" for a, b in zip(bundled[2 * number], bundled[2 * number + 1], strict=True)]
        sentences = _trim(model, pairs, tokens)
        texts = [" ".join(sentences)]
        for size in sizes:
            seed = document_seed(0, f"bench-{number}", size)
            texts += [
                " ".join(sentences[i] for i in sentence_order(len(sentences), size, order))
                for order in shuffled_orders(sentences, size, 20, seed)
            ]
        for text in texts:
            out.setdefault(text, {"context": "", "continuation": text})
    return list(out.values())


def masked_texts(tokenizer: Any, count: int = 3, tokens: int = 256) -> Requests:
    """A few texts of 256 tokens, special ones included."""
    text = " ".join(s for d in bundled_documents().items for s in d.sentences)
    words = text.split()
    out: Requests = []
    begin = 0
    for _ in range(count):
        end = begin + tokens // 2
        while len(tokenizer(" ".join(words[begin : end + 1]))["input_ids"]) <= tokens:
            end += 1
        out.append({"context": "", "continuation": " ".join(words[begin:end])})
        begin = end
    return out


def masked_model(minilm: Path, folder: Path) -> Path:
    """A 6-layer, 384-wide BERT with a language-modelling head (random weights: only time is measured)."""
    import torch
    import transformers

    if not (folder / "config.json").exists():
        torch.manual_seed(0)
        transformers.AutoModelForMaskedLM.from_pretrained(minilm).save_pretrained(folder)
        transformers.AutoTokenizer.from_pretrained(minilm).save_pretrained(folder)
    return folder


def _trim(model: Any, sentences: list[str], tokens: int) -> list[str]:
    """Shorten each sentence by words so that the whole has about the wanted number of tokens."""
    have = len(model.tokenizer(" ".join(sentences))["input_ids"])
    share = min(tokens / have, 1.0)
    return [" ".join(s.split()[: max(round(len(s.split()) * share), 4)]) for s in sentences]


def _request(model: Any, context: str, continuation: str) -> dict[str, Any]:
    (prepared,) = model.prepare([Request(continuation, context)], Policy())
    part = prepared.parts[0]
    return {"context": context, "continuation": continuation, "ids": part.ids.tolist(), "start": part.start}
