"""Encodes DiscoEval's sentences with `encode_once` and with sentence-transformers, each in a process of its own.

python bench/encode.py --peers .venv-peers/bin/python --data FOLDER [--sentences 2000] [--rounds 3] [--threads 2]

Both start from the whole list, repeats included, and end with one vector for each entry of it. Loading the model
is outside the clock; ensue's clock includes finding the repeats, its (empty) disk cache, and reading back from it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Encode = Callable[[list[str]], np.ndarray]
TOLERANCE = 1e-5


def read_sentences(data: Path, wanted: int, seed: int) -> list[str]:
    """The sentences of the text files in order; of a part, all occurrences of some sentences, so repeats stay."""
    files = [path for path in sorted(data.rglob("*.txt")) if not path.name.startswith(("labelset", "cmds"))]
    lines = (line for path in files for line in path.read_text("utf-8", "replace").split("\n"))
    sentences = [sentence for line in lines for sentence in line.split("\t")[1:] if sentence.strip()]
    if not 0 < wanted < len(sentences):
        return sentences
    distinct = list(dict.fromkeys(sentences))
    share = wanted / len(sentences)
    chosen = set(random.Random(seed).sample(distinct, max(1, round(share * len(distinct)))))
    return [sentence for sentence in sentences if sentence in chosen]


def ensue_encode(folder: str, home: Path) -> Encode:
    from ensue.backends.names import load_model
    from ensue.benchmarks.probing.vectors import encode_once

    model = load_model(folder, device="cpu")

    def encode(sentences: list[str]) -> np.ndarray:
        kept = encode_once(model, sentences, home=home)  # type: ignore[arg-type]
        return kept.take(kept.rows(sentences))

    model.encode(["One sentence, so that nothing is slower the first time."])  # type: ignore[attr-defined]
    return encode


def peer_encode(folder: str) -> Encode:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(folder, device="cpu")
    model.encode(["One sentence, so that nothing is slower the first time."])
    return lambda sentences: np.asarray(model.encode(sentences, show_progress_bar=False))


def work(job: dict[str, Any]) -> None:
    """One contender's process: encode, save the vectors, and print what it took."""
    import torch

    torch.set_num_threads(job["threads"])
    sentences = json.loads(Path(job["sentences"]).read_text("utf-8"))
    with tempfile.TemporaryDirectory() as home:
        encode = (
            ensue_encode(job["model"], Path(home)) if job["who"] == "ensue" else peer_encode(job["model"])
        )
        wall, cpu = time.perf_counter(), time.process_time()
        vectors = encode(sentences)
        took = {"cpu_seconds": time.process_time() - cpu, "wall_seconds": time.perf_counter() - wall}
    took["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    np.save(job["out"], vectors)
    print("RESULT " + json.dumps(took), flush=True)


def run(python: str, job: dict[str, Any]) -> dict[str, float]:
    environment = {**os.environ, "OMP_NUM_THREADS": str(job["threads"]), "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(
        [python, __file__, "--job", json.dumps(job)],
        capture_output=True,
        text=True,
        env={**environment, "HF_HUB_OFFLINE": "1"},
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if done.returncode or not lines:
        raise SystemExit(f"{job['who']} failed with code {done.returncode}:\n{done.stderr[-3000:]}")
    return dict(json.loads(lines[-1].removeprefix("RESULT ")))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", default=sys.executable, help="a python that has sentence-transformers")
    parser.add_argument("--data", type=Path, help="the folder of DiscoEval")
    parser.add_argument(
        "--sentences", type=int, default=2000, help="about how many, repeats included; 0: all"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job:
        work(json.loads(given.job))
        return
    from ensue.backends.names import pull_model
    from ensue.fetch.catalog import catalog

    model = str(pull_model(catalog()["minilm"]))
    sentences = read_sentences(given.data, given.sentences, given.seed)
    distinct = len(set(sentences))
    print(f"{len(sentences)} sentences, {distinct} distinct ({len(sentences) / distinct:.3f} times each)")
    took: dict[str, list[dict[str, float]]] = {"ensue": [], "sentence-transformers": []}
    with tempfile.TemporaryDirectory() as scratch:
        listed = Path(scratch) / "sentences.json"
        listed.write_text(json.dumps(sentences), "utf-8")
        job = {"sentences": str(listed), "model": model, "threads": given.threads}
        for number in range(given.rounds):
            for who, python in (("sentence-transformers", given.peers), ("ensue", sys.executable)):
                found = run(python, {**job, "who": who, "out": f"{scratch}/{who}.npy"})
                took[who].append(found)
                print(
                    f"round {number + 1}: {who:<22} {found['cpu_seconds']:9.2f} CPU s "
                    f"{found['wall_seconds']:9.2f} s {found['peak_mib']:7.0f} MiB",
                    flush=True,
                )
        ours, theirs = (np.load(f"{scratch}/{who}.npy", mmap_mode="r") for who in took)
        apart = max(
            float(np.abs(ours[i : i + 4096] - theirs[i : i + 4096]).max()) for i in range(0, len(ours), 4096)
        )
    for key in ("cpu_seconds", "wall_seconds"):
        mine, peers = (statistics.median(one[key] for one in took[who]) for who in took)
        print(f"{key}: ensue {mine:.2f}, sentence-transformers {peers:.2f}: {peers / mine:.2f} times as fast")
    print(f"largest difference of a number in a vector: {apart:.1e}")
    if len(ours) != len(theirs) or apart > TOLERANCE:
        raise SystemExit("the vectors differ")


if __name__ == "__main__":
    main()
