"""llama.cpp's own server of a tiny model: what it can do, and what it is refused for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ensue
from ensue.backends.endpoint.identity import PROBES
from ensue.backends.names import load_model
from tests.backends.endpoint.test_native import STORY
from tests.support.command import here, refused, write_lines
from tests.support.completions_server import folder_model
from tests.support.corpus import document
from tests.support.tiny import save_llama
from tests.support.tiny_gguf import llama_server, write_gguf

pytest.importorskip("xllamacpp", exc_type=ImportError)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_llama(tmp_path_factory.mktemp("llama") / "llama", max_length=2048)


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with llama_server(write_gguf(folder, folder / "tiny.gguf")) as address:
        yield address


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENSUE_HOME", str(tmp_path / "home"))


def test_it_goes_on_as_the_model_run_here_does(url: str, folder: Path) -> None:
    model: Any = load_model(url)
    local = folder_model(folder)
    found = model._behaviour()
    expected = [local.continue_text(text, 1)[0] for text in PROBES]
    # It keeps keys and values in half precision.
    assert found.logprobs == pytest.approx([logprob for _, logprob in expected], abs=1e-2)
    assert model.card.max_length == 1023
    texts = [STORY, "The café — 你好 🙂 at last."]
    assert model._tokenizer(texts)["input_ids"] == [local.encode(text) for text in texts]
    assert model.cut_texts(texts[:1], 5, last=True) == [local.decode(local.encode(STORY)[-5:])]


def test_it_is_refused_as_a_scorer_and_chooses_by_generation(url: str, tmp_path: Path) -> None:
    rows = [{"id": f"d{n}", "sentences": list(document(n, 4))} for n in range(2)]
    data = write_lines(tmp_path / "documents.jsonl", rows)
    said = here("run", "shuffle", "--model", url, "--data", data, "--output", tmp_path / "a")
    assert "--set by=generation" in refused(said, "returns no prompt log-probabilities")
    for name, model in (("b", url), ("c", f"{url}/v1/chat/completions")):
        run = ensue.run(
            "shuffle",
            model=model,
            data=data,
            output=tmp_path / name,
            by="generation",
            shuffles=2,
            block_size=[1],
        )
        assert run.results["metrics"][0]["settings"]["by"] == "generation"
        assert run.results["metrics"][0]["n"] == 4
        assert "behaviour" in ensue.load_model(model).card.identity
