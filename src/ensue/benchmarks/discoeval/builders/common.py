"""What the builders share: what a user may choose, splits and their sizes, seeded draws, and what a build made."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from ensue.benchmarks.discoeval.data import Spec
from ensue.errors import EnsueError
from ensue.jsonl import text_lines
from ensue.progress import Progress, ignore
from ensue.text.io import rows

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = ("train", "valid", "test")
T = TypeVar("T")
_CHAT: dict[Split, int] = {"train": 5816, "valid": 1834, "test": 2418}
_OTHERS: dict[Split, int] = {"train": 10_000, "valid": 4_000, "test": 4_000}
_FROM_TEXTS = ("SP", "BSO", "DC")
_DRAWN = (*_FROM_TEXTS, "SSP")
# The groups of tasks that know an option; one that is not here all of them know.
_KNOWN_TO = {
    "train": _DRAWN,
    "valid": (*_DRAWN, "RST"),
    "test": _DRAWN,
    "valid_list": ("RST",),
    "others": ("SP",),
    "per_document": ("DC", "SSP"),
    "unpaired": ("DC",),
    "text_column": _FROM_TEXTS,
    "split": _FROM_TEXTS,
    "language": _DRAWN,
    "limit": _DRAWN,
}
_LEAST = {"train": 1, "valid": 1, "test": 1, "per_document": 0, "limit": 1}
_SPLITTERS = ("sentences", "lines")
# Progress is reported after so many documents.
_REPORTED = 100


@dataclass(frozen=True)
class BuildOptions:
    """Choices; None stands for what is usual.

    `train`, `valid` and `test` are numbers of lines (for RST, `valid` is one of documents); what is not given
    is as published, or its share of what a smaller source allows. `per_document` is how many runs (DC) or
    sentences of each kind (SSP) a document gives, 0 for all; chat gives all, the others one. `others` is
    in-order or shuffled (SP), `unpaired` gives each run of DC in one form, `valid_list` names a file of ids.
    """

    seed: int = 0
    train: int | None = None
    valid: int | None = None
    test: int | None = None
    per_document: int | None = None
    others: str | None = None
    unpaired: bool | None = None
    valid_list: Path | None = None
    text_column: str | None = None
    split: str | None = None
    language: str | None = None
    encoding: str = "utf-8"
    limit: int | None = None

    def given(self) -> dict[str, Any]:
        """Return all that is not left to what is usual, as JSON has it."""
        plain = {name: str(value) if isinstance(value, Path) else value for name, value in vars(self).items()}
        return {name: value for name, value in plain.items() if value is not None}

    def check(self, spec: Spec) -> None:
        """Refuse what the task does not know and numbers that make no sense, before anything is read."""
        for name, value in self.given().items():
            option = f"--{name.replace('_', '-')}"
            groups = _KNOWN_TO.get(name)
            if groups and spec.group not in groups:
                raise EnsueError(
                    f"{option} is for {' and '.join(groups)}, not for {spec.name}; leave it out."
                )
            if name in _LEAST and value < _LEAST[name]:
                raise EnsueError(f"{option} is {value}, but must be at least {_LEAST[name]}.")
        if self.split not in (None, *_SPLITTERS):
            raise EnsueError(f"Text is split into sentences or lines, not into {self.split!r}.")
        if self.valid is not None and self.valid_list:
            raise EnsueError(
                "--valid and --valid-list both choose documents for validation; give one of them."
            )


def generator(seed: int, *names: str) -> np.random.Generator:
    """Return random numbers that depend on the seed and the names alone."""
    key = "\0".join([str(seed), *names]).encode("utf-8", "surrogatepass")
    return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(key).digest()[:16], "big")))


def balanced(count: int, classes: int, random: np.random.Generator) -> list[int]:
    """Return classes in random order, each as often as any other, or once more where the count does not divide."""
    extra = random.permutation(classes)[: count % classes]
    even = np.tile(np.arange(classes), count // classes)
    return [int(one) for one in random.permutation(np.concatenate([even, extra]))]


def sample(stream: Iterable[T], size: int, random: np.random.Generator) -> list[T]:
    """Draw at most `size` items of a stream in bounded memory, every one as likely as any other, in random order."""
    kept: list[T] = []
    for seen, item in enumerate(stream, start=1):
        if len(kept) < size:
            kept.append(item)
        elif (place := int(random.integers(seen))) < size:
            kept[place] = item
    return [kept[int(place)] for place in random.permutation(len(kept))]


class Seen:
    """Tell whether something was met before, at a few bytes for each thing."""

    def __init__(self) -> None:
        self._digests: set[bytes] = set()

    def before(self, *texts: str) -> bool:
        digest = hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).digest()[:12]
        if digest in self._digests:
            return True
        self._digests.add(digest)
        return False


@dataclass(frozen=True)
class SplitSizes:
    """How many examples each split shall have: as asked, else as published or what the source allows."""

    asked: Mapping[Split, int | None]
    published: Mapping[Split, int]
    unit: str = "examples"

    @property
    def most(self) -> dict[Split, int]:
        return {split: self.asked[split] or self.published[split] for split in SPLITS}

    @property
    def total(self) -> int:
        return sum(self.most.values())

    def halved(self) -> SplitSizes:
        """Return the sizes in pairs of examples."""
        for split, count in self.asked.items():
            if count is not None and count % 2:
                raise EnsueError(
                    f"Examples come in pairs here, so --{split} must be even and cannot be {count}."
                )
        asked: dict[Split, int | None] = {split: count and count // 2 for split, count in self.asked.items()}
        published = {split: count // 2 for split, count in self.published.items()}
        return SplitSizes(asked, published, "pairs of examples")

    def shares(self, supply: int, source: str) -> dict[Split, int]:
        """Return how many of `supply` examples go to each split."""
        fixed = {split: count for split in SPLITS if (count := self.asked[split]) is not None}
        free = {split: self.published[split] for split in SPLITS if split not in fixed}
        left = supply - sum(fixed.values())
        if left < len(free):
            wanted = sum(fixed.values()) + len(free)
            raise EnsueError(f"{source} gives {supply:,} {self.unit}, but at least {wanted:,} are needed.")
        if left < (whole := sum(free.values())):
            # Every split gets one and its share of the others, the first one also what does not divide.
            free = {split: 1 + (left - len(free)) * count // whole for split, count in free.items()}
            free[next(iter(free))] += left - sum(free.values())
        return {**free, **fixed}

    def allot(self, items: Sequence[tuple[T, int]], source: str) -> dict[Split, list[tuple[T, int]]]:
        """Give items, each with the number of examples it has, to splits, each with the number it shall give.

        An item goes to one split alone. What the last one of a split could give beyond its share is lost.
        """
        shares = self.shares(sum(count for _, count in items), source)
        waiting = iter(items)
        found: dict[Split, list[tuple[T, int]]] = {split: [] for split in SPLITS}
        for split in reversed(SPLITS):
            missing = shares[split]
            while missing and (following := next(waiting, None)) is not None:
                item, count = following
                found[split].append((item, min(count, missing)))
                missing -= min(count, missing)
            if missing and (self.asked[split] is not None or missing == shares[split]):
                raise EnsueError(
                    f"{source} has too few documents to keep the splits apart: {split} lacks {missing:,} of "
                    f"{shares[split]:,} {self.unit}; ask for fewer."
                )
        return found


class SplitLines(list[str]):
    """The lines of a split's file, with the documents and the labels they are made of."""

    def __init__(self) -> None:
        super().__init__()
        self.documents: set[str] = set()
        self.labels: Counter[str] = Counter()

    def add(self, document: str, label: str | int | None, text: str) -> None:
        self.append(text)
        self.documents.add(document)
        if label is not None:
            self.labels[str(label)] += 1

    def add_row(self, document: str, label: int | None, sentences: Sequence[str]) -> None:
        """Add a line of the published layout: the label, where there is one, and the sentences, divided by tabs."""
        columns = [one_line(sentence) for sentence in sentences]
        self.add(document, label, "\t".join(columns if label is None else [str(label), *columns]))


@dataclass
class Building:
    """A build on its way: what is built, of what and how; the lines of every split, what was left out, and notes."""

    spec: Spec
    source: str
    options: BuildOptions = field(default_factory=BuildOptions)
    workers: int = 1
    progress: Progress = ignore
    lines: dict[Split, SplitLines] = field(default_factory=lambda: {split: SplitLines() for split in SPLITS})
    labels: tuple[str, ...] = ()
    skipped: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)

    def generator(self, *names: str) -> np.random.Generator:
        """Return random numbers that depend on the seed, the group of tasks and the names alone."""
        return generator(self.options.seed, self.spec.group, *names)

    def count(self, done: int) -> None:
        """Report how many documents were read, now and then."""
        if done % _REPORTED == 0:
            self.progress(done, 0, "documents")

    @property
    def language(self) -> str:
        return self.options.language or "en"

    @property
    def sizes(self) -> SplitSizes:
        """How many lines the splits shall have."""
        asked = self.options
        published = _CHAT if self.spec.name == "DC/chat" else _OTHERS
        return SplitSizes({"train": asked.train, "valid": asked.valid, "test": asked.test}, published)

    @property
    def per_document(self) -> int | None:
        """How many runs or sentences a document gives, None for all."""
        if self.options.per_document is None:
            return None if self.spec.name == "DC/chat" else 1
        return self.options.per_document or None


def one_line(text: str) -> str:
    """Return a text with single spaces for every run of white space.

    >>> one_line(" rain\\tat\\u2028last ")
    'rain at last'
    """
    return " ".join(text.split())


def numbered_lines(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    """Read the lines of a text file with their numbers, without the line feed that alone ends them."""
    return ((number, line.rstrip("\r\n")) for number, line in text_lines(path, encoding, "\n"))


def files_below(folder: Path, *endings: str) -> list[Path]:
    """Return the files below a folder that end so, in the order of their paths, hidden ones left out."""
    paths = (path for path in rows.files_below(folder) if path.name.lower().endswith(endings))
    return sorted(paths, key=lambda path: path.relative_to(folder).as_posix())
