"""Building a DiscoEval task from a raw corpus: its files in the published layout, all of them or none."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from ensue.benchmarks.discoeval.builders.coherence import build_coherence
from ensue.benchmarks.discoeval.builders.common import SPLITS, Building, BuildOptions, Split
from ensue.benchmarks.discoeval.builders.corpus import read_texts
from ensue.benchmarks.discoeval.builders.order import build_pairs, build_positions
from ensue.benchmarks.discoeval.builders.pdtb import build_relations
from ensue.benchmarks.discoeval.builders.rst import build_trees
from ensue.benchmarks.discoeval.builders.sections import build_sections
from ensue.benchmarks.discoeval.data import SPECS, Spec, select
from ensue.benchmarks.output import BuildReport, check_output, new_build, write_build
from ensue.errors import EnsueError
from ensue.progress import Progress, ignore

_FROM_SOURCES = {"PDTB": build_relations, "RST": build_trees, "SSP": build_sections}


def build(
    task: str,
    source: str,
    output: str | Path,
    options: BuildOptions | None = None,
    *,
    workers: int = 1,
    overwrite: bool = False,
    progress: Progress = ignore,
) -> BuildReport:
    """Build a task such as SP/wiki into its own folder below `output`, which thus becomes a suite's data folder.

    The same source and options give the same bytes whatever the number of `workers`.
    """
    spec, options = _spec(task), options or BuildOptions()
    options.check(spec)
    if workers < 1:
        raise EnsueError(f"The number of workers is {workers}, but must be at least 1.")
    home = Path(output).expanduser().absolute() / spec.folder
    check_output(home, source, overwrite=overwrite)
    made = Building(spec, source, options, workers, progress)
    _make(made)
    with new_build(home) as folder:
        fingerprint = _write(folder, made)
        report = BuildReport(
            home,
            {"task": spec.name, "source": source, **options.given()},
            {"examples": {name: _statistics(made, name) for name in SPLITS}, "labels": list(made.labels)},
            dict(sorted(made.skipped.items())),
            {name: count for name, count in sorted(made.notes.items()) if count},
            fingerprint,
        )
        write_build(folder, report.as_dict())
    return report


def _make(made: Building) -> None:
    """Make the lines of a task, by its group."""
    group = made.spec.group
    if group in _FROM_SOURCES:
        _FROM_SOURCES[group](made)
    elif group == "DC":
        build_coherence(read_texts(made, "whole"), made)
    else:
        (build_positions if group == "SP" else build_pairs)(read_texts(made, "lead"), made)


def _write(folder: Path, made: Building) -> dict[str, str]:
    """Write the files of a task; return their digests."""
    content: dict[str, list[str]] = {}
    for split in SPLITS:
        named = {"train": "TRAIN", "valid": "DEV", "test": "TEST"}[split]
        content[f"RST_{named}.jsonl" if made.spec.group == "RST" else f"{split}.txt"] = made.lines[split]
    if made.labels:
        content["labelset.txt"] = list(made.labels)
    digests = {}
    for name, lines in content.items():
        raw = "".join(f"{line}\n" for line in lines).encode("utf-8")
        (folder / name).write_bytes(raw)
        digests[name] = hashlib.sha256(raw).hexdigest()
    return digests


def _statistics(made: Building, split: Split) -> dict[str, Any]:
    lines = made.lines[split]
    labels = {
        made.labels[int(label)] if made.labels else label: count
        for label, count in sorted(lines.labels.items(), key=lambda pair: (len(pair[0]), pair[0]))
    }
    return {"documents": len(lines.documents), "lines": len(lines), "labels": labels}


def _spec(task: str) -> Spec:
    found = select(task)
    if len(found) != 1:
        raise EnsueError(
            f"One task is built at a time: {', '.join(spec.name for spec in found)}."
            if task.strip("/")
            else f"Name the task to build: {', '.join(spec.name for spec in SPECS)}."
        )
    return found[0]
