"""Measures ensue beside its peers: one process per contender, runs interleaved, equal scores asserted.

python bench/run.py --peers .venv-peers/bin/python [--rounds 3] [--only shared,shuffle,masked,chapterbreak]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cases

from ensue.backends.names import load_model, pull_model
from ensue.environment import environment
from ensue.fetch.catalog import catalog
from ensue.fetch.store import home

HERE = Path(__file__).parent


@dataclass
class Contender:
    """Who runs, in which environment, on which job; `source` is a folder of Python before what is installed."""

    name: str
    worker: str
    python: str
    job: dict[str, Any]
    source: Path | None = None
    runs: list[dict[str, Any]] = field(default_factory=list)

    def run(self, threads: int) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false"}
        paths = [HERE / "workers", *([] if self.source is None else [self.source])]
        environment |= {"HF_HUB_OFFLINE": "1", "PYTHONPATH": os.pathsep.join(map(str, paths))}
        done = subprocess.run(
            [self.python, str(HERE / "workers" / f"{self.worker}.py")],
            input=json.dumps({**self.job, "threads": threads}),
            capture_output=True,
            text=True,
            env=environment,
        )
        lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
        if done.returncode or not lines:
            raise SystemExit(
                f"{self.name} failed with code {done.returncode}:\n{done.stdout[-500:]}{done.stderr[-3000:]}"
            )
        self.runs.append(json.loads(lines[-1].removeprefix("RESULT ")))

    def middle(self, key: str) -> float:
        return statistics.median(run[key] for run in self.runs)

    @property
    def scores(self) -> list[float]:
        return self.runs[0]["scores"]


def measure(title: str, contenders: list[Contender], rounds: int, threads: int) -> dict[str, Any]:
    """Run the contenders in turn, several rounds, and give the middle of each."""
    for number in range(rounds):
        for contender in contenders:
            contender.run(threads)
            last = contender.runs[-1]
            print(
                f"{title} round {number + 1}: {contender.name:<28} {last['cpu_seconds']:8.1f} CPU s "
                f"{last['wall_seconds']:8.1f} s {last['peak_mib']:7.0f} MiB",
                flush=True,
            )
    return {
        c.name: {k: round(c.middle(k), 2) for k in ("cpu_seconds", "wall_seconds", "peak_mib")}
        for c in contenders
    }


def agree(ours: Contender, theirs: Contender, tokens: list[int], tolerance: float) -> float:
    """The largest difference in nats a token; more than the tolerance ends the bench."""
    gap = max(abs(a - b) / n for a, b, n in zip(ours.scores, theirs.scores, tokens, strict=True))
    if gap > tolerance:
        raise SystemExit(f"{ours.name} and {theirs.name} differ by {gap:.2e} nats a token: not the same job.")
    return gap


def shared(args: argparse.Namespace, model: Any, folder: str) -> dict[str, Any]:
    requests = cases.shared_context(model)
    job = {"kind": "tokens", "model": folder, "dtype": "float32", "requests": requests, "bos": "never"}
    ours = Contender("ensue", "ensue_worker", sys.executable, job)
    peers = [
        Contender(f"lm-eval, batch {size}", "lm_eval_worker", args.peers, {**job, "batch_size": size})
        for size in (1, 6)
    ]
    table = measure("6 choices after 1,024 tokens", [ours, *peers], args.rounds, args.threads)
    gap = max(agree(ours, p, [len(r["ids"]) - r["start"] for r in requests], 1e-4) for p in peers)
    best = min(p.middle("cpu_seconds") for p in peers)
    return {
        "case": "2 examples, 6 continuations of 128 tokens after a shared 1,024-token context, float32",
        "table": table,
        "largest difference, nats a token": gap,
        "speed (CPU seconds, best lm-eval / ensue)": best / ours.middle("cpu_seconds"),
        "memory (ensue / lm-eval at batch 6)": ours.middle("peak_mib") / peers[1].middle("peak_mib"),
    }


def chapterbreak(args: argparse.Namespace, model: Any, folder: str) -> dict[str, Any]:
    requests = cases.chapter_breaks(model, args.examples, args.context, args.data)
    job = {"kind": "tokens", "model": folder, "dtype": "float32", "requests": requests, "bos": "never"}
    ours = Contender("ensue", "ensue_worker", sys.executable, job)
    theirs = Contender("lm-eval, batch 1", "lm_eval_worker", args.peers, {**job, "batch_size": 1})
    table = measure(f"6 suffixes after {args.context:,} tokens", [ours, theirs], args.rounds, args.threads)
    tokens = [len(r["ids"]) - r["start"] for r in requests]
    gap = agree(ours, theirs, tokens, 1e-4)
    examples = [[i for i, r in enumerate(requests) if r["context"] == c] for c in contexts_of(requests)]
    chosen = [
        [max(places, key=lambda i: c.scores[i] / tokens[i]) for places in examples] for c in (ours, theirs)
    ]
    equal = sum(a == b for a, b in zip(*chosen, strict=True))
    hours = {c.name: c.middle("wall_seconds") / len(examples) * 150 / 3600 for c in (ours, theirs)}
    used = sorted(r["start"] for r in requests)
    return {
        "case": f"{len(examples)} examples, {len(requests)} suffixes of up to 128 tokens after contexts of "
        f"{used[0]:,} to {used[-1]:,} tokens, float32",
        "table": table,
        "largest difference, nats a token": gap,
        "equal choices": f"{equal} of {len(examples)}",
        "speed (CPU seconds, lm-eval / ensue)": theirs.middle("cpu_seconds") / ours.middle("cpu_seconds"),
        "speed (wall, lm-eval / ensue)": theirs.middle("wall_seconds") / ours.middle("wall_seconds"),
        "memory (ensue / lm-eval)": ours.middle("peak_mib") / theirs.middle("peak_mib"),
        "150 examples at this pace, hours": ", ".join(f"{name} {h:.2f}" for name, h in hours.items()),
    }


def contexts_of(requests: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(r["context"] for r in requests))


def shuffle(args: argparse.Namespace, model: Any, folder: str) -> dict[str, Any]:
    requests = cases.shuffle_test(model, args.documents)
    job = {"kind": "rolling", "model": folder, "dtype": "float32", "requests": requests, "bos": "always"}
    ours = Contender("ensue float32", "ensue_worker", sys.executable, job)
    half = Contender("ensue bfloat16", "ensue_worker", sys.executable, {**job, "dtype": "bfloat16"})
    theirs = Contender("lm-eval float32, batch 1", "lm_eval_worker", args.peers, {**job, "batch_size": 1})
    their_half = Contender(
        "lm-eval bfloat16, batch 1",
        "lm_eval_worker",
        args.peers,
        {**job, "dtype": "bfloat16", "batch_size": 1},
    )
    table = measure("shuffle test k=1…5", [ours, theirs, half, their_half], args.rounds, args.threads)
    tokens = [len(model.tokenizer(r["continuation"])["input_ids"]) for r in requests]
    moved = [abs(a - b) / n for a, b, n in zip(ours.scores, half.scores, tokens, strict=True)]
    return {
        "case": f"all {len(requests)} distinct texts of k = 1…5 on {args.documents} documents of about 400 tokens",
        "table": table,
        "largest difference, nats a token": agree(ours, theirs, tokens, 1e-4),
        "float32 speed (CPU seconds, lm-eval float32 / ensue float32)": theirs.middle("cpu_seconds")
        / ours.middle("cpu_seconds"),
        "bfloat16 speed (CPU seconds, lm-eval float32 / ensue bfloat16)": theirs.middle("cpu_seconds")
        / half.middle("cpu_seconds"),
        "bfloat16 both (CPU seconds, lm-eval bfloat16 / ensue bfloat16)": their_half.middle("cpu_seconds")
        / half.middle("cpu_seconds"),
        "bfloat16 moves scores by, nats a token (mean)": statistics.fmean(moved),
        "bfloat16 changes choices": changed_choices(requests, ours.scores, half.scores),
    }


def changed_choices(requests: list[dict[str, Any]], exact: list[float], half: list[float]) -> str:
    """How many original-against-shuffled choices differ between two sets of scores."""
    originals: dict[tuple[str, ...], int] = {}
    changed = total = 0
    for index, request in enumerate(requests):
        key = tuple(sorted(request["continuation"].split()))
        first = originals.setdefault(key, index)
        if first != index:
            total += 1
            changed += (exact[first] > exact[index]) != (half[first] > half[index])
    return f"{changed} of {total}"


def masked(args: argparse.Namespace, model: Any, folder: str) -> dict[str, Any]:
    bert = cases.masked_model(pull_model(catalog()["minilm"]), home() / "bench" / "masked-minilm")
    tokenizer = load_model(str(bert)).tokenizer  # type: ignore[attr-defined]
    requests = cases.masked_texts(tokenizer)
    job = {"kind": "masked", "model": str(bert), "dtype": "float32", "requests": requests, "bos": "auto"}
    ours = Contender("ensue", "ensue_worker", sys.executable, job)
    theirs = Contender("minicons", "minicons_worker", args.peers, job)
    table = measure("masked scoring", [ours, theirs], args.rounds, args.threads)
    tokens = [len(tokenizer(r["continuation"])["input_ids"]) for r in requests]
    return {
        "case": "3 texts of 256 tokens, every token masked once, 6-layer 384-wide BERT, float32",
        "table": table,
        "largest difference, nats a token": agree(ours, theirs, tokens, 1e-4),
        "speed (CPU seconds, minicons / ensue)": theirs.middle("cpu_seconds") / ours.middle("cpu_seconds"),
        "memory (ensue / minicons)": ours.middle("peak_mib") / theirs.middle("peak_mib"),
    }


def as_markdown(found: dict[str, Any]) -> str:
    lines = [f"## {found['case']}", "", "| contender | CPU s | wall s | peak MiB |", "|---|---:|---:|---:|"]
    for name, row in found["table"].items():
        lines.append(
            f"| {name} | {row['cpu_seconds']:.1f} | {row['wall_seconds']:.1f} | {row['peak_mib']:.0f} |"
        )
    lines.append("")
    for key, value in found.items():
        if key not in ("case", "table"):
            lines.append(f"- {key}: {value if isinstance(value, str) else f'{value:.3g}'}")
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", required=True, help="python of the environment with the peers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--documents", type=int, default=2)
    parser.add_argument("--examples", type=int, default=2, help="chapterbreak: how many examples")
    parser.add_argument("--context", type=int, default=8000, help="chapterbreak: tokens of context")
    parser.add_argument("--data", help="chapterbreak: a data file instead of made examples")
    parser.add_argument("--only", default="shared,masked,shuffle")
    args = parser.parse_args()
    folder = str(pull_model(catalog()["smollm2"]))
    model = load_model("smollm2")
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    for name in args.only.split(","):
        known = {"shared": shared, "shuffle": shuffle, "masked": masked, "chapterbreak": chapterbreak}
        found = known[name](args, model, folder)
        about = environment()
        command = f"python bench/run.py --rounds {args.rounds} --threads {args.threads} "
        command += f"--documents {args.documents} --only {name}"
        if name == "chapterbreak":
            command += f" --examples {args.examples} --context {args.context}"
            command += f" --data {args.data}" if args.data else ""
        versions = {"Python": platform.python_version(), **about["packages"]}
        text = as_markdown(found) + f"\n{about['cpu']}, {args.threads} threads, "
        text += (
            ", ".join(f"{k} {versions[k]}" for k in ("Python", "torch", "transformers")) + f"; `{command}`\n"
        )
        (results / f"{name}.md").write_text(text)
        (results / f"{name}.json").write_text(
            json.dumps({**found, "environment": about, "command": command}, indent=2) + "\n"
        )
        print("\n" + text, flush=True)


if __name__ == "__main__":
    main()
