"""Runs the k-Block Shuffle Test over several document sets and models, and prints each result as it comes.

python bench/kbst.py --models smollm2,gemma3-270m --data news_bbc.jsonl,news_wsj.jsonl --dtype bfloat16 --out runs
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import ensue
from ensue.environment import peak_memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="smollm2")
    parser.add_argument("--data", required=True, help="files or folders, divided by commas")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--batch-tokens", type=int)
    parser.add_argument("--out", default="runs/kbst")
    parser.add_argument("--summary", help="append one JSON line per run here")
    args = parser.parse_args()
    for name in args.models.split(","):
        model = ensue.load_model(name, dtype=args.dtype, batch_tokens=args.batch_tokens)
        for data in args.data.split(","):
            began = time.monotonic()
            folder = Path(args.out) / f"{Path(name).name}-{args.dtype}-{Path(data).stem}"
            run = ensue.run("shuffle", model=model, data=data, limit=args.limit, output=folder, resume=True)
            results = run.results
            rows = {
                row["settings"]["block_size"]: row
                for row in results["metrics"]
                if row["task"] == "shuffle" and row["metric"] == "accuracy"
            }
            line = {
                "model": name,
                "dtype": args.dtype,
                "data": Path(data).stem,
                "documents": max(row["clusters"] for row in rows.values()),
                "accuracy": {k: [round(x, 4) for x in (r["value"], *r["ci95"])] for k, r in rows.items()},
                "seconds": results["seconds"],
                "tokens": results["tokens"],
                "skipped": results["skipped"],
                "peak": peak_memory(),
                "wall": round(time.monotonic() - began, 1),
            }
            print(json.dumps(line), flush=True)
            if args.summary:
                with open(args.summary, "a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
