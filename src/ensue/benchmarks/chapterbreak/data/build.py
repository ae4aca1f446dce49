"""Build ChapterBreak data from works: read, cut into examples, written work by work with their statistics."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, get_args

from ensue.benchmarks.chapterbreak.data.breaks import Made, Recipe, make_examples
from ensue.benchmarks.chapterbreak.data.examples import (
    BOUNDARIES,
    NEGATIVES,
    Boundary,
    DataWriter,
    Example,
    read_examples,
)
from ensue.benchmarks.chapterbreak.data.negatives import Pool, reservoir, suffix_of
from ensue.benchmarks.chapterbreak.data.words import Sizes, Tokens
from ensue.benchmarks.output import BuildReport, check_output, new_build, write_build
from ensue.errors import EnsueError
from ensue.parallel import ordered_map
from ensue.progress import Progress, ignore
from ensue.text.io.rows import read_ids
from ensue.text.works.readers import Headings, Kind, find_works

Negatives = Literal["in-book", "same-split", "other-split"]

# Out-of-book negatives are drawn from so many suffixes a boundary.
_RESERVOIR = 2000
# A suffix is scored on its first 128 tokens.
_FULL_SUFFIX = 128
# Progress is reported after so many works where nobody knows how many there are.
_REPORTED = 10
_SPLITS = {"ao3": "ao3", "gutenberg": "pg19"}


def build(
    source: str,
    output: Path,
    *,
    kind: Kind = "auto",
    headings: Headings = "robust",
    split: str | None = None,
    boundaries: Sequence[Boundary] = ("chapter",),
    seed: int = 0,
    prefix_words: int = 8192,
    suffix_words: int = 192,
    negatives: Negatives = "in-book",
    negatives_data: str | None = None,
    negatives_count: int = NEGATIVES,
    per_work: int | None = None,
    workers: int = 1,
    limit: int | None = None,
    only: Path | None = None,
    exclude: Path | None = None,
    tokenizer: Tokens | None = None,
    overwrite: bool = False,
    progress: Progress = ignore,
) -> BuildReport:
    """Build data from the works of a source into the folder `output`, all of it or nothing.

    The same source and settings give the same bytes whatever the number of `workers`. `limit` ends the build
    after so many works that gave examples. With a `tokenizer` lengths are in its tokens and not in words; it
    goes to the workers, so it must be possible to pickle it.
    """
    _check(boundaries, negatives, negatives_data)
    counts = {"prefix_words": prefix_words, "suffix_words": suffix_words, "negatives_count": negatives_count}
    for name, number in {**counts, "per_work": per_work, "workers": workers, "limit": limit}.items():
        if number is not None and number < 1:
            raise EnsueError(f"{name} is {number}, but must be at least 1.")
    output = output.expanduser().absolute()
    check_output(output, source, overwrite=overwrite)
    recipe = Recipe(
        split=split or _default_split(source, kind),
        headings=headings,
        boundaries=tuple(boundary for boundary in BOUNDARIES if boundary in boundaries),
        sizes=Sizes(prefix_words, suffix_words, tokenizer),
        seed=seed,
        negatives=negatives_count,
        per_work=per_work,
        only=_listed(only),
        exclude=_listed(exclude),
    )

    def made() -> Iterator[Made]:
        return ordered_map(partial(make_examples, recipe=recipe), find_works(source, kind), workers)

    settings = {
        "source": source,
        "kind": kind,
        "headings": headings,
        "split": recipe.split,
        "boundaries": list(recipe.boundaries),
        "seed": seed,
        "prefix_words": prefix_words,
        "suffix_words": suffix_words,
        "tokenizer": tokenizer.name if tokenizer else None,
        "negatives": negatives,
        "negatives_data": negatives_data,
        "negatives_count": negatives_count,
        "per_work": per_work,
        "limit": limit,
        "only": str(only) if only else None,
        "exclude": str(exclude) if exclude else None,
    }
    pool = None if negatives == "in-book" else _pool(negatives, negatives_data, recipe, made, limit)
    assembly = _Assembly(recipe, pool)
    with new_build(output) as folder:
        fingerprint = assembly.write(made(), folder, limit, progress)
        if not fingerprint:
            why = "; ".join(f"{reason}: {count}" for reason, count in assembly.skipped.items())
            raise EnsueError(f"{source} gives no example{f' ({why})' if why else ''}.")
        report = BuildReport(
            output,
            settings,
            assembly.statistics.as_dict(recipe.split),
            dict(sorted(assembly.skipped.items())),
            dict(sorted(assembly.notes.items())),
            fingerprint,
        )
        write_build(folder, report.as_dict())
    return report


def _check(boundaries: Sequence[Boundary], negatives: str, negatives_data: str | None) -> None:
    """Refuse settings that make no sense before anything is read."""
    unknown = [boundary for boundary in boundaries if boundary not in BOUNDARIES]
    if unknown or not boundaries:
        raise EnsueError(
            f"There is no boundary {unknown[0] if unknown else ''!r}; there is {', '.join(BOUNDARIES)}."
        )
    if negatives not in get_args(Negatives):
        raise EnsueError(f"Negatives are {', '.join(get_args(Negatives))}, not {negatives!r}.")
    if negatives == "other-split" and not negatives_data:
        raise EnsueError("Negatives of another split need data to draw from; name it with --negatives-data.")
    if negatives != "other-split" and negatives_data:
        raise EnsueError(
            "--negatives-data is read for --negatives other-split alone; add that or leave it out."
        )


def _default_split(source: str, kind: Kind) -> str:
    """Return the name of the published split for AO3 and Gutenberg texts, that of the source for all else."""
    if kind == "auto":
        for first in find_works(source, kind):
            kind = first.kind
            break
    return _SPLITS.get(kind) or Path(source).stem or "works"


def _listed(path: Path | None) -> frozenset[str]:
    """Read the ids of works in a file, by which train, development and test data are kept apart."""
    return frozenset(read_ids(path.expanduser())) if path else frozenset()


def _pool(
    kind: Literal["same-split", "other-split"],
    data: str | None,
    recipe: Recipe,
    made: Callable[[], Iterator[Made]],
    limit: int | None,
) -> Pool:
    """Find what out-of-book negatives are drawn from: all works in a first pass, or data that was built before."""
    found: Iterable[Example]
    if kind == "other-split":
        assert data is not None
        found = [example for example in read_examples(data).items if example.split != recipe.split]
        if not found:
            raise EnsueError(
                f"{data} has no split other than {recipe.split!r}; name this one otherwise with --split."
            )
    else:
        # The first `limit` works that give examples.
        giving = islice((work for work in made() if any(work.examples.values())), limit)
        found = (e for work in giving for examples in work.examples.values() for e in examples)
    return Pool(reservoir(map(suffix_of, found), _RESERVOIR, recipe.seed), kind)


@dataclass
class Extent:
    """Mean, least and most of numbers that come one at a time.

    >>> extent = Extent()
    >>> for number in (3, 8): extent.add(number)
    >>> extent.as_dict()
    {'mean': 5.5, 'min': 3, 'max': 8}
    """

    count: int = 0
    total: int = 0
    least: int | None = None
    most: int | None = None

    def add(self, number: int) -> None:
        self.count += 1
        self.total += number
        self.least = number if self.least is None else min(self.least, number)
        self.most = number if self.most is None else max(self.most, number)

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None

    def as_dict(self) -> dict[str, float | int | None]:
        return {"mean": self.mean, "min": self.least, "max": self.most}


@dataclass
class BuildStatistics:
    """Counts that grow with every work, in memory that does not."""

    chapters: Extent = field(default_factory=Extent)
    words: Extent = field(default_factory=Extent)
    # By boundary: the examples of each work, the words of contexts, the words of golds.
    _examples: dict[Boundary, tuple[Extent, Extent, Extent]] = field(default_factory=dict)

    def add_examples(self, boundary: Boundary, examples: Sequence[Example]) -> None:
        """Count all examples of one boundary in one work, of which there is at least one."""
        works, contexts, golds = self._examples.setdefault(boundary, (Extent(), Extent(), Extent()))
        works.add(len(examples))
        for example in examples:
            contexts.add(len(example.context.split()))
            golds.add(len(example.gold.split()))

    def as_dict(self, split: str) -> dict[str, Any]:
        """Return `works`, `chapters` and `words` of the works read, and `examples` by boundary and split."""
        rows: dict[str, Any] = {}
        for boundary in filter(self._examples.__contains__, BOUNDARIES):
            works, contexts, golds = self._examples[boundary]
            row = {"works": works.count, "examples": works.total}
            rows[boundary] = {split: {**row, "context_words": contexts.mean, "gold_words": golds.mean}}
        return {
            "works": self.chapters.count,
            "chapters": self.chapters.as_dict(),
            "words": self.words.as_dict(),
            "examples": rows,
        }


class _Assembly:
    """The second half of a build: what was made of each work, in order, becomes files, statistics and counts."""

    def __init__(self, recipe: Recipe, pool: Pool | None) -> None:
        self.recipe, self.pool = recipe, pool
        self.statistics = BuildStatistics()
        self.skipped: Counter[str] = Counter()
        self.notes: Counter[str] = Counter()
        self._seen: set[bytes] = set()
        # Ids that were listed and that no work has had so far.
        self._waiting = {"--only": set(recipe.only), "--exclude": set(recipe.exclude)}

    def write(
        self, works: Iterable[Made], folder: Path, limit: int | None, progress: Progress
    ) -> dict[str, str]:
        """Write one file a boundary and return their digests; a boundary without examples gets no file."""
        split = self.recipe.split
        writers = {name: DataWriter(folder / f"{name}.json", split) for name in self.recipe.boundaries}
        self._add_works(works, writers, limit, progress)
        for boundary, writer in writers.items():
            if not writer.works:
                self.notes[f"boundaries without an example ({boundary})"] += 1
        return {writer.path.name: writer.finish() for writer in writers.values() if writer.works}

    def _add_works(
        self,
        works: Iterable[Made],
        writers: dict[Boundary, DataWriter],
        limit: int | None,
        progress: Progress,
    ) -> None:
        with_examples = 0
        for number, made in enumerate(works, 1):
            if self._is_new(made):
                with_examples += self._add(made, writers)
            if limit is not None:
                progress(with_examples, limit, "works")
            elif number % _REPORTED == 0:
                progress(number, 0, "works")
            if with_examples == limit:
                return
        for name, waiting in self._waiting.items():
            if waiting:
                self.notes[f"ids listed by {name} that no work has"] = len(waiting)

    def _is_new(self, made: Made) -> bool:
        """Say whether a work is the first of its id; a second one would take its place in the file."""
        if made.work is None:
            return True
        digest = hashlib.sha256(made.work.encode("utf-8", "surrogatepass")).digest()[:8]
        if digest in self._seen:
            self.skipped["works with the id of an earlier one"] += 1
            return False
        self._seen.add(digest)
        return True

    def _add(self, made: Made, writers: dict[Boundary, DataWriter]) -> bool:
        """Write a work's examples; say whether there were any."""
        self.skipped += made.skipped
        if made.work is None:
            return False
        for waiting in self._waiting.values():
            waiting.discard(made.work)
        if made.chapters:
            self.statistics.chapters.add(made.chapters)
            self.statistics.words.add(made.words)
        any_written, sizes = False, self.recipe.sizes
        for boundary, examples in made.examples.items():
            if self.pool:
                examples, why = self.pool.give(examples, self.recipe.seed, self.recipe.negatives)
                self.skipped += why
            for text in chain.from_iterable((example.gold, *example.negatives) for example in examples):
                if sizes.length(text) < _FULL_SUFFIX:
                    self.notes[f"suffixes shorter than {_FULL_SUFFIX} {sizes.unit}"] += 1
            if examples:
                self.statistics.add_examples(boundary, examples)
                writers[boundary].add(made.work, examples)
                any_written = True
        return any_written
