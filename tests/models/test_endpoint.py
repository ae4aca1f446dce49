"""The endpoint model against a real HTTP server, checked with a naive torch loop."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ensue.errors import EnsueError, RunFailed
from ensue.models.endpoint import EndpointModel
from ensue.models.endpoint_client import parse_address
from ensue.models.endpoint_places import lay_along, lie_at_start
from ensue.models.protocols import Generator, Scorer
from ensue.scoring.request import PartScore, Policy, Request
from tests.support.completions_server import CompletionsServer, Fault, LocalModel, serving, tiny_model

KEY = "sk-very-secret-0123456789"
TEXTS = [
    "The sun rose over the hill, and the birds began to sing.",
    "She opened the café’s green door — twice.",
    "Nobody spoke; “where to?” asked 你好 at last 🙂 and laughed.",
    "a",
    "  Two spaces,\n\nand lines \n",
]
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


@pytest.fixture(scope="module")
def plain() -> LocalModel:
    return tiny_model()


@pytest.fixture(scope="module")
def with_bos() -> LocalModel:
    return tiny_model(bos=True)


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ENSUE_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def server(plain: LocalModel) -> Iterator[CompletionsServer]:
    with serving(plain) as running:
        yield running


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


# --- the numbers


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


# --- where tokens lie


@pytest.mark.parametrize(
    ("tokens", "text", "cuts"),
    [
        (["Hel", "lo"], "Hello", [0, 3, 5]),
        (["<|begin_of_text|>", "Hel", "lo"], "Hello", [0, 0, 3, 5]),
        (["<s>", "<s>", "a"], "<s>a", [0, 0, 3, 4]),
        ([None, "lo", " you"], "Hello you", [0, 3, 5, 9]),
        ([None, "Hello"], "Hello", [0, 0, 5]),
        (["▁The", "▁sun"], "The sun", [0, 3, 7]),
        (["<s>", "The", "sun", "."], "The sun.", [0, 0, 3, 7, 8]),
        (["a", "▁▁▁", "▁b"], "a    b", [0, 1, 4, 6]),
        (["a", "<0xE4>", "<0xBD>", "<0xA0>"], "a你", [0, 1, 2, 3, 4]),
        (["a", "\ufffd", "\ufffd"], "a你", [0, 1, 3, 4]),
        (["a", "", "", "你"], "a你", [0, 1, 1, 1, 4]),
        (["a", "", "", "b"], "a你b", [0, 1, 3, 4, 5]),
        (["\ufffd", "b"], "\ufffdb", [0, 3, 4]),
    ],
)
def test_tokens_are_laid_along_the_text(tokens: list[str | None], text: str, cuts: list[int]) -> None:
    assert lay_along(tokens, text.encode()) == cuts


@pytest.mark.parametrize("tokens", [["a", " b"], ["ab", "c"], ["A", "b"], []])
def test_tokens_that_are_not_the_text_are_refused(tokens: list[str | None]) -> None:
    assert lay_along(tokens, b"ab") is None


def test_the_start_of_a_text_is_told_apart_from_another_text() -> None:
    assert lay_along(["a", "b"], b"abc") is None
    assert lie_at_start(["a", "b"], b"abc")
    assert not lie_at_start(["a", "c"], b"abc")


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (["\ufffd"] * 1500, "你" * 500),
        (["\ufffd"] * 1250, "你" * 500),
        (["\ufffd", "\ufffd", "\ufffd", "\ufffd", "\ufffd", "。"] * 300, "你好。" * 300),
        ([None] + [" a"] * 1500, "a" + " a" * 1500),
        (["The", *["sun"] * 1500], "The" + " sun" * 1500),
    ],
    ids=["three pieces", "two or three pieces", "stops between", "untold first", "no spaces"],
)
def test_long_texts_take_no_long_time(tokens: list[str | None], text: str) -> None:
    begun = time.process_time()
    assert lay_along(tokens, text.encode())
    assert lay_along([*tokens[:-1], "x"], text.encode()) is None
    assert time.process_time() - begun < 3


@settings(max_examples=100, deadline=None)
@given(text=st.text(st.sampled_from("the sun rose, and “laugh” — é你好🙂\n"), min_size=1, max_size=40))
def test_laid_tokens_spell_the_text(text: str, plain: LocalModel) -> None:
    encoding = plain.tokenizer.encode(text, add_special_tokens=False)  # type: ignore[attr-defined]
    tokens = [plain.decode([token]) for token in encoding.ids]
    data = text.encode()
    for told in (tokens, ["<s>", *tokens], [None, *tokens], [None, *tokens[1:]]):
        cuts = lay_along(told, data)
        assert cuts is not None
        assert cuts[-1] == len(data)
        assert cuts == sorted(cuts)
        pieces = [data[a:b].decode("utf-8", "replace") for a, b in pairwise(cuts)]
        assert pieces[1:] == told[1:]
    if all("\ufffd" not in token for token in tokens):
        begins = [len(text[:begin].encode()) for begin, _ in encoding.offsets]
        assert lay_along(tokens, data) == [*begins, len(data)]


# --- faults that pass


PASSING = {
    "429": Fault(status=429),
    "429 with seconds": Fault(status=429, headers={"Retry-After": "0.05"}),
    "429 with a past date": Fault(status=429, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}),
    "429 with nonsense": Fault(status=429, headers={"Retry-After": "soon"}),
    "500": Fault(status=500),
    "502": Fault(status=502),
    "503": Fault(status=503, headers={"Retry-After": "0"}),
    "504": Fault(status=504),
    "slow": Fault(delay=0.8),
    "broken off": Fault(break_off=True),
    "cut JSON": Fault(cut_json=True),
    "cut tokens": Fault(cut_tokens=True),
}


@pytest.mark.parametrize("echo", ["tells", "refuses"], ids=["echo", "prompt_logprobs"])
@pytest.mark.parametrize("name", PASSING)
def test_a_passing_fault_is_tried_again(name: str, echo: str, plain: LocalModel) -> None:
    with serving(plain, echo=echo) as server:
        model = warmed(server, timeout=0.5 if name == "slow" else 5.0)
        times = 1 if name == "slow" else 2
        server.script.extend([PASSING[name]] * times)
        (got,) = score(model, [Request(" the hill.", "The sun rose over")])
        assert server.prompts == ["The sun rose over the hill."] * (times + 1)
    np.testing.assert_allclose(got.logprobs, naive(plain, " the hill.", "The sun rose over")[0], atol=1e-6)


def test_faults_while_the_server_is_met(server: CompletionsServer, plain: LocalModel) -> None:
    server.script.extend(
        [Fault(status=503), Fault(cut_json=True), None, Fault(status=500), None, Fault(status=429)]
    )
    (got,) = score(connect(server), [Request(TEXTS[0])])
    np.testing.assert_allclose(got.logprobs, naive(plain, TEXTS[0])[0], atol=1e-6)
    assert not server.script


class Clock(threading.Event):
    """Records the pauses instead of making them."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.pauses.append(timeout or 0.0)
        return self.is_set()


def test_pauses_grow_and_retry_after_is_kept_to(server: CompletionsServer) -> None:
    model = warmed(server, backoff=0.5)
    clock = model._client.halt = Clock()
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    server.script.extend(
        [Fault(status=500)] * 2
        + [Fault(status=429, headers={"Retry-After": wait}) for wait in ("7", "3600", later)]
    )
    score(model, [Request(TEXTS[0])])
    first, second, seconds, capped, date = clock.pauses
    assert 0.25 <= first <= 0.5 <= second <= 1.0
    assert seconds == 7.0
    assert capped == 60.0
    assert 15 < date <= 20


# --- faults that stay


STAYING: dict[str, tuple[Fault, str]] = {
    "429": (
        Fault(status=429),
        r"http://127\.0\.0\.1:\d+/v1 answered 429 three times; lower --concurrency or try later; "
        r"finished scores are kept, run again with --resume\.",
    ),
    "500": (Fault(status=500), r"answered 500 three times; see the server's log; finished scores are kept"),
    "slow": (Fault(delay=0.8), r"did not answer within 0\.5 s three times"),
    "broken off": (Fault(break_off=True), "broke off its reply three times"),
    "cut JSON": (Fault(cut_json=True), "sent a reply that is not JSON three times"),
    "cut tokens": (Fault(cut_tokens=True), "sent tokens for only a part of the text three times"),
}


def run_to_failure(model: EndpointModel, texts: Sequence[str]) -> tuple[dict[int, PartScore], EnsueError]:
    prepared = model.prepare([Request(text) for text in texts], Policy())
    got: dict[int, PartScore] = {}
    try:
        for batch in model.execute([one.parts[0] for one in prepared], frozenset()):
            got.update(batch)
    except EnsueError as error:
        return got, error
    raise AssertionError("the run did not fail")


@pytest.mark.parametrize("name", STAYING)
def test_a_staying_fault_ends_the_run(name: str, server: CompletionsServer) -> None:
    fault, words = STAYING[name]
    model = warmed(server, retries=2, concurrency=2, timeout=0.5 if name == "slow" else 5.0)
    server.always = lambda body: fault if "BAD" in body["prompt"] else None
    texts = [f"Sentence {i}." for i in range(6)] + ["BAD one."] + [f"Later {i}." for i in range(20)]
    got, error = run_to_failure(model, texts)
    assert isinstance(error, RunFailed)
    assert re.search(words, assert_one_sentence(error)), str(error)
    assert server.prompts.count("BAD one.") == 3
    assert set(range(6)) <= set(got)
    # Whatever was answered has been given, and all was not sent.
    assert {texts[index] for index in got} == set(server.prompts) - {"BAD one."}


def refuse(status: int, words: str) -> Callable[[dict[str, Any]], Fault | None]:
    return lambda body: Fault(status=status, words=words) if "BAD" in body["prompt"] else None


@pytest.mark.parametrize(
    ("status", "words", "expected"),
    [
        (401, "Incorrect API key", "put a valid key for it in ENSUE_API_KEY"),
        (403, "Forbidden", "put a valid key for it in ENSUE_API_KEY"),
        (404, "no such model", r"answered 404 \(no such model\); check the URL and the model's name"),
        (
            400,
            "logit_bias is odd",
            r"refused the text of 8 characters that begins 'BAD one\.' with 400: logit",
        ),
        (
            400,
            "This model's maximum context length is 8 tokens.\nHowever, you asked for 9. " + "x" * 300,
            r"finds the text of 8 characters that begins 'BAD one\.' too long: This model's maximum context "
            r"length is 8 tokens\. However, you asked for 9\. x+\.$",
        ),
        (413, "payload too large", "too long: payload too large"),
    ],
)
def test_a_refusal_ends_the_run_at_once(
    status: int, words: str, expected: str, server: CompletionsServer
) -> None:
    model = warmed(server, concurrency=1)
    server.always = refuse(status, words)
    got, error = run_to_failure(model, ["One.", "Two.", "BAD one.", "Never sent."])
    assert not isinstance(error, RunFailed)
    assert re.search(expected, assert_one_sentence(error)), str(error)
    assert set(got) == {0, 1}
    assert server.prompts == ["One.", "Two.", "BAD one."]


def test_a_text_too_long_for_the_server(plain: LocalModel) -> None:
    with serving(plain, longest=200) as server:
        text = "Once upon a time there was a very long text. " * 10
        _, error = run_to_failure(connect(server), [text])
    assert f"text of {len(text)} characters that begins 'Once upon a time there was a very long t'" in str(
        error
    )
    assert "maximum context length is 200" in assert_one_sentence(error)


def test_what_is_under_way_is_given_before_the_failure(server: CompletionsServer) -> None:
    model = warmed(server, concurrency=4)
    server.always = lambda body: (
        Fault(status=403)
        if "BAD" in body["prompt"]
        else Fault(delay=0.2)
        if "slow" in body["prompt"]
        else None
    )
    got, error = run_to_failure(model, ["A slow one.", "Another slow one.", "BAD one.", "The last slow one."])
    assert set(got) == {0, 1, 3}
    assert "403" in str(error)


def test_a_mix_of_faults_is_told(server: CompletionsServer) -> None:
    model = warmed(server, retries=1)
    server.script.extend([Fault(status=500), Fault(cut_json=True)])
    _, error = run_to_failure(model, ["One."])
    assert "failed two times (answered 500, sent a reply that is not JSON)" in assert_one_sentence(error)


def test_a_server_that_is_down() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(
        RunFailed, match=r"could not be reached \(.*\) two times; see that the server is up"
    ) as caught:
        EndpointModel(f"http://127.0.0.1:{port}", retries=1, backoff=0.01)
    assert_one_sentence(caught.value)


def test_a_caller_that_stops_early_is_not_kept_waiting(server: CompletionsServer) -> None:
    model = warmed(server, concurrency=2, backoff=30.0)
    server.always = lambda body: Fault(status=429) if "BAD" in body["prompt"] else None
    prepared = model.prepare([Request(text) for text in ("One.", "BAD one.", "Two.")], Policy())
    running = model.execute([one.parts[0] for one in prepared], frozenset())
    next(running)
    begun = time.monotonic()
    running.close()
    assert time.monotonic() - begun < 5
    server.always = lambda body: None
    server.script.append(Fault(status=500, headers={"Retry-After": "0"}))
    assert len(score(model, [Request("And again.")])) == 1


# --- how the work is done


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


# --- addresses and keys


@pytest.mark.parametrize(
    ("url", "root", "model"),
    [
        ("http://host:8000", "http://host:8000/v1", None),
        ("http://host:8000/", "http://host:8000/v1", None),
        ("https://host/v1", "https://host/v1", None),
        ("https://host/v1/completions", "https://host/v1", None),
        ("http://host:8000/v1#org/name-7B", "http://host:8000/v1", "org/name-7B"),
        ("http://host/proxy#m", "http://host/proxy/v1", "m"),
        ("http://[::1]:8000/openai/v2/", "http://[::1]:8000/openai/v2", None),
        ("http://user:pass@host/v1", "http://host/v1", None),
    ],
)
def test_addresses(url: str, root: str, model: str | None) -> None:
    address = parse_address(url)
    assert (address.root, address.model) == (root, model)


@pytest.mark.parametrize(
    "url",
    [
        "host:8000",
        "ftp://host/v1",
        "http://",
        f"http://me:{KEY}@host:no",
        f"http://host/v1?key={KEY}",
        "http://host/v1/chat/completions",
    ],
)
def test_bad_addresses(url: str) -> None:
    with pytest.raises(EnsueError) as caught:
        parse_address(url)
    assert_one_sentence(caught.value)


def test_one_of_several_models_is_named(plain: LocalModel) -> None:
    with serving(plain, models=("big", "small")) as server:
        with pytest.raises(
            EnsueError, match=r"serves 2 models \(big, small\); choose one, as in .*/v1#big"
        ) as caught:
            connect(server)
        assert_one_sentence(caught.value)
        assert EndpointModel(f"{server.url}/v1#small").card.name == "small"
        assert EndpointModel(server.url, "big").card.name == "big"
        with pytest.raises(EnsueError, match="The model `none` does not exist"):
            score(EndpointModel(f"{server.url}#none"), [Request("One.")])


def test_the_card(server: CompletionsServer) -> None:
    model = EndpointModel(server.url.replace("//", f"//me:{KEY}@"))
    root = f"{server.url}/v1"
    before = model.card
    assert (before.kind, before.name, before.source) == ("endpoint", "tiny", root)
    assert before.identity == {"endpoint": root, "model": "tiny"}
    score(model, [Request("One.")])
    assert model.card == before
    assert server.requests[-1][1]["authorization"].startswith("Basic ")


@pytest.mark.parametrize(
    "names", [("ENSUE_API_KEY",), ("OPENAI_API_KEY",), ("ENSUE_API_KEY", "OPENAI_API_KEY"), ()]
)
def test_the_key_is_sent(names: tuple[str, ...], plain: LocalModel, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in names:
        monkeypatch.setenv(name, f"{KEY}\n" if name == names[0] else "another")
    with serving(plain, api_key=KEY) as server:
        model = connect(server, **({} if names else {"api_key": KEY}))
        assert len(score(model, [Request("One.")])) == 1


def test_the_key_is_never_shown(plain: LocalModel, caplog: pytest.LogCaptureFixture, capfd: Any) -> None:
    caplog.set_level("DEBUG")
    with serving(plain) as server:
        model = connect(server, api_key=KEY, retries=1)
        score(model, [Request("One.")])
        server.always = refuse(400, f"your key {KEY} does not fit")
        _, refusal = run_to_failure(model, ["BAD one."])
        server.always = lambda body: Fault(status=500, words=KEY)
        _, failure = run_to_failure(model, ["Two."])
    assert "your key *** does not fit" in assert_one_sentence(refusal)
    assert_one_sentence(failure)
    shown = [*capfd.readouterr(), caplog.text, repr(model), repr(vars(model)), str(model.card.as_dict())]
    assert not any(KEY in words for words in (*shown, model.policy_signature(Policy())))
    with (
        serving(plain, api_key="another") as server,
        pytest.raises(EnsueError, match="ENSUE_API_KEY") as caught,
    ):
        connect(server, api_key=KEY)
    assert_one_sentence(caught.value)


def test_a_key_that_http_cannot_carry() -> None:
    with pytest.raises(EnsueError, match="characters that HTTP cannot carry"):
        EndpointModel("http://host", "m", api_key="clé")


# --- a real model


@pytest.mark.slow
def test_serves_the_default_model(smollm2_folder: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(smollm2_folder)
    model = AutoModelForCausalLM.from_pretrained(smollm2_folder, dtype=torch.float32)
    local = LocalModel(
        model,
        lambda text: tokenizer(text, add_special_tokens=False)["input_ids"],
        lambda ids: tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False),
    )
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
                logits = model(torch.tensor([ids[:place]])).logits[0, -1]
            expected.append(logits.log_softmax(-1)[ids[place]].item())
        np.testing.assert_allclose(got.logprobs, expected, atol=1e-4, rtol=0)
