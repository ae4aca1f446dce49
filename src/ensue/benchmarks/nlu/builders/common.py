"""What the conversions share: splits that share no source, and files in the official layouts, all or none."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ensue.benchmarks.nlu.examples import DEV, TEST, TRAIN
from ensue.benchmarks.output import BuildReport, check_output, new_build, write_build
from ensue.errors import EnsueError

SPLITS = (TRAIN, DEV, TEST)
# SuperGLUE's files of the development set are called otherwise than GLUE's.
_JSONL = {TRAIN: "train.jsonl", DEV: "val.jsonl", TEST: "test.jsonl"}

Row = dict[str, Any]


@dataclass
class BuiltRows:
    """Rows by split, without their index, and what was left out or is worth a note."""

    rows: dict[str, list[Row]] = field(default_factory=lambda: {split: [] for split in SPLITS})
    skipped: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)


def divide(groups: Iterable[str], dev: float, test: float, seed: int) -> dict[str, str]:
    """Return the split of each group, drawn by the seed: such a share of all groups, one at least where asked.

    What is in one group (an article, a text) is thus never in two splits.
    """
    found = sorted(set(groups))
    if min(dev, test) < 0 or dev + test >= 1:
        raise EnsueError(
            f"--dev {dev:g} and --test {test:g} leave nothing to train on; give shares that add to less than 1."
        )
    shares = {DEV: dev, TEST: test}
    sizes = {split: max(1, round(share * len(found))) if share else 0 for split, share in shares.items()}
    if len(found) <= sum(sizes.values()):
        raise EnsueError(
            f"{len(found):,} sources are too few to divide into three splits; give more, or --dev 0."
        )
    random.Random(seed).shuffle(found)
    splits = [split for split, size in sizes.items() for _ in range(size)]
    return {group: splits[place] if place < len(splits) else TRAIN for place, group in enumerate(found)}


def write_task(
    task: str,
    output: str | Path,
    made: BuiltRows,
    source: str,
    columns: Sequence[str] | None,
    settings: Mapping[str, Any],
    *,
    overwrite: bool,
) -> BuildReport:
    """Write a task's own folder below `output`: TSV with those columns after the index, or JSON lines without any."""
    if not any(made.rows.values()):
        why = "; ".join(f"{reason}: {count:,}" for reason, count in made.skipped.items())
        raise EnsueError(
            f"{source} gave no example of {task}{f' ({why})' if why else ''}; nothing was written."
        )
    home = Path(output).expanduser().absolute() / task
    check_output(home, source, overwrite=overwrite)
    with new_build(home) as folder:
        fingerprint = {}
        for split in SPLITS:
            if rows := made.rows[split]:
                name = f"{split}.tsv" if columns else _JSONL[split]
                text = _tsv(rows, columns) if columns else _jsonl(rows)
                raw = text.encode("utf-8", "backslashreplace")
                (folder / name).write_bytes(raw)
                fingerprint[name] = hashlib.sha256(raw).hexdigest()
        report = BuildReport(
            home,
            {"task": task, "source": source, **settings},
            {"examples": {split: _statistics(made.rows[split]) for split in SPLITS}},
            dict(sorted(made.skipped.items())),
            {name: count for name, count in sorted(made.notes.items()) if count},
            fingerprint,
        )
        write_build(folder, report.as_dict())
    return report


def one_line(text: str) -> str:
    """Return the text without line ends and tabs, which the official files cannot have."""
    return " ".join(text.split())


def _tsv(rows: Sequence[Row], columns: Sequence[str]) -> str:
    lines = ["\t".join(("index", *columns))]
    lines += [
        "\t".join((str(index), *(one_line(str(row[name])) for name in columns)))
        for index, row in enumerate(rows)
    ]
    return "\n".join(lines) + "\n"


def _jsonl(rows: Sequence[Row]) -> str:
    return "".join(json.dumps({**row, "idx": index}) + "\n" for index, row in enumerate(rows))


def _statistics(rows: Sequence[Row]) -> dict[str, Any]:
    labels = Counter(json.dumps(row["label"]).strip('"') for row in rows)
    return {"lines": len(rows), "labels": dict(sorted(labels.items()))}
