"""The twelve tasks of DiscoEval and their files as published; a fault is said with its file and line."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ensue.benchmarks.discoeval import rst
from ensue.benchmarks.probing.choices import select_tasks
from ensue.benchmarks.probing.lines import DataLine, read_lines
from ensue.errors import EnsueError

GROUPS = ("SP", "BSO", "DC", "SSP", "PDTB", "RST")
SPLITS = ("train", "dev", "test")
_FILE = {"train": "train.txt", "dev": "valid.txt", "test": "test.txt"}
_LABEL_SET = "labelset.txt"
_UNDECODED = "\ufffd"


@dataclass(frozen=True)
class Spec:
    """One task: where its files lie, how many sentences a line holds, and how many classes it has.

    A task without `classes` states them itself: PDTB in its label set, RST in its training labels.
    """

    name: str
    group: str
    folder: str
    sentences: int
    classes: int | None

    @property
    def column(self) -> str:
        """The column of table 2 that the task belongs to: the group, but each kind of PDTB on its own."""
        return self.name if self.group == "PDTB" else self.group


SPECS = (
    *(Spec(f"SP/{domain}", "SP", f"SP/{domain}", 5, 5) for domain in ("wiki", "arxiv", "rocstory")),
    *(Spec(f"BSO/{domain}", "BSO", f"BSO/{domain}", 2, 2) for domain in ("wiki", "arxiv", "rocstory")),
    *(Spec(f"DC/{domain}", "DC", f"DC/{domain}", 6, 2) for domain in ("wiki", "chat")),
    Spec("SSP/abs", "SSP", "SSP/abs", 1, 2),
    Spec("PDTB/explicit", "PDTB", "PDTB/Explicit", 2, None),
    Spec("PDTB/implicit", "PDTB", "PDTB/Implicit", 2, None),
    Spec("RST", "RST", "RST", 2, None),
)


def select(name: str) -> list[Spec]:
    """Return the tasks a name stands for.

    >>> [spec.name for spec in select("PDTB")]
    ['PDTB/explicit', 'PDTB/implicit']
    """
    return select_tasks("discoeval", name, SPECS)


class DiscoEvalExample(NamedTuple):
    """One thing to classify: its parts, each of one sentence or, in RST, of a subtree's units.

    Examples made of the same line (the two orders of a pair) share its `cluster`.
    """

    id: str
    cluster: str
    label: int
    parts: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class DiscoEvalData:
    """A task with its examples read from files in `home`; `labels` are the names of its classes."""

    spec: Spec
    home: Path
    labels: tuple[str, ...]
    splits: dict[str, list[DiscoEvalExample]]
    fingerprint: str
    notes: Counter[str]

    @property
    def name(self) -> str:
        return self.spec.name

    def sentences(self) -> Iterator[str]:
        """Yield every sentence of every example, repeated ones too."""
        for examples in self.splits.values():
            for example in examples:
                for part in example.parts:
                    yield from part

    def place_of(self, sentence: str) -> str | None:
        """Return the file and line (RST: node) at which a sentence first stands, where it does."""
        for split, examples in self.splits.items():
            for example in examples:
                if any(sentence in part for part in example.parts):
                    number = example.cluster.rpartition("/")[2]
                    if self.spec.group == "RST":
                        return f"{rst.find(self.home, rst.SPLIT_NAMES[split])}, node {number}"
                    return f"{self.home / _FILE[split]}, line {number}"
        return None


def missing_files(folder: Path, spec: Spec) -> list[str]:
    """Return the files of a task that are not there, relative to the data folder."""
    home = folder / spec.folder
    if spec.group == "RST":
        absent = [f"RST_{name}.pkl" for name in rst.SPLIT_NAMES.values() if rst.find(home, name) is None]
    else:
        names = [*_FILE.values(), *([_LABEL_SET] if spec.classes is None else [])]
        absent = [name for name in names if not (home / name).is_file()]
    return [f"{spec.folder}/{name}" for name in absent]


def read_task(
    folder: Path, spec: Spec, limit: int | None = None, splits: Sequence[str] = SPLITS
) -> DiscoEvalData:
    """Read a task whose files are all there, only the first `limit` lines of each file where it is given.

    RST is always read whole: its labels are those of its training nodes.
    """
    home = folder / spec.folder
    digest = hashlib.sha256(spec.name.encode())
    if spec.group == "RST":
        return _read_rst(home, spec, limit, digest)
    labels = _read_labels(home, spec, digest)
    notes: Counter[str] = Counter()
    found = {}
    for split in splits:
        path = home / _FILE[split]
        lines = _lines(path, digest, limit)
        found[split] = [example for line in lines for example in _examples(line, spec, split, len(labels))]
        damaged = sum(_UNDECODED in line.text for line in lines)
        if damaged:
            notes[f"lines of {spec.name} with characters lost before publication (U+FFFD)"] += damaged
    return DiscoEvalData(spec, home, labels, found, digest.hexdigest(), notes)


def _lines(path: Path, digest: hashlib._Hash, limit: int | None) -> list[DataLine]:
    """Read the lines of a file; the digest takes in the whole file, however few lines are wanted."""
    lines, _ = read_lines(path)
    digest.update(hashlib.sha256(path.read_bytes()).digest())
    return lines[:limit]


def _examples(line: DataLine, spec: Spec, split: str, classes: int) -> Iterator[DiscoEvalExample]:
    """Yield the examples of a line: one, or for a pair of consecutive sentences its true order (1) and the other (0).

    The published BSO files hold true orders only; like the original evaluation, both orders are made of
    every pair, in every split, so a file of 4000 lines makes 8000 examples.
    """
    labelled = spec.group != "BSO"
    columns = line.text.split("\t")
    expected = spec.sentences + labelled
    if len(columns) != expected:
        line.refuse(f"{len(columns)} columns where {spec.name} has {expected}")
    # Words are divided by single spaces, as the original evaluation hands them to an encoder.
    sentences = tuple((" ".join(column.split()),) for column in columns[labelled:])
    for place, (sentence,) in enumerate(sentences, start=1):
        if not sentence:
            line.refuse(f"sentence {place} is empty")
    name = f"{spec.name}/{split}/{line.number}"
    if labelled:
        label = columns[0]
        if not (label.isascii() and label.isdigit() and len(label) <= 9 and int(label) < classes):
            line.refuse(f"the label {label[:40]!r} is not one of 0 to {classes - 1}")
        yield DiscoEvalExample(name, name, int(label), sentences)
    else:
        yield DiscoEvalExample(f"{name}#in-order", name, 1, sentences)
        yield DiscoEvalExample(f"{name}#swapped", name, 0, sentences[::-1])


def _read_labels(home: Path, spec: Spec, digest: hashlib._Hash) -> tuple[str, ...]:
    if spec.classes is not None:
        return tuple(map(str, range(spec.classes)))
    labels: dict[str, int] = {}
    for line in _lines(home / _LABEL_SET, digest, None):
        name = line.text.strip()
        if not name or name in labels:
            line.refuse(f"the label {name!r} was there before" if name else "the label is empty")
        labels[name] = line.number
    if len(labels) < 2:
        raise EnsueError(f"{home / _LABEL_SET} names {len(labels)} labels where at least two are needed.")
    return tuple(labels)


def _read_rst(home: Path, spec: Spec, limit: int | None, digest: hashlib._Hash) -> DiscoEvalData:
    """Read RST, whose labels are those of its training nodes; others in dev or test come after, never learned."""
    nodes = {}
    for split, name in rst.SPLIT_NAMES.items():
        path = rst.find(home, name)
        assert path is not None, "a task is read once its files are there"
        raw, found = rst.read_nodes(path)
        digest.update(hashlib.sha256(raw).digest())
        nodes[split] = found[:limit]
    known = sorted({node.label for node in nodes["train"]})
    notes: Counter[str] = Counter()
    for split in ("dev", "test"):
        unseen = [node.label for node in nodes[split] if node.label not in set(known)]
        if unseen:
            notes[f"{split} nodes of RST with a label that no training node has"] += len(unseen)
    others = sorted({node.label for found in nodes.values() for node in found} - set(known))
    labels = tuple(known + others)
    index = {label: number for number, label in enumerate(labels)}
    splits = {
        split: [
            DiscoEvalExample(
                f"RST/{split}/{i}", f"RST/{split}/{i}", index[node.label], (node.left, node.right)
            )
            for i, node in enumerate(found, start=1)
        ]
        for split, found in nodes.items()
    }
    return DiscoEvalData(spec, home, labels, splits, digest.hexdigest(), notes)
