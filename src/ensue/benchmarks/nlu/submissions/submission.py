"""A run's predictions as the zip that the official sites take: one file a task, the same bytes every time."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ensue.atomic import make_folders, replacing
from ensue.benchmarks.grading.board import Submitted
from ensue.benchmarks.grading.predictions import is_chosen, several_ways
from ensue.benchmarks.nlu.examples import TEST, Prediction, TaskSpec
from ensue.benchmarks.nlu.submissions.formats import check_prediction, files_of, render
from ensue.benchmarks.nlu.suites import specs_of
from ensue.errors import EnsueError

# Predictions by task, split and example.
Predictions = dict[str, dict[str, dict[str, Prediction]]]
# The zip must not say when it was made, or its bytes would differ.
_EPOCH = (1980, 1, 1, 0, 0, 0)
_COMPRESSION = 6


def collect(
    items: Iterable[tuple[int, Mapping[str, Any]]],
    source: Path,
    suite: str,
    split: str,
    chosen: Mapping[str, str] | None = None,
) -> Predictions:
    """Return the predictions of a run's numbered items for the files of a split.

    Where a run answered a task in several ways (templates, training runs), `chosen` must leave one of them; its keys
    are settings (`template`), or those of one task (`RTE.template`).
    """
    specs = {spec.name: spec for spec in specs_of(suite)}
    wanted = {(spec.name, part) for spec in specs.values() for part in files_of(spec, split).values()}
    ways: dict[tuple[str, str], dict[str, dict[str, Prediction]]] = {}
    for line, item in items:
        task, settings = item["task"], item["settings"]
        part = settings.get("split")
        if (task, part) not in wanted or not is_chosen(task, settings, chosen or {}):
            continue
        where = f"{source}, line {line}"
        id, prediction = _prediction(specs[task], part, item, where)
        said = {key: value for key, value in settings.items() if key != "split"}
        way = json.dumps(said, ensure_ascii=False, sort_keys=True)
        found = ways.setdefault((task, part), {}).setdefault(way, {})
        if id in found:
            raise EnsueError(f"{where}: {item['id']} comes twice; run the benchmark again.")
        found[id] = prediction
    predictions: Predictions = {}
    for (task, part), answers in ways.items():
        if len(answers) > 1:
            raise several_ways(source, task, [json.loads(way) for way in answers])
        predictions.setdefault(task, {})[part] = next(iter(answers.values()))
    return predictions


def write_submission(
    suite: str, predictions: Predictions, path: Path, split: str = TEST, filled: Sequence[str] = ()
) -> Submitted:
    """Write the zip, whole or not at all; what has no predictions is left out and listed."""
    content: dict[str, str] = {}
    rows: dict[str, int] = {}
    missing: list[str] = []
    notes: list[str] = []
    for spec in specs_of(suite):
        for file, part in files_of(spec, split).items():
            given = predictions.get(spec.name, {}).get(part)
            if not given:
                missing.append(file)
                continue
            content[file] = "".join(render(spec, given))
            rows[file] = len(given)
            published = spec.sizes.get(part)
            if published is not None and len(given) != published:
                notes.append(f"{file} has {len(given):,} predictions, of {published:,} published examples.")
    if not content:
        how = "; a prompted run answers it with --set answer_test=yes" if split == TEST else ""
        raise EnsueError(
            f"There are no predictions on {split} of any task of {suite}{how}. Nothing was written."
        )
    with replacing(path) as unfinished:
        make_folders(path.parent)
        with zipfile.ZipFile(unfinished, "w") as archive:
            for name, text in content.items():
                entry = zipfile.ZipInfo(name, _EPOCH)
                entry.create_system, entry.external_attr = 3, 0o100644 << 16
                archive.writestr(entry, text, zipfile.ZIP_DEFLATED, _COMPRESSION)
        unfinished.chmod(0o644)
    return Submitted(path, suite, split, rows, missing, notes, filled)


def _prediction(spec: TaskSpec, split: str, item: Mapping[str, Any], where: str) -> tuple[str, Prediction]:
    """Return what an item says of which example."""
    prefix = f"{spec.name}/{split}/"
    id = str(item["id"])
    if not id.startswith(prefix) or id == prefix:
        raise EnsueError(f"{where}: the id {id!r} is not of the form {prefix}EXAMPLE.")
    outputs = item.get("outputs")
    if not isinstance(outputs, dict) or "predicted" not in outputs:
        raise EnsueError(f"{where}: the item has no prediction, so this is not a run of {spec.suite}.")
    try:
        return id.removeprefix(prefix), check_prediction(spec, outputs["predicted"])
    except EnsueError as error:
        raise EnsueError(f"{where}: {error}") from None
