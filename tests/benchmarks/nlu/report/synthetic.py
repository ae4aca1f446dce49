"""Small made-up GLUE and SuperGLUE runs for the tests of reports, judged by the benchmark's own code."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from ensue.benchmarks.glue import task as glue
from ensue.benchmarks.nlu.diagnostics import TAXONOMY, phenomena_rows
from ensue.benchmarks.nlu.examples import DEV, DEV_MISMATCHED, TEST, Example, TaskData
from ensue.benchmarks.nlu.judging import judge
from ensue.benchmarks.nlu.scores import rows
from ensue.benchmarks.nlu.systems import Answered
from ensue.benchmarks.superglue import task as superglue
from tests.report.synthetic import make_results, write_run

SPECS = {"glue": glue.SPECS, "superglue": superglue.SPECS}


def _gold(spec, number):
    if spec.form == "score":
        return float(number % 6)
    if spec.form == "entity":
        return ("the harbour",) if number % 2 else ("the mill", "mill")
    return spec.labels[number % len(spec.labels)]


def _guess(spec, example, right, number):
    if spec.form == "score":
        return example.gold if right else 5.0 - example.gold
    if spec.form == "entity":
        return example.gold[0] if right else "a stranger"
    wrong = [label for label in spec.labels if label != example.gold]
    return example.gold if right else wrong[number % len(wrong)]


def _tags(spec, number):
    if spec.in_score or spec.name == "AX-g":
        return {}
    category = list(TAXONOMY)[number % 4]
    tags = TAXONOMY[category]
    return {category: (tags[number // 4 % len(tags)],)}


def make_task(spec, split, size):
    """A task with one split, which is all there is; every two examples are judged together where it wants groups."""
    examples = [
        Example(
            id=str(number),
            texts=("The ferry was late.", "It came after noon."),
            gold=_gold(spec, number),
            group=f"g{number // 2}" if spec.form == "answers" or spec.name == "AX-g" else "",
            tags=_tags(spec, number),
        )
        for number in range(size)
    ]
    # MNLI has no second section of test here.
    whole = replace(spec, sizes={name: size for name in spec.sizes if name != "test-mismatched"})
    return TaskData(whole, {split: examples}, "fingerprint")


def _answer(data, split, skill, settings, seed):
    generator = np.random.default_rng(seed)
    return Answered(
        data.spec.name,
        {
            split: {
                example.id: _guess(data.spec, example, bool(generator.random() < skill), number)
                for number, example in enumerate(data.splits[split])
            }
        },
        settings,
    )


def make_rows(suite, ways, *, splits=(DEV,), without=(), size=60, skill=0.7):
    """Metric rows as a run writes them; `ways` are the settings that every task was answered with."""
    judged, diagnosed = [], []
    for spec in SPECS[suite]:
        if spec.name in without:
            continue
        own = splits if spec.in_score else (TEST,)
        own = [*own, DEV_MISMATCHED] if spec.name == "MNLI" and DEV in own else own
        for split in own:
            data = make_task(spec, split, size if spec.in_score else 4 * size)
            for place, settings in enumerate(ways):
                one = _answer(data, split, skill + 0.08 * place, settings, seed=place)
                judged.append(judge(data, one, split))
                diagnosed += phenomena_rows(data, one, split)
    return [*rows(judged), *diagnosed]


def make_nlu_results(suite="glue", ways=({},), *, model="some-model", skipped=None, notes=None, **options):
    shown = {
        "benchmark": suite,
        "model": model,
        "metrics": make_rows(suite, ways, **options),
        "skipped": skipped or {},
        "notes": notes or {},
        "signature": f"ensue:1 model:{model} mode:finetune seed:0",
        "tokens": 0,
    }
    return {**make_results([]), **shown}


def make_fits(tasks=("CoLA", "RTE"), seeds=3):
    """Lines of fits.jsonl as fine-tuning writes them; the best of each task is marked."""
    fits = []
    for number, task in enumerate(tasks):
        scores = [0.5 + 0.1 * number + 0.03 * (seed * 7 % 5) for seed in range(seeds)]
        fits += [
            {
                "task": task,
                "epochs": 6,
                "learning_rate": 1e-4,
                "seed": seed,
                "dev_score": score,
                "best_epoch": 4.5,
                "seconds": 12.34,
                "chosen": score == max(scores),
            }
            for seed, score in enumerate(scores)
        ]
    return fits


def write_nlu(folder, results, fits=()):
    """A run folder with these results; its items are of no interest to the page."""
    benchmark, model = results["benchmark"], results["model"]
    run = {"command": ["ensue", "run", benchmark, "--model", model, "--data", "my data"], "seed": 0}
    write_run(folder, [], results, run=run)
    if fits:
        (folder / "fits.jsonl").write_text("".join(json.dumps(fit) + "\n" for fit in fits))
    return folder
