"""One reader for each of SentEval's file formats; a fault is said with its file and line, nothing is skipped unsaid.

Encodings, as the files are distributed: UTF-8 everywhere (MRPC with a byte order mark, SICK's test part with
carriage returns), but TREC's training part is Latin-1; the originals of MR, CR, MPQA and SUBJ were, too. Only those
five may be Latin-1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path

from ensue.benchmarks.senteval.catalog import PROBING_FILES, Task
from ensue.benchmarks.senteval.lines import Line, Lines, read_lines
from ensue.benchmarks.senteval.rows import Rows, TaskData
from ensue.errors import EnsueError

SPLITS = ("train", "dev", "test")
# What SentEval's own encoders put in the place of a sentence without words; CR and MPQA have seven such.
EMPTY = "."

ENTAILMENT = ("CONTRADICTION", "NEUTRAL", "ENTAILMENT")
QUESTIONS = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
_PROBING_SPLITS = {"tr": "train", "va": "dev", "te": "test"}
_STS_BENCHMARK_COLUMNS = (7, 9)  # nine where the sources of the sentences are named
_SICK_HEADER = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
_MRPC_HEADER = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"


def read_task(task: Task, paths: Sequence[Path], limit: int | None = None) -> TaskData:
    """The task whose files, in the catalogue's order, lie at `paths`."""
    if task.name in PROBING_FILES:
        return _probing(task, paths[0], limit)
    return _READERS[task.name](task, paths, limit)


def _similarity(task: Task, paths: Sequence[Path], limit: int | None) -> TaskData:
    """An STS year: two sentences a line, and their score on the same line of another file, or none."""
    parts, skipped = {}, Counter[str]()
    for name, pairs, golds in zip(task.sets, paths[0::2], paths[1::2], strict=True):
        lines, scores = read_lines(pairs).items, read_lines(golds).items
        if len(lines) != len(scores):
            raise EnsueError(f"{pairs} has {len(lines)} lines, but {golds} has {len(scores)}.")
        rows = Rows()
        for line, score in zip(lines, scores, strict=True):
            first, second = line.fields(2)
            if not score.text.strip():
                skipped[f"{task.name} pairs without a gold score"] += 1
            elif limit is None or len(rows) < limit:
                gold = score.score(score.text, 0.0, 5.0)
                rows.add(f"{name}/{line.number}", (line.sentence(first), line.sentence(second)), gold)
        parts[name] = rows
    return TaskData(task, parts, (), skipped, Counter())


def _sts_benchmark(task: Task, paths: Sequence[Path], limit: int | None) -> TaskData:
    def row(line: Line) -> tuple[tuple[str, str], float]:
        fields = line.fields(*_STS_BENCHMARK_COLUMNS)
        return (line.sentence(fields[5]), line.sentence(fields[6])), line.score(fields[4], 0.0, 5.0)

    return _by_split(task, paths, SPLITS, (), row, limit)


def _sick_relatedness(task: Task, paths: Sequence[Path], limit: int | None) -> TaskData:
    def row(line: Line) -> tuple[tuple[str, str], float]:
        _, first, second, score, _ = line.fields(5)
        return (line.sentence(first), line.sentence(second)), line.score(score, 1.0, 5.0)

    return _by_split(task, paths, SPLITS, (), row, limit, _SICK_HEADER)


def _sick_entailment(task: Task, paths: Sequence[Path], limit: int | None) -> TaskData:
    def row(line: Line) -> tuple[tuple[str, str], float]:
        _, first, second, _, label = line.fields(5)
        return (line.sentence(first), line.sentence(second)), line.label(label.strip(), ENTAILMENT)

    return _by_split(task, paths, SPLITS, ENTAILMENT, row, limit, _SICK_HEADER)


def _paraphrases(task: Task, paths: Sequence[Path], limit: int | None) -> TaskData:
    def row(line: Line) -> tuple[tuple[str, str], float]:
        label, _, _, first, second = line.fields(5)
        return (line.sentence(first), line.sentence(second)), line.label(label, ("0", "1"))

    return _by_split(task, paths, ("train", "test"), ("0", "1"), row, limit, _MRPC_HEADER)


def _binary_treebank(task: Task, paths: Sequence[Path], limit: int | None) -> TaskData:
    def row(line: Line) -> tuple[tuple[str], float]:
        sentence, label = line.fields(2)
        return (line.sentence(sentence),), line.label(label, ("0", "1"))

    return _by_split(task, paths, SPLITS, ("0", "1"), row, limit)


def _fine_treebank(task: Task, paths: Sequence[Path], limit: int | None) -> TaskData:
    classes = ("0", "1", "2", "3", "4")

    def row(line: Line) -> tuple[tuple[str], float]:
        label, _, sentence = line.text.partition(" ")
        return (line.sentence(sentence),), line.label(label, classes)

    return _by_split(task, paths, SPLITS, classes, row, limit)


def _questions(task: Task, paths: Sequence[Path], limit: int | None) -> TaskData:
    def row(line: Line) -> tuple[tuple[str], float]:
        kind, _, sentence = line.text.partition(" ")
        coarse, colon, _ = kind.partition(":")
        if not colon:
            line.refuse("a question begins with its class, such as NUM:date")
        return (line.sentence(sentence),), line.label(coarse, QUESTIONS)

    return _by_split(task, paths, ("train", "test"), QUESTIONS, row, limit)


def _polar(task: Task, paths: Sequence[Path], limit: int | None) -> TaskData:
    """Two files, each a class, of one sentence a line, read into one part."""
    rows, notes = Rows(), Counter[str]()
    for path, label in zip(paths, (1, 0), strict=True):
        lines = _lines(path, notes, task)
        for line in islice(lines.items, limit):
            text = line.text
            if not text.strip() and task.name in ("CR", "MPQA"):
                notes[f"empty sentences of {task.name} read as {EMPTY!r}, as SentEval's encoders do"] += 1
                text = EMPTY
            rows.add(f"{path.name}/{line.number}", (line.sentence(text),), label)
    return TaskData(task, {"all": rows}, ("0", "1"), Counter(), notes)


def _probing(task: Task, path: Path, limit: int | None) -> TaskData:
    """One file for all splits: split, label and sentence a line; the classes are the training part's labels."""
    parts = {split: Rows() for split in SPLITS}
    read: list[tuple[Line, str, str, str]] = []
    for line in read_lines(path).items:
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
    return TaskData(task, parts, classes, Counter(), Counter())


def _by_split(
    task: Task,
    paths: Sequence[Path],
    splits: Iterable[str],
    classes: tuple[str, ...],
    row: Callable[[Line], tuple[Sequence[str], float]],
    limit: int | None,
    header: str | None = None,
) -> TaskData:
    """A task with a file for each split and an example a line."""
    parts, notes = {}, Counter[str]()
    for split, path in zip(splits, paths, strict=True):
        lines = _lines(path, notes, task).items
        if header is not None:
            if lines[0].text.strip() != header:
                lines[0].refuse(f"this should be the heading {header.split()[0]} …")
            lines = lines[1:]
        rows = Rows()
        for line in islice(lines, limit):
            sentences, gold = row(line)
            rows.add(f"{split}/{line.number}", sentences, gold)
        parts[split] = rows
    return TaskData(task, parts, classes, Counter(), notes)


def _lines(path: Path, notes: Counter[str], task: Task) -> Lines:
    lines = read_lines(path, latin=task.name in ("MR", "CR", "MPQA", "SUBJ", "TREC"))
    if lines.latin:
        notes[f"files of {task.name} read as Latin-1"] += 1
    return lines


_READERS: dict[str, Callable[[Task, Sequence[Path], int | None], TaskData]] = {
    **{f"STS{year}": _similarity for year in range(12, 17)},
    "STSBenchmark": _sts_benchmark,
    "SICKRelatedness": _sick_relatedness,
    "SICKEntailment": _sick_entailment,
    "MRPC": _paraphrases,
    "SST2": _binary_treebank,
    "SST5": _fine_treebank,
    "TREC": _questions,
    **dict.fromkeys(("MR", "CR", "MPQA", "SUBJ"), _polar),
}
