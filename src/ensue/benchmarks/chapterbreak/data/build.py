"""Build ChapterBreak data from works: read, cut into examples, written work by work with their statistics."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
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
from ensue.benchmarks.chapterbreak.data.statistics import BuildStatistics
from ensue.benchmarks.chapterbreak.data.words import Sizes, Tokens
from ensue.benchmarks.output import BuildReport, build_in_shards, check_output, new_build, write_build
from ensue.errors import EnsueError, hint
from ensue.executing import LOCAL, Chosen, Executor, executing
from ensue.progress import Progress, ignore
from ensue.records import Records, plain
from ensue.text.io.rows import read_ids
from ensue.text.works.readers import Headings, Kind, Unread, find_works

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
    output: str | Path,
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
    shard: int | None = None,
    resume: bool = False,
    executor: str | Chosen | Executor | None = None,
    overwrite: bool = False,
    progress: Progress = ignore,
) -> BuildReport:
    """Build data from the works of a source into the folder `output`, all of it or nothing.

    The same source and settings give the same bytes whatever the number of `workers` and the `executor`. `limit` ends
    the build after so many works that gave examples. With a `tokenizer` lengths are in its tokens and not in words;
    it goes to the workers, so it must be possible to pickle it. With `shard` there is a file for every so many works
    of the source, and a build that was stopped goes on after its last whole one where `resume` says so.
    """
    _check(boundaries, negatives, negatives_data)
    counts = {"prefix_words": prefix_words, "suffix_words": suffix_words, "negatives_count": negatives_count}
    for name, number in {
        **counts,
        "per_work": per_work,
        "workers": workers,
        "limit": limit,
        "shard": shard,
    }.items():
        if number is not None and number < 1:
            raise EnsueError(f"{name} is {number}, but must be at least 1.")
    if resume and shard is None:
        raise EnsueError("Only a build in shards can go on; add --shard, as it was given then.")
    output = Path(output).expanduser().absolute()
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
    if shard is not None:
        settings["shard"] = shard
    with executing(executor or Chosen(LOCAL, {"workers": workers})) as hands:

        def made(works: Iterable[Unread]) -> Iterator[Made]:
            return hands.map(partial(make_examples, recipe=recipe), works)

        pool = None
        if negatives != "in-book":
            pool = _pool(negatives, negatives_data, recipe, lambda: made(find_works(source, kind)), limit)
        assembly = _Assembly(recipe, pool, limit, progress)
        with ExitStack() as stack:
            if shard is None:
                folder = stack.enter_context(new_build(output))
                fingerprint = assembly.write(made(find_works(source, kind)), folder)
            else:
                folder, records = stack.enter_context(build_in_shards(output, settings, resume=resume))
                fingerprint = assembly.write_shards(made, find_works(source, kind), folder, shard, records)
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
        name = unknown[0] if unknown else ""
        raise EnsueError(f"There is no boundary {name!r}; {hint(name, BOUNDARIES)}")
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


# A shard that is finished: how far the works of the source were read, and all counts up to there.
_SHARDS = plain("shards")


def _noted(works: Iterator[Unread], places: deque[str]) -> Iterator[Unread]:
    """Pass works on, and note where each was found."""
    for work in works:
        places.append(work.place)
        yield work


class _Assembly:
    """The second half of a build: what was made of each work, in order, becomes files, statistics and counts."""

    def __init__(self, recipe: Recipe, pool: Pool | None, limit: int | None, progress: Progress) -> None:
        self.recipe, self.pool, self.limit, self.progress = recipe, pool, limit, progress
        self.statistics = BuildStatistics()
        self.skipped: Counter[str] = Counter()
        self.notes: Counter[str] = Counter()
        self.read = self.with_examples = 0
        self._seen: set[bytes] = set()
        # Those of them that the shard under way brought.
        self._fresh: list[bytes] = []
        # Ids that were listed and that no work has had so far.
        self._waiting = {"--only": set(recipe.only), "--exclude": set(recipe.exclude)}

    def write(self, works: Iterable[Made], folder: Path) -> dict[str, str]:
        """Write one file a boundary and return their digests; a boundary without examples gets no file."""
        found = self._write(works, folder, "")
        self._finish()
        return found

    def write_shards(
        self,
        made: Callable[[Iterable[Unread]], Iterator[Made]],
        works: Iterator[Unread],
        folder: Path,
        size: int,
        records: Records,
    ) -> dict[str, str]:
        """Write one file a boundary for every `size` works, those after the shards that are finished."""
        digests: dict[str, str] = {}
        number, place = 0, ""
        while (kept := records.get(_SHARDS, str(number))) is not None:
            digests |= self._restore(kept)
            number, place = number + 1, kept["place"]
        passed = deque((work.place for work in islice(works, self.read)), maxlen=1)
        if number and [*passed] != [place]:
            raise EnsueError(
                "The source has other works than when this build began; delete it to begin anew."
            )
        for leftover in folder.glob("*.json"):
            if leftover.name not in digests:
                leftover.unlink()
        places: deque[str] = deque()
        stream = made(_noted(works, places))
        while self.with_examples != self.limit:
            before = self.read
            fresh = self._write(islice(stream, size), folder, f"-{number:05}")
            if self.read == before:
                break
            for _ in range(self.read - before):
                place = places.popleft()
            records.add(_SHARDS, [(str(number), self._state(place, fresh))])
            self._fresh.clear()
            digests |= fresh
            number += 1
        self._finish()
        return digests

    def _state(self, place: str, digests: Mapping[str, str]) -> dict[str, Any]:
        return {
            "read": self.read,
            "place": place,
            "with_examples": self.with_examples,
            "statistics": self.statistics.state(),
            "skipped": dict(self.skipped),
            "notes": dict(self.notes),
            "waiting": {name: sorted(ids) for name, ids in self._waiting.items()},
            "seen": [one.hex() for one in self._fresh],
            "digests": dict(digests),
        }

    def _restore(self, kept: Mapping[str, Any]) -> dict[str, str]:
        """Go back to where a shard was finished; return the digests of its files."""
        self.read, self.with_examples = kept["read"], kept["with_examples"]
        self.statistics = BuildStatistics.of(kept["statistics"])
        self.skipped, self.notes = Counter(kept["skipped"]), Counter(kept["notes"])
        self._waiting = {name: set(ids) for name, ids in kept["waiting"].items()}
        self._seen |= {bytes.fromhex(one) for one in kept["seen"]}
        return dict(kept["digests"])

    def _write(self, works: Iterable[Made], folder: Path, ending: str) -> dict[str, str]:
        split = self.recipe.split
        writers = {
            name: DataWriter(folder / f"{name}{ending}.json", split) for name in self.recipe.boundaries
        }
        for made in works:
            self.read += 1
            if self._is_new(made):
                self.with_examples += self._add(made, writers)
            if self.limit is not None:
                self.progress(self.with_examples, self.limit, "works")
            elif self.read % _REPORTED == 0:
                self.progress(self.read, 0, "works")
            if self.with_examples == self.limit:
                break
        return {writer.path.name: writer.finish() for writer in writers.values() if writer.works}

    def _finish(self) -> None:
        """Note what none of the works had."""
        for boundary in self.recipe.boundaries:
            if boundary not in self.statistics.boundaries:
                self.notes[f"boundaries without an example ({boundary})"] += 1
        if self.limit is None or self.with_examples != self.limit:
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
        self._fresh.append(digest)
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
