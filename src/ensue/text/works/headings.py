"""Parse chapter headings: whether a line is one, what it numbers, and where its index ends and its title begins."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

_ONES = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_STEMS = ["thir", "four", "fif", "six", "seven", "eigh", "nine"]
_TEENS = ["ten", "eleven", "twelve", *(f"{stem}teen" for stem in _STEMS)]
_ORDINAL_ONES = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"]
_ORDINAL_TENS = [f"{ten[:-1]}ieth" for ten in _TENS]
_ORDINAL_TEENS = ["tenth", "eleventh", "twelfth", *(f"{teen}th" for teen in _TEENS[3:])]


def _valued(ones: list[str], teens: list[str], tens: list[str]) -> dict[str, int]:
    """Map the words below a hundred to their values; the tens before a hyphen are always the cardinal ones."""
    values = {word: number for number, word in enumerate(ones + teens, 1)}
    for ten, (word, cardinal) in enumerate(zip(tens, _TENS, strict=True), 2):
        values[word] = 10 * ten
        values |= {f"{cardinal}-{one}": 10 * ten + number for number, one in enumerate(ones, 1)}
    return values


_CARDINALS = _valued(_ONES, _TEENS, _TENS)
_ORDINALS = _valued(_ORDINAL_ONES, _ORDINAL_TEENS, _ORDINAL_TENS)
_LETTERS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}


def _pattern(values: dict[str, int]) -> str:
    # Longest first, so that "seventeen" is not read as "seven".
    return "|".join(word.replace("-", r"[- ]") for word in sorted(values, key=len, reverse=True))


# Old books write IIII and XXXX too; no work has as many as 400 chapters numbered in Roman.
ROMAN = r"(?=[IVXLC])C{0,3}(?:XC|XL|L?X{0,4})(?:IX|IV|V?I{0,4})"
SMALL_ROMAN = ROMAN.replace("(?=[IVXLC])", "(?=[ivxlc])").translate(str.maketrans("IVXLC", "ivxlc"))
ARABIC = r"\d{1,3}"
CARDINAL = (
    rf"(?:one[ -]hundred(?:[ -]and)?[ -](?:{_pattern(_CARDINALS)})|one[ -]hundred|{_pattern(_CARDINALS)})"
)
ORDINAL = rf"(?:{_pattern(_ORDINALS)}|last)"

_HUNDRED = re.compile(r"one[ -]hundred(?:[ -]and)?[ -]?")


def roman_value(numeral: str) -> int:
    """Return the value of a Roman numeral.

    >>> roman_value("XIV")
    14
    """
    values = [_LETTERS[letter] for letter in numeral.upper()]
    following = [*values[1:], 0]
    return sum(-value if value < after else value for value, after in zip(values, following, strict=True))


def word_value(words: str) -> int | None:
    """Return the value of a number that is spelled out, None for "last".

    >>> word_value("Forty-second"), word_value("one hundred and two")
    (42, 102)
    """
    words = words.lower()
    hundred = _HUNDRED.match(words)
    rest = words[hundred.end() if hundred else 0 :].replace(" ", "-")
    below = _CARDINALS.get(rest, _ORDINALS.get(rest))
    return 100 + (below or 0) if hundred else below


PARENTS = frozenset({"book", "part", "volume", "phase", "period", "narrative"})

Form = Literal["alone", "titled", "loose"]

_LABELS = (
    "chapter|chap|book|part|volume|vol|phase|period|narrative"
    "|stave|letter|adventure|canto|act|scene|section|episode"
)
_ALIASES = {"chap": "chapter", "vol": "volume"}
_OPENING = r"[ \t]*(?P<open>(?:[_*#=~\[({]|[—–-]+[ \t])*)[ \t]*"
_CLOSING = r"(?P<close>[.:)]?(?:[_*]+|[ \t]*[\])}=~]+|[ \t]+[—–-]+(?=[ \t]*$))*[.:]?)"
_NUMBER = (
    rf"(?:(?P<roman>{ROMAN})|(?P<small>{SMALL_ROMAN})|(?P<arabic>{ARABIC})(?:st|nd|rd|th)?"
    rf"|(?P<word>(?i:{CARDINAL}|{ORDINAL})))"
)
# A number ends where no letter or digit follows, but "CHAPTER 10The Letter" has lost its line break.
_ENDED = r"(?:(?![^\W_])|(?<=\d)(?=[^\W\d_a-z]))"
_LABELLED = re.compile(
    rf"{_OPENING}(?P<label>(?i:{_LABELS}))\.?[ \t]+(?:(?i:the|no\.|number)[ \t]+)?{_NUMBER}{_ENDED}{_CLOSING}"
)
_REVERSED = re.compile(
    rf"{_OPENING}(?:(?i:the)[ \t]+)?(?P<word>(?i:{ORDINAL}))[ \t]+(?P<label>(?i:{_LABELS}))(?![^\W_]){_CLOSING}"
)
_BARE = re.compile(
    rf"{_OPENING}(?:(?P<roman>{ROMAN})|(?P<arabic>{ARABIC})|(?P<word>(?=[A-Z])(?i:{CARDINAL})))(?![^\W_]){_CLOSING}"
)
_DASH = re.compile(r"[ \t]*(?:—|–|--|- )")
_BRACKET = re.compile(r"[ \t]*[(\[]")
_SENTENCE_END = re.compile(r"[.?!,;:…][\"'”’)\]_*]*$")
_UPPER_START = re.compile(r"[\"'“‘(\[_*]*[^\W\da-z_]|[\"'“‘(\[_*]*\d")
_AFTER_ROMAN_I = frozenset(
    {"A", "An", "At", "From", "His", "Her", "How", "In", "My", "Of", "On", "The", "To"}
    | {"What", "Where", "Which", "Who"}
)
_INITIALS = frozenset("CL")
_LONGEST_TITLE = 160
_LONGEST_LINE_BETWEEN = 100
_MOST_LINES = 6


class Mark(NamedTuple):
    """The index of a heading line.

    `label` is "chapter", "book", … or empty; `numerals` is "roman", "arabic" or "word"; `number` is None for
    "the last". `form` is "alone" where nothing follows on the line, "titled" where a title follows a full stop,
    colon, dash or bracket, and "loose" where it follows white space. The index is `line[:end]`.
    """

    label: str
    numerals: str
    number: int | None
    form: Form
    opening: str
    end: int


def parse_heading(line: str) -> Mark | None:
    """Parse the index that a heading line begins with; None where the line is no numbered heading.

    >>> parse_heading("CHAPTER XIV. The Letter").number
    14
    >>> parse_heading("Chapter and verse were quoted.")
    """
    labelled = _LABELLED.match(line) or _REVERSED.match(line)
    found = labelled or _BARE.match(line)
    if found is None:
        return None
    form = _form_after_label(found, line) if labelled else _form_of_bare(found, line)
    return _mark(found, form) if form else None


def split_index(heading_and_text: str) -> tuple[str, str]:
    """Split a text that begins with a chapter heading into the heading's index and all the rest.

    The two parts joined are the text. The index is empty where the text begins with none. Where a book, part or
    volume is named first, the index reaches to the chapter's own number, over the book's title if it has one.

    >>> split_index("CHAPTER III. THE LETTER\\n\\nIt was late.")
    ('CHAPTER III.', ' THE LETTER\\n\\nIt was late.')
    >>> split_index("BOOK II\\nCHAPTER XIV\\n\\nIt was late.")
    ('BOOK II\\nCHAPTER XIV', '\\n\\nIt was late.')
    >>> split_index("I walked down the street.")
    ('', 'I walked down the street.')
    """
    end = 0
    last: Mark | None = None
    for start, line in _first_lines(heading_and_text):
        mark = parse_heading(line)
        if mark is None or _is_initial(mark, line):
            if last is None or last.label not in PARENTS or len(line) > _LONGEST_LINE_BETWEEN:
                break
            continue
        if last is not None and not _may_follow(last, mark):
            break
        end, last = start + mark.end, mark
        while last.label in PARENTS and (inner := _inner_mark(heading_and_text[end : start + len(line)])):
            end, last = end + inner.end, inner
        if last.form != "alone" and last.label not in PARENTS:
            break
    return heading_and_text[:end], heading_and_text[end:]


def looks_like_title(text: str) -> bool:
    """Return whether a line is in capitals, or most of its longer words begin with one."""
    letters = [each for each in text if each.isalpha()]
    if not letters:
        return False
    if sum(map(str.isupper, letters)) >= 0.8 * len(letters):
        return True
    words = [word.strip("\"'“”‘’()[]_*.,;:!?") for word in re.split(r"[\s—–-]+", text)]
    long = [word for word in words if len(word) > 3 and word[0].isalpha()] or [word for word in words if word]
    return bool(_UPPER_START.match(text)) and sum(word[:1].isupper() for word in long) >= 0.6 * len(long)


def ends_sentence(text: str) -> bool:
    return bool(_SENTENCE_END.search(text.rstrip()))


def _first_lines(text: str) -> list[tuple[int, str]]:
    """Return the first few lines that are not blank, each with its place."""
    lines: list[tuple[int, str]] = []
    start = 0
    while start < len(text) and len(lines) < _MOST_LINES:
        stop = text.find("\n", start)
        stop = len(text) if stop < 0 else stop
        if text[start:stop].strip():
            lines.append((start, text[start:stop]))
        start = stop + 1
    return lines


def _may_follow(last: Mark, mark: Mark) -> bool:
    """Return whether two indices make one: a chapter's in a book, or a numbered section's right below its chapter."""
    if last.label in PARENTS:
        return True
    return (
        mark.form == "alone" and not mark.label and (last.label, last.opening) != (mark.label, mark.opening)
    )


def _inner_mark(rest: str) -> Mark | None:
    """Parse a second labelled index on one line, as in "VOLUME II. CHAPTER 3."."""
    space = re.match(r"[\s.,:;—–-]*", rest)
    skipped = space.end() if space else 0
    mark = parse_heading(rest[skipped:])
    return mark._replace(end=mark.end + skipped) if mark and mark.label else None


def _is_initial(mark: Mark, line: str) -> bool:
    """Return whether a bare index is rather a name's initial or the pronoun: "C. Rowe", "I Go to Town"."""
    if mark.label or mark.form == "alone" or mark.numerals != "roman":
        return False
    numeral = line[: mark.end].strip(" \t.:)")
    if mark.form == "loose" and numeral == "I":
        return line[mark.end :].split()[0] not in _AFTER_ROMAN_I
    return numeral in _INITIALS


def _form_after_label(found: re.Match[str], line: str) -> Form | None:
    rest, label = line[found.end() :], found["label"]
    if not rest.strip():
        return "alone" if label[0].isupper() or "chap" in label.lower() else None
    if not label[0].isupper():
        return None
    if _DASH.match(rest) or _BRACKET.match(rest):
        return "titled"
    if found["close"].strip("_*]=~ \t") and (rest[0].isspace() or _UPPER_START.match(rest)):
        return "titled"
    return "loose" if _is_loose_title(rest.strip()) else None


def _form_of_bare(found: re.Match[str], line: str) -> Form | None:
    rest = line[found.end() :]
    title = rest.strip()
    if not title:
        return "alone"
    if len(title) > _LONGEST_TITLE:
        return None
    stopped = found["close"].strip("_*]=~ \t") and rest[0].isspace()
    if stopped or (found["open"] and found["close"]) or _DASH.match(rest):
        title = title.lstrip("—–- \t")
        if not _UPPER_START.match(title):
            return None
        return None if ends_sentence(title) and not looks_like_title(title) else "titled"
    return "loose" if rest[0].isspace() and not found["word"] and _is_loose_title(title) else None


def _is_loose_title(title: str) -> bool:
    """Return whether what follows a number without any stop is a title and not the rest of a sentence."""
    if len(title) > _LONGEST_TITLE or not _UPPER_START.match(title):
        return False
    return looks_like_title(title) and (title.isupper() or not title.endswith((".", ",", ";")))


def _mark(found: re.Match[str], form: Form) -> Mark:
    groups = found.groupdict()
    label = (groups.get("label") or "").lower()
    number: int | None
    if roman := groups.get("roman") or groups.get("small"):
        numerals, number = "roman", roman_value(roman)
    elif arabic := groups.get("arabic"):
        numerals, number = "arabic", int(arabic)
    else:
        numerals, number = "word", word_value(found["word"])
    return Mark(_ALIASES.get(label, label), numerals, number, form, found["open"].strip(), found.end())
