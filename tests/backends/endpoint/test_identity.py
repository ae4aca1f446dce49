"""A served model is known by what its server says of it and by how it behaves: none is given anothers scores."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from ensue.backends.endpoint.identity import PROBES, Behaviour, known_behaviour, stated_digest
from ensue.backends.endpoint.served import ServedModel
from ensue.errors import RunFailed
from ensue.models.request import Request
from ensue.scoring.engine import score
from ensue.scoring.journal import Journal
from tests.support.completions_server import CompletionsServer, LocalModel, serving, tiny_model
from tests.support.endpoints import connect

TEXT = "The sun rose over the hill."


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ENSUE_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "endpoints"


@pytest.fixture(scope="module")
def other() -> LocalModel:
    """The same tokenizer and name, other weights."""
    made = tiny_model()
    torch.manual_seed(99)
    for parameter in made.model.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    return made


def swap(server: CompletionsServer, model: LocalModel) -> None:
    """What a restart of the server with another model does."""
    server.score_tokens, server.continue_text = model.score_tokens, model.continue_text


def test_a_model_put_in_anothers_place_is_not_given_its_scores(
    server: CompletionsServer, plain: LocalModel, other: LocalModel, tmp_path: Path
) -> None:
    with Journal(tmp_path / "journal") as journal:
        first = score(connect(server), [Request(TEXT)], journal=journal)
        again = score(connect(server), [Request(TEXT)], journal=journal)
        assert (again.computed, again.scores) == (0, first.scores)
        swap(server, other)
        changed = score(connect(server), [Request(TEXT)], journal=journal)
        assert changed.computed == 1
        assert abs(changed.scores[0].logprob - first.scores[0].logprob) > 0.1
        swap(server, plain)
        back = score(connect(server), [Request(TEXT)], journal=journal)
        assert (back.computed, back.scores) == (0, first.scores)


def test_rounding_does_not_make_another_model_of_it(server: CompletionsServer, plain: LocalModel) -> None:
    before = connect(server).card.identity
    moved = [0.06, -0.11]

    def jittered(text: str) -> list[Any]:
        told = plain.score_tokens(text)
        return [
            one if one.logprob is None else one._replace(logprob=one.logprob + moved[place % 2])
            for place, one in enumerate(told)
        ]

    server.score_tokens = jittered
    assert connect(server).card.identity == before
    moved[0] = 0.3
    assert connect(server).card.identity != before


def test_a_model_that_is_talked_to_is_another_than_one_that_goes_on(plain: LocalModel) -> None:
    with serving(plain, chat="tells") as server:
        goes_on, talks = (
            ServedModel(f"{server.url}/v1/{path}", backoff=0.01)
            for path in ("completions", "chat/completions")
        )
        assert {**goes_on.card.identity, "talk": "chat", "behaviour": ""} == {
            **talks.card.identity,
            "behaviour": "",
        }


def test_another_model_behind_a_server_that_was_not_asked_for_a_while_is_noticed(
    server: CompletionsServer, other: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ensue.backends.endpoint.client._UNSEEN", 0.2)
    model = connect(server)
    assert score(model, [Request(TEXT)]).computed == 1
    # Without a connection lost, as behind a router.
    swap(server, other)
    time.sleep(0.3)
    with pytest.raises(RunFailed, match="Another model answers"):
        score(model, [Request(TEXT + " Again.")])


def test_what_the_server_states_of_the_model_tells_it_apart(server: CompletionsServer) -> None:
    bare = connect(server).card.identity
    assert bare["stated"] == "-"
    server.manners.about = {"created": 1, "permission": [{"id": "a"}], "object": "model"}
    assert connect(server).card.identity == bare
    for about in (
        {"digest": "sha256:1"},
        {"digest": "sha256:2"},
        {"owned_by": "vllm", "root": "/models/a"},
        {"owned_by": "vllm", "root": "/models/b"},
        {"meta": {"n_params": 7}},
        {"max_model_len": 2048},
    ):
        server.manners.about = about
        found = connect(server).card.identity
        assert found["stated"] == stated_digest(about) != "-"
        assert found["behaviour"] == bare["behaviour"]
    digests = {
        stated_digest(a)
        for a in ({"root": "a"}, {"root": "b"}, {"digest": "a"}, {"version": 1}, {"meta": {}})
    }
    assert len(digests) == 5


def test_a_server_that_tells_nothing_is_known_by_its_name_alone(
    server: CompletionsServer, kept: Path
) -> None:
    server.manners.echo = server.manners.prompt_logprobs = "refuses"
    server.continue_text = lambda text, count: []
    card = connect(server).card
    assert card.identity == {
        "endpoint": f"{server.url}/v1",
        "model": "tiny",
        "stated": "-",
        "behaviour": "-",
    }
    assert not kept.exists()


def test_a_server_that_tells_nothing_of_prompts_is_known_by_what_it_goes_on_with(
    server: CompletionsServer, plain: LocalModel, other: LocalModel
) -> None:
    server.manners.echo = server.manners.prompt_logprobs = "refuses"
    first = connect(server).card.identity
    assert first["behaviour"] != "-"
    assert connect(server).card.identity == first
    swap(server, other)
    assert connect(server).card.identity != first
    swap(server, plain)
    assert connect(server).card.identity == first


def test_a_kept_behaviour_that_cannot_be_read_is_written_anew(server: CompletionsServer, kept: Path) -> None:
    before = connect(server).card.identity
    (path,) = kept.iterdir()
    whole = path.read_bytes()
    for words in (b"", b"{", b"[1]", b'[["a"]]'):
        path.write_bytes(words)
        assert connect(server).card.identity == before
        assert path.read_bytes() == whole


def test_behaviours_differ_by_tokens_and_by_what_is_scored() -> None:
    one = Behaviour(("a", "b"), (None, -1.0))
    assert one.is_like(Behaviour(("a", "b"), (None, -1.125)))
    assert not one.is_like(Behaviour(("a", "b"), (None, -1.126)))
    assert not one.is_like(Behaviour(("a", "c"), (None, -1.0)))
    assert not one.is_like(Behaviour(("a", "b"), (-1.0, -1.0)))
    assert not one.is_like(Behaviour(("a",), (None,)))
    first = known_behaviour("http://a/v1", "m", one)
    assert known_behaviour("http://a/v1", "m", one._replace(logprobs=(None, -1.1))) == first
    # Compared with what was kept, not with what came last: a model cannot drift into another.
    assert known_behaviour("http://a/v1", "m", one._replace(logprobs=(None, -1.2))) != first
    assert known_behaviour("http://a/v1", "m", one._replace(logprobs=(None, float("nan")))) == "-"


@pytest.mark.parametrize("bad", [float("nan"), float("-inf"), -9999.0])
def test_a_reply_with_what_is_no_number_is_refused_by_its_text(
    server: CompletionsServer, plain: LocalModel, bad: float, tmp_path: Path
) -> None:
    """-9999 is how vLLM writes minus infinity."""

    def faulty(text: str) -> list[Any]:
        told = plain.score_tokens(text)
        if "hill." in text and "birds" not in text:
            told[3] = told[3]._replace(logprob=bad)
        return told

    server.score_tokens = faulty
    with Journal(tmp_path / "journal") as journal:
        with pytest.raises(
            RunFailed, match=r"makes (nan|-inf) of the text that begins 'The sun rose"
        ) as raised:
            score(connect(server, concurrency=1), [Request("A dog."), Request(TEXT)], journal=journal)
        assert len(journal) == 1
    assert "server" in str(raised.value)


def test_the_file_of_behaviours_is_plain_json(server: CompletionsServer, kept: Path) -> None:
    connect(server).card  # noqa: B018
    (path,) = kept.iterdir()
    ((tokens, logprobs),) = json.loads(path.read_text())
    assert "".join(tokens).startswith(PROBES[0])
    assert logprobs[0] is None
    assert logprobs.count(None) == len(PROBES)
    assert all(x is None or x < 0 for x in logprobs)
