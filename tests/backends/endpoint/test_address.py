"""Addresses, models and keys of an endpoint; a key is never shown."""

from __future__ import annotations

from typing import Any

import pytest

from ensue.backends.endpoint.client import parse_address
from ensue.backends.endpoint.model import EndpointModel
from ensue.errors import EnsueError
from ensue.models.request import Policy, Request
from tests.support.completions_server import CompletionsServer, Fault, LocalModel, serving
from tests.support.endpoints import KEY, assert_one_sentence, connect, refuse, run_to_failure, score


@pytest.mark.parametrize(
    ("url", "root", "model"),
    [
        ("http://host:8000", "http://host:8000/v1", None),
        ("http://host:8000/", "http://host:8000/v1", None),
        ("https://host/v1", "https://host/v1", None),
        ("https://host/v1/completions", "https://host/v1", None),
        ("https://host/v1/chat/completions#m", "https://host/v1", "m"),
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
    assert (before.identity["endpoint"], before.identity["model"]) == (root, "tiny")
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
        card = model.card
        server.always = refuse(400, f"your key {KEY} does not fit")
        _, refusal = run_to_failure(model, ["BAD one."])
        server.always = lambda body: Fault(status=500, words=KEY)
        _, failure = run_to_failure(model, ["Two."])
    assert "your key *** does not fit" in assert_one_sentence(refusal)
    assert_one_sentence(failure)
    shown = [*capfd.readouterr(), caplog.text, repr(model), repr(vars(model)), str(card.as_dict())]
    assert not any(KEY in words for words in (*shown, model.policy_signature(Policy())))
    with (
        serving(plain, api_key="another") as server,
        pytest.raises(EnsueError, match="ENSUE_API_KEY") as caught,
    ):
        connect(server, api_key=KEY)
    assert_one_sentence(caught.value)


def test_a_login_is_never_shown() -> None:
    model = EndpointModel(f"http://me:{KEY}@host/v1#m")
    assert KEY not in repr(vars(model))


def test_a_key_that_http_cannot_carry() -> None:
    with pytest.raises(EnsueError, match="characters that HTTP cannot carry"):
        EndpointModel("http://host", "m", api_key="clé")
