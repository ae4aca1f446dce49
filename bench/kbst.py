"""Runs the k-Block Shuffle Test over several document sets and models, and prints each result as it comes.

python bench/kbst_sets.py ~/ensue-data sets
python bench/kbst.py --models smollm2 --data sets/legal.jsonl --dtype float32 --summary kbst.jsonl
python bench/kbst.py --models gemma3-270m,qwen2.5-1.5b --dtype bfloat16 --summary kbst.jsonl \\
    --data sets/bbc.jsonl,sets/wsj.jsonl,sets/blog.jsonl,sets/legal.jsonl
python bench/kbst.py --models MASKED --data sets/bbc.jsonl,sets/wsj.jsonl --limit 50 --summary kbst.jsonl
python bench/kbst.py --models smollm2,gemma3-270m,qwen2.5-1.5b --data sets/chapters.jsonl,sets/stories.jsonl \\
    --dtype bfloat16 --set block_size=1,2,5,10,20 --set max_sentences=none --set shuffles=10 --page --out runs/long

MASKED is a folder of `ensue train lm` with a masked head. A run that was cut off goes on when it is asked for again.
With `--page` every set gets a page whose picture has the curves of all models.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import ensue
from ensue.environment import peak_memory
from ensue.runs.report import write_report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", default="smollm2")
    parser.add_argument("--data", required=True, help="files or folders, divided by commas")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--batch-tokens", type=int)
    parser.add_argument("--out", default="runs/kbst")
    parser.add_argument("--summary", help="append one JSON line per run here")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the test"
    )
    parser.add_argument(
        "--page", action="store_true", help="write a page a set with the curves of all models"
    )
    args = parser.parse_args()
    settings = dict(one.split("=", 1) for one in args.set)
    folders: dict[str, list[Path]] = {}
    for name in args.models.split(","):
        model = ensue.load_model(name, dtype=args.dtype, batch_tokens=args.batch_tokens)
        for data in args.data.split(","):
            began = time.monotonic()
            folder = Path(args.out) / f"{Path(name).name}-{args.dtype}-{Path(data).stem}"
            run = ensue.run(
                "shuffle", model=model, data=data, limit=args.limit, output=folder, resume=True, **settings
            )
            folders.setdefault(Path(data).stem, []).append(folder)
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
                "settings": settings,
                "pairs": {k: row["n"] for k, row in rows.items()},
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
    for name, runs in folders.items() if args.page else ():
        print(write_report(runs[0], Path(args.out) / f"{name}.html", beside=runs[1:]))


if __name__ == "__main__":
    main()
