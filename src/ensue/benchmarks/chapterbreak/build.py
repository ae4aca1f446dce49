"""Building ChapterBreak data from works: read, cut into examples, written work by work with their statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, get_args

from ensue.benchmarks.chapterbreak.assembly import Assembly, Progress
from ensue.benchmarks.chapterbreak.data import BOUNDARIES, NEGATIVES, Boundary, Example, read_examples
from ensue.benchmarks.chapterbreak.lists import WorkList
from ensue.benchmarks.chapterbreak.making import Made, Recipe, make_examples
from ensue.benchmarks.chapterbreak.negatives import Pool, reservoir, suffix_of
from ensue.benchmarks.chapterbreak.words import Sizes, Tokens
from ensue.benchmarks.output import BuildReport, check_output, new_build, write_build
from ensue.errors import EnsueError
from ensue.parallel import ordered_map
from ensue.text.works.readers import Headings, Kind, find_works

Negatives = Literal["in-book", "same-split", "other-split"]

# Out-of-book negatives are drawn from so many suffixes a boundary.
_RESERVOIR = 2000
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
    progress: Progress | None = None,
) -> BuildReport:
    """Build data from the works of a source into the folder `output`, all of it or nothing.

    The same source and settings give the same bytes whatever the number of `workers`. `limit` ends the build
    after so many works that gave examples. With a `tokenizer` lengths are in its tokens and not in words; it
    goes to the workers, so it must be possible to pickle it.
    """
    _check(
        boundaries,
        negatives,
        negatives_data,
        prefix_words,
        suffix_words,
        negatives_count,
        per_work,
        workers,
        limit,
    )
    output = output.expanduser().absolute()
    check_output(output, source, overwrite=overwrite)
    lists = WorkList(only), WorkList(exclude)
    recipe = Recipe(
        split=split or _default_split(source, kind),
        headings=headings,
        boundaries=tuple(boundary for boundary in BOUNDARIES if boundary in boundaries),
        sizes=Sizes(prefix_words, suffix_words, tokenizer),
        seed=seed,
        negatives=negatives_count,
        per_work=per_work,
        only=lists[0].ids,
        exclude=lists[1].ids,
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
    pool = None
    if negatives != "in-book":
        pool = _pool(negatives, negatives_data, recipe, made, limit)
    assembly = Assembly(recipe, pool, lists)
    with new_build(output) as folder:
        fingerprint = assembly.write(made(), folder, limit, progress)
        if not fingerprint:
            why = "; ".join(f"{reason}: {count}" for reason, count in assembly.skipped.items())
            raise EnsueError(f"{source} gives no example{f' ({why})' if why else ''}.")
        report = BuildReport(
            output,
            settings,
            assembly.statistics.as_dict(),
            dict(sorted(assembly.skipped.items())),
            dict(sorted(assembly.notes.items())),
            fingerprint,
        )
        write_build(folder, report.as_dict())
    return report


def _pool(
    kind: Literal["same-split", "other-split"],
    data: str | None,
    recipe: Recipe,
    made: Callable[[], Iterator[Made]],
    limit: int | None,
) -> Pool:
    """What out-of-book negatives are drawn from: all works in a first pass, or data that was built before."""
    if kind == "other-split":
        assert data is not None
        examples: Iterator[Example] = iter(read_examples(data).items)
        others = [suffix_of(example) for example in examples if example.split != recipe.split]
        if not others:
            raise EnsueError(
                f"{data} has no split other than {recipe.split!r}; name this one otherwise with --split."
            )
        return Pool(reservoir(others, _RESERVOIR, recipe.seed), kind)
    golds = (
        suffix_of(example)
        for work in _with_examples(made(), limit)
        for examples in work.examples.values()
        for example in examples
    )
    return Pool(reservoir(golds, _RESERVOIR, recipe.seed), kind)


def _with_examples(works: Iterator[Made], limit: int | None) -> Iterator[Made]:
    """The first `limit` works that gave examples."""
    found = 0
    for made in works:
        if any(made.examples.values()):
            yield made
            found += 1
            if found == limit:
                return


def _default_split(source: str, kind: Kind) -> str:
    """AO3 and Gutenberg texts go by the names that the published splits have, all else by that of the source."""
    if kind == "auto":
        for first in find_works(source, kind):
            kind = first.kind
            break
    return _SPLITS.get(kind) or Path(source).stem or "works"


def _check(
    boundaries: Sequence[Boundary], negatives: str, negatives_data: str | None, *numbers: int | None
) -> None:
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
    names = ("prefix words", "suffix words", "negatives", "examples per work", "workers", "works")
    for name, number in zip(names, numbers, strict=True):
        if number is not None and number < 1:
            raise EnsueError(f"The number of {name} is {number}, but must be at least 1.")
