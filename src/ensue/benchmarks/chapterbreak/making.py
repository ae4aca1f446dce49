"""All examples of one work, made in whichever process reads it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ensue.benchmarks.chapterbreak.boundaries import inner_breaks
from ensue.benchmarks.chapterbreak.chapters import chapter_breaks, lay_out, with_text
from ensue.benchmarks.chapterbreak.data import Boundary, Example, example_id
from ensue.benchmarks.chapterbreak.words import Sizes
from ensue.text.works.readers import Headings, NotUsable, Unread, Work, read_work


@dataclass(frozen=True)
class Recipe:
    """What decides the examples of a work."""

    split: str
    headings: Headings
    boundaries: tuple[Boundary, ...]
    sizes: Sizes
    seed: int
    negatives: int
    per_work: int | None
    only: frozenset[str] = frozenset()
    exclude: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Made:
    """What came of one work; one that could not be used has no `work`, one that was not wanted no chapters."""

    work: str | None = None
    chapters: int = 0
    words: int = 0
    examples: dict[Boundary, list[Example]] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)


def make_examples(unread: Unread, recipe: Recipe) -> Made:
    """The examples of a work that has yet to be read."""
    try:
        work = read_work(unread, headings=recipe.headings)
    except NotUsable as reason:
        return Made(skipped=Counter({reason.reason: 1}))
    if recipe.only and work.id not in recipe.only:
        return Made(work.id, skipped=Counter({"works not listed by --only": 1}))
    if work.id in recipe.exclude:
        return Made(work.id, skipped=Counter({"works listed by --exclude": 1}))
    return examples_of(work, recipe)


def examples_of(work: Work, recipe: Recipe) -> Made:
    """The examples of a work."""
    chapters = with_text(work)
    laid = lay_out(chapters)
    skipped: Counter[str] = Counter()
    if empty := work.empty_chapters + len(work.chapters) - len(chapters):
        skipped["empty chapters"] = empty
    examples: dict[Boundary, list[Example]] = {}
    rest = work.id, laid, recipe.sizes, recipe.seed, recipe.negatives, recipe.per_work
    for boundary in recipe.boundaries:
        drafts, why = chapter_breaks(*rest) if boundary == "chapter" else inner_breaks(boundary, *rest)
        skipped += why
        examples[boundary] = [
            Example(
                example_id(boundary, recipe.split, work.id, number), recipe.split, work.id, boundary, *draft
            )
            for number, draft in enumerate(drafts)
        ]
    return Made(work.id, len(chapters), len(laid.words), examples, skipped)
