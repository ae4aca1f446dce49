"""Winograd schemas to WNLI (the text, and its sentence with the pronoun replaced) and to WSC (two marked mentions).

A collection is a JSON Lines file. A row is a schema: `text`, `pronoun`, `candidates`, `answer` (one of the candidates
or its place from 0), and where the pronoun stands if the text has it twice: `pronoun_index` (its place among the
words, from 0) or `quote` (a part of the text with that pronoun alone; WNLI then replaces in the quote and not in the
whole sentence).
`possessive` says whether "her" means "the girl's", where the words around it mislead; `group` keeps twins together.
Or a row is one of SuperGLUE's WSC files, with `target` and `label`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.nlu.builders.common import BuiltRows, divide, one_line, write_task
from ensue.benchmarks.nlu.files import Found, Row, jsonl_rows
from ensue.benchmarks.output import BuildReport
from ensue.errors import EnsueError
from ensue.text.sentences import split_sentences

_ALWAYS_POSSESSIVE = frozenset({"my", "your", "our", "their", "whose"})
_OFTEN_POSSESSIVE = frozenset({"his", "her", "its"})
# After "her" these show that it is no possessive: "saw her in town", "gave her the book".
_NO_NOUN = frozenset(
    re.findall(
        r"\w+",
        "a about after again all and as at away back because before but by down for from home if in into it off on "
        "or out over so than that the then there this to too up very was were what when where "
        "while who with yesterday",
    )
)
_ARTICLES = ("the", "a", "an")
_EDGES = "\"'“”‘’.,;:!?()[]"


class Schema(NamedTuple):
    """A text, its words, a pronoun among them, and what that may refer to with whether it does."""

    text: str
    pronoun: str
    place: int
    candidates: tuple[tuple[str, bool], ...]
    group: str
    quote: str = ""
    possessive: bool | None = None
    # Where each candidate stands, if the collection says so.
    candidate_places: tuple[int, ...] = ()


def build_winograd(
    task: str,
    source: str,
    output: str | Path,
    *,
    dev: float = 0.1,
    test: float = 0.1,
    seed: int = 0,
    overwrite: bool = False,
) -> BuildReport:
    """Build WNLI or WSC from a collection; unlike the published WNLI, no text is in two splits."""
    if task not in ("WNLI", "WSC"):
        raise EnsueError(f"{task!r} is not made of Winograd schemas; WNLI and WSC are.")
    made = BuiltRows()
    schemas = list(read_schemas(Path(source).expanduser()))
    splits = divide((schema.group for schema in schemas), dev, test, seed)
    for schema in schemas:
        rows = wnli_rows(schema) if task == "WNLI" else wsc_rows(schema, made)
        made.rows[splits[schema.group]].extend(rows)
    columns = ("sentence1", "sentence2", "label") if task == "WNLI" else None
    settings = {"dev": dev, "test": test, "seed": seed}
    return write_task(task, output, made, source, columns, settings, overwrite=overwrite)


build_wnli = partial(build_winograd, "WNLI")
build_wsc = partial(build_winograd, "WSC")


def wnli_rows(schema: Schema) -> Iterator[dict[str, Any]]:
    """Return the text with the pronoun's sentence (or quote) in which each candidate stands for the pronoun."""
    before, after = around(schema)
    for candidate, right in schema.candidates:
        hypothesis = substituted(before, after, candidate, is_possessive(schema, after))
        yield {"sentence1": one_line(schema.text), "sentence2": hypothesis, "label": "1" if right else "0"}


def wsc_rows(schema: Schema, made: BuiltRows) -> Iterator[dict[str, Any]]:
    """Return the text with the candidate and the pronoun marked by the place of their first word."""
    text, places = one_line(schema.text), schema.candidate_places
    for number, (candidate, right) in enumerate(schema.candidates):
        found = (candidate, places[number]) if places else find_candidate(text.split(), candidate)
        if found is None:
            made.skipped["candidates that the text does not name"] += 1
            continue
        target = {
            "span1_text": found[0],
            "span1_index": found[1],
            "span2_text": schema.pronoun,
            "span2_index": schema.place,
        }
        yield {"text": text, "target": target, "label": right}


def around(schema: Schema) -> tuple[str, str]:
    """Return what stands before and after the pronoun in its quote, or else in its sentence."""
    if schema.quote:
        words = one_line(schema.quote).split()
        return _parted(words, _places(words, schema.pronoun)[0])
    words, seen = [], 0
    for sentence in split_sentences(schema.text):
        words = sentence.split()
        if seen + len(words) > schema.place:
            break
        seen += len(words)
    return _parted(words, schema.place - seen)


def substituted(before: str, after: str, candidate: str, possessive: bool) -> str:
    """Return a sentence of those parts with the candidate between them: capitals and the last full stop put right.

    >>> substituted("", " was too heavy, so I left it.", "the trunk", False)
    'The trunk was too heavy, so I left it.'
    """
    first, _, rest = candidate.partition(" ")
    name = f"{first.lower()} {rest}" if first.lower() in _ARTICLES and rest else candidate
    name = one_line(name) + ("'" if possessive and name.endswith("s") else "'s" if possessive else "")
    sentence = one_line(f"{before}{name}{after}")
    sentence = sentence[:1].upper() + sentence[1:]
    return sentence if sentence.endswith((".", "!", "?", '"', "”", "'")) else f"{sentence.rstrip(',;:')}."


def is_possessive(schema: Schema, after: str) -> bool:
    """Return whether the pronoun means "the candidate's"; guessed from the next word where the row does not say."""
    if schema.possessive is not None:
        return schema.possessive
    pronoun = schema.pronoun.lower()
    if pronoun in _ALWAYS_POSSESSIVE:
        return True
    following = re.match(r"\s+(\w+)", after)
    return (
        pronoun in _OFTEN_POSSESSIVE and following is not None and following.group(1).lower() not in _NO_NOUN
    )


def find_candidate(words: list[str], candidate: str) -> tuple[str, int] | None:
    """Return a candidate as the text has it and the place of its first word, if need be without its article."""
    wanted = [_bare(word) for word in candidate.split()]
    for skip in (0, 1) if wanted and wanted[0] in _ARTICLES and len(wanted) > 1 else (0,):
        size = len(wanted) - skip
        for place in range(len(words) - size + 1):
            there = words[place : place + size]
            if [_bare(word) for word in there] == wanted[skip:]:
                return " ".join([*there[:-1], _unmarked(there[-1])]).lstrip(_EDGES), place
    return None


def read_schemas(path: Path) -> Iterator[Schema]:
    """Return the schemas of a collection, or one for every row of a WSC file."""
    if path.suffix != ".jsonl" or not path.is_file():
        raise EnsueError(
            f"{path} is not a .jsonl file; give a collection of schemas, one JSON object a line."
        )
    for row in jsonl_rows(Found(path)):
        yield _marked(row) if "target" in row.fields else _schema(row)


def _schema(row: Row) -> Schema:
    text, pronoun = row.text("text"), row.text("pronoun").strip()
    candidates = row.value("candidates")
    if not isinstance(candidates, list) or len(candidates) < 2 or not all(
        isinstance(one, str) and one.strip() for one in candidates
    ):  # fmt: skip
        row.refuse("'candidates' is not a list of two texts or more")
    right = _answer(row, candidates)
    quote = row.text("quote") if row.fields.get("quote") else ""
    possessive = row.fields.get("possessive")
    if possessive is not None and not isinstance(possessive, bool):
        row.refuse("'possessive' is neither true nor false")
    index = _pronoun_place(row, text, pronoun, quote)
    named = tuple((one, place == right) for place, one in enumerate(candidates))
    group = str(row.fields.get("group") or one_line(text))
    return Schema(text, pronoun, index, named, group, quote, possessive)


def _answer(row: Row, candidates: list[str]) -> int:
    answer = row.value("answer")
    if isinstance(answer, int) and not isinstance(answer, bool) and 0 <= answer < len(candidates):
        return answer
    found = [place for place, one in enumerate(candidates) if one == answer]
    if len(found) != 1:
        row.refuse(f"the answer {str(answer)[:40]!r} is not one of the candidates")
    return found[0]


def _pronoun_place(row: Row, text: str, pronoun: str, quote: str) -> int:
    """Return the pronoun's place among the words of the text."""
    words = text.split()
    if "pronoun_index" in row.fields:
        index = row.whole("pronoun_index")
        if index >= len(words) or _bare(words[index]) != pronoun.lower():
            row.refuse(f"word {index} of the text is not the pronoun {pronoun!r}")
        return index
    if quote:
        quoted = one_line(quote).split()
        inside = _places(quoted, pronoun)
        bare, wanted = [_bare(word) for word in words], [_bare(word) for word in quoted]
        starts = [at for at in range(len(bare) - len(wanted) + 1) if bare[at : at + len(wanted)] == wanted]
        if len(inside) != 1 or len(starts) != 1:
            row.refuse(f"the quote does not stand once in the text with one {pronoun!r} in it")
        return starts[0] + inside[0]
    places = _places(words, pronoun)
    if len(places) != 1:
        row.refuse(f"the text has {pronoun!r} {len(places)} times; add 'pronoun_index' or 'quote'")
    return places[0]


def _marked(row: Row) -> Schema:
    """Return a row of a WSC file: one candidate, which is right or wrong."""
    text, target = row.text("text"), row.inner("target")
    label = row.value("label")
    if not isinstance(label, bool):
        row.refuse("the label is neither true nor false")
    words, index = text.split(), target.whole("span2_index")
    pronoun = target.text("span2_text").strip()
    if index >= len(words) or _bare(words[index]) != _bare(pronoun):
        # Some published indexes are off by a word or two.
        near = _places(words, _bare(pronoun))
        if not near:
            row.refuse(f"the text does not have the pronoun {pronoun!r}")
        index = min(near, key=lambda place: abs(place - index))
    candidate = target.text("span1_text").strip()
    place = target.whole("span1_index")
    return Schema(
        text, pronoun.strip(_EDGES), index, ((candidate, label),), one_line(text), candidate_places=(place,)
    )


def _places(words: list[str], pronoun: str) -> list[int]:
    """Return where the pronoun stands among the words."""
    return [place for place, word in enumerate(words) if _bare(word) == pronoun.lower()]


def _parted(words: list[str], place: int) -> tuple[str, str]:
    """Return what is before and after the pronoun's word, with the marks that cling to that word."""
    word = words[place]
    core = _unmarked(word).lstrip(_EDGES)
    lead, _, tail = word.partition(core)
    return " ".join([*words[:place], lead]), " ".join([tail, *words[place + 1 :]])


def _unmarked(word: str) -> str:
    """Return a word without the marks after it, and without 's."""
    return re.sub(r"['’]s$", "", word.rstrip(_EDGES))


def _bare(word: str) -> str:
    return _unmarked(word.lstrip(_EDGES)).lower()
