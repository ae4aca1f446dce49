"""Score through every kind of server beside the local backend: the same numbers, and at what cost.

`python bench/served.py [--model smollm2] [--documents 6]` serves the model on loopback in the styles of an OpenAI
server with `echo`, of vLLM and of SGLang, scores whole texts and texts after a shared context through each, and
prints a Markdown table. The server is our own small one of tests/support, which runs one text at a time and caches
nothing: its seconds say what HTTP and the client add, not how fast those servers are. With `--gguf FILE` and
xllamacpp, llama.cpp's own server is asked to choose by generation.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import ensue  # noqa: E402
from ensue.backends.names import load_model, pull_model  # noqa: E402
from ensue.fetch.catalog import catalog  # noqa: E402
from ensue.models.request import Request, TokenCut  # noqa: E402
from ensue.scoring.engine import score  # noqa: E402
from tests.support.served import Servers  # noqa: E402

SERVED = ("echo", "vllm", "sglang")


class Measured(NamedTuple):
    """What one way of scoring gave: log-likelihoods, seconds, requests, and the share of tokens told of."""

    scores: list[float]
    seconds: float
    requests: int | None = None
    told: float | None = None


def texts(documents: int) -> list[Request]:
    """The documents that come with the package, whole, and the beginnings of all after the longest of them, cut."""
    from ensue.text.documents import BUNDLED, read_documents

    found = [" ".join(one.sentences) for one in read_documents(BUNDLED).items]
    chosen = found[:documents]
    context = max(found, key=len)
    cut = TokenCut(256, 64)
    return [*map(Request, chosen), *(Request("\n\n" + text, context, cut=cut) for text in chosen)]


def measure(model: Any, requests: list[Request], servers: Servers | None = None) -> Measured:
    model.card  # noqa: B018 (the server is met before the clock runs)
    score(model, requests[:1])
    if servers is not None:
        servers.log.unlink(missing_ok=True)
    begun = time.perf_counter()
    found = score(model, requests)
    seconds = time.perf_counter() - begun
    scores = [one.logprob for one in found.scores]
    if servers is None:
        return Measured(scores, seconds)
    lines = [line.split() for line in servers.log.read_text().splitlines()]
    cut = [(int(length), int(first)) for _, length, first, kind in lines if kind == "tokens"]
    told = sum(length - first for length, first in cut) / max(sum(length for length, _ in cut), 1)
    return Measured(scores, seconds, len(lines), told)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--documents", type=int, default=6)
    parser.add_argument("--concurrency", type=int, default=2)
    parser.add_argument("--gguf", type=Path)
    arguments = parser.parse_args()
    entry = catalog().get(arguments.model)
    folder = pull_model(entry) if entry is not None else Path(arguments.model)
    requests = texts(arguments.documents)
    rows = {"here": measure(load_model(str(folder)), requests)}
    with tempfile.TemporaryDirectory() as work:
        servers = Servers([folder], Path(work) / "log")
        servers.serve()
        for style in SERVED:
            model = load_model(servers.url(style), concurrency=arguments.concurrency)
            rows[style] = measure(model, requests, servers)
        servers.close()
        print(f"{arguments.model}, {len(requests)} texts, half of them cut after a shared context\n")
        print("| | largest difference, nats a text | seconds | requests | tokens of cut texts told of |")
        print("|---|---|---|---|---|")
        for name, one in rows.items():
            apart = max(abs(a - b) for a, b in zip(one.scores, rows["here"].scores, strict=True))
            told = "–" if one.told is None else f"{one.told:.2f}"
            print(f"| {name} | {apart:.1e} | {one.seconds:.1f} | {one.requests or '–'} | {told} |")
        if arguments.gguf is not None:
            named(arguments.gguf, Path(work))


def named(gguf: Path, work: Path) -> None:
    """Ask llama.cpp's own server to choose by generation, on the bundled documents."""
    from tests.support.tiny_gguf import llama_server

    with llama_server(gguf) as url:
        run = ensue.run(
            "shuffle",
            model=f"{url}/v1/chat/completions",
            output=work / "named",
            by="generation",
            block_size=[1],
            shuffles=2,
        )
    row = next(row for row in run.results["metrics"] if row["metric"] == "accuracy")
    low, high = row["ci95"]
    print(
        f"\nllama.cpp, chat, by generation: accuracy {row['value']:.3f} [{low:.3f}, {high:.3f}], {row['n']} pairs, "
        f"{run.results['seconds']:.0f} s, {run.results['notes']}"
    )


if __name__ == "__main__":
    main()
