"""Served models in a process of their own, which can be killed and started again in no time.

`python -m tests.support.served FOLDER …` loads the models, then forks a server for each line `serve NUMBER OPTIONS`
on its standard input and kills it at a line `kill`. A server listens in every style at once, a port each. Every
request for work is a line of the log before it is answered, so that a test can count what a killed server was asked
for.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx

STYLES: dict[str, dict[str, Any]] = {
    "echo": {"prompt_logprobs": "ignores", "tokenize": "vllm"},
    "vllm": {"echo": "refuses", "tokenize": "vllm"},
    "sglang": {"generate": "tells", "tokenize": "vllm"},
    "plain": {"echo": "fails", "prompt_logprobs": "ignores", "tokenize": "llama.cpp", "chat": "tells"},
    "chat": {"completions": "absent", "chat": "tells"},
}
ROOT = Path(__file__).parents[2]


class Servers:
    """The process that serves; ports stay the same when it is killed and started again."""

    def __init__(self, folders: list[Path], log: Path) -> None:
        sockets = [socket.socket() for _ in STYLES]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        self.ports = dict(zip(STYLES, (one.getsockname()[1] for one in sockets), strict=True))
        for one in sockets:
            one.close()
        self.log = log
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.served", *map(str, folders), "--log", str(log)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def url(self, style: str) -> str:
        return f"http://127.0.0.1:{self.ports[style]}" + ("/v1/chat/completions" if style == "chat" else "")

    @property
    def asked(self) -> Counter[str]:
        """How often each piece of work was asked for."""
        return Counter(self.log.read_text("utf-8").splitlines() if self.log.exists() else [])

    def serve(self, number: int = 0, **options: Any) -> None:
        """Start to serve one of the models; `fail_every` and `delay` make it a bad server or a slow one."""
        self._tell(f"serve {number} {json.dumps({'ports': self.ports, **options})}")
        while True:
            try:
                for port in self.ports.values():
                    httpx.get(f"http://127.0.0.1:{port}/v1/models", timeout=30).raise_for_status()
                return
            except httpx.HTTPError:
                time.sleep(0.02)

    def kill(self) -> None:
        """End the server at once, whatever it is doing."""
        self._tell("kill")

    def _tell(self, words: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{words}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline(), "the process ended"

    def close(self) -> None:
        self._process.communicate()


def _digest(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:16]


def _size(body: dict[str, Any]) -> str:
    """How long a prompt is, in tokens or in characters, and from where on it is told of."""
    prompt = body.get("prompt") or body.get("text") or body.get("input_ids") or ""
    return (
        f"{len(prompt)} {body.get('logprob_start_len', 0)} {'text' if isinstance(prompt, str) else 'tokens'}"
    )


def main() -> None:
    from tests.support.completions_server import folder_model

    parser = argparse.ArgumentParser()
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--log", type=Path, required=True)
    arguments = parser.parse_args()
    models = [folder_model(folder) for folder in arguments.folders]
    serving = 0
    for line in sys.stdin:
        words = line.split(maxsplit=2)
        if words[0] == "kill" and serving:
            _end(serving)
            serving = 0
        elif words[0] == "serve":
            serving = os.fork()
            if not serving:
                _serve(models[int(words[1])], arguments.log, **json.loads(words[2]))
        print("done", flush=True)
    if serving:
        _end(serving)


def _end(process: int) -> None:
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)


def _serve(model: Any, log: Path, ports: dict[str, int], fail_every: int = 0, delay: float = 0.0) -> None:
    from tests.support.completions_server import CompletionsServer, Fault

    faults = cycle(
        [Fault(status=429), Fault(status=500), Fault(cut_json=True), Fault(break_off=True), Fault(status=503)]
    )
    count = 0

    def always(body: dict[str, Any]) -> Fault | None:
        nonlocal count
        count += 1
        if fail_every and count % fail_every == 0:
            return next(faults)
        with log.open("a") as lines:
            lines.write(f"{_digest(body)} {_size(body)}\n")
        return Fault(delay=delay) if delay else None

    about = {"max_model_len": model.model.config.max_position_embeddings}
    for style, port in ports.items():
        server = CompletionsServer(
            model.score_tokens, model.continue_text, model, port=port, about=about, **STYLES[style]
        )
        server.always = always
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
