"""Insertion by the prefix tree against a loop over positions, and how long ordering takes, on real documents.

python bench/insertion.py --data FOLDER_OR_FILE [--model smollm2] [--documents 2] [--removed 2] [--threads 2]
                          [--ordering 100] [--beam 8] [--methods beam,rescored,neighbours] [--dtype float32]

The loop scores the whole text at every position, one text after another, nothing shared. Both give a best position
for each sentence taken out; how often they agree is printed beside the ratio of CPU seconds. Loading the model and
finding out how it may be run is outside the clock. Ordering is timed by wall clock, on documents of ten sentences.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import torch

from ensue.backends.names import load_model
from ensue.benchmarks.base import RunContext
from ensue.benchmarks.insertion.positions import judge, requests_of
from ensue.benchmarks.insertion.task import SETTINGS as INSERTION
from ensue.benchmarks.insertion.task import InsertionRun
from ensue.benchmarks.ordering.task import SETTINGS as ORDERING
from ensue.benchmarks.ordering.task import OrderingRun
from ensue.benchmarks.settings import resolve
from ensue.models.request import Policy, Request
from ensue.scoring.engine import score
from ensue.text.documents import Documents, read_documents


def chosen(data: Path, count: int, sentences: int) -> Documents:
    """The first documents that have so many sentences, cut there."""
    found = read_documents(data)
    items = [one for one in found.items if len(one.sentences) >= sentences][:count]
    return Documents(tuple(items), found.fingerprint, {}, found.source)


def insertion(model: Any, data: Path, count: int, removed: int) -> None:
    documents = chosen(data, count, 20)
    rows = []
    best: dict[str, list[list[int]]] = {}
    for name, after in (("prefix tree, 2 sentences after", 2), ("prefix tree, whole texts", None)):
        settings = resolve("insertion", INSERTION, {"removed": removed, "after": after})
        run = InsertionRun(documents, 0, settings)
        began = time.process_time()
        outcome = run.evaluate(model, RunContext())
        rows.append((name, time.process_time() - began))
        best[name] = [item["outputs"]["best"] for item in outcome.items]
    began = time.process_time()
    policy = Policy(window="strided", overflow="truncate")
    found = []
    for one in run.removed():
        values = [
            score(model, [Request(request.continuation)], policy=policy).scores[0].logprob
            for request in requests_of(one, " ", None)
        ]
        found.append(judge(values, one.right()).best)
    loop = time.process_time() - began
    print(
        f"| {len(found)} sentences of {len(documents)} documents of 20 | CPU s | loop / this | same best position |"
    )
    print("|---|---:|---:|---:|")
    print(f"| loop over positions | {loop:.1f} | 1.0 | |")
    for name, seconds in rows:
        same = sum(a == b for a, b in zip(best[name], found, strict=True)) / len(found)
        print(f"| {name} | {seconds:.1f} | {loop / seconds:.1f} | {same:.2f} |")


def ordering(model: Any, data: Path, count: int, beam: int, methods: list[str]) -> None:
    documents = chosen(data, count, 10)
    print(f"| ordering of {len(documents)} documents of ten sentences | wall s | tau | perfect |")
    print("|---|---:|---:|---:|")
    for method in methods:
        settings = resolve("ordering", ORDERING, {"method": method, "beam": beam})
        began = time.perf_counter()
        outcome = OrderingRun(documents, 0, settings).evaluate(model, RunContext())
        seconds = time.perf_counter() - began
        value = {row["metric"]: row["value"] for row in outcome.metrics if row["task"] == "ordering"}
        print(
            f"| {method}, {beam} | {seconds:.1f} | {value['kendall_tau']:.3f} | {value['perfect']:.2f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--documents", type=int, default=2)
    parser.add_argument("--removed", type=int, default=2)
    parser.add_argument("--ordering", type=int, default=0)
    parser.add_argument("--beam", type=int, default=8)
    parser.add_argument("--methods", default="beam,rescored,neighbours")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    model: Any = load_model(options.model, device="cpu", dtype=options.dtype)
    score(model, [Request("The first text is read outside the clock.")])
    if options.documents:
        insertion(model, options.data, options.documents, options.removed)
    if options.ordering:
        ordering(model, options.data, options.ordering, options.beam, options.methods.split(","))


if __name__ == "__main__":
    main()
