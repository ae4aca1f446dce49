"""Insertion by the prefix tree against a loop over positions, and how long ordering takes, on real documents.

python bench/insertion.py --data FOLDER_OR_FILE [--model smollm2] [--documents 2] [--removed 2] [--threads 2]
                          [--ordering 100] [--beam 8] [--methods beam,rescored+words=8+beam=4] [--dtype float32]
python bench/insertion.py --data FOLDER_OR_FILE --count --documents 6 --removed 5

The loop scores the whole text at every position, one text after another, nothing shared: with this engine, which asks
the head only where a token is scored, and as it is written by hand with transformers, every logit made. All give a
best position for each sentence taken out; how often they agree with the first loop is printed beside the ratios of
seconds. Loading the model and finding out how it may be run is outside the clock. Ordering is timed by wall clock, on
documents of ten sentences, and the tokens that went through the model are counted beside. `--count` runs nothing: it
counts the tokens that either way feeds a causal model on a CPU, padding included, which is the same on any machine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
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
from ensue.scoring import causal
from ensue.scoring.engine import score
from ensue.text.documents import Documents, read_documents


def chosen(data: Path, count: int, sentences: int) -> Documents:
    """The first documents that have so many sentences, cut there."""
    found = read_documents(data)
    items = [one for one in found.items if len(one.sentences) >= sentences][:count]
    return Documents(tuple(items), found.fingerprint, {}, found.source)


def insertion(model: Any, data: Path, count: int, removed: int) -> None:
    documents = chosen(data, count, 20)
    taken = list(InsertionRun(documents, 0, resolve("insertion", INSERTION, {"removed": removed})).removed())
    ways: dict[str, Callable[[], list[Any]]] = {
        "loop over positions, this engine": lambda: looped(taken, partial(alone, model)),
        "loop over positions, transformers": lambda: looped(taken, partial(by_hand, model)),
        "prefix tree, 2 sentences after": lambda: by_tree(model, documents, removed, 2),
        "prefix tree, whole texts": lambda: by_tree(model, documents, removed, None),
    }
    print(
        f"| {len(taken)} sentences of {len(documents)} documents of 20 | s | CPU s | loops / this | same best |"
    )
    print("|---|---:|---:|---:|---:|")
    seconds: list[float] = []
    first: list[Any] = []
    for name, way in ways.items():
        began, cpu = time.perf_counter(), time.process_time()
        best = way()
        seconds.append(time.perf_counter() - began)
        first = first or best
        ratios = ", ".join(f"{loop / seconds[-1]:.1f}" for loop in seconds[:2])
        same = sum(a == b for a, b in zip(best, first, strict=True)) / len(best)
        used = time.process_time() - cpu
        print(f"| {name} | {seconds[-1]:.1f} | {used:.1f} | {ratios} | {same:.2f} |", flush=True)


def by_tree(model: Any, documents: Documents, removed: int, after: int | None) -> list[Any]:
    settings = resolve("insertion", INSERTION, {"removed": removed, "after": after})
    outcome = InsertionRun(documents, 0, settings).evaluate(model, RunContext())
    return [item["outputs"]["best"] for item in outcome.items]


def looped(taken: list[Any], value: Callable[[str], float]) -> list[Any]:
    """Score the whole text of every position of every sentence; return the best positions."""
    texts = ([request.continuation for request in requests_of(one, " ", None)] for one in taken)
    return [
        judge([value(text) for text in found], one.right()).best
        for found, one in zip(texts, taken, strict=True)
    ]


def alone(model: Any, text: str) -> float:
    policy = Policy(window="strided", overflow="truncate")
    return score(model, [Request(text)], policy=policy).scores[0].logprob


@torch.inference_mode()
def by_hand(model: Any, text: str) -> float:
    """Add up a text's log-probabilities as the plainest script does (no BOS, as smollm2 has it)."""
    ids = model.tokenizer(text, return_tensors="pt").input_ids
    logits = model.network(ids).logits[0, :-1].float()
    return float(torch.log_softmax(logits, -1).gather(1, ids[0, 1:, None]).sum())


class Fed:
    """Counts the tokens of every plan that is made, and those that padding adds."""

    def __init__(self) -> None:
        self.tokens = self.padded = 0
        self._make = causal.make_plan
        causal.make_plan = self

    def __call__(self, nodes: Any, budget: Any) -> Any:
        steps = self._make(nodes, budget)
        self.tokens += sum(node.length for node in nodes)
        self.padded += sum(len(step.nodes) * max(nodes[i].length for i in step.nodes) for step in steps)
        return steps

    def again(self) -> None:
        self.tokens = self.padded = 0


def count(model: Any, data: Path, documents: int, removed: int) -> None:
    """Print the tokens that the prefix tree and the loop feed, a document at a time as a small run has them."""
    fed = Fed()
    policy = Policy(window="strided", overflow="truncate")
    loop = tree = padded = 0
    for document in chosen(data, documents, 20).items:
        settings = resolve("insertion", INSERTION, {"removed": removed})
        run = InsertionRun(Documents((document,), "", {}, ""), 0, settings)
        taken = run.removed()
        texts = [request for one in taken for request in requests_of(one, " ", None)]
        loop += sum(len(part.ids) for one in model.prepare(texts, policy) for part in one.parts)
        asked = {
            (r.context, r.continuation): r for one in taken for r in requests_of(one, " ", settings["after"])
        }
        fed.again()
        parts = {part.key: part for one in model.prepare(list(asked.values()), policy) for part in one.parts}
        # All are known, so that it is planned and nothing is run.
        list(model.executor.attempt(list(parts.values()), set(range(len(parts))), None))
        tree, padded = tree + fed.tokens, padded + fed.padded
    print(
        f"| {documents} documents of 20 sentences, {removed} taken out of each | tokens fed | loop / this |"
    )
    print("|---|---:|---:|")
    print(f"| loop over positions | {loop:,} | 1.0 |")
    print(f"| prefix tree, 2 sentences after | {tree:,} | {loop / tree:.2f} |")
    print(f"| the same with padding | {padded:,} | {loop / padded:.2f} |")


def ordering(model: Any, data: Path, count: int, beam: int, methods: list[str]) -> None:
    documents = chosen(data, count, 10)
    fed = Fed()
    print(
        f"| ordering of {len(documents)} documents of ten sentences | wall s | CPU s | tokens fed | tau | perfect |"
    )
    print("|---|---:|---:|---:|---:|---:|")
    for method in methods:
        name, *more = method.split("+")
        given = {"method": name, "beam": beam, **dict(one.split("=") for one in more)}
        settings = resolve("ordering", ORDERING, given)
        fed.again()
        began, cpu = time.perf_counter(), time.process_time()
        outcome = OrderingRun(documents, 0, settings).evaluate(model, RunContext())
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        value = {row["metric"]: row["value"] for row in outcome.metrics if row["task"] == "ordering"}
        print(
            f"| {method}, {settings['beam']} | {seconds:.1f} | {cpu:.1f} | {fed.tokens:,} | "
            f"{value['kendall_tau']:.3f} | {value['perfect']:.2f} |",
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
    parser.add_argument("--count", action="store_true", help="count tokens and run nothing")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    model: Any = load_model(options.model, device="cpu", dtype=options.dtype)
    score(model, [Request("The first text is read outside the clock.")])
    if options.count:
        count(model, options.data, options.documents, options.removed)
        return
    if options.documents:
        insertion(model, options.data, options.documents, options.removed)
    if options.ordering:
        ordering(model, options.data, options.ordering, options.beam, options.methods.split(","))


if __name__ == "__main__":
    main()
