"""Texts cut in tokens by the tokenizer that a server lends: the scores of the model run here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ensue.backends.names import load_model
from ensue.errors import EnsueError
from ensue.models.request import Policy, Request, TokenCut
from ensue.scoring.engine import score
from tests.backends.endpoint.test_native import STORY
from tests.support.completions_server import Fault, folder_model, serving
from tests.support.endpoints import assert_one_sentence, connect
from tests.support.tiny import save_llama

STYLES: dict[str, dict[str, Any]] = {
    "echo": {"tokenize": "vllm"},
    "prompt_logprobs": {"tokenize": "vllm", "echo": "refuses"},
    "generate": {"tokenize": "vllm", "generate": "tells"},
    "echo, llama.cpp's tokenizer": {"tokenize": "llama.cpp"},
    "untold usage": {"tokenize": "vllm", "tells_usage": False},
    "generated token not listed": {"tokenize": "vllm", "lists_generated": False},
}
REQUESTS = [
    Request("\n\n" + end, STORY, detail=True, cut=TokenCut(prefix, 12))
    for prefix in (5, 40)
    for end in ("The café on the corner was closed.", "Nobody spoke — “where to?” asked 你好 at last.", "No.")
] + [Request("The train was early.", "", detail=True, cut=TokenCut(5, 4))]


@pytest.fixture(scope="module", params=[False, True], ids=["no bos", "bos"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_llama(tmp_path_factory.mktemp("llama"), bos=request.param, max_length=128)


@pytest.mark.parametrize("style", STYLES)
def test_scores_equal_the_local_backends(style: str, folder: Path) -> None:
    here = score(load_model(str(folder)), REQUESTS)  # type: ignore[arg-type]
    with serving(folder_model(folder), **STYLES[style]) as server:
        there = score(connect(server), REQUESTS)
    assert there.context_tokens == here.context_tokens
    for ours, theirs in zip(here.scores, there.scores, strict=True):
        assert theirs.tokens == ours.tokens
        np.testing.assert_allclose(theirs.token_logprobs, ours.token_logprobs, atol=1e-4, rtol=0)
        if theirs.token_spans is not None:
            assert theirs.token_spans[-1][1] == ours.token_spans[-1][1]  # type: ignore[index]
    assert sum(one.token_spans is not None for one in there.scores) >= 6


def test_what_does_not_fit_is_refused_before_it_is_sent(folder: Path) -> None:
    with serving(folder_model(folder), tokenize="vllm", about={"max_model_len": 20}) as server:
        model = connect(server)
        assert model.card.max_length == 19
        # A BOS takes a place of its own.
        room = 19 - (folder_model(folder).bos is not None)
        with pytest.raises(EnsueError, match=f"do not fit the {room} tokens tiny takes") as caught:
            model.prepare(REQUESTS[3:4], Policy())
    assert_one_sentence(caught.value)


def test_the_first_or_the_last_tokens_of_a_text_are_cut_as_here(folder: Path) -> None:
    local: Any = load_model(str(folder))
    ids = local.tokenizer(STORY, add_special_tokens=False)["input_ids"]
    with serving(folder_model(folder), tokenize="vllm") as server:
        model = connect(server)
        for last, own in ((False, ids[:7]), (True, ids[-7:])):
            assert model.cut_texts([STORY], 7, last=last) == [local.tokenizer.decode(own)]


def test_a_first_token_that_only_conditions_has_no_span(folder: Path) -> None:
    # Its tokens but the first would spell the beginning of this text, too.
    text = "No. No. No. No. No. No."
    request = Request(text, "", detail=True, cut=TokenCut(5, 6))
    (ours,) = score(load_model(str(folder)), [request]).scores  # type: ignore[arg-type]
    with serving(folder_model(folder), tokenize="vllm") as server:
        (theirs,) = score(connect(server), [request]).scores
    assert theirs.tokens == ours.tokens
    assert theirs.token_spans in (None, ours.token_spans)


def test_a_server_without_a_tokenizer_is_refused(folder: Path) -> None:
    with (
        serving(folder_model(folder)) as server,
        pytest.raises(EnsueError, match=r"lends no tokenizer") as caught,
    ):
        connect(server).prepare(REQUESTS, Policy())
    assert_one_sentence(caught.value)


def test_each_text_is_tokenised_once(folder: Path) -> None:
    with serving(folder_model(folder), tokenize="vllm") as server:
        model = connect(server)
        model.prepare(REQUESTS, Policy())
        texts = [body["prompt"] for path, _, body in server.requests if path == "/tokenize"]
        own = [
            text
            for text in texts
            if text in {r.context for r in REQUESTS} | {r.continuation for r in REQUESTS}
        ]
        assert len(own) == len(set(own))


def test_a_server_that_adds_tokens_of_its_own_is_refused(folder: Path) -> None:
    local = folder_model(folder)
    with serving(local, tokenize="vllm") as server:
        server.score_tokens = lambda prompt: local.score_tokens(
            prompt if isinstance(prompt, str) else [0, *prompt]
        )
        with pytest.raises(EnsueError, match=r"makes \d+ tokens of the \d+ it was sent") as caught:
            score(connect(server), REQUESTS[:1])
    assert_one_sentence(caught.value)


def test_tokens_become_text_again(folder: Path) -> None:
    for tokenize in ("vllm", "llama.cpp"):
        with serving(folder_model(folder), tokenize=tokenize) as server:
            tokenizer = connect(server)._tokenizer
            assert tokenizer is not None
            ids = tokenizer([STORY])["input_ids"]
            assert tokenizer.decode(ids) == [STORY]


def test_a_tokenizer_that_fails_later_is_told_in_a_sentence(folder: Path) -> None:
    with serving(folder_model(folder), tokenize="vllm") as server:
        model = connect(server)
        model.cut_texts([STORY], 4)
        server.always = lambda body: Fault(status=400, words="no such option")
        with pytest.raises(
            EnsueError, match="refused to tokenise for tiny with 400: no such option"
        ) as caught:
            model.cut_texts([STORY], 5)
    assert_one_sentence(caught.value)
