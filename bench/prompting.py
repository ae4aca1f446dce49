"""Zero-shot COPA, CB and BoolQ beside lm-evaluation-harness: the same prompts, the same tokens, the same scores.

python bench/prompting.py --peers .venv-peers/bin/python --data FOLDER [--limit 20] [--rounds 3] [--tasks COPA,CB]

FOLDER holds SuperGLUE. Each contender runs in a process of its own and loads its model outside the clock. The harness
is given tokens, so that its clock leaves tokenising out and ensue's has it in; of its batch sizes the best counts.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import cases
from run import HERE, Contender, agree, as_markdown, measure

from ensue.backends.names import load_model, pull_model
from ensue.benchmarks.nlu.examples import DEV, TaskData
from ensue.benchmarks.nlu.prompting.answering import normalised, prompt, requests_of
from ensue.benchmarks.nlu.prompting.asking import AskedTask, sheets
from ensue.benchmarks.superglue.data import read_task
from ensue.benchmarks.superglue.task import SPECS
from ensue.environment import environment
from ensue.fetch.catalog import catalog

TARGETS = {"COPA": 1.5, "CB": 1.5, "BoolQ": 1.15}


def read_sheet(folder: Path, name: str, template: str, limit: int | None) -> AskedTask:
    """The dev set of a task in one template's words."""
    spec = next(spec for spec in SPECS if spec.name == name)
    task = read_task(folder, spec, limit)
    if task is None:
        raise SystemExit(f"{folder} has no {name}")
    only_dev = TaskData(spec, {DEV: task.splits[DEV]}, task.fingerprint)
    chosen = {key: setting.default for key, setting in prompt.settings.items()} | {"template": [template]}
    (sheet,) = sheets(only_dev, [only_dev], chosen, 0, None)
    # The bare log-likelihoods are compared, whatever the template makes of them.
    return AskedTask(task, normalised(sheet.template, "sum"), 0, sheet.asked, sheet.notes)


def accuracy(sheet: AskedTask, scores: list[float]) -> tuple[float, list[int]]:
    """How often the likeliest option is right, and which it is each time."""
    gold = {example.id: example.gold for example in sheet.task.splits[DEV]}
    values = iter(scores)
    chosen = []
    right = 0
    for one in sheet.asked:
        worths = [next(values) for _ in one.options]
        chosen.append(worths.index(max(worths)))
        right += one.options[chosen[-1]].prediction == gold[one.id]
    return right / len(chosen), chosen


def compare(args: argparse.Namespace, model: Any, folder: str, name: str) -> dict[str, Any]:
    sheet = read_sheet(Path(args.data).expanduser(), name, args.template, args.limit)
    requests = [cases._request(model, request) for request in requests_of(sheet)]
    job = {"kind": "tokens", "model": folder, "dtype": args.dtype, "requests": requests, "bos": "auto"}
    ours = Contender("ensue", "ensue_worker", sys.executable, job)
    peers = [
        Contender(f"lm-eval, batch {size}", "lm_eval_worker", args.peers, {**job, "batch_size": size})
        for size in map(int, args.batches.split(","))
    ]
    table = measure(name, [ours, *peers], args.rounds, args.threads)
    counts = [len(request["ids"]) - request["start"] for request in requests]
    gap = max(agree(ours, peer, counts, 1e-4) for peer in peers)
    best = min(peers, key=lambda peer: peer.middle("cpu_seconds"))
    share, chosen = accuracy(sheet, ours.scores)
    theirs, also = accuracy(sheet, best.scores)
    lengths = sorted(request["start"] for request in requests)
    wanted = f" (wanted: {TARGETS[name]} times)" if name in TARGETS else ""
    return {
        "case": f"{name} dev, template {args.template!r}: {len(sheet.asked)} examples, {len(requests)} continuations "
        f"of {min(counts)} to {max(counts)} tokens after {lengths[0]} to {lengths[-1]} (half below "
        f"{lengths[len(lengths) // 2]}), {args.dtype}",
        "table": table,
        "largest difference, nats a token": gap,
        "equal choices": f"{sum(a == b for a, b in zip(chosen, also, strict=True))} of {len(chosen)}",
        "accuracy, dev": f"ensue {share:.4f}, lm-eval {theirs:.4f}",
        f"speed (CPU seconds, best lm-eval / ensue){wanted}": best.middle("cpu_seconds")
        / ours.middle("cpu_seconds"),
        "speed (wall, best lm-eval / ensue)": min(p.middle("wall_seconds") for p in peers)
        / ours.middle("wall_seconds"),
        "memory (ensue / best lm-eval)": ours.middle("peak_mib") / best.middle("peak_mib"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", required=True, help="python of the environment with the peers")
    parser.add_argument("--data", required=True, help="the folder of SuperGLUE")
    parser.add_argument("--tasks", default="COPA,CB,BoolQ")
    parser.add_argument("--template", default="question")
    parser.add_argument("--limit", type=int, help="only the first so many examples of each task")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batches", default="1,8", help="the harness's batch sizes")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--model", default="smollm2", help="a short name of the catalogue")
    parser.add_argument("--no-save", action="store_true", help="print only, for a quick look")
    args = parser.parse_args()
    folder = str(pull_model(catalog()[args.model]))
    model = load_model(args.model)
    found = {name: compare(args, model, folder, name) for name in args.tasks.split(",")}
    about = environment()
    command = (
        f"python bench/prompting.py --tasks {args.tasks} --template {args.template} --rounds {args.rounds} "
    )
    command += f"--threads {args.threads} --batches {args.batches}"
    command += f" --limit {args.limit}" if args.limit else ""
    packages = ", ".join(f"{name} {about['packages'][name]}" for name in ("torch", "transformers"))
    text = "\n".join(as_markdown(one) for one in found.values())
    text += f"\n{args.model}, {about['cpu']}, {args.threads} threads, {packages}; `{command}`\n"
    print("\n" + text, flush=True)
    if not args.no_save:
        (HERE / "results" / "prompting.md").write_text(text)
        record = {"tasks": found, "environment": about, "command": command}
        (HERE / "results" / "prompting.json").write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
