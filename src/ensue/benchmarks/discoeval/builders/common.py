"""What the builders share: splits and their sizes, seeded draws, samples of a stream, and what a build made."""

from __future__ import annotations

import codecs
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Literal, TypeVar

import numpy as np

from ensue.errors import EnsueError

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = ("train", "valid", "test")
Progress = Callable[[int], None]
T = TypeVar("T")


def generator(seed: int, *names: str) -> np.random.Generator:
    """Random numbers that depend on the seed and the names alone."""
    key = "\0".join([str(seed), *names]).encode("utf-8", "surrogatepass")
    return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(key).digest()[:16], "big")))


def balanced(count: int, classes: int, random: np.random.Generator) -> list[int]:
    """Classes in random order, each as often as any other, or once more where the count does not divide."""
    extra = random.permutation(classes)[: count % classes]
    even = np.tile(np.arange(classes), count // classes)
    return [int(one) for one in random.permutation(np.concatenate([even, extra]))]


class Reservoir(Generic[T]):
    """At most `size` items of a stream, every one as likely as any other, in bounded memory."""

    def __init__(self, size: int, random: np.random.Generator) -> None:
        self._size = size
        self._random = random
        self._kept: list[T] = []
        self.seen = 0

    def offer(self, item: T) -> None:
        self.seen += 1
        if len(self._kept) < self._size:
            self._kept.append(item)
        elif (place := int(self._random.integers(self.seen))) < self._size:
            self._kept[place] = item

    def shuffled(self) -> list[T]:
        """What was kept, in random order."""
        return [self._kept[int(place)] for place in self._random.permutation(len(self._kept))]


class Seen:
    """Tells whether something was met before, at a few bytes for each thing."""

    def __init__(self) -> None:
        self._digests: set[bytes] = set()

    def before(self, *texts: str) -> bool:
        digest = hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).digest()[:12]
        if digest in self._digests:
            return True
        self._digests.add(digest)
        return False


@dataclass(frozen=True)
class Sizes:
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

    def halved(self) -> Sizes:
        """The sizes in pairs of examples."""
        for split, count in self.asked.items():
            if count is not None and count % 2:
                raise EnsueError(
                    f"Examples come in pairs here, so --{split} must be even and cannot be {count}."
                )
        asked: dict[Split, int | None] = {split: count and count // 2 for split, count in self.asked.items()}
        published = {split: count // 2 for split, count in self.published.items()}
        return Sizes(asked, published, "pairs of examples")

    def shares(self, supply: int, source: str) -> dict[Split, int]:
        """How many of `supply` examples go to each split."""
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
        """Items, each with the number of examples it can give, to splits, each with the number it shall give.

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


class Lines(list[str]):
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
        """A line of the published layout: the label, where there is one, and the sentences, divided by tabs."""
        columns = [one_line(sentence) for sentence in sentences]
        self.add(document, label, "\t".join(columns if label is None else [str(label), *columns]))


@dataclass
class Made:
    """What a builder made: the lines of every split, and what was left out or is worth saying."""

    lines: dict[Split, Lines] = field(default_factory=lambda: {split: Lines() for split in SPLITS})
    labels: tuple[str, ...] = ()
    skipped: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)


def one_line(text: str) -> str:
    """A text with single spaces for every run of white space.

    >>> one_line(" rain\\tat\\u2028last ")
    'rain at last'
    """
    return " ".join(text.split())


def numbered_lines(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    """The lines of a text file with their numbers, one held at a time."""
    number = 0
    try:
        decoder = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                yield number, line.decode(decoder if number == 1 else encoding).rstrip("\r\n")
    except LookupError as error:
        raise EnsueError(f"{encoding} is not a text encoding: name one such as utf-8 or latin-1.") from error
    except UnicodeError as error:
        raise EnsueError(
            f"{path}, line {number} is not {encoding.upper()}: convert it, or name its --encoding."
        ) from error
    except OSError as error:
        raise EnsueError(f"{path} could not be read: {error.strerror or error}.") from error


def files_below(folder: Path, *endings: str) -> list[Path]:
    """The files below a folder that end so, in the order of their names, hidden ones left out."""
    try:
        paths = [path for path in folder.rglob("*") if path.name.lower().endswith(endings) and path.is_file()]
    except OSError as error:
        raise EnsueError(f"{folder} could not be read: {error.strerror or error}.") from error
    relative = sorted(path.relative_to(folder).as_posix() for path in paths)
    return [folder / name for name in relative if not any(part.startswith(".") for part in name.split("/"))]
