"""The endpoint model against a real HTTP server, checked with a naive torch loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ensue.backends.endpoint.model import open_endpoint
from ensue.errors import EnsueError, RunFailed
from ensue.models.protocols import AnswerSpan, Asked, Generator, Questioner, Scorer
from ensue.models.request import Policy, Request
from tests.support.completions_server import CompletionsServer, Fault, LocalModel, folder_model, serving
from tests.support.endpoints import TEXTS, assert_one_sentence, connect, naive, score, warmed

# (context, continuation): a clean join, one inside a token, one inside a word, and between split characters.
JOINS = [
    ("The sun rose over", " the hill."),
    ("The sun rose ov", "er the hill."),
    ("She opened the old let", "ter and read it."),
    ("The", " sun"),
    ("T", "he sun rose"),
    ("asked 你‽", "好🙂‽你 at last"),
    ("你好你‽好", "‽你‽ at last"),
    ("the ending 🙂", "‽ follows"),
]


@pytest.mark.parametrize("echo", ["tells", "refuses"], ids=["echo", "prompt_logprobs"])
@pytest.mark.parametrize("bos", [False, True], ids=["no bos", "bos"])
def test_scores_equal_the_naive_loop(echo: str, bos: bool, plain: LocalModel, with_bos: LocalModel) -> None:
    local = with_bos if bos else plain
    requests = [Request(text) for text in TEXTS] + [Request(b, a) for a, b in JOINS]
    with serving(local, echo=echo) as server:
        scores = score(connect(server), requests)
    for request, got in zip(requests, scores, strict=True):
        logprobs, spans = naive(local, request.continuation, request.context)
        np.testing.assert_allclose(got.logprobs, logprobs, atol=1e-6, rtol=0)
        if "‽" not in request.continuation and "’" not in request.continuation:
            assert got.spans == tuple(spans), request


@pytest.mark.parametrize(
    "manners",
    [
        {"offsets": "minus one"},
        {"lists_generated": False},
        {"lists_generated": False, "tells_usage": False},
        {"tells_usage": False},
        {"echo": "refuses", "prompt_token_listed": "last"},
        {"echo": "fails"},
        {"echo": "ignores"},
        {"echo": "nulls"},
    ],
    ids=str,
)
def test_manners_of_servers_do_not_change_scores(manners: dict[str, Any], with_bos: LocalModel) -> None:
    requests = [Request(TEXTS[0]), Request(TEXTS[2]), Request(" sang.", "The birds")]
    with serving(with_bos, **manners) as server:
        scores = score(connect(server), requests)
    for request, got in zip(requests, scores, strict=True):
        logprobs, _ = naive(with_bos, request.continuation, request.context)
        np.testing.assert_allclose(got.logprobs, logprobs, atol=1e-6, rtol=0)


def test_the_style_is_found_once(plain: LocalModel) -> None:
    with serving(plain, echo="refuses") as server:
        model = connect(server)
        score(model, [Request(TEXTS[0])])
        server.requests.clear()
        score(model, [Request(TEXTS[1]), Request(TEXTS[4])])
        assert sorted(server.prompts) == sorted([TEXTS[1], TEXTS[4]])
        assert all("prompt_logprobs" in body for _, _, body in server.requests)


def test_what_is_asked(server: CompletionsServer) -> None:
    score(warmed(server), [Request(" hill.", "The")])
    ((path, _, body),) = server.requests
    assert path == "/v1/completions"
    assert body == {
        "model": "tiny",
        "prompt": "The hill.",
        "max_tokens": 1,
        "temperature": 0,
        "echo": True,
        "logprobs": 1,
    }


def test_an_empty_continuation_needs_no_server(server: CompletionsServer) -> None:
    model = connect(server)
    (prepared,) = model.prepare([Request("", "The sun")], Policy())
    assert (prepared.parts, prepared.tokens) == ((), 0)
    assert prepared.combine([], detail=False).logprob == 0.0


def test_a_text_that_cannot_be_sent(server: CompletionsServer) -> None:
    with pytest.raises(EnsueError, match="lone surrogate") as caught:
        connect(server).prepare([Request("half \ud83d of it")], Policy())
    assert_one_sentence(caught.value)


@pytest.mark.parametrize("echo", ["refuses", "ignores", "nulls", "fails"])
def test_no_prompt_logprobs(echo: str, plain: LocalModel) -> None:
    refusing = "refuses" if echo in ("refuses", "fails") else "ignores"
    with (
        serving(plain, echo=echo, prompt_logprobs=refusing) as server,
        pytest.raises(EnsueError, match=r"returns no prompt log-probabilities.*vLLM") as caught,
    ):
        score(connect(server), [Request(TEXTS[0])])
    assert ("Only no echo is supported" in assert_one_sentence(caught.value)) == (refusing == "refuses")


def test_misplaced_logprobs_are_noticed(plain: LocalModel) -> None:
    with (
        serving(plain, echo="shifts", lists_generated=False) as server,
        pytest.raises(EnsueError, match="at the wrong tokens") as caught,
    ):
        score(connect(server), [Request(TEXTS[0])])
    assert_one_sentence(caught.value)


def test_missing_logprobs_are_noticed(plain: LocalModel) -> None:
    def forgetful(text: str) -> list[Any]:
        told = plain.score_tokens(text)
        return [
            one._replace(logprob=None) if "laugh" in text and i == 3 else one for i, one in enumerate(told)
        ]

    server = CompletionsServer(forgetful, plain.continue_text)
    try:
        with pytest.raises(EnsueError, match="prefix caching") as caught:
            score(connect(server), [Request("He wrote the answer and laughed.")])
    finally:
        server.close()
    assert_one_sentence(caught.value)


def test_a_tokenizer_that_rewrites_text(plain: LocalModel) -> None:
    server = CompletionsServer(lambda text: plain.score_tokens(text.replace("Q", "q")), plain.continue_text)
    try:
        with pytest.raises(EnsueError, match=r"do not spell the text that begins 'The Queen") as caught:
            score(connect(server), [Request("The Queen spoke.")])
        assert not isinstance(caught.value, RunFailed)
    finally:
        server.close()
    assert_one_sentence(caught.value)


def test_only_what_is_not_done_is_asked(server: CompletionsServer) -> None:
    model = warmed(server)
    prepared = model.prepare([Request(f"Sentence {i}.") for i in range(6)], Policy())
    batches = list(model.execute([one.parts[0] for one in prepared], {0, 2, 5}))
    assert sorted(index for batch in batches for index, _ in batch) == [1, 3, 4]
    assert sorted(server.prompts) == ["Sentence 1.", "Sentence 3.", "Sentence 4."]
    server.requests.clear()
    assert list(connect(server).execute([one.parts[0] for one in prepared], set(range(6)))) == []
    assert not server.prompts


def test_requests_run_at_once_but_not_too_many(server: CompletionsServer) -> None:
    model = warmed(server, concurrency=3)
    server.always = lambda body: Fault(delay=0.1)
    score(model, [Request(f"Sentence {i}.") for i in range(12)])
    assert server.busiest == 3


def test_policies(server: CompletionsServer) -> None:
    model = connect(server)
    for window in ("average", "strided", "released", "refuse"):
        model.check(Policy(window=window))
    for policy in (Policy(max_length=512), Policy(bos="always"), Policy(bos="never")):
        with pytest.raises(EnsueError, match="the server tokenises the text") as caught:
            model.check(policy)
        assert_one_sentence(caught.value)
    assert model.policy_signature(Policy()) == "bos:server first:unscored boundary:joint-span window:server"


def test_it_is_a_scorer_and_a_generator(server: CompletionsServer) -> None:
    model = connect(server)
    assert isinstance(model, Scorer)
    assert isinstance(model, Generator)


def test_generation_keeps_order(server: CompletionsServer, plain: LocalModel) -> None:
    model = connect(server, concurrency=4)
    prompts = [f"Sentence {i}" for i in range(8)]
    server.always = lambda body: Fault(delay=0.1) if body["prompt"] == "Sentence 0" else None
    server.script.extend([Fault(status=500), None, Fault(cut_json=True)])
    texts = model.generate(prompts, max_tokens=4)
    assert texts == ["".join(token for token, _ in plain.continue_text(prompt, 4)) for prompt in prompts]
    bodies = [body for _, _, body in server.requests if body]
    assert all(body["temperature"] == 0 and body["max_tokens"] == 4 and "stop" not in body for body in bodies)


def test_generation_options_reach_the_server(server: CompletionsServer, plain: LocalModel) -> None:
    tokens = [token for token, _ in plain.continue_text("The sun", 8)]
    stop = next(token for token in tokens if token != tokens[0])
    options = {"stop": [stop], "temperature": 0.7, "seed": 3}
    (text,) = connect(server).generate(["The sun"], max_tokens=8, **options)
    assert text == "".join(tokens).partition(stop)[0] != ""
    assert server.requests[-1][2] == options | {"model": "tiny", "prompt": "The sun", "max_tokens": 8}


@pytest.mark.parametrize("chat", [False, True], ids=["completions", "chat"])
def test_it_asks_questions(chat: bool, plain: LocalModel) -> None:
    text = "The harbour museum reopened in May."
    spans = [AnswerSpan(4, 11), AnswerSpan(31, 34)]
    with serving(plain, chat="tells") as server:
        server.continue_text = lambda prompt, count: [(" Who", -1.0), (" was", -3.0), ("?\n", -2.0)]
        url = f"{server.url}/v1/chat/completions" if chat else server.url
        model = open_endpoint(url)
        assert isinstance(model, Questioner)
        asked = model.ask([text, text], spans, beams=10, count=10, max_tokens=12)
        bodies = [body for path, _, body in server.requests if "completions" in path][-2:]
    assert asked == [[Asked("Who was?", -2.0)]] * 2
    said = [body["messages"][0]["content"] if chat else body["prompt"] for body in bodies]
    assert any("[[harbour]]" in one for one in said)
    assert any("[[May]]" in one for one in said)
    assert all(body["max_tokens"] == 12 and body["temperature"] == 0 for body in bodies)


@pytest.mark.slow
def test_serves_the_default_model(smollm2_folder: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(smollm2_folder)
    local = folder_model(smollm2_folder)
    pairs = [
        ("", "The cat sat on the mat and purred."),
        ("Paris is the capital of", " France, and Rome that of Italy."),
        ("", "Café 你好 🙂 — it’s late."),
    ]
    with serving(local) as server:
        scores = score(connect(server, timeout=60.0), [Request(b, a) for a, b in pairs])
    for (context, continuation), got in zip(pairs, scores, strict=True):
        ids = tokenizer(context + continuation, add_special_tokens=False)["input_ids"]
        begin = max(len(tokenizer(context, add_special_tokens=False)["input_ids"]) if context else 0, 1)
        expected = []
        for place in range(begin, len(ids)):
            with torch.inference_mode():
                logits = local.model(torch.tensor([ids[:place]])).logits[0, -1]
            expected.append(logits.log_softmax(-1)[ids[place]].item())
        np.testing.assert_allclose(got.logprobs, expected, atol=1e-4, rtol=0)
