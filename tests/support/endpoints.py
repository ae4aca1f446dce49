"""Talking to an endpoint model in tests, and what is asked of its errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ensue.backends.endpoint.model import EndpointModel
from ensue.errors import EnsueError
from ensue.models.request import PartScore, Policy, Request
from tests.support.completions_server import CompletionsServer, Fault, LocalModel

KEY = "sk-very-secret-0123456789"
TEXTS = [
    "The sun rose over the hill, and the birds began to sing.",
    "She opened the café’s green door — twice.",
    "Nobody spoke; “where to?” asked 你好 at last 🙂 and laughed.",
    "a",
    "  Two spaces,\n\nand lines \n",
]


def connect(server: CompletionsServer, **options: Any) -> EndpointModel:
    return EndpointModel(server.url, **({"backoff": 0.01, "timeout": 5.0, "retries": 5} | options))


def score(model: EndpointModel, requests: Sequence[Request]) -> list[PartScore]:
    prepared = model.prepare(requests, Policy())
    parts = [part for one in prepared for part in one.parts]
    found = dict(pair for batch in model.execute(parts, frozenset()) for pair in batch)
    return [found[index] for index in range(len(parts))]


def warmed(server: CompletionsServer, **options: Any) -> EndpointModel:
    """A model that knows its server already, so that the next request is the first for a text of ours."""
    model = connect(server, **options)
    score(model, [Request("Hello there.")])
    server.requests.clear()
    return model


def naive(
    model: LocalModel, continuation: str, context: str = ""
) -> tuple[list[float], list[tuple[int, int]]]:
    """The definition, token by token: one forward pass for each prefix, spans from the tokenizer itself."""
    text, start = context + continuation, len(context)
    encoding = model.tokenizer.encode(text, add_special_tokens=False)  # type: ignore[attr-defined]
    ids = ([] if model.bos is None else [model.bos]) + encoding.ids
    spans = ([] if model.bos is None else [(0, 0)]) + encoding.offsets
    logprobs, kept = [], []
    for place in range(1, len(ids)):
        if spans[place][1] > start:
            with torch.inference_mode():
                logits = model.model(torch.tensor([ids[:place]])).logits[0, -1]
            logprobs.append(logits.log_softmax(-1)[ids[place]].item())
            kept.append((max(spans[place][0] - start, 0), spans[place][1] - start))
    return logprobs, kept


def assert_one_sentence(error: BaseException) -> str:
    words = str(error)
    assert words.endswith("."), words
    assert "\n" not in words
    assert "Traceback" not in words
    assert KEY not in words
    assert len(words) < 500
    return words


def run_to_failure(model: EndpointModel, texts: Sequence[str]) -> tuple[dict[int, PartScore], EnsueError]:
    prepared = model.prepare([Request(text) for text in texts], Policy())
    got: dict[int, PartScore] = {}
    try:
        for batch in model.execute([one.parts[0] for one in prepared], frozenset()):
            got.update(batch)
    except EnsueError as error:
        return got, error
    raise AssertionError("the run did not fail")


def refuse(status: int, words: str) -> Callable[[dict[str, Any]], Fault | None]:
    return lambda body: Fault(status=status, words=words) if "BAD" in body["prompt"] else None
