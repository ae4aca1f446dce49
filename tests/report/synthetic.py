"""Small made-up runs for the tests of reports."""

from __future__ import annotations

import json

import numpy as np

from ensue.stats.clustered import clustered_interval
from ensue.stats.ranges import range_of


def make_items(domains=("news", "legal"), documents=12, sizes=(1, 3)):
    generator = np.random.default_rng(0)
    return [
        {
            "id": f"d{document}/k{size}/{shuffle}",
            "cluster": f"d{document}",
            "task": "shuffle",
            "settings": {"block_size": size},
            "scores": {"accuracy": float(generator.random() < 0.8), "accuracy_per_token": 1.0, "ties": 0.0},
            "outputs": {"domain": domains[document % len(domains)], "order": [1, 0]},
        }
        for size in sizes
        for document in range(documents)
        for shuffle in range(5)
    ]


def make_results(items, benchmark="shuffle", model="some-model"):
    rows = _rows(items, "shuffle")
    domains = sorted({item["outputs"]["domain"] for item in items})
    for domain in domains if len(domains) > 1 else ():
        rows += _rows([i for i in items if i["outputs"]["domain"] == domain], f"shuffle/{domain}")
    return {
        "benchmark": benchmark,
        "model": model,
        "signature": "rules:1|bos:none",
        "metrics": rows,
        "skipped": {"fewer than two sentences": 7},
        "seconds": 75.2,
        "tokens": 123456,
    }


def _rows(items, task):
    rows = []
    for size in dict.fromkeys(item["settings"]["block_size"] for item in items):
        chosen = [item for item in items if item["settings"]["block_size"] == size]
        for metric in chosen[0]["scores"]:
            found = clustered_interval(
                [item["scores"][metric] for item in chosen],
                [item["cluster"] for item in chosen],
                bounds=range_of(metric),
            )
            row = {"task": task, "metric": metric, "value": found.value, "ci95": [found.low, found.high]}
            rows.append({**row, "n": found.n, "clusters": found.clusters, "settings": {"block_size": size}})
    return rows


def make_profile(name="doc", *, jump=2.0, sentences=5, text="A plain sentence."):
    flat = [3.0] * sentences
    raised = [*flat[:2], 3.0 + jump, *flat[3:]]
    texts = [f"{text} Number {place}." for place in range(sentences)]
    order = list(range(sentences))[::-1]
    return {
        "document": name,
        "domain": "news",
        "versions": [
            {"name": "original", "sentences": texts, "surprisal": flat, "tokens": [5] * sentences},
            {
                "name": "shuffled (block size 1)",
                "order": order,
                "sentences": texts[::-1],
                "surprisal": raised,
                "tokens": [5] * sentences,
            },
        ],
    }


def write_run(folder, items, results, profiles=(), run=None):
    folder.mkdir(exist_ok=True)
    run = run or {"command": ["ensue", "run", "shuffle", "--data", "my documents"], "seed": 0}
    (folder / "run.json").write_text(json.dumps(run))
    (folder / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    (folder / "results.json").write_text(json.dumps(results))
    if profiles:
        (folder / "profiles.jsonl").write_text("".join(json.dumps(line) + "\n" for line in profiles))
    return folder


def write_training(folder, steps=2000, every=20, evaluations=10, record=None, lines=None):
    """A training folder as `ensue train` leaves it."""
    generator = np.random.default_rng(0)
    if lines is None:
        lines = [
            {
                "step": step,
                "epoch": step // 500,
                "seconds": step / 10,
                "loss": float(2.5 * np.exp(-step / 700) + 1 + generator.normal(0, 0.12)),
                "lr": 1e-4,
            }
            for step in range(every, steps + 1, every)
        ]
        best = np.inf
        for step in range(steps // evaluations, steps + 1, steps // evaluations):
            loss = float(2.4 * np.exp(-step / 600) + 1.2 + 0.3 * (step / steps) ** 2)
            found = {"dev_loss": loss, "dev_accuracy": float(0.5 - loss / 10), "best": bool(loss < best)}
            lines.append({"step": step, "epoch": 0, "seconds": step / 10, **found})
            best = min(best, loss)
    folder.mkdir(exist_ok=True)
    record = record or {
        "command": ["ensue", "train", "suffixlm", "--data", "my books"],
        "model": "suffixlm",
        "settings": {"steps": steps, "learning_rate": 1e-4},
        "hardware": {"gpu": "none", "cores": 2},
        "seconds": 200.0,
    }
    (folder / "training.json").write_text(json.dumps(record))
    (folder / "training.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder
