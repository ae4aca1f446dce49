"""SGLang's own path: what precedes a continuation is neither told of nor computed again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensue.backends.endpoint.model import EndpointModel
from ensue.errors import EnsueError
from ensue.models.request import Request
from tests.support.completions_server import CompletionsServer, Fault, LocalModel, serving
from tests.support.effort import effort
from tests.support.endpoints import TEXTS, assert_one_sentence, connect, naive, score

STORY = (
    "The sun rose over the hill, and the birds began to sing. She opened the old letter and read it twice before "
    "she spoke. Nobody had expected the train to arrive so early that morning. The café on the corner — the one "
    "with the green door — was closed. He wrote the answer on the board, and the whole class laughed. When the rain "
    "stopped, the children ran into the garden again. “Where are you going?” asked the captain, looking at the map. "
)


def asked(server: CompletionsServer) -> list[tuple[Any, int]]:
    """What was asked of SGLang's path: the prompt, and the token from which on it is told of."""
    return [
        (body.get("text") or body["input_ids"], body["logprob_start_len"])
        for path, _, body in server.requests
        if path == "/generate"
    ]


@pytest.mark.parametrize("bos", [False, True], ids=["no bos", "bos"])
def test_scores_equal_the_naive_loop(bos: bool, plain: LocalModel, with_bos: LocalModel) -> None:
    local = with_bos if bos else plain
    requests = [
        *(Request(text) for text in TEXTS),
        Request(" the hill.", "The sun rose over"),
        *(Request(end, STORY) for end in ("Then it was over.", "T", "好🙂‽你 at last", "  two")),
        *(Request(STORY[at:], STORY[:at]) for at in (len(STORY) - 3, len(STORY) - 60, 401)),
        Request("‽你‽ at last", STORY + "你好你‽好"),
    ]
    with serving(local, generate="tells") as server:
        scores = score(connect(server), requests)
        assert all(path in ("/v1/models", "/generate", "/v1/completions") for path, _, _ in server.requests)
    for request, got in zip(requests, scores, strict=True):
        logprobs, spans = naive(local, request.continuation, request.context)
        np.testing.assert_allclose(got.logprobs, logprobs, atol=1e-6, rtol=0)
        if "‽" not in request.continuation and "’" not in request.continuation:
            assert got.spans == tuple(spans), request


def test_a_long_context_is_counted_once_and_not_told_of(plain: LocalModel) -> None:
    ends = [f"Ending {number}." for number in range(6)]
    with serving(plain, generate="tells") as server:
        model = connect(server)
        score(model, [Request("Hello there.")])
        server.requests.clear()
        score(model, [Request(end, STORY) for end in ends])
        counted = [body["prompt"] for path, _, body in server.requests if path == "/v1/completions"]
        assert counted == [STORY]
        context = len(plain.ids(STORY))
        assert sorted(asked(server)) == sorted((STORY + end, context - 4) for end in ends)


def test_tokens_that_do_not_reach_back_are_asked_for_whole(plain: LocalModel) -> None:
    """A context whose end has far other tokens with its continuation than without it."""
    with serving(plain, generate="tells") as server:
        model = connect(server)
        model._count = lambda context: len(plain.ids(context)) + 4  # type: ignore[assignment]
        (got,) = score(model, [Request("Then it was over.", STORY)])
        assert [first for _, first in asked(server)][-2:] == [len(plain.ids(STORY)), 0]
    np.testing.assert_allclose(got.logprobs, naive(plain, "Then it was over.", STORY)[0], atol=1e-6)


def test_servers_of_several_models_are_asked_by_name(plain: LocalModel) -> None:
    with serving(plain, generate="tells", models=("tiny", "adapter")) as server:
        model = connect(server, model="adapter")
        score(model, [Request(TEXTS[0])])
        assert not asked(server)


@pytest.mark.parametrize(
    "fault", [Fault(status=503), Fault(cut_json=True), Fault(break_off=True), Fault(cut_tokens=True)], ids=str
)
def test_passing_faults_are_tried_again(fault: Fault, plain: LocalModel) -> None:
    with serving(plain, generate="tells") as server:
        model = connect(server)
        score(model, [Request("Hello there.")])
        server.script.append(fault)
        (got,) = score(model, [Request(TEXTS[0])])
    np.testing.assert_allclose(got.logprobs, naive(plain, TEXTS[0])[0], atol=1e-6)


@pytest.fixture(scope="module")
def native(plain: LocalModel) -> Iterator[EndpointModel]:
    with serving(plain, generate="tells") as server:
        yield connect(server, concurrency=1)


@settings(max_examples=effort(25, 300))
@given(cut=st.integers(1, len(STORY) - 1), end=st.sampled_from(["", " And then?", "‽好", "ing of it"]))
def test_wherever_a_text_is_divided_its_end_is_scored(
    cut: int, end: str, plain: LocalModel, native: EndpointModel
) -> None:
    text = STORY + end
    (got,) = score(native, [Request(text[cut:], text[:cut])])
    encoding = plain.tokenizer.encode(text, add_special_tokens=False)  # type: ignore[attr-defined]
    told = zip(plain.score_tokens(text)[1:], encoding.offsets[1:], strict=True)
    expected = [one.logprob for one, (_, until) in told if until > cut]
    np.testing.assert_allclose(got.logprobs, expected, atol=1e-6, rtol=0)
    assert got.spans is not None
    assert all(a[0] <= b[0] for a, b in pairwise(got.spans))


def test_a_path_of_that_name_at_another_server(plain: LocalModel) -> None:
    """Others have a /generate, too, that knows nothing of log-probabilities."""
    with serving(plain, generate="tells") as server:
        server._generate = lambda body, fault: {"generated_text": "…"}  # type: ignore[method-assign]
        (got,) = score(connect(server), [Request(TEXTS[0])])
        assert server.requests[-1][0] == "/v1/completions"
    np.testing.assert_allclose(got.logprobs, naive(plain, TEXTS[0])[0], atol=1e-6)


def test_tokens_other_than_those_sent_are_refused(plain: LocalModel) -> None:
    from ensue.models.request import Policy, TokenCut

    with serving(plain, generate="tells", tokenize="vllm") as server:
        model = connect(server)
        request = Request(" It was over.", STORY, cut=TokenCut(8, 4))
        (prepared,) = model.prepare([request], Policy())
        server.score_tokens = lambda prompt: plain.score_tokens(
            prompt if isinstance(prompt, str) else [*prompt[:-1], prompt[-1] + 1]
        )
        with pytest.raises(EnsueError, match="scored other tokens than it was sent") as caught:
            list(model.execute(prepared.parts, frozenset()))
    assert_one_sentence(caught.value)
