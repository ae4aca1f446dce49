"""Three-class inference to RTE's two classes: what is neutral or contradicted is not entailed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ensue.benchmarks.nlu.builders.common import SPLITS, BuiltRows, divide, write_task
from ensue.benchmarks.nlu.examples import DEV, TEST, TRAIN
from ensue.benchmarks.nlu.files import Found, Row, jsonl_rows, tsv_rows
from ensue.benchmarks.output import BuildReport
from ensue.errors import EnsueError

ENTAILED, NOT_ENTAILED = "entailment", "not_entailment"
# As SNLI and MultiNLI, their hub sets (numbers), and the three-way RTE challenges spell the classes.
_LABELS = {
    **dict.fromkeys(("entailment", "entails", "yes", "0"), ENTAILED),
    **dict.fromkeys(("neutral", "unknown", "1"), NOT_ENTAILED),
    **dict.fromkeys(("contradiction", "contradicts", "no", "2"), NOT_ENTAILED),
    NOT_ENTAILED: NOT_ENTAILED,
}
# No majority of annotators.
_UNLABELLED = ("-", "-1")
_PREMISE, _HYPOTHESIS = ("premise", "sentence1", "text", "t"), ("hypothesis", "sentence2", "h")
_LABEL = ("gold_label", "label", "judgment", "entailment")
_FILES = {TRAIN: ("train",), DEV: ("dev", "val", "validation"), TEST: ("test",)}
_COLUMNS = {"glue": ("sentence1", "sentence2"), "superglue": ("premise", "hypothesis")}
_ENDINGS = (".jsonl", ".tsv")


def build_rte(
    source: str,
    output: str | Path,
    *,
    suite: str = "glue",
    dev: float = 0.1,
    test: float = 0.1,
    seed: int = 0,
    overwrite: bool = False,
) -> BuildReport:
    """Build RTE from a .jsonl or .tsv file, in which no premise is then in two splits, or from a folder of splits.

    A folder has train, dev (or val) and test files, which are kept as they are divided.
    """
    if suite not in _COLUMNS:
        raise EnsueError(f"There is no suite {suite!r} with RTE; there is glue and superglue.")
    made = BuiltRows()
    path = Path(source).expanduser()
    if path.is_dir():
        for split, found in _split_files(path).items():
            made.rows[split] = [_row(suite, *pair) for pair in read_pairs(found, made)]
        settings: dict[str, Any] = {"suite": suite}
    else:
        pairs = list(read_pairs(path, made))
        splits = divide((premise for premise, _, _ in pairs), dev, test, seed) if pairs else {}
        for pair in pairs:
            made.rows[splits[pair[0]]].append(_row(suite, *pair))
        settings = {"suite": suite, "dev": dev, "test": test, "seed": seed}
    columns = (*_COLUMNS[suite], "label") if suite == "glue" else None
    return write_task("RTE", output, made, source, columns, settings, overwrite=overwrite)


def read_pairs(path: Path, made: BuiltRows) -> Iterator[tuple[str, str, str]]:
    """Return premise, hypothesis and the two-class label of every row that has one."""
    if path.suffix not in _ENDINGS:
        raise EnsueError(f"{path} is not a {' or '.join(_ENDINGS)} file; convert it first.")
    if not path.is_file():
        raise EnsueError(f"There is no file {path}.")
    for row in jsonl_rows(Found(path)) if path.suffix == ".jsonl" else tsv_rows(Found(path)):
        label = two_class(row)
        if label is None:
            made.skipped["pairs without a label"] += 1
            continue
        yield row.text(_column(row, _PREMISE)), row.text(_column(row, _HYPOTHESIS)), label


def two_class(row: Row) -> str | None:
    """Return whether a row says that the hypothesis is entailed; None where its annotators did not agree."""
    value = row.value(_column(row, _LABEL))
    spelled = (
        str(value).strip().lower() if isinstance(value, str | int) and not isinstance(value, bool) else ""
    )
    if spelled in _UNLABELLED:
        return None
    if spelled not in _LABELS:
        row.refuse(f"the label {str(value)[:40]!r} is none of entailment, neutral, contradiction")
    return _LABELS[spelled]


def _column(row: Row, names: tuple[str, ...]) -> str:
    lowered = {name.lower(): name for name in row.fields}
    for name in names:
        if name in lowered:
            return lowered[name]
    row.refuse(f"there is no column called {' or '.join(names)}")


def _split_files(folder: Path) -> Mapping[str, Path]:
    found: dict[str, Path] = {}
    for split in SPLITS:
        places = [folder / f"{name}{ending}" for name in _FILES[split] for ending in _ENDINGS]
        there = [place for place in places if place.is_file()]
        if len(there) > 1:
            raise EnsueError(f"{folder} has {there[0].name} and {there[1].name}; leave one of them.")
        if there:
            found[split] = there[0]
    if not found:
        raise EnsueError(f"{folder} has no train, dev or test file ending in {' or '.join(_ENDINGS)}.")
    return found


def _row(suite: str, premise: str, hypothesis: str, label: str) -> dict[str, Any]:
    return dict(zip((*_COLUMNS[suite], "label"), (premise, hypothesis, label), strict=True))
