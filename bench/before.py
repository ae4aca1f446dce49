"""This tree beside another commit's on a CPU: the same jobs in turn, CPU seconds, equal scores asserted.

    git worktree add --detach ../before COMMIT
    python bench/before.py ../before [--rounds 3] [--threads 2] [--texts 24]

Jobs are those of bench/run.py: continuations of one long context, the first texts of a Shuffle Test, masked texts.
Runs take turns, so that a busy machine slows both alike; what counts is the ratio of their CPU seconds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

import cases
from run import HERE, Contender, agree, measure

from ensue.backends.names import load_model, pull_model
from ensue.fetch.catalog import catalog
from ensue.fetch.store import home


def jobs(texts: int) -> dict[str, dict[str, Any]]:
    """Return the jobs by name."""
    folder = str(pull_model(catalog()["smollm2"]))
    model = load_model("smollm2")
    bert = cases.masked_model(pull_model(catalog()["minilm"]), home() / "bench" / "masked-minilm")
    tokenizer = load_model(str(bert)).tokenizer  # type: ignore[attr-defined]
    causal = {"model": folder, "dtype": "float32"}
    return {
        "6 choices after 1,024 tokens": {
            **causal,
            "kind": "tokens",
            "requests": cases.shared_context(model, examples=1),
            "bos": "never",
        },
        f"{texts} texts of a Shuffle Test": {
            **causal,
            "kind": "rolling",
            "requests": cases.shuffle_test(model, 1)[:texts],
            "bos": "always",
        },
        "masked, 3 texts of 256 tokens": {
            "model": str(bert),
            "dtype": "float32",
            "kind": "masked",
            "requests": cases.masked_texts(tokenizer),
            "bos": "auto",
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("before", type=Path, help="the other commit's tree")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--texts", type=int, default=24)
    args = parser.parse_args()
    trees = {"before": args.before, "after": HERE.parent}
    lines = []
    for title, job in jobs(args.texts).items():
        before, after = (
            Contender(name, "ensue_worker", sys.executable, job, source=tree.resolve() / "src")
            for name, tree in trees.items()
        )
        measure(title, [before, after], args.rounds, args.threads)
        tokens = [max(len(request["continuation"].split()), 1) for request in job["requests"]]
        apart = agree(after, before, tokens, 1e-4)
        spent = [[run["cpu_seconds"] for run in one.runs] for one in (before, after)]
        ratios = sorted(new / old for old, new in zip(*spent, strict=True))
        peaks = [one.middle("peak_mib") for one in (before, after)]
        lines.append(
            f"| {title} | {statistics.median(spent[0]):.1f} | {statistics.median(spent[1]):.1f} "
            f"| {statistics.median(ratios):.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f}) "
            f"| {peaks[0]:.0f} / {peaks[1]:.0f} | {apart:.0e} |"
        )
    print("| work | CPU s before | after | after / before | peak MiB | nats a word apart |")
    print("\n".join(["|---|---|---|---|---|---|", *lines]))


if __name__ == "__main__":
    main()
