"""The second half of a build: what was made of each work, in order, becomes files, statistics and counts."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from ensue.benchmarks.chapterbreak.data import Boundary, Example
from ensue.benchmarks.chapterbreak.lists import WorkList
from ensue.benchmarks.chapterbreak.making import Made, Recipe
from ensue.benchmarks.chapterbreak.negatives import Pool, too_few_elsewhere
from ensue.benchmarks.chapterbreak.statistics import Statistics
from ensue.benchmarks.chapterbreak.writing import DataWriter

Progress = Callable[[int, int | None], None]

# A suffix is scored on its first 128 tokens.
_FULL_SUFFIX = 128


@dataclass
class Assembly:
    """Files and counts, to which the works are added in order."""

    recipe: Recipe
    pool: Pool | None
    lists: tuple[WorkList, WorkList]
    statistics: Statistics = field(default_factory=Statistics)
    skipped: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    _seen: set[bytes] = field(default_factory=set)

    def write(
        self, works: Iterator[Made], folder: Path, limit: int | None, progress: Progress | None
    ) -> dict[str, str]:
        """Write one file a boundary and give their digests; a boundary without examples gets no file."""
        writers = {boundary: DataWriter(folder / f"{boundary}.json") for boundary in self.recipe.boundaries}
        try:
            self._add_works(works, writers, limit, progress)
            for boundary, writer in writers.items():
                if writer.examples:
                    writer.finish()
                else:
                    self.notes[f"boundaries without an example ({boundary})"] += 1
        finally:
            for writer in writers.values():
                writer.discard()
        return {writer.path.name: writer.sha256 for writer in writers.values() if writer.sha256}

    def _add_works(
        self,
        works: Iterator[Made],
        writers: dict[Boundary, DataWriter],
        limit: int | None,
        progress: Progress | None,
    ) -> None:
        with_examples = 0
        for number, made in enumerate(works, 1):
            if self._is_new(made):
                with_examples += self._add(made, writers)
            if progress:
                progress(*((number, None) if limit is None else (with_examples, limit)))
            if with_examples == limit:
                return
        for listed, name in zip(self.lists, ("--only", "--exclude"), strict=True):
            if listed.unmatched:
                self.notes[f"ids listed by {name} that no work has"] = listed.unmatched

    def _is_new(self, made: Made) -> bool:
        """Whether a work is the first of its id; a second one would take its place in the file."""
        if made.work is None:
            return True
        digest = hashlib.sha256(made.work.encode("utf-8", "surrogatepass")).digest()[:8]
        if digest in self._seen:
            self.skipped["works with the id of an earlier one"] += 1
            return False
        self._seen.add(digest)
        return True

    def _add(self, made: Made, writers: dict[Boundary, DataWriter]) -> bool:
        """Write a work's examples; whether there were any."""
        self.skipped += made.skipped
        if made.work is None:
            return False
        for listed in self.lists:
            listed.saw(made.work)
        if made.chapters:
            self.statistics.add_work(made.chapters, made.words)
        any_written, sizes = False, self.recipe.sizes
        for boundary, found in made.examples.items():
            examples = self._out_of_book(found, self.pool) if self.pool else found
            for text in chain.from_iterable((example.gold, *example.negatives) for example in examples):
                if sizes.length(text) < _FULL_SUFFIX:
                    self.notes[f"suffixes shorter than {_FULL_SUFFIX} {sizes.unit}"] += 1
            if examples:
                self.statistics.add_examples(boundary, self.recipe.split, examples)
                writers[boundary].add(self.recipe.split, made.work, examples)
                any_written = True
        return any_written

    def _out_of_book(self, examples: list[Example], pool: Pool) -> list[Example]:
        """The examples with negatives of other works; those with too few to choose from are left out."""
        found = []
        for example in examples:
            negatives = pool.negatives(example, self.recipe.seed, self.recipe.negatives)
            if len(negatives) == self.recipe.negatives:
                found.append(replace(example, negatives=tuple(negatives)))
            else:
                self.skipped[too_few_elsewhere(self.recipe.negatives)] += 1
        return found
