"""Examples at the breaks between chapters: the next chapter's start against those of later chapters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ensue.benchmarks.chapterbreak.negatives import draw, generator, in_words, shuffled, with_index
from ensue.benchmarks.chapterbreak.words import Sizes, Words
from ensue.text.works.readers import Chapter, Work


class Draft(NamedTuple):
    """An example that has no name yet."""

    context: str
    gold: str
    negatives: tuple[str, ...]


class Laid(NamedTuple):
    """A work as one text, with where each chapter begins (at its heading) and where its body does and ends."""

    words: Words
    chapters: tuple[int, ...]
    bodies: tuple[tuple[int, int], ...]


def lay_out(chapters: Sequence[Chapter]) -> Laid:
    """The chapters as one text: a blank line after a heading and between two chapters."""
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


def with_text(work: Work) -> list[Chapter]:
    """The chapters that have a body; one of nothing but a heading is no chapter to begin or to end."""
    return [chapter for chapter in work.chapters if chapter.text.strip()]


def chapter_breaks(
    work: str, laid: Laid, sizes: Sizes, seed: int, count: int, per_work: int | None
) -> tuple[list[Draft], Counter[str]]:
    """An example for each break that has `count` different later chapters beyond the next one."""
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
            skipped[f"breaks with fewer than {in_words(count)} later chapters"] += 1
            continue
        order = shuffled(later, generator(seed, work, "chapter", number))
        negatives = draw(gold, (sizes.cut(with_index(starts[number], starts[n])) for n in order), count)
        if len(negatives) < count:
            skipped[f"breaks with fewer than {in_words(count)} different later chapters"] += 1
            continue
        drafts[number] = gold, negatives
    kept = list(drafts)
    if per_work is not None and len(kept) > per_work:
        random = generator(seed, work, "chapter", "selection")
        kept = sorted(int(n) for n in random.choice(kept, per_work, replace=False))
    return [
        Draft(sizes.context(laid.words, laid.chapters[number]), drafts[number][0], tuple(drafts[number][1]))
        for number in kept
    ], skipped
