"""The jobs contenders are given, made from the bundled documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ensue.benchmarks.chapterbreak.data.examples import Example, read_examples
from ensue.benchmarks.shuffle.permute import document_seed, sentence_order, shuffled_orders
from ensue.models.request import Policy, Request, TokenCut
from ensue.text.documents import read_documents

Requests = list[dict[str, Any]]


def shared_context(
    model: Any, examples: int = 2, context: int = 1024, choices: int = 6, length: int = 128
) -> Requests:
    """Examples of one long context with several continuations, as ChapterBreak has them."""
    text = " ".join(s for d in read_documents().items for s in d.sentences)
    ids = np.asarray(model.tokenizer(text, add_special_tokens=False)["input_ids"])
    out: Requests = []
    for example in range(examples):
        rolled = np.roll(ids, -example * 700)
        before = model.tokenizer.decode(rolled[:context])
        for choice in range(choices):
            begin = (context + choice * 211) % (len(ids) - length)
            after = " " + model.tokenizer.decode(rolled[begin : begin + length]).strip()
            out.append(_request(model, Request(after, before)))
    return out


def chapter_breaks(
    model: Any, examples: int, context: int, data: str | None = None, length: int = 128
) -> Requests:
    """ChapterBreak examples, six suffixes after one long context each; without data, of bundled sentences."""
    found = read_examples(data, limit=examples).items if data else _made_breaks(examples, context)
    out: Requests = []
    for example in found[:examples]:
        for suffix in (example.gold, *example.negatives):
            cut = TokenCut(context, length)
            request = Request("\n\n" + suffix, example.context, cut=cut)
            out.append({**_request(model, request), "cut": list(cut)})
    return out


def _made_breaks(examples: int, context: int) -> list[Example]:
    """Texts of shuffled sentences, long enough for the wanted tokens: only time and equality are measured."""
    sentences = [s for d in read_documents().items for s in d.sentences]
    made = []
    for number in range(examples):
        mixed = np.random.default_rng(number).permutation(sentences).tolist()
        before = " ".join(mixed * (1 + context // (8 * len(mixed))))
        suffixes = [" ".join(mixed[i : i + 40]) for i in range(0, 240, 40)]
        name = f"made/{number}"
        made.append(
            Example(f"{name}/0", "made", str(number), "chapter", before, suffixes[0], tuple(suffixes[1:]))
        )
    return made


def shuffle_test(
    model: Any, documents: int, tokens: int = 400, sizes: tuple[int, ...] = (1, 2, 3, 4, 5)
) -> Requests:
    """All distinct texts of a Shuffle Test on documents of 20 sentences and about 400 tokens."""
    bundled = [d.sentences for d in read_documents().items]
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
    text = " ".join(s for d in read_documents().items for s in d.sentences)
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


def _request(model: Any, request: Request) -> dict[str, Any]:
    (prepared,) = model.prepare([request], Policy())
    part = prepared.parts[0]
    asked = {"context": request.context, "continuation": request.continuation}
    return {**asked, "ids": part.ids.tolist(), "start": part.start}
