"""Reads what an encoder is trained on before the tasks (BERT++): a file of NLI pairs or of multiple choices."""

from __future__ import annotations

import csv
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.nlu.examples import DEV, TRAIN, Example, TaskData, TaskSpec
from ensue.errors import EnsueError
from ensue.jsonl import read_lines, text_lines
from ensue.records import file_digest

NLI_LABELS = ("entailment", "neutral", "contradiction")
# Which tasks start from it in the paper; the others keep the results of the encoder as it came.
PAPER = {"mnli": ("CB", "RTE", "BoolQ"), "swag": ("COPA",)}
# How one and the same column is called in MNLI and SNLI, in other collections, and in SICK.
_FIRST = ("sentence1", "premise", "sentence_A")
_SECOND = ("sentence2", "hypothesis", "sentence_B")
_LABEL = ("gold_label", "label", "entailment_judgment", "entailment_label")
_CONTEXT = ("sent1", "context", "premise")
_HELD_OUT, _MOST_HELD_OUT = 0.05, 2_000


class Line(NamedTuple):
    """A row with its place, for error messages."""

    where: str
    values: Mapping[str, Any]


def read_intermediate(name: str, path: Path, seed: int) -> TaskData:
    """Read NLI pairs (tsv with a header, jsonl) or multiple choices (jsonl, SWAG's csv), part held out as dev.

    NLI rows have a premise (`sentence1`), a hypothesis (`sentence2`) and a label of three; rows whose annotators
    agreed on none (`-`) are left out and counted. Multiple choices have `sent1`, `sent2`, `ending0`… and a number as
    `label`, or `context`, `choices` and `label`. Of a folder its `train` file is read.
    """
    file = _file(path)
    lines = _lines(file)
    first = next(lines, None)
    if first is None:
        raise EnsueError(f"{file} has no rows to train on.")
    choices = "choices" in first.values or "ending0" in first.values
    notes: Counter[str] = Counter()
    examples: list[Example] = []
    for line in (first, *lines):
        example = _choice(line, len(examples)) if choices else _pair(line, len(examples))
        if example is None:
            notes["rows without a label that annotators agreed on"] += 1
        else:
            examples.append(example)
    if len(examples) < 2:
        raise EnsueError(f"{file} has {len(examples)} labelled rows; training needs at least two.")
    labels = tuple(str(i) for i in range(max(len(e.choices) for e in examples))) if choices else NLI_LABELS
    form = "choice" if choices else "pair"
    spec = TaskSpec(name, "superglue", form, labels, ("accuracy",), {}, "", in_score=False)  # type: ignore[arg-type]
    return TaskData(spec, _held_out(examples, seed), file_digest(file), notes)


def _file(path: Path) -> Path:
    if path.is_file():
        return path
    for ending in (".tsv", ".jsonl", ".csv"):
        if (path / f"train{ending}").is_file():
            return path / f"train{ending}"
    raise EnsueError(
        f"{path} is not a file and has no train.tsv, train.jsonl or train.csv; name the data to train on first."
    )


def _lines(path: Path) -> Iterator[Line]:
    """Read the rows of a file, whatever its form, with their places."""
    if path.suffix == ".jsonl":
        yield from (Line(f"{path}, line {number}", row) for number, row in read_lines(path))
    elif path.suffix == ".csv":
        reader = csv.DictReader(line for _, line in text_lines(path, newline=""))
        yield from (Line(f"{path}, line {reader.line_num}", row) for row in reader)
    else:
        yield from _tab_lines(path)


def _tab_lines(path: Path) -> Iterator[Line]:
    """Read columns by the header's names; quotes mean nothing, as in GLUE's own files."""
    header: list[str] = []
    for number, written in text_lines(path, newline="\n"):
        cells = written.rstrip("\r\n").split("\t")
        if number == 1:
            header = cells
            continue
        if len(cells) < len(header):
            raise EnsueError(
                f"{path}, line {number} has {len(cells)} columns where the header has {len(header)}."
            )
        yield Line(f"{path}, line {number}", dict(zip(header, cells, strict=False)))


def _pair(line: Line, number: int) -> Example | None:
    first, second = _text(line, _FIRST), _text(line, _SECOND)
    label = _text(line, _LABEL).lower()
    if label == "-":
        return None
    if label not in NLI_LABELS:
        raise EnsueError(f"{line.where}: the label is {label!r}; it must be one of {', '.join(NLI_LABELS)}.")
    return Example(str(number), (first, second), label, where=line.where)


def _choice(line: Line, number: int) -> Example:
    context = _text(line, _CONTEXT)
    if "choices" in line.values:
        given = line.values["choices"]
        if not isinstance(given, list) or not all(isinstance(one, str) and one.strip() for one in given):
            raise EnsueError(f"{line.where}: choices must be a list of texts.")
        choices = tuple(given)
    else:
        begun = str(line.values.get("sent2") or "")
        endings = sorted(key for key in line.values if key.startswith("ending") and key[6:].isdigit())
        choices = tuple(f"{begun} {_text(line, (key,))}".strip() for key in endings)
    label = str(line.values.get("label", "")).strip()
    if len(choices) < 2 or label not in {str(i) for i in range(len(choices))}:
        raise EnsueError(
            f"{line.where}: {len(choices)} choices and the label {label!r}; at least two choices are needed, and "
            f"the number of the right one, counted from 0."
        )
    return Example(str(number), (context, ""), label, choices=choices, where=line.where)


def _text(line: Line, names: Sequence[str]) -> str:
    """Return the first of these columns that is there."""
    for name in names:
        value = line.values.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()
    raise EnsueError(f"{line.where} has no text under {' or '.join(names)}.")


def _held_out(examples: list[Example], seed: int) -> dict[str, list[Example]]:
    """Hold out a part for choosing the best weights, which is not trained on."""
    order = list(range(len(examples)))
    random.Random(seed).shuffle(order)
    cut = min(max(1, round(_HELD_OUT * len(examples))), _MOST_HELD_OUT)
    dev = set(order[:cut])
    return {
        TRAIN: [example for i, example in enumerate(examples) if i not in dev],
        DEV: [examples[i] for i in sorted(dev)],
    }
