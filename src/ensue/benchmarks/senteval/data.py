"""The tasks of SentEval, the groups the paper averages, and their data as aligned columns."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.benchmarks.probing.choices import select_tasks
from ensue.errors import EnsueError

# How a task is evaluated: cosine of two vectors; expected score of a softmax; a classifier on given splits;
# a classifier whose decay is chosen by folds of the training part; nested folds over everything.
Method = Literal["cosine", "relatedness", "split", "folds", "nested"]
Group = Literal["USS", "SSS", "SC", "Probing"]


class SentEvalSpec(NamedTuple):
    """One task: `files` are relative to the data folder, `metric` is the number that goes into averages."""

    name: str
    group: Group
    method: Method
    metric: str
    files: tuple[str, ...]
    # Names of the sets of an STS year.
    sets: tuple[str, ...] = ()


STS_SETS = {
    "STS12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    # The SMT set of 2013 is not distributed with SentEval for reasons of licence; its gold file lies there alone.
    "STS13": ("FNWN", "headlines", "OnWN"),
    "STS14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "STS15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "STS16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}
_SICK = ("SICK/SICK_train.txt", "SICK/SICK_trial.txt", "SICK/SICK_test_annotated.txt")
PROBING_FILES = {
    "Length": "sentence_length.txt",
    "WordContent": "word_content.txt",
    "Depth": "tree_depth.txt",
    "TopConstituents": "top_constituents.txt",
    "BigramShift": "bigram_shift.txt",
    "Tense": "past_present.txt",
    "SubjNumber": "subj_number.txt",
    "ObjNumber": "obj_number.txt",
    "OddManOut": "odd_man_out.txt",
    "CoordinationInversion": "coordination_inversion.txt",
}


def _sts(name: str, sets: tuple[str, ...]) -> SentEvalSpec:
    files = tuple(f"STS/{name}-en-test/STS.{part}.{one}.txt" for one in sets for part in ("input", "gs"))
    return SentEvalSpec(name, "USS", "cosine", "pearson", files, sets)


def _splits(folder: str) -> tuple[str, ...]:
    return tuple(f"{folder}-{split}" for split in ("train", "dev", "test"))


_ALL = [
    *(_sts(name, sets) for name, sets in STS_SETS.items()),
    SentEvalSpec(
        "STSBenchmark",
        "SSS",
        "relatedness",
        "pearson",
        tuple(f"STS/STSBenchmark/sts-{split}.csv" for split in ("train", "dev", "test")),
    ),
    SentEvalSpec("SICKRelatedness", "SSS", "relatedness", "pearson", _SICK),
    SentEvalSpec("SICKEntailment", "SSS", "split", "accuracy", _SICK),
    # Of two files the first holds class 1, the second class 0, as SentEval orders them.
    SentEvalSpec("MR", "SC", "nested", "accuracy", ("MR/rt-polarity.pos", "MR/rt-polarity.neg")),
    SentEvalSpec("CR", "SC", "nested", "accuracy", ("CR/custrev.pos", "CR/custrev.neg")),
    SentEvalSpec("MPQA", "SC", "nested", "accuracy", ("MPQA/mpqa.pos", "MPQA/mpqa.neg")),
    SentEvalSpec("SUBJ", "SC", "nested", "accuracy", ("SUBJ/subj.objective", "SUBJ/subj.subjective")),
    SentEvalSpec("SST2", "SC", "split", "accuracy", _splits("SST/binary/sentiment")),
    SentEvalSpec("SST5", "SC", "split", "accuracy", _splits("SST/fine/sentiment")),
    SentEvalSpec("TREC", "SC", "folds", "accuracy", ("TREC/train_5500.label", "TREC/TREC_10.label")),
    SentEvalSpec(
        "MRPC", "SC", "folds", "accuracy", ("MRPC/msr_paraphrase_train.txt", "MRPC/msr_paraphrase_test.txt")
    ),
    *(SentEvalSpec(name, "Probing", "split", "accuracy", (file,)) for name, file in PROBING_FILES.items()),
]
TASKS: dict[str, SentEvalSpec] = {task.name: task for task in _ALL}
GROUPS: dict[Group, tuple[SentEvalSpec, ...]] = {
    group: tuple(task for task in _ALL if task.group == group) for group in ("USS", "SSS", "SC", "Probing")
}


def chosen(name: str) -> list[SentEvalSpec]:
    """Return the tasks a name stands for.

    >>> [task.name for task in chosen("SSS")]
    ['STSBenchmark', 'SICKRelatedness', 'SICKEntailment']
    """
    return select_tasks("senteval", name, _ALL)


@dataclass
class ExampleRows:
    """A split, or a set of an STS year, as columns; `texts` holds one list of sentences, or two for pairs."""

    ids: list[str] = field(default_factory=list)
    texts: tuple[list[str], ...] = ()
    gold: list[float] = field(default_factory=list)

    def add(self, name: str, sentences: Sequence[str], gold: float) -> None:
        """Append a row."""
        if not self.texts:
            self.texts = tuple([] for _ in sentences)
        self.ids.append(name)
        self.gold.append(gold)
        for column, sentence in zip(self.texts, sentences, strict=True):
            column.append(sentence)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def scores(self) -> NDArray[np.float64]:
        """The gold as scores."""
        return np.asarray(self.gold, dtype=np.float64)

    @property
    def labels(self) -> NDArray[np.int64]:
        """The gold as class numbers."""
        return np.asarray(self.gold, dtype=np.int64)


@dataclass(frozen=True)
class SentEvalData:
    """A task with its files read: rows by split (by set for STS), its classes, and what there is to say of it."""

    task: SentEvalSpec
    parts: dict[str, ExampleRows]
    classes: tuple[str, ...]
    skipped: Counter[str]
    notes: Counter[str]

    @property
    def name(self) -> str:
        return self.task.name

    def sentences(self) -> Iterator[str]:
        """Yield every sentence, repeated ones too."""
        for rows in self.parts.values():
            for column in rows.texts:
                yield from column

    def place_of(self, sentence: str) -> str | None:
        """Return the part and line at which a sentence first stands, where it does."""
        for rows in self.parts.values():
            for column in rows.texts:
                if sentence in column:
                    part, _, number = rows.ids[column.index(sentence)].rpartition("/")
                    return f"{self.task.name}, {part}, line {number}"
        return None


@dataclass(frozen=True)
class SentEvalSuite:
    """The tasks that could be read, the files that the others lack, and a digest of what was read."""

    source: str
    tasks: tuple[SentEvalData, ...]
    missing: dict[str, str]
    fingerprint: str


def read_suite(source: str, tasks: Sequence[SentEvalSpec], limit: int | None = None) -> SentEvalSuite:
    """Read the tasks whose files are there; with `limit` only so many rows of each file (and each split).

    `source` is the folder that holds `downstream` and `probing`, or one of these.
    """
    root = Path(source)
    if not root.is_dir():
        raise EnsueError(f"{source} is not a folder; name SentEval's data folder with --data.")
    if limit is not None and limit < 1:
        raise EnsueError(f"The limit of examples is {limit}, but must be at least 1.")
    from ensue.benchmarks.senteval.readers import read_task

    digest = hashlib.sha256()
    found, missing = [], {}
    for task in tasks:
        paths = [_path(root, task, file) for file in task.files]
        absent = next((p for p in paths if not p.is_file()), None)
        if absent is not None:
            missing[task.name] = absent.name
            continue
        data = read_task(task, paths, limit)
        for name, rows in data.parts.items():
            if len(rows) == 0:
                raise EnsueError(f"{task.name} has no {name} examples in {paths[0].parent}.")
        _digest(digest, data)
        found.append(data)
    if not found:
        lacking = ", ".join(f"{name} ({file})" for name, file in missing.items())
        raise EnsueError(f"{source} has the files of none of the tasks asked for; missing: {lacking}.")
    return SentEvalSuite(source, tuple(found), missing, digest.hexdigest())


def _path(root: Path, task: SentEvalSpec, file: str) -> Path:
    """Return where a file of a task is, or would be."""
    folder = "probing" if task.name in PROBING_FILES else "downstream"
    places = [root / folder, root, root.parent / folder]
    return next((place / file for place in places if (place / file).is_file()), root / folder / file)


def _digest(digest: Any, data: SentEvalData) -> None:
    digest.update(f"{data.task.name}\0{data.classes}\0".encode())
    for name, rows in data.parts.items():
        digest.update(f"{name}\0".encode())
        for place, row in enumerate(zip(*rows.texts, strict=True)):
            digest.update("\0".join((rows.ids[place], repr(rows.gold[place]), *row, "\n")).encode())
