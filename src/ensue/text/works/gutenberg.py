"""Read plain texts as Project Gutenberg offers them: take the licence off, find the chapters.

Chapters are what lies between the headings of the most plausible numbered sequence.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import takewhile
from statistics import median
from typing import Literal, NamedTuple

from ensue.text.sentences import one_line
from ensue.text.works.chapters import (
    Chapter,
    NotUsable,
    Work,
    decoded,
    joined_paragraphs,
    make_work,
    unix_lines,
)
from ensue.text.works.headings import PARENTS, ends_sentence, looks_like_title, parse_heading
from ensue.text.works.layout import (
    FEW_WORDS,
    FIRST_WORDS,
    Block,
    Candidate,
    best_chain,
    blocks_of,
    candidates_in,
    is_end_matter,
    special_word,
)

Headings = Literal["paper", "robust"]

_HEADER_ENDS = re.compile(
    r"^[ \t]*\*{3}[ \t]*START OF (?:THE|THIS) PROJECT GUTENBERG[^*]*(?:\*{3})?.*$"
    r"|^.*\*[ \t]*END[ \t*]*THE SMALL PRINT!.*$",
    re.IGNORECASE | re.MULTILINE,
)
_FOOTER_BEGINS = re.compile(
    r"^[ \t]*\*{3}[ \t]*END OF (?:THE|THIS) PROJECT GUTENBERG"
    r"|^[ \t]*\*{0,3}[ \t]*End of (?:the |this )?Project Gutenberg(?:[’']?s)?\b"
    r"|^[ \t]*\*{3}[ \t]*START: FULL LICEN[SC]E",
    re.IGNORECASE | re.MULTILINE,
)
_TITLE = re.compile(r"^Title:[ \t]*(\S.*)$", re.IGNORECASE | re.MULTILINE)
_CREDITS = re.compile(
    r"\s*(?:\[?[ \t]*Transcriber[’']?s?[’']? notes?\b"
    r"|(?:[*_][ \t]*)*(?:Produced|Prepared|Transcribed|Scanned|Digiti[sz]ed|Proofread|Typed|Updated|HTML version)"
    r" (?:and .* )?(?:by|from)\b"
    r"|E-?text (?:prepared|produced|scanned|typed) by\b"
    r"|This e-?(?:text|book) was\b"
    r"|Note: (?:Project Gutenberg|Images)\b)",
    re.IGNORECASE,
)
_FEWEST_WORDS = 100
_LONGEST_TITLE = 300


def read_gutenberg(data: bytes, place: str, id: str, headings: Headings) -> Work:
    """Read a work from the bytes of a text file, UTF-8 or, where they are not UTF-8, Latin-1."""
    text = unix_lines(decoded(data, place))
    if not text.strip():
        raise NotUsable("no text")
    body, title = without_licence(text)
    chapters = paper_chapters(body) if headings == "paper" else find_chapters(body)
    if not chapters:
        raise NotUsable("no chapter headings")
    return make_work(id, title, chapters)


def without_licence(text: str) -> tuple[str, str]:
    """Return the text between Gutenberg's header and footer, and the title that the header states, if it does.

    Who produced the file is taken off too where it stands right below the header. A text with neither header nor
    footer is left as it is.

    >>> without_licence("Rain fell.")
    ('Rain fell.', '')
    """
    title = ""
    headers = [found for found in _HEADER_ENDS.finditer(text) if found.start() < len(text) / 2]
    if headers:
        stated = _TITLE.search(text, 0, headers[-1].start())
        title = one_line(stated[1]) if stated else ""
        text = text[headers[-1].end() :]
        while _CREDITS.match(text):
            _, _, text = text.lstrip().partition("\n\n")
    for footer in _FOOTER_BEGINS.finditer(text):
        if footer.start() > len(text) / 2 or headers:
            text = text[: footer.start()]
            break
    return text, title


def paper_chapters(text: str) -> list[Chapter]:
    """Split by the rule of the paper: every line that begins with "chapter", in any case, starts a chapter.

    The rule also takes a line of running text that happens to begin so. What stands before the first such line is
    dropped.

    >>> [chapter.heading for chapter in paper_chapters("Preface\\nCHAPTER I\\n\\nRain.\\nchapter and verse\\nWind.")]
    ['CHAPTER I', 'chapter and verse']
    """
    chapters: list[Chapter] = []
    heading: str | None = None
    lines: list[str] = []
    for line in [*text.split("\n"), "chapter"]:
        if line[:7].lower() != "chapter":
            lines.append(line)
            continue
        if heading is not None:
            chapters.append(Chapter(heading, joined_paragraphs("\n".join(lines))))
        heading, lines = one_line(line), []
    return [chapter for chapter in chapters if chapter.text]


class _Start(NamedTuple):
    """The blocks of a heading, first and past the last, and whether it is a book's or part's."""

    first: int
    stop: int
    parent: bool = False


def find_chapters(text: str) -> list[Chapter]:
    """Find the chapters of a text without licence; none where no sequence of headings is plausible.

    Chosen is the style of heading ("CHAPTER IV", "IV.", "[ 4 ]", …) whose numbers make the longest increasing
    sequence over most of the text; it may begin again in each book or part. A book's heading that is directly
    followed by a chapter's becomes part of it, as do short titles below the number. What stands before the first
    heading is dropped, and what follows "THE END", notes and the like after the last.
    """
    blocks = blocks_of(text)
    if not blocks:
        return []
    total = blocks[-1].words + len(blocks[-1].text.split())
    candidates = candidates_in(blocks)
    parents = _parents(candidates)
    chosen = _chosen(candidates, parents, total)
    if not chosen or median(_lengths(chosen, total)) < _FEWEST_WORDS:
        return []
    starts = _merged(_with_others(chosen, parents, candidates, blocks), blocks)
    return _cut(blocks, starts)


def _parents(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the headings of books, parts and the like that are numbered in order."""
    found: list[Candidate] = []
    for label in PARENTS:
        chain, score = best_chain([each for each in candidates if each.mark.label == label], [])
        if score > 0:
            found += chain
    return sorted(found)


def _chosen(candidates: Sequence[Candidate], parents: Sequence[Candidate], total: int) -> list[Candidate]:
    """Choose the most plausible sequence of chapter headings; fill in others where numbers are missing."""
    styles: dict[tuple[str, ...], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        styles[candidate.style].append(candidate)
    best: list[Candidate] = []
    best_strength = 0.0
    for (label, *_), members in styles.items():
        outer = [each.block for each in parents if each.mark.label != label]
        chain, score = best_chain(members, outer)
        chain = _without_synopsis(chain, total)
        if len(chain) < 2:
            continue
        strength = score * (1 - chain[0].before / total) * _weight(label)
        chain = _filled(chain, candidates)
        if len(chain) > 3 and max(_lengths(chain, total)) > total / 2:
            strength *= 0.3
        if strength > best_strength:
            best, best_strength = chain, strength
    return best


def _without_synopsis(chain: list[Candidate], total: int) -> list[Candidate]:
    """Remove a first run of numbers that is a table of contents with long entries."""
    again = next((place for place, each in enumerate(chain) if place and each.mark.number == 1), 0)
    lengths = _lengths(chain, total)
    if again > 2 and median(lengths[:again]) < 0.1 * median(lengths[again:]):
        return chain[again:]
    return chain


def _weight(label: str) -> float:
    """Return how much a label says that its headings are the chapters."""
    if label == "chapter":
        return 10
    return 1.2 if label and label not in PARENTS else 1


def _lengths(chain: Sequence[Candidate], total: int) -> list[int]:
    stops = [*(each.before for each in chain[1:]), total]
    return [stop - each.after for each, stop in zip(chain, stops, strict=True)]


def _filled(chain: list[Candidate], candidates: Sequence[Candidate]) -> list[Candidate]:
    """Add headings of other styles where a number is missing in the chain, or continues it at its end."""
    filled: list[Candidate] = []
    for place, member in enumerate(chain):
        following = chain[place + 1] if place + 1 < len(chain) else None
        filled.append(member)
        wanted = (member.mark.number or 0) + 1
        for other in candidates:
            if other.block <= filled[-1].block or (following and other.block >= following.block):
                continue
            missing = following is None or (following.mark.number or 0) > wanted
            titled = other.mark.form != "alone" or other.mark.label == member.mark.label
            if missing and titled and other.mark.number == wanted and wanted > 2:
                filled.append(other)
                wanted += 1
    return filled


def _with_others(
    chosen: Sequence[Candidate],
    parents: Sequence[Candidate],
    candidates: Sequence[Candidate],
    blocks: Sequence[Block],
) -> list[_Start]:
    """Return the headings of all chapters: those chosen, their books', opening letters, prologue and epilogue."""
    style, first, last = chosen[0].style, chosen[0], chosen[-1]
    leading = [each for each in candidates if each.block < first.block and each.mark.label == "letter"]
    series, score = best_chain(leading, [])
    chapters = [*chosen, *(series if score > 2 else ())]
    starts = {each.block: _Start(each.block, each.block + 1) for each in chapters}
    later = [each for each in candidates if each.block >= first.block and each.style != style]
    above = [each for each in later if each in parents or _leads_to(each, chosen)]
    for other in (*above, *_leading(first, candidates)):
        starts.setdefault(other.block, _Start(other.block, other.block + 1, True))
    numbered = {each.block for each in candidates}
    for place, block in enumerate(blocks):
        word = special_word(block)
        if word is None or place in starts or place - 1 in numbered:
            continue
        if place < first.block and word in FIRST_WORDS and _leads_to_story(place, first.block, blocks):
            starts[place] = _Start(place, place + 1, True)
        elif place > last.block and word not in FIRST_WORDS:
            starts[place] = _Start(place, place + 1)
    return [starts[place] for place in sorted(starts)]


def _leading(first: Candidate, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the headings right above the first chapter's, one of a style: farther up is a table of contents."""
    leading = [first]
    for other in reversed([each for each in candidates if each.block < first.block]):
        taken = {each.style for each in leading}
        if leading[-1].before - other.after >= FEW_WORDS or other.style in taken:
            break
        leading.append(other)
    return leading[1:]


def _leads_to(other: Candidate, chosen: Sequence[Candidate]) -> bool:
    """Return whether a heading of another style stands right above a chosen one."""
    return any(0 <= each.before - other.after < FEW_WORDS for each in chosen if each.block > other.block)


def _leads_to_story(place: int, first: int, blocks: Sequence[Block]) -> bool:
    """Return whether no table of contents or preface stands between a prologue and the first chapter."""
    front = ("contents", "preface", "list of illustrations", "dedication", "introduction")
    between = (block.lines[0].strip(" _*.:").lower() for block in blocks[place + 1 : first])
    return not any(line in front for line in between)


def _merged(starts: Sequence[_Start], blocks: Sequence[Block]) -> list[_Start]:
    """Join the headings of books to the chapter's that follows with nothing but a title between."""
    merged: list[_Start] = []
    for start in starts:
        if merged and merged[-1].parent and _is_only_title(blocks[merged[-1].stop : start.first]):
            merged[-1] = _Start(merged[-1].first, start.stop, start.parent)
        else:
            merged.append(start)
    return _with_titles(merged, blocks)


def _is_only_title(between: Sequence[Block]) -> bool:
    """Return whether the blocks between two headings are few words, or all in capitals or brackets."""
    texts = [block.text for block in between]
    few = sum(len(text.split()) for text in texts) < FEW_WORDS
    return few or all(text.isupper() or text.startswith("[") for text in texts)


def _with_titles(starts: Sequence[_Start], blocks: Sequence[Block]) -> list[_Start]:
    """Add the title below each heading, in a file where at least half of the headings have one."""
    stops = [*(start.first for start in starts[1:]), len(blocks)]
    wide = sum(block.blanks > 1 for block in blocks) > 0.5 * len(blocks)
    starts = [_with_section(start, blocks) for start in starts]
    titled = [
        start.stop + 1 < stop and _is_title(blocks[start.stop], blocks[start.stop + 1], wide)
        for start, stop in zip(starts, stops, strict=True)
    ]
    if sum(titled) < 0.5 * len(starts):
        return list(starts)
    return [start._replace(stop=start.stop + has) for start, has in zip(starts, titled, strict=True)]


def _with_section(start: _Start, blocks: Sequence[Block]) -> _Start:
    """Add the number of a chapter's first section to its heading, where that stands right below it."""
    below = blocks[start.stop] if start.stop < len(blocks) else None
    mark = parse_heading(below.lines[0]) if below and len(below.lines) == 1 else None
    numbered = mark is not None and not mark.label and mark.form == "alone" and mark.number == 1
    return start._replace(stop=start.stop + numbered)


def _is_title(block: Block, following: Block, wide: bool) -> bool:
    """Return whether a block below a number is a chapter's title: in capitals, or set off from what follows."""
    text = block.text
    if len(text) > _LONGEST_TITLE or len(block.lines) > 6 or text.endswith((",", "--", "—", ":")):
        return False
    if text.isupper():
        return True
    if text[0] in "\"“‘'" and not looks_like_title(text):
        return False
    if following.blanks > 1 and not wide and len(block.lines) <= 4 and not block.lines[0].startswith("    "):
        return True
    return len(block.lines) <= 2 and looks_like_title(text) and not ends_sentence(text)


def _cut(blocks: Sequence[Block], starts: Sequence[_Start]) -> list[Chapter]:
    """Return the chapters between the headings; leave out those without text."""
    chapters = []
    for start, following in zip(starts, [*starts[1:], None], strict=True):
        body = blocks[start.stop : following.first if following else len(blocks)]
        if following is None:
            body = list(takewhile(lambda block: not is_end_matter(block), body))
        heads = [block for block in blocks[start.first : start.stop] if not _is_editors_note(block)]
        heading = "\n".join(one_line(line) for block in heads for line in block.lines)
        text = "\n\n".join(block.text for block in body)
        if text:
            chapters.append(Chapter(heading, text))
    return chapters


def _is_editors_note(block: Block) -> bool:
    return block.text.startswith("[") and len(block.text.split()) > FEW_WORDS
