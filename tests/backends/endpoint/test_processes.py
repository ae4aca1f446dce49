"""Whole runs through servers in processes of their own: the local backend's numbers, faults, kills and restarts."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ensue
from ensue.backends.names import load_model
from ensue.errors import EnsueError, RunFailed
from tests.support.command import here, refused, write_lines
from tests.support.corpus import document
from tests.support.served import Servers
from tests.support.tiny import save_llama

# Nats a text: float32 here and there, in batches here and one by one there.
TOLERANCE = 1e-3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_llama(tmp_path_factory.mktemp("served") / "llama", max_length=512)


@pytest.fixture(scope="module")
def process(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """A process that serves the folder's model, as number 0, or another of the same form."""
    other = save_llama(tmp_path_factory.mktemp("other") / "llama", max_length=512, seed=9)
    servers = Servers([folder, other], tmp_path_factory.mktemp("log") / "log")
    yield servers
    servers.close()


@pytest.fixture
def servers(process: Servers) -> Iterator[Servers]:
    process.log.unlink(missing_ok=True)
    yield process
    process.kill()


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENSUE_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [{"id": f"d{n}", "sentences": list(document(n, 6))} for n in range(4)]
    return write_lines(tmp_path_factory.mktemp("data") / "documents.jsonl", rows)


@pytest.fixture(scope="module")
def breaks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    works = {
        f"w{n}": [
            {
                "ctx": " ".join(document(n, 8)),
                "pos": " ".join(document(50 + n, 2)),
                "negs": [" ".join(document(100 + 10 * n + k, 2)) for k in range(5)],
            }
        ]
        for n in range(3)
    }
    path = tmp_path_factory.mktemp("data") / "breaks.json"
    path.write_text(json.dumps({"pg19": works}))
    return path


def shuffle(model: Any, documents: Path, output: Path, **options: Any) -> ensue.Run:
    return ensue.run(
        "shuffle", model=model, data=documents, output=output, block_size=[1, 2], shuffles=2, **options
    )


def chapterbreak(model: Any, breaks: Path, output: Path) -> ensue.Run:
    settings = {"prefix_tokens": [16, 64], "suffix_tokens": [12]}
    return ensue.run("chapterbreak", model=model, data=breaks, output=output, **settings)


def _numbers(outputs: dict[str, Any]) -> list[float]:
    if "scores" in outputs:
        return [*outputs["scores"], *outputs["gold"].values()]
    return [outputs[text]["logprob"] for text in ("original", "shuffled")]


def values_of(run: ensue.Run) -> list[float]:
    return [row["value"] for row in run.results["metrics"]]


def test_runs_give_the_local_backends_numbers(
    servers: Servers, folder: Path, documents: Path, breaks: Path, tmp_path: Path
) -> None:
    servers.serve(fail_every=25)
    local = [
        shuffle(str(folder), documents, tmp_path / "a"),
        chapterbreak(str(folder), breaks, tmp_path / "b"),
    ]
    for style in ("echo", "vllm", "sglang"):
        url = servers.url(style)
        one = shuffle(url, documents, tmp_path / f"{style}-a")
        two = chapterbreak(url, breaks, tmp_path / f"{style}-b")
        assert "boundary:apart" in two.results["signature"]
        for ours, theirs in zip(local, (one, two), strict=True):
            assert values_of(theirs) == pytest.approx(values_of(ours), rel=1e-4, abs=TOLERANCE)
            assert [item["id"] for item in theirs.items] == [item["id"] for item in ours.items]
            for a, b in zip(ours.items, theirs.items, strict=True):
                assert _numbers(b["outputs"]) == pytest.approx(_numbers(a["outputs"]), abs=TOLERANCE)


@pytest.mark.parametrize("style", ["echo", "sglang"])
def test_a_server_that_is_killed_and_started_again(
    style: str, servers: Servers, folder: Path, documents: Path, tmp_path: Path
) -> None:
    """Nothing that was finished is asked for again, and another model in its place is refused."""
    servers.serve()
    url, output = servers.url(style), tmp_path / "run"
    whole = shuffle(url, documents, tmp_path / "whole")
    servers.log.unlink()
    model: Any = load_model(url, concurrency=2)
    model._client._retries = 0
    execute = model.execute

    def killed_soon(parts: Any, done: Any) -> Any:
        for count, batch in enumerate(execute(parts, done)):
            yield batch
            if count == 5:
                servers.kill()

    model.execute = killed_soon
    with pytest.raises(RunFailed, match="finished scores are kept, run again with --resume"):
        shuffle(model, documents, output)
    kept = len((output / "journal.jsonl").read_bytes().splitlines())
    servers.serve(1)
    with pytest.raises(
        EnsueError, match="other log-probabilities than the one that answers there now"
    ) as caught:
        shuffle(url, documents, output, resume=True)
    assert str(caught.value).endswith("or choose another --output.")
    servers.kill()
    servers.serve()
    before = sum(servers.asked.values())
    again = shuffle(url, documents, output, resume=True)
    assert again.results["metrics"] == whole.results["metrics"]
    assert [item["outputs"] for item in again.items] == [item["outputs"] for item in whole.items]
    assert json.loads((output / "run.json").read_text())["resumed_from"] == kept
    # Texts, then what a model is known by: its style (up to two requests), its places (two), three short texts.
    texts = 4 + len(again.items)
    assert sum(servers.asked.values()) - before <= texts - kept + 7
    # Twice: what was under way when it was killed, and what three models were known by.
    assert sum(servers.asked.values()) - len(servers.asked) <= 2 + 2 * 7


@pytest.mark.parametrize("style", ["echo", "sglang", "plain"])
def test_another_model_in_the_middle_of_a_run(
    style: str, servers: Servers, documents: Path, tmp_path: Path
) -> None:
    """A server that is started anew is asked again who it is, and no word of another model is kept."""
    how: dict[str, Any] = {"by": "generation"} if style == "plain" else {}
    servers.serve()
    url, output = servers.url(style), tmp_path / "run"
    whole = shuffle(url, documents, tmp_path / "whole", **how)
    servers.kill()
    servers.serve(delay=0.3)
    model: Any = load_model(url, concurrency=2)
    ended = threading.Event()

    def replace_server() -> None:
        journal = output / "journal.jsonl"
        while not ended.wait(0.01):
            if journal.exists() and journal.read_bytes().count(b"\n") > 4:
                servers.kill()
                servers.serve(1)
                return

    replacing = threading.Thread(target=replace_server)
    replacing.start()
    try:
        with pytest.raises(RunFailed, match=r"Another model answers at .* than when the run began"):
            shuffle(model, documents, output, **how)
    finally:
        ended.set()
        replacing.join()
    kept = len((output / "journal.jsonl").read_bytes().splitlines())
    servers.kill()
    servers.serve()
    again = shuffle(url, documents, output, resume=True, **how)
    assert json.loads((output / "run.json").read_text())["resumed_from"] == kept
    assert again.results["metrics"] == whole.results["metrics"]
    assert [item["outputs"] for item in again.items] == [item["outputs"] for item in whole.items]


def test_a_server_without_prompt_log_probabilities(
    servers: Servers, documents: Path, breaks: Path, tmp_path: Path
) -> None:
    servers.serve(fail_every=25)
    url = servers.url("plain")
    said = here("run", "shuffle", "--model", url, "--data", documents, "--output", tmp_path / "a")
    assert "--set by=generation" in refused(said, "returns no prompt log-probabilities")
    assert not (tmp_path / "a").exists()
    run = shuffle(url, documents, tmp_path / "b", by="generation")
    assert {row["settings"]["by"] for row in run.results["metrics"]} == {"generation"}
    talked = shuffle(f"{url}/v1/chat/completions", documents, tmp_path / "c", by="generation")
    assert "talk:chat" in talked.results["signature"]
    assert "talk:chat" not in run.results["signature"]
    named = ensue.run(
        "chapterbreak",
        model=url,
        data=breaks,
        output=tmp_path / "d",
        by="generation",
        prefix_tokens=[16],
        suffix_tokens=[12],
    )
    assert named.results["metrics"][0]["settings"]["by"] == "generation"


def test_a_server_that_is_only_talked_to(
    servers: Servers, documents: Path, breaks: Path, tmp_path: Path
) -> None:
    servers.serve()
    url = servers.url("chat")
    said = here("run", "shuffle", "--model", url, "--data", documents, "--output", tmp_path / "a")
    refused(said, "needs a model that can score text", "can only generate text")
    assert shuffle(url, documents, tmp_path / "b", by="generation").results["metrics"]
    named = ("--set", "by=generation", "--set", "prefix_tokens=8", "--set", "suffix_tokens=8")
    said = here("run", "chapterbreak", "--model", url, "--data", breaks, "--output", tmp_path / "c", *named)
    refused(said, "lends no tokenizer")
