"""Put a task together split by split, from files or from a hub data set, and count what differs from the published.

The `datasets` library is imported only when a hub data set is asked for.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn

from ensue.benchmarks.nlu.examples import (
    DEV,
    DEV_MISMATCHED,
    TEST,
    TEST_MISMATCHED,
    TRAIN,
    Example,
    TaskData,
    TaskSpec,
)
from ensue.benchmarks.nlu.files import Found, Row
from ensue.errors import EnsueError
from ensue.records import file_digest
from ensue.text.io.rows import hub_library

# A hub data set's splits by its own names, and its rows by the task they are of.
HubSplits = Mapping[str, Iterable[Mapping[str, object]]]
HubExamples = Callable[[TaskSpec, Iterable[Row], Counter[str]], Iterator[Example]]
_HUB_SPLITS = {
    "train": TRAIN,
    "validation": DEV,
    "validation_matched": DEV,
    "validation_mismatched": DEV_MISMATCHED,
    "test": TEST,
    "test_matched": TEST,
    "test_mismatched": TEST_MISMATCHED,
}


class Gathering:
    """A task while its splits are read; with a `limit`, of each split the first examples and their group."""

    def __init__(self, spec: TaskSpec, limit: int | None = None) -> None:
        if limit is not None and limit < 1:
            raise EnsueError(f"The limit of examples is {limit}, but must be at least 1.")
        self.spec = spec
        self.limit = limit
        self.notes: Counter[str] = Counter()
        self._splits: dict[str, list[Example]] = {}
        self._instead: dict[str, str] = {}
        self._digest = hashlib.sha256(f"{spec.suite}/{spec.name}".encode())

    def add_files(self, split: str, files: Iterable[Found], examples: Iterable[Example]) -> None:
        """Take in a split that was read from files; its digest is that of the whole files."""
        kept = self._keep(split, examples)
        for found in files:
            self._digest.update(split.encode() + bytes.fromhex(file_digest(found.path)))
            if found.instead:
                self._instead[split] = found.instead
            if found.partial is not None:
                published = self.spec.sizes.get(split, 0)
                note = f"{split} rows in {found.path.name}, of {published:,} published"
                self.notes[note] = found.partial
                return
        self._count(split, kept)

    def add_rows(self, split: str, examples: Iterable[Example]) -> None:
        """Take in a split that came as rows, from nowhere on this machine; its digest is that of its examples."""
        kept = self._keep(split, examples)
        for example in kept:
            said = (split, example.id, example.texts, example.gold, example.choices, example.spans)
            self._digest.update(repr(said).encode("utf-8", "surrogatepass"))
        self._count(split, kept)

    def finish(self) -> TaskData | None:
        """Return the task, or None where no split was taken in."""
        if not self._splits:
            return None
        return TaskData(self.spec, dict(self._splits), self._digest.hexdigest(), self.notes, self._instead)

    def _keep(self, split: str, examples: Iterable[Example]) -> list[Example]:
        kept: list[Example] = []
        places: dict[str, str] = {}
        for example in examples:
            full = self.limit is not None and len(kept) >= self.limit
            if full and example.judged_with != kept[-1].judged_with:
                break
            if example.id in places:
                _refuse(example, f"the id {example.id!r} was there before, at {places[example.id]}")
            places[example.id] = example.where
            if (example.gold is None) != (kept[0].gold is None if kept else example.gold is None):
                _refuse(example, "some rows of the split have a label and some have none")
            if example.gold is None and split not in (TEST, TEST_MISMATCHED):
                _refuse(example, f"there is no label, which only test rows of {self.spec.name} may lack")
            kept.append(example)
        if not kept:
            raise EnsueError(f"{self.spec.name} has no rows in its {split} split; get the data again.")
        self._splits[split] = kept
        return kept

    def _count(self, split: str, kept: list[Example]) -> None:
        """Note a number of examples that is not the published one; a limit says nothing about that."""
        published = self.spec.sizes.get(split)
        if self.limit is None and published is not None and len(kept) != published:
            self.notes[f"{split} rows, of {published:,} published"] = len(kept)


def _refuse(example: Example, what: str) -> NoReturn:
    raise EnsueError(f"{example.where}: {what}.")


def hub_splits(name: str, spec: TaskSpec) -> HubSplits:
    """Return the splits of a task of a data set, streamed."""
    datasets = hub_library(name)
    try:
        loaded: Any = datasets.load_dataset(name, hub_config(spec), streaming=True)
        return {str(split): _guarded(name, rows) for split, rows in loaded.items()}
    except Exception as error:  # the library raises dozens of unrelated types
        raise _unreadable(name, error) from error


def hub_config(spec: TaskSpec) -> str:
    """Return what the hub's data sets call a task."""
    return "ax" if spec.name == "diagnostic" else spec.name.lower().replace("-", "")


def gather_hub(
    name: str, spec: TaskSpec, splits: HubSplits, examples: HubExamples, limit: int | None = None
) -> TaskData | None:
    """Return a task of the rows of a hub data set by the hub's names of splits; None where it has none of them."""
    gathering, place = Gathering(spec, limit), f"{name}/{hub_config(spec)}"
    for theirs, ours in _HUB_SPLITS.items():
        if theirs in splits:
            rows = (Row(f"{place}:{theirs}, row {n}", fields) for n, fields in enumerate(splits[theirs], 1))
            gathering.add_rows(ours, examples(spec, rows, gathering.notes))
    return gathering.finish()


def named_label(row: Row, spec: TaskSpec) -> Row:
    """Return the row with its class number spelled as a label; -1 stands for a hidden one, which is taken away."""
    fields = dict(row.fields)
    label = fields.get("label")
    if label == -1:
        del fields["label"]
    elif spec.labels:
        if isinstance(label, bool) or not isinstance(label, int) or not 0 <= label < len(spec.labels):
            row.refuse(f"the label {label!r} is no number from 0 to {len(spec.labels) - 1}, nor -1")
        fields["label"] = spec.labels[label]
    return row._replace(fields=fields)


def _guarded(name: str, rows: Iterable[Mapping[str, object]]) -> Iterator[Mapping[str, object]]:
    """Return the rows of a stream, which may break off anywhere."""
    try:
        yield from rows
    except Exception as error:
        raise _unreadable(name, error) from error


def _unreadable(name: str, error: Exception) -> EnsueError:
    said = " ".join(str(error).split())[:300].rstrip(".")
    return EnsueError(
        f"{name} does not exist here and could not be read from the hub ({type(error).__name__}: {said})."
    )
