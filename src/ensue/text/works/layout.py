"""Split a plain text into blocks, find those that may be numbered headings, and the sequences that they make."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ensue.text.sentences import one_line
from ensue.text.works.headings import PARENTS, Mark, looks_like_title, parse_heading

_MOST_HEADING_LINES = 5
_LONGEST_HEADING = 400
# More words than a table of contents has between two entries, or a book's heading has before its chapter's.
FEW_WORDS = 40
_CONTENTS_ENTRIES = 4
_SPECIAL = re.compile(
    r"[\s_*=\[(—–-]*(?:the\s+)?(?P<word>prologue|prelude|introduction|introductory|proem|epilogue|conclusion|finale"
    r"|l[’']envoi|envoi|postlude|afterword|interlude)\b[\s_*=\])—–.:-]*(?P<title>.*)",
    re.IGNORECASE,
)
_END_MATTER = re.compile(
    r"[\s_*=\[(—–-]*(?:the\s+end|finis|footnotes?|endnotes?|notes|appendix(?:\s+\w+)?|glossary|index|etymology|extracts"
    r"|transcriber[’']?s?[’']?\s+notes?|advertisements?|bibliography|errata)\b[\s_*=\])—–.:!-]*",
    re.IGNORECASE,
)
FIRST_WORDS = frozenset({"prologue", "prelude", "introduction", "introductory", "proem"})
_FARTHEST_JUMP = 5


class Block(NamedTuple):
    """Lines without a blank one among them; `words` counts those of all the blocks before it."""

    lines: tuple[str, ...]
    blanks: int
    words: int

    @property
    def text(self) -> str:
        return one_line(" ".join(self.lines))


class Candidate(NamedTuple):
    """A block that may be a heading; `before` and `after` count the words of the text before and to its end."""

    block: int
    mark: Mark
    before: int
    after: int

    @property
    def style(self) -> tuple[str, ...]:
        """Return what candidates of one sequence have in common."""
        mark = self.mark
        return (mark.label,) if mark.label else ("", mark.numerals, mark.form, mark.opening)


def blocks_of(text: str) -> list[Block]:
    """Split a text into blocks; a heading that stands right above its text becomes a block of its own."""
    blocks: list[Block] = []
    lines: list[str] = []
    blanks = words = 0

    def close() -> None:
        nonlocal blanks, words
        heads = 1 if _stands_on_text(lines) else 0
        for part in filter(None, (lines[:heads], lines[heads:])):
            blocks.append(Block(tuple(part), blanks, words))
            blanks = 0
            words += sum(len(line.split()) for line in part)

    for line in text.split("\n"):
        if line.strip():
            lines.append(line.rstrip())
        else:
            if lines:
                close()
                lines = []
            blanks += 1
    if lines:
        close()
    return blocks


def candidates_in(blocks: list[Block]) -> list[Candidate]:
    """Return the blocks that look like numbered headings, without those of a table of contents."""
    found = []
    for place, block in enumerate(blocks):
        if mark := _heading_mark(block):
            size = sum(len(line.split()) for line in block.lines)
            found.append(Candidate(place, mark, block.words, block.words + size))
    return _without_contents(found)


def _stands_on_text(lines: list[str]) -> bool:
    """Return whether a labelled heading of one line is followed by a paragraph with no blank line between."""
    if len(lines) <= _MOST_HEADING_LINES:
        return False
    mark = parse_heading(lines[0])
    return (
        mark is not None and mark.label == "chapter" and mark.form == "alone" and not parse_heading(lines[1])
    )


def _heading_mark(block: Block) -> Mark | None:
    """Parse the mark of a block that is a heading in all its lines."""
    first, *others = block.lines
    mark = parse_heading(first)
    if mark is None or len(block.lines) > _MOST_HEADING_LINES or len(block.text) > _LONGEST_HEADING:
        return None
    inner = [other for line in others if (other := parse_heading(line))]
    if mark.label in PARENTS and inner and inner[0].label not in PARENTS:
        mark, inner = inner[0], inner[1:]
    if any(other.label == mark.label for other in inner):
        return None  # a table of contents without blank lines
    if not mark.label and not all(looks_like_title(line) for line in others):
        return None
    return mark


def _without_contents(candidates: list[Candidate]) -> list[Candidate]:
    """Remove the candidates of tables of contents: runs with hardly any text between two.

    The last of a run may be the true first chapter, right below the table; it is if its number came already or is
    the first, and the headings of books and parts that lead to it stay with it.
    """
    kept: list[Candidate] = []
    run: list[Candidate] = []
    for place, candidate in enumerate(candidates):
        run.append(candidate)
        following = candidates[place + 1] if place + 1 < len(candidates) else None
        if following and following.before - candidate.after < FEW_WORDS:
            continue
        kept += run if len(run) < _CONTENTS_ENTRIES else run[_true_start(run) :]
        run = []
    return kept


def _true_start(run: list[Candidate]) -> int:
    """Find the first true heading in a run with little text between its headings; the run's length for none."""
    styles = [candidate.style for candidate in run]
    if len(set(styles)) == len(styles):
        return 0
    last = run[-1]
    earlier = [each for each in run[:-1] if each.style == last.style]
    repeated = any(each.mark.number == last.mark.number for each in earlier)
    if not repeated and last.mark.number != 1 and earlier:
        return len(run)
    start = len(run) - 1
    while start and run[start - 1].mark.label in PARENTS and styles[start - 1] not in styles[start:]:
        start -= 1
    return start


def special_word(block: Block) -> str | None:
    """Return "prologue", "epilogue" or the like where that is what the block is headed."""
    found = _SPECIAL.fullmatch(block.lines[0])
    if not found or len(block.lines) > 3 or len(block.text) > 100:
        return None
    title, rest = found["title"], block.lines[1:]
    return found["word"].lower() if all(looks_like_title(each) for each in (title, *rest) if each) else None


def is_end_matter(block: Block) -> bool:
    """Return whether a block heads what follows a story: the words "The End", notes, an appendix."""
    return bool(_END_MATTER.fullmatch(block.lines[0])) or block.lines[0].lower().lstrip("[ ").startswith(
        ("transcriber's note", "transcriber’s note")
    )


def best_chain(candidates: Sequence[Candidate], parents: Sequence[int]) -> tuple[list[Candidate], float]:
    """Find the most plausible sequence, and its score: one for each member, less what is irregular.

    The next number is best. A number left out or repeated costs something, as misprints make them; beginning again
    at one costs nothing if a heading of `parents` (their blocks) stands between, and else more than one heading is
    worth, so that a lone "I" in the text is no chapter.
    """
    scores: list[float] = []
    values: list[int] = []
    links: list[int | None] = []
    for place, candidate in enumerate(candidates):
        number = candidate.mark.number
        score, value, link = (1.0 if number == 1 else -0.5), number or 1, None
        for earlier in range(place):
            between = any(candidates[earlier].block < parent < candidate.block for parent in parents)
            step, reached = _step(candidate, values[earlier], between)
            if step is not None and scores[earlier] + step > score:
                score, value, link = scores[earlier] + step, reached, earlier
        scores.append(score)
        values.append(value)
        links.append(link)
    if not scores:
        return [], 0.0
    last: int | None = max(range(len(scores)), key=scores.__getitem__)
    best = scores[last or 0]
    chain: list[Candidate] = []
    while last is not None:
        chain.append(candidates[last])
        last = links[last]
    return chain[::-1], best


def _step(candidate: Candidate, before: int, parent_between: bool) -> tuple[float | None, int]:
    """Score a candidate after the number `before`, None for impossible, and return the number it then has."""
    number = candidate.mark.number
    if number is None:
        return 0.9, before + 1
    if number == before + 1:
        return 1.0, number
    if number == 1:
        return (1.0 if parent_between else -0.2), 1
    if before < number <= before + _FARTHEST_JUMP:
        return 1 - 0.4 * (number - before - 1), number
    if candidate.mark.label == "chapter":
        # A misprint rather than no chapter at all: the count goes on as if it were right.
        return 0.0, before + 1
    return None, before
