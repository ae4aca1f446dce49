"""Building a DiscoEval task from a raw corpus: its files in the published layout, all of them or none."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from ensue.benchmarks.discoeval.builders.binary_order import build_pairs
from ensue.benchmarks.discoeval.builders.coherence import build_coherence
from ensue.benchmarks.discoeval.builders.common import SPLITS, Made, Progress, Split
from ensue.benchmarks.discoeval.builders.corpus import Reading, read_texts
from ensue.benchmarks.discoeval.builders.options import Options
from ensue.benchmarks.discoeval.builders.pdtb import Kind, build_relations
from ensue.benchmarks.discoeval.builders.rst_splits import build_trees
from ensue.benchmarks.discoeval.builders.sections import build_sections
from ensue.benchmarks.discoeval.builders.sentence_position import build_positions
from ensue.benchmarks.discoeval.suite import SPECS, Spec, select
from ensue.benchmarks.output import BuildReport, check_output, new_build, write_build
from ensue.errors import EnsueError


def build(
    task: str,
    source: str,
    output: Path,
    options: Options | None = None,
    *,
    workers: int = 1,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> BuildReport:
    """Build a task such as SP/wiki into its own folder below `output`, which thus becomes a suite's data folder.

    The same source and options give the same bytes whatever the number of `workers`.
    """
    spec, options = _spec(task), options or Options()
    options.check(spec)
    reading = options.reading(workers)
    reading.check()
    home = output.expanduser().absolute() / spec.folder
    check_output(home, source, overwrite=overwrite)
    made = Made()
    _make(spec, source, options, reading, made, progress)
    with new_build(home) as folder:
        fingerprint = _write(folder, spec, made)
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


def _make(
    spec: Spec, source: str, options: Options, reading: Reading, made: Made, progress: Progress | None
) -> None:
    """The lines of a task, by its group."""
    seed, sizes, per_document = options.seed, options.sizes(spec), options.runs(spec)
    if spec.group == "PDTB":
        kind: Kind = "Explicit" if spec.name == "PDTB/explicit" else "Implicit"
        build_relations(source, kind, reading.encoding, made)
    elif spec.group == "RST":
        build_trees(source, reading.encoding, seed, options.valid, options.valid_list, made, progress)
    elif spec.group == "SSP":
        build_sections(source, reading, sizes, seed, per_document, made, progress)
    elif spec.group == "DC":
        texts = read_texts(source, "whole", reading, made.skipped, progress)
        build_coherence(texts, source, sizes, seed, per_document, not options.unpaired, made)
    else:
        texts = read_texts(source, "lead", reading, made.skipped, progress)
        if spec.group == "SP":
            stories = spec.name == "SP/rocstory"
            build_positions(texts, source, sizes, seed, stories, options.others or "in-order", made)
        else:
            build_pairs(texts, source, sizes, seed, made)


def _write(folder: Path, spec: Spec, made: Made) -> dict[str, str]:
    """The files of a task and their digests."""
    content: dict[str, list[str]] = {}
    for split in SPLITS:
        named = {"train": "TRAIN", "valid": "DEV", "test": "TEST"}[split]
        content[f"RST_{named}.jsonl" if spec.group == "RST" else f"{split}.txt"] = made.lines[split]
    if made.labels:
        content["labelset.txt"] = list(made.labels)
    digests = {}
    for name, lines in content.items():
        raw = "".join(f"{line}\n" for line in lines).encode("utf-8")
        (folder / name).write_bytes(raw)
        digests[name] = hashlib.sha256(raw).hexdigest()
    return digests


def _statistics(made: Made, split: Split) -> dict[str, Any]:
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
