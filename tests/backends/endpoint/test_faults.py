"""Faults of an endpoint: those that pass are tried again, those that stay end the run and lose nothing."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import numpy as np
import pytest

from ensue.backends.endpoint.model import EndpointModel
from ensue.backends.endpoint.served import ServedModel
from ensue.backends.names import load_model
from ensue.errors import EnsueError, RunFailed
from ensue.models.request import Policy, Request
from tests.support.completions_server import CompletionsServer, Fault, LocalModel, serving
from tests.support.endpoints import (
    TEXTS,
    assert_one_sentence,
    connect,
    naive,
    refuse,
    run_to_failure,
    score,
    warmed,
)

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
    "dripping": Fault(drip=0.1),
    "broken off": Fault(break_off=True),
    "cut JSON": Fault(cut_json=True),
    "cut tokens": Fault(cut_tokens=True),
}


@pytest.mark.parametrize("echo", ["tells", "refuses"], ids=["echo", "prompt_logprobs"])
@pytest.mark.parametrize("name", PASSING)
def test_a_passing_fault_is_tried_again(name: str, echo: str, plain: LocalModel) -> None:
    with serving(plain, echo=echo) as server:
        late = name in ("slow", "dripping")
        model = warmed(server, timeout=0.5 if late else 5.0)
        times = 1 if late else 2
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


def _told(**changes: Any) -> Callable[[dict[str, Any]], Any]:
    """A reply that says something else of every token."""

    def garble(answer: dict[str, Any]) -> Any:
        about = answer["choices"][0]["logprobs"]
        for name, value in changes.items():
            about[name] = [value] * len(about["tokens"])
        return answer

    return garble


def _triples(change: Callable[[list[Any]], Any]) -> Callable[[dict[str, Any]], Any]:
    def garble(answer: dict[str, Any]) -> Any:
        about = answer["meta_info"]
        about["input_token_logprobs"] = [change(one) for one in about["input_token_logprobs"]]
        return answer

    return garble


def _candidates(**changes: Any) -> Callable[[dict[str, Any]], Any]:
    def garble(answer: dict[str, Any]) -> Any:
        for candidates in answer["choices"][0]["prompt_logprobs"][1:]:
            for entry in candidates.values():
                entry |= changes
        return answer

    return garble


ODD: dict[str, tuple[dict[str, str], Callable[[dict[str, Any]], Any], str]] = {
    "numbers for tokens": ({}, _told(tokens=17), "sent '17' for a token's text"),
    "lists for tokens": ({}, _told(tokens=["a"]), "for a token's text"),
    "logits": ({}, _told(token_logprobs=3.5), "sent 3.5 for a log-probability, which none can be"),
    "infinity": ({}, _told(token_logprobs=float("inf")), "sent inf for a log-probability"),
    "a huge number": ({}, _told(token_logprobs=-(10**400)), "sent a reply that cannot be read"),
    "an error as a success": (
        {},
        lambda answer: {"error": {"message": "out of memory"}},
        r"sent a reply without a completion \(out of memory\)",
    ),
    "pairs": ({"generate": "tells"}, _triples(lambda one: one[:2]), "sent a reply that cannot be read"),
    "a name for a number": (
        {"generate": "tells"},
        _triples(lambda one: [one[0], "abc", one[2]]),
        "sent a reply that cannot be read",
    ),
    "a number for a text": ({"generate": "tells"}, _triples(lambda one: [*one[:2], 5]), "for a token's text"),
    "candidates without texts": (
        {"echo": "refuses"},
        _candidates(decoded_token=7),
        "sent '7' for a token's text",
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_a_reply_that_makes_no_sense_is_told_in_a_sentence(name: str, plain: LocalModel) -> None:
    manners, garble, words = ODD[name]
    with serving(plain, **manners) as server:
        model = warmed(server, retries=1)
        server.always = lambda body: Fault(garble=garble)
        _, error = run_to_failure(model, ["One."])
    assert re.search(f"{words}.* two times", assert_one_sentence(error)), str(error)


def test_a_text_in_parts_is_read_and_one_without_any_is_asked_for_again(plain: LocalModel) -> None:
    def parts(answer: dict[str, Any]) -> Any:
        message = answer["choices"][0]["message"]
        message["content"] = [{"type": "text", "text": message["content"]}, {"type": "image"}]
        return answer

    with serving(plain, chat="tells") as server:
        url = f"{server.url}/v1/chat/completions"
        model = ServedModel(url, backoff=0.01, timeout=5.0)
        whole = model.generate(["Who is there?"], max_tokens=3)
        server.script.extend([Fault(garble=lambda answer: {"choices": [{"index": 0}]}), Fault(garble=parts)])
        assert model.generate(["Who is there?"], max_tokens=3) == whole
        assert not server.script


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


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_a_timeout_is_a_number_of_seconds(seconds: float) -> None:
    with pytest.raises(EnsueError, match="--timeout is more than 0 and at most 86,400 seconds"):
        load_model("http://127.0.0.1:1", timeout=seconds)
    assert load_model("http://127.0.0.1:1#a", timeout=2)._client._timeout == 2  # type: ignore[attr-defined]
