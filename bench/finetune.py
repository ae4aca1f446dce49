"""Fine-tunes a model on the small tasks of GLUE and SuperGLUE through `ensue.run`, and prints each as it comes.

python bench/finetune.py --model FOLDER --glue FOLDER --superglue FOLDER [--device cuda] [--tasks MRPC,COPA]
                         [--runs 1] [--seed 0] [--limit N] [--output FOLDER] [--set key=value …]

Every figure is on dev. Seconds are those of the whole run of a task (reading, tokenising, training, answering all
splits, intervals), with those of the training alone beside them; loading the model is outside the clock.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import ensue

SMALL = {
    "glue": ("CoLA", "MRPC", "STS-B", "RTE", "WNLI"),
    "superglue": ("CB", "COPA", "WSC", "WiC"),
}
LARGER = {"glue": ("SST-2", "QQP", "QNLI", "MNLI"), "superglue": ("BoolQ", "MultiRC", "ReCoRD")}


def chosen(tasks: str | None) -> list[tuple[str, str]]:
    """Suite and task of all that is to be run; RTE, which is in both suites, as GLUE has it."""
    if tasks is None:
        return [(suite, task) for suite, names in SMALL.items() for task in names]
    known = {
        task.lower(): (suite, task) for group in (SMALL, LARGER) for suite in group for task in group[suite]
    }
    return [known[name.strip().lower()] for name in tasks.split(",")]


def fine_tune(model: Any, suite: str, task: str, data: Path, output: Path, options: Any) -> dict[str, Any]:
    """One task's run, in figures."""
    began = time.monotonic()
    settings = dict(pair.split("=", 1) for pair in options.set)
    run = ensue.run(
        f"{suite}/{task}",
        model=model,
        data=data,
        limit=options.limit,
        seed=options.seed,
        output=output / f"{suite}-{task}",
        resume=options.output is not None,
        mode="finetune",
        runs=options.runs,
        **settings,
    )
    seconds = time.monotonic() - began
    dev = {
        row["metric"]: row["value"]
        for row in run.results["metrics"]
        if row["task"] == task and row["settings"].get("split") == "dev" and row["metric"] != "score"
    }
    fits = [json.loads(line) for line in (run.folder / "fits.jsonl").read_text("utf-8").splitlines()]
    trainings = [fit for fit in fits if "seconds" in fit and fit["task"] == task]
    spread = next((fit for fit in fits if "dev_sd" in fit), {})
    return {
        "suite": suite,
        "task": task,
        "dev": dev,
        "seconds": round(seconds, 1),
        "training_seconds": round(sum(fit["seconds"] for fit in trainings), 1),
        "epochs": trainings[0]["epochs"],
        "best_epochs": [fit["best_epoch"] for fit in trainings],
        "pairs": trainings[0]["pairs"],
        "score_mean": spread.get("dev_mean"),
        "score_sd": spread.get("dev_sd"),
    }


def line(found: dict[str, Any]) -> str:
    metrics = "  ".join(f"{name} {100 * value:.1f}" for name, value in found["dev"].items())
    mean = (
        ""
        if found["score_mean"] is None
        else f"  score {100 * found['score_mean']:.1f} ± {100 * found['score_sd']:.1f}"
    )
    times = f"{found['seconds']:.1f} s (training {found['training_seconds']:.1f} s)"
    return f"{found['task']:8} dev  {metrics}{mean}  {times}  best at epoch {found['best_epochs']}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--glue", type=Path, required=True)
    parser.add_argument("--superglue", type=Path, required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--tasks")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int)
    parser.add_argument(
        "--output", type=Path, help="keep the runs there and go on where a former one stopped"
    )
    parser.add_argument("--set", nargs="*", default=[], metavar="key=value")
    options = parser.parse_args()
    model = ensue.load_model(options.model, device=options.device)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        output = options.output or Path(scratch)
        for suite, task in chosen(options.tasks):
            data = options.glue if suite == "glue" else options.superglue
            found = fine_tune(model, suite, task, data, output, options)
            print(line(found), flush=True)
            if options.output is not None:
                with (output / "figures.jsonl").open("a", encoding="utf-8") as file:
                    file.write(json.dumps(found) + "\n")
    print(
        f"all      {time.monotonic() - began:.1f} s on {options.device}, {options.runs} run(s) a task",
        flush=True,
    )


if __name__ == "__main__":
    main()
