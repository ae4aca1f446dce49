"""What a text is read in: sentences where it runs on, lines where it is set in lines (lists, verse, code)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from ensue.text.sentences import one_line, split_sentences

_ITEM = re.compile(r"\s*(?:[-*+•–—·▪◦]\s+|\(?(?:\d{1,3}|[A-Za-z]|[ivxlc]{1,5})[.)]\s+|[A-Z][\w. ]{0,20}:\s)")
_CODE = re.compile(r"[{}();=<>\[\]]|^\s*(?:#|//|\$ |>>> )|:\s*$")
_WORD = re.compile(r"\w")
_STOP = re.compile(r"[.!?。！？؟]")
_COMMA, _END = re.compile(r"[,;،，；—–]\s*$"), re.compile(r"[.!?:。！？؟…][\"'”’»)\]]*\s*$")
# Hardly anybody breaks running text at fewer characters.
_NARROW = 50
# The share of lines that begin in lower case from which on a paragraph is running text: most of them do.
_RUNNING = 0.3
_BREAKS_ANYWHERE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0e7f]")


def split_units(text: str, language: str = "en") -> list[str]:
    """Split a text into sentences, and what is set in lines into its lines; white space is normalised.

    A line break where the next word would have fitted was meant, unless the lines go on in lower case or, as verse
    does, with the sentence. What has no letter or digit in it goes with the unit before. No other character is added,
    dropped or moved.

    >>> split_units("To buy:\\n- green tea\\n- a loaf of bread\\n\\nShe went out. The shop\\nwas closed.")
    ['To buy:', '- green tea', '- a loaf of bread', 'She went out.', 'The shop was closed.']
    """
    units: list[str] = []
    kept = ""  # what has no word in it and nothing before it to go with
    lines = text.splitlines()
    for filled, run in groupby(lines, key=lambda line: bool(line.strip())):
        if not filled:
            continue
        for passage in _passages(list(run)):
            for unit in split_sentences(passage, language) if _WORD.search(passage) else [one_line(passage)]:
                if _WORD.search(unit):
                    units.append(f"{kept} {unit}".lstrip())
                    kept = ""
                elif units:
                    units[-1] += f" {unit}"
                else:
                    kept = f"{kept} {unit}".lstrip()
    return units or ([kept] if kept else [])


def _passages(lines: Sequence[str]) -> Iterator[str]:
    """Divide the lines of a paragraph where a break was meant."""
    width = max(_NARROW, *(len(line.rstrip()) for line in lines))
    code = 2 * sum(bool(_CODE.search(line)) for line in lines) > len(lines)
    listed = width == _NARROW and not any(map(_STOP.search, lines))
    verse = any(map(_COMMA.search, lines)) and bool(_END.search(lines[-1]))
    runs_on = not listed and sum(map(_goes_on, lines[1:])) >= _RUNNING * len(lines[1:])
    passage = lines[0]
    for before, line in pairwise(lines):
        goes_on = runs_on or _goes_on(line) or (verse and not _END.search(before))
        meant = _needless(before, line, width) and (listed or not goes_on)
        if code or meant or (_ITEM.match(line) and (not runs_on or _needless(before, line, width))):
            yield passage
            passage = line
        else:
            passage += "\n" + line
    yield passage


def _needless(before: str, line: str, width: int) -> bool:
    """Say whether the next line's first word would have fitted on this one: nobody broke it for want of room."""
    word = line.split(maxsplit=1)[0]
    room = 1 if _BREAKS_ANYWHERE.match(word) else len(word) + 1
    return len(before.rstrip()) + room <= width


def _goes_on(line: str) -> bool:
    """Say whether a line goes on with the sentence of the one before it."""
    return line.lstrip()[0].islower()
