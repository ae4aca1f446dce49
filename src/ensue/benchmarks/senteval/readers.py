"""One reader for each of SentEval's file formats; a fault is said with its file and line, nothing is skipped unsaid.

Encodings, as the files are distributed: UTF-8 everywhere (MRPC with a byte order mark, SICK's test part with
carriage returns), but TREC's training part is Latin-1; the originals of MR, CR, MPQA and SUBJ were, too. Only those
five may be Latin-1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ensue.benchmarks.probing.lines import DataLine, read_lines
from ensue.benchmarks.senteval.data import PROBING_FILES, ExampleRows, SentEvalData, SentEvalSpec
from ensue.errors import EnsueError

SPLITS = ("train", "dev", "test")
# What SentEval's own encoders put in the place of a sentence without words; CR and MPQA have seven such.
EMPTY = "."

ENTAILMENT = ("CONTRADICTION", "NEUTRAL", "ENTAILMENT")
_BINARY, _FINE = ("0", "1"), ("0", "1", "2", "3", "4")
QUESTIONS = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
_PROBING_SPLITS = {"tr": "train", "va": "dev", "te": "test"}
_STS_BENCHMARK_COLUMNS = (7, 9)  # nine where the sources of the sentences are named
_SICK_HEADER = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
_MRPC_HEADER = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"


def read_task(task: SentEvalSpec, paths: Sequence[Path], limit: int | None = None) -> SentEvalData:
    """Read the task whose files, in the catalogue's order, lie at `paths`."""
    if task.name in PROBING_FILES:
        return _probing(task, paths[0], limit)
    if task.sets:
        return _similarity(task, paths, limit)
    return (_by_split if task.name in FORMATS else _polar)(task, paths, limit)


def _similarity(task: SentEvalSpec, paths: Sequence[Path], limit: int | None) -> SentEvalData:
    """Read an STS year: two sentences a line, and their score on the same line of another file, or none."""
    parts, skipped = {}, Counter[str]()
    for name, pairs, golds in zip(task.sets, paths[0::2], paths[1::2], strict=True):
        (lines, _), (scores, _) = read_lines(pairs), read_lines(golds)
        if len(lines) != len(scores):
            raise EnsueError(f"{pairs} has {len(lines)} lines, but {golds} has {len(scores)}.")
        rows = ExampleRows()
        for line, score in zip(lines, scores, strict=True):
            first, second = line.fields(2)
            if not score.text.strip():
                skipped[f"{task.name} pairs without a gold score"] += 1
            elif limit is None or len(rows) < limit:
                gold = score.score(score.text, 0.0, 5.0)
                rows.add(f"{name}/{line.number}", (line.sentence(first), line.sentence(second)), gold)
        parts[name] = rows
    return SentEvalData(task, parts, (), skipped, Counter())


class Format(NamedTuple):
    """A task with a file for each split and an example a line: what a line holds, and a heading above the lines."""

    row: Callable[[DataLine], tuple[Sequence[str], float]]
    classes: tuple[str, ...] = ()
    splits: Sequence[str] = SPLITS
    header: str | None = None


def _pair(line: DataLine, first: str, second: str) -> tuple[str, str]:
    return line.sentence(first), line.sentence(second)


def _sts_benchmark(line: DataLine) -> tuple[Sequence[str], float]:
    fields = line.fields(*_STS_BENCHMARK_COLUMNS)
    return _pair(line, fields[5], fields[6]), line.score(fields[4], 0.0, 5.0)


def _sick_relatedness(line: DataLine) -> tuple[Sequence[str], float]:
    _, first, second, score, _ = line.fields(5)
    return _pair(line, first, second), line.score(score, 1.0, 5.0)


def _sick_entailment(line: DataLine) -> tuple[Sequence[str], float]:
    _, first, second, _, label = line.fields(5)
    return _pair(line, first, second), line.label(label.strip(), ENTAILMENT)


def _paraphrases(line: DataLine) -> tuple[Sequence[str], float]:
    label, _, _, first, second = line.fields(5)
    return _pair(line, first, second), line.label(label, _BINARY)


def _binary_treebank(line: DataLine) -> tuple[Sequence[str], float]:
    sentence, label = line.fields(2)
    return (line.sentence(sentence),), line.label(label, _BINARY)


def _fine_treebank(line: DataLine) -> tuple[Sequence[str], float]:
    label, _, sentence = line.text.partition(" ")
    return (line.sentence(sentence),), line.label(label, _FINE)


def _questions(line: DataLine) -> tuple[Sequence[str], float]:
    kind, _, sentence = line.text.partition(" ")
    coarse, colon, _ = kind.partition(":")
    if not colon:
        line.refuse("a question begins with its class, such as NUM:date")
    return (line.sentence(sentence),), line.label(coarse, QUESTIONS)


FORMATS = {
    "STSBenchmark": Format(_sts_benchmark),
    "SICKRelatedness": Format(_sick_relatedness, header=_SICK_HEADER),
    "SICKEntailment": Format(_sick_entailment, ENTAILMENT, header=_SICK_HEADER),
    "MRPC": Format(_paraphrases, _BINARY, ("train", "test"), _MRPC_HEADER),
    "SST2": Format(_binary_treebank, _BINARY),
    "SST5": Format(_fine_treebank, _FINE),
    "TREC": Format(_questions, QUESTIONS, ("train", "test")),
}


def _by_split(task: SentEvalSpec, paths: Sequence[Path], limit: int | None) -> SentEvalData:
    """Read a task with a file for each split and an example a line."""
    form = FORMATS[task.name]
    parts, notes = {}, Counter[str]()
    for split, path in zip(form.splits, paths, strict=True):
        lines = _lines(path, notes, task)
        if form.header is not None:
            if lines[0].text.strip() != form.header:
                lines[0].refuse(f"this should be the heading {form.header.split()[0]} …")
            lines = lines[1:]
        rows = ExampleRows()
        for line in islice(lines, limit):
            sentences, gold = form.row(line)
            rows.add(f"{split}/{line.number}", sentences, gold)
        parts[split] = rows
    return SentEvalData(task, parts, form.classes, Counter(), notes)


def _polar(task: SentEvalSpec, paths: Sequence[Path], limit: int | None) -> SentEvalData:
    """Read two files, each a class, of one sentence a line, read into one part."""
    rows, notes = ExampleRows(), Counter[str]()
    for path, label in zip(paths, (1, 0), strict=True):
        lines = _lines(path, notes, task)
        for line in islice(lines, limit):
            text = line.text
            if not text.strip() and task.name in ("CR", "MPQA"):
                notes[f"empty sentences of {task.name} read as {EMPTY!r}, as SentEval's encoders do"] += 1
                text = EMPTY
            rows.add(f"{path.name}/{line.number}", (line.sentence(text),), label)
    return SentEvalData(task, {"all": rows}, ("0", "1"), Counter(), notes)


def _probing(task: SentEvalSpec, path: Path, limit: int | None) -> SentEvalData:
    """Read one file for all splits: split, label and sentence a line; the classes are the training part's labels."""
    parts = {split: ExampleRows() for split in SPLITS}
    read: list[tuple[DataLine, str, str, str]] = []
    for line in read_lines(path)[0]:
        split, label, sentence = line.fields(3)
        if split not in _PROBING_SPLITS:
            line.refuse(f"the split {split!r} is none of {', '.join(_PROBING_SPLITS)}")
        read.append((line, _PROBING_SPLITS[split], label, line.sentence(sentence)))
    classes = tuple(sorted({label for _, split, label, _ in read if split == "train"}))
    numbers = {label: number for number, label in enumerate(classes)}
    for line, split, label, sentence in read:
        if label not in numbers:
            line.refuse(f"the label {label!r} does not occur in the training part")
        if limit is None or len(parts[split]) < limit:
            parts[split].add(f"{split}/{line.number}", (sentence,), numbers[label])
    return SentEvalData(task, parts, classes, Counter(), Counter())


def _lines(path: Path, notes: Counter[str], task: SentEvalSpec) -> list[DataLine]:
    lines, latin = read_lines(path, latin=task.name in ("MR", "CR", "MPQA", "SUBJ", "TREC"))
    if latin:
        notes[f"files of {task.name} read as Latin-1"] += 1
    return lines
