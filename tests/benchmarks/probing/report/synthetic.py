"""Small made-up DiscoEval and SentEval runs for the tests of reports."""

from __future__ import annotations

import numpy as np

from ensue.benchmarks.discoeval.data import SPECS
from ensue.benchmarks.senteval.data import GROUPS
from tests.report.synthetic import make_results, write_run


def _probing_row(task, metric, value, n, settings, half=0.012):
    ends = [value - half, value + half]
    return {
        "task": task,
        "metric": metric,
        "value": value,
        "ci95": ends,
        "n": n,
        "clusters": n,
        "settings": settings,
    }


def _layer_settings(layers):
    return [{}] if layers is None else [{"layer": layer} for layer in layers]


def _rising(layer, best, height=0.05):
    """What a layer adds: the more, the nearer it is to the best one."""
    return 0.0 if layer is None else -height * abs(layer - best) / 12


def make_discoeval_results(
    *, layers=None, missing=("PDTB/explicit", "PDTB/implicit", "RST"), protocol="paper", ablated=(), shift=0.0
):
    """Results of a whole DiscoEval run; `ablated` may hold context and hidden. Test is best one layer below dev."""
    bases = {"SP": 0.47, "BSO": 0.66, "DC": 0.6, "SSP": 0.79, "PDTB": 0.42, "RST": 0.58}
    parts = {"SP": "context", "DC": "hidden"}
    rows = []
    for place in _layer_settings(layers):
        for split in ("dev", "test"):
            shared = {"split": split, "protocol": protocol, **place}
            there = [spec for spec in SPECS if spec.name not in missing]
            values, marks = {}, {}
            for number, spec in enumerate(there):
                best = 9 + number % 3 - (split == "test")
                value = bases[spec.group] + 0.01 * (number % 4) + shift + _rising(place.get("layer"), best)
                part = parts.get(spec.group)
                marks[spec.name] = {part: "no"} if part in ablated else {}
                values[spec.name] = value - 0.04 * bool(marks[spec.name])
                mark = {**shared, **marks[spec.name]}
                rows.append(_probing_row(spec.name, "accuracy", values[spec.name], 4000, mark))
            for group in (*bases, "average"):
                if group == "RST":
                    continue
                chosen = [spec for spec in there if group in (spec.group, "average")]
                lacking = [name for name in missing if group in (name.partition("/")[0], "average")]
                columns = {}
                for spec in chosen:
                    columns.setdefault(spec.column if group == "average" else spec.name, []).append(
                        values[spec.name]
                    )
                if not columns:
                    continue
                settings = {**shared, "tasks": ",".join(spec.name for spec in chosen)}
                for spec in chosen:
                    settings |= marks[spec.name]
                settings |= {"missing": ",".join(lacking)} if lacking else {}
                value = float(np.mean([np.mean(column) for column in columns.values()]))
                rows.append(_probing_row(group, "accuracy", value, 4000 * len(chosen), settings, 0.005))
    skipped = {f"task {name} left out, for want of {name}/test.txt": 1 for name in missing}
    signature = f"ensue:1 model:m protocol:{protocol} layer:own pooling:own"
    shown = {"benchmark": "discoeval", "metrics": rows, "skipped": skipped, "signature": signature}
    return {**make_results([]), **shown, "tokens": 0}


def make_senteval_results(*, layers=None, probing=False, protocol="paper"):
    """Results of a SentEval run; the probing tasks are missing unless asked for."""
    bases = {"USS": 0.62, "SSS": 0.78, "SC": 0.8, "Probing": 0.7}
    rows, missing = [], []
    for place in _layer_settings(layers):
        layer = place.get("layer")
        for group, tasks in GROUPS.items():
            if group == "Probing" and not probing:
                missing += [task.name for task in tasks]
                continue
            trained = {} if group == "USS" else {"protocol": protocol}
            for split in ("test",) if group == "USS" else ("dev", "test"):
                values = []
                for number, task in enumerate(tasks):
                    best = 4 + number % 3 - (split == "test")
                    value = bases[group] + 0.015 * (number % 5) + _rising(layer, best, 0.15)
                    values.append(value)
                    where = {"split": split, **trained, **place}
                    rows.append(_probing_row(task.name, task.metric, value, 1500, where))
                    if task.metric == "pearson":
                        rows.append(_probing_row(task.name, "spearman", value - 0.02, 1500, where))
                    if task.name == "MRPC":
                        rows.append(_probing_row(task.name, "f1", value + 0.05, 1500, where))
                    rows += [
                        _probing_row(task.name, metric, value - 0.1, 300, {**where, "subset": name})
                        for name in task.sets
                        for metric in ("pearson", "spearman")
                    ]
                    if task.sets:
                        rows.append(
                            _probing_row(
                                task.name, "pearson", value + 0.01, 1500, {**where, "average": "weighted"}
                            )
                        )
                metric = {"USS": "pearson", "SSS": "average"}.get(group, "accuracy")
                where = {
                    "split": split,
                    **trained,
                    **place,
                    "tasks": ",".join(task.name for task in tasks),
                }
                rows.append(_probing_row(group, metric, float(np.mean(values)), 1500 * len(tasks), where))
                if group == "USS":
                    rows.append(_probing_row(group, "spearman", float(np.mean(values)) - 0.02, 7500, where))
    skipped = {f"task {name} left out, for want of probing/{name}.txt": 1 for name in dict.fromkeys(missing)}
    signature = f"ensue:1 model:m sts:cosine protocol:{protocol} layer:own pooling:own"
    shown = {"benchmark": "senteval", "metrics": rows, "skipped": skipped, "signature": signature}
    return {**make_results([]), **shown, "tokens": 0}


def make_probing_items(results):
    """A few items a task and split of the results, half of which have the label "1"."""
    places = {
        (row["task"], row["settings"]["split"], row["settings"].get("layer"))
        for row in results["metrics"]
        if "tasks" not in row["settings"] and row["metric"] == "accuracy"
    }
    return [
        {
            "id": f"{task}/{split}/{number}#{layer}",
            "cluster": f"{task}/{split}/{number}",
            "task": task,
            "settings": {"split": split, **({} if layer is None else {"layer": layer})},
            "scores": {"accuracy": 1.0},
            "outputs": {"label": str(max(number, 1)), "predicted": "1"},
        }
        for task, split, layer in sorted(places, key=str)
        for number in range(4)
    ]


def write_probing(folder, results, model="some-model"):
    results = {**results, "model": model}
    benchmark = results["benchmark"]
    run = {"command": ["ensue", "run", benchmark, "--model", model, "--data", "my data"], "seed": 0}
    return write_run(folder, make_probing_items(results), results, run=run)
