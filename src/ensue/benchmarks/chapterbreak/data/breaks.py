"""The examples of one work: at the breaks between its chapters, before causes, and before something is said."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from ensue.benchmarks.chapterbreak.data.examples import Boundary, Example, example_id
from ensue.benchmarks.chapterbreak.data.negatives import draw, generator, number_words, shuffled, with_index
from ensue.benchmarks.chapterbreak.data.words import Sizes, Words
from ensue.text.works.readers import Chapter, Headings, NotUsable, Unread, Work, read_work

Inner = Literal["cause", "dialogue"]

PER_WORK: dict[Inner, int] = {"cause": 10, "dialogue": 20}
# Less than this is no context to speak of.
LEAST_CONTEXT = 128

_CUE = re.compile(r"\b(?P<at>because|due\s+to|owing\s+to)\b", re.IGNORECASE)
# A quotation mark that opens: at the start of a paragraph or after the end of a sentence, and something follows.
# A straight single one may be an apostrophe, so it must open a paragraph and be none of the usual short forms.
_OPENING = re.compile(
    r"""(?:\A|\n)\s*(?P<paragraph>["“‘]|'(?!(?:tis|twas|twere|twill|twould|em|cause|bout|til)\b))(?=[^\s"“”])"""
    r"""|[.!?…][”"’')\]]*\s+(?P<sentence>["“‘])(?=[^\s"“”])""",
    re.IGNORECASE,
)


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


class Draft(NamedTuple):
    """An example that has no name yet."""

    context: str
    gold: str
    negatives: tuple[str, ...]


Drafts = tuple[list[Draft], Counter[str]]


def make_examples(unread: Unread, recipe: Recipe) -> Made:
    """Read a work and make its examples, in whichever process this is called."""
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
    """Make the examples of a work; a chapter of nothing but a heading is none to begin or to end."""
    chapters = [chapter for chapter in work.chapters if chapter.text.strip()]
    laid = lay_out(chapters)
    skipped: Counter[str] = Counter()
    if empty := work.empty_chapters + len(work.chapters) - len(chapters):
        skipped["empty chapters"] = empty
    examples: dict[Boundary, list[Example]] = {}
    for boundary in recipe.boundaries:
        drafts, why = (
            chapter_breaks(work.id, laid, recipe)
            if boundary == "chapter"
            else inner_breaks(boundary, work.id, laid, recipe)
        )
        skipped += why
        examples[boundary] = [
            Example(
                example_id(boundary, recipe.split, work.id, number), recipe.split, work.id, boundary, *draft
            )
            for number, draft in enumerate(drafts)
        ]
    return Made(work.id, len(chapters), len(laid.words), examples, skipped)


class Laid(NamedTuple):
    """A work as one text, with where each chapter begins (at its heading) and where its body does and ends."""

    words: Words
    chapters: tuple[int, ...]
    bodies: tuple[tuple[int, int], ...]


def lay_out(chapters: Sequence[Chapter]) -> Laid:
    """Join the chapters to one text: a blank line after a heading and between two chapters."""
    pieces: list[str] = []
    starts: list[int] = []
    bodies: list[tuple[int, int]] = []
    length = 0
    for chapter in chapters:
        heading, text = chapter.heading.strip(), chapter.text.strip()
        head = f"{heading}\n\n" if heading else ""
        starts.append(length)
        bodies.append((length + len(head), length + len(head) + len(text)))
        pieces.append(f"{head}{text}\n\n")
        length += len(pieces[-1])
    return Laid(Words("".join(pieces)), tuple(starts), tuple(bodies))


def chapter_breaks(work: str, laid: Laid, recipe: Recipe) -> Drafts:
    """Make an example of each break that has enough different later chapters beyond the next one."""
    sizes, count = recipe.sizes, recipe.negatives
    skipped: Counter[str] = Counter()
    if len(laid.chapters) < count + 2:
        skipped["works with too few chapters"] += 1
        return [], skipped
    ends = [end for _, end in laid.bodies]
    starts = [sizes.start(laid.words, *span) for span in zip(laid.chapters, ends, strict=True)]
    drafts: dict[int, tuple[str, list[str]]] = {}
    for number in range(1, len(starts)):
        gold = sizes.cut(starts[number])
        later = range(number + 1, len(starts))
        if len(later) < count:
            skipped[f"breaks with fewer than {number_words(count)} later chapters"] += 1
            continue
        order = shuffled(later, generator(recipe.seed, work, "chapter", number))
        negatives = draw(gold, (sizes.cut(with_index(starts[number], starts[n])) for n in order), count)
        if len(negatives) < count:
            skipped[f"breaks with fewer than {number_words(count)} different later chapters"] += 1
            continue
        drafts[number] = gold, negatives
    kept = list(drafts)
    if recipe.per_work is not None and len(kept) > recipe.per_work:
        random = generator(recipe.seed, work, "chapter", "selection")
        kept = sorted(int(n) for n in random.choice(kept, recipe.per_work, replace=False))
    return [
        Draft(sizes.context(laid.words, laid.chapters[number]), drafts[number][0], tuple(drafts[number][1]))
        for number in kept
    ], skipped


def cause_positions(text: str) -> list[int]:
    """Find where because, due to or owing to begins.

    >>> cause_positions("Because it rained, due\\nto the season, nothing became of it.")
    [0, 19]
    """
    return [match.start("at") for match in _CUE.finditer(text)]


def dialogue_positions(text: str) -> list[int]:
    """Find where a quotation mark opens a paragraph or a sentence.

    >>> dialogue_positions('"Come," she said. "It is late." Nobody "came".')
    [0, 18]
    """
    return [match.start(match.lastgroup or 0) for match in _OPENING.finditer(text)]


def positions(boundary: Inner, laid: Laid, suffix: int) -> list[int]:
    """Find where in a work a suffix of this kind can begin, in text order.

    Headings are not looked at, and a suffix lies within one chapter: one that ran over a break would show the
    next chapter's index.
    """
    find = cause_positions if boundary == "cause" else dialogue_positions
    text = laid.words.text
    found: list[int] = []
    for begin, end in laid.bodies:
        last = laid.words.number(end) - suffix
        found += [
            begin + place for place in find(text[begin:end]) if laid.words.number(begin + place) <= last
        ]
    return found


def later_apart(numbers: Sequence[int], apart: int) -> list[int]:
    """Count how many later ones, each `apart` from the one before it, can at most be chosen after each number.

    >>> later_apart([0, 5, 10, 12, 25], 10)
    [2, 1, 1, 1, 0]
    """
    most = [0] * (len(numbers) + 1)  # with the number itself
    for place in range(len(numbers) - 1, -1, -1):
        most[place] = 1 + most[bisect_left(numbers, numbers[place] + apart)]
    return [count - 1 for count in most[:-1]]


def inner_breaks(boundary: Inner, work: str, laid: Laid, recipe: Recipe) -> Drafts:
    """Make examples at random places that have enough before them and enough like them after them."""
    sizes, count, seed = recipe.sizes, recipe.negatives, recipe.seed
    offsets = positions(boundary, laid, sizes.suffix)
    numbers = [laid.words.number(offset) for offset in offsets]
    eligible = [
        place
        for place, later in enumerate(later_apart(numbers, sizes.suffix))
        if later >= count and numbers[place] >= LEAST_CONTEXT
    ]
    skipped: Counter[str] = Counter()
    if not eligible:
        skipped[f"works with too few places for a {boundary} boundary"] += 1
        return [], skipped

    def suffix_at(place: int) -> str:
        return sizes.cut(laid.words.after(offsets[place], sizes.suffix))

    wanted = min(PER_WORK[boundary] if recipe.per_work is None else recipe.per_work, len(eligible))
    random = generator(seed, work, boundary, "selection")
    drafts = []
    for place in sorted(int(n) for n in random.choice(eligible, wanted, replace=False)):
        gold = suffix_at(place)
        later = _apart(numbers, place, sizes.suffix, count, generator(seed, work, boundary, place))
        negatives = draw(gold, map(suffix_at, later), count)
        if len(negatives) < count:
            skipped[f"{boundary} boundaries with fewer than {number_words(count)} different later ones"] += 1
        else:
            drafts.append(Draft(sizes.context(laid.words, offsets[place]), gold, tuple(negatives)))
    return drafts, skipped


def _apart(
    numbers: Sequence[int], gold: int, apart: int, count: int, random: np.random.Generator
) -> list[int]:
    """Choose places of `count` later numbers, none of which overlaps the gold's suffix or another one's."""
    first = bisect_left(numbers, numbers[gold] + apart)
    chosen: list[int] = []
    for place in random.permutation(np.arange(first, len(numbers))):
        if all(abs(numbers[place] - numbers[other]) >= apart for other in chosen):
            chosen.append(int(place))
            if len(chosen) == count:
                return chosen
    # Where there is little room a random choice can block the others; going from left to right never does.
    chain, place = [], first
    while place < len(numbers):
        chain.append(place)
        place = bisect_left(numbers, numbers[place] + apart)
    return [chain[int(n)] for n in random.choice(len(chain), count, replace=False)]
