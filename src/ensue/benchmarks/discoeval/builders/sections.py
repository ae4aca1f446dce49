"""Sentence Section Prediction: sentences of papers' abstracts against those of sections in the middle."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.discoeval.builders.common import (
    Building,
    Seen,
    files_below,
    generator,
    one_line,
    sample,
)
from ensue.errors import EnsueError
from ensue.jsonl import in_words, parse_line, text_lines
from ensue.parallel import ordered_map
from ensue.text.io.rows import json_objects
from ensue.text.sentences import split_sentences

ABSTRACT, ELSEWHERE = 1, 0
# Sections that begin or end a paper say what the abstract says, or are no running text.
_EDGE = re.compile(
    r"[\W\d]*(?:(?:[IVX]+|[A-Z])[.\s]\s*)?(?:introduct|conclu|summary|acknowledg|references|bibliograph|append|"
    r"supplement|discussion and conclu|summary and|keywords|abstract)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[(\"'“‘`]*[A-Za-zÀ-ɏ][\w'’/-]*[.,;:!?)\"'”’]*")
_ENDS = re.compile(r"[.!?][\"'”’)]*$")
_FEWEST_WORDS, _MOST_WORDS = 6, 80
_SHARE_OF_WORDS = 0.8
_ABSTRACT = re.compile(r"[\W\d]*abstract\b", re.IGNORECASE)


class PaperSection(NamedTuple):
    """A section of a paper; a body that is not divided is one without a heading."""

    heading: str
    text: str


class Paper(NamedTuple):
    """A paper; its abstract is empty where it has none."""

    id: str
    place: str
    abstract: str
    sections: tuple[PaperSection, ...]


def read_papers(source: str, encoding: str) -> Iterator[Paper]:
    """Read the papers of a file or folder: .jsonl has one a line, a .json is one paper as PeerRead has them.

    A paper is an object with `abstract` (or `abstractText`, or a section of that heading) and `sections`, a
    list of objects with `heading` and `text`, or else `body`, a text; PeerRead's stand in `metadata`.
    """
    path = Path(source).expanduser()
    if not source or not os.path.exists(path):
        raise EnsueError(
            f"{source or 'The source of papers'} does not exist: give a file or folder of papers."
        )
    files = files_below(path, ".jsonl", ".ndjson", ".json") if path.is_dir() else [path]
    if not files:
        raise EnsueError(f"{source} holds no .jsonl or .json file to read papers from.")
    for file in files:
        label = file.relative_to(path).as_posix() if path.is_dir() else file.name
        for place, name, columns in _objects(file, label, encoding):
            yield _paper(columns, place, name)


def _objects(file: Path, label: str, encoding: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    if file.suffix.lower() in (".jsonl", ".ndjson"):
        for place, columns in json_objects(file, encoding):
            yield place, f"{label}:{place.rpartition(' ')[2]}", columns
        return
    yield str(file), label, parse_line("".join(line for _, line in text_lines(file, encoding)), str(file))


def _paper(columns: Mapping[str, Any], place: str, label: str) -> Paper:
    metadata = columns.get("metadata")
    content = metadata if isinstance(metadata, dict) else columns
    name = columns.get("id")
    if name is not None and not (isinstance(name, str | int) and str(name)):
        raise EnsueError(
            f"{place} has {in_words(name)} as its id, where a name or a whole number is expected."
        )
    abstract = _text(content, "abstract", place) or _text(content, "abstractText", place)
    sections = list(_sections(content, place))
    if not abstract:
        abstract = next((section.text for section in sections if _ABSTRACT.match(section.heading)), "")
    sections = [section for section in sections if not _ABSTRACT.match(section.heading)]
    return Paper(label if name is None else str(name), place, abstract, tuple(sections))


def _sections(content: Mapping[str, Any], place: str) -> Iterator[PaperSection]:
    value = content.get("sections")
    if value is None:
        if body := _text(content, "body", place):
            yield PaperSection("", body)
        return
    if not isinstance(value, list):
        raise EnsueError(f"{place} has {in_words(value)} as 'sections', where a list is expected.")
    for number, each in enumerate(value, 1):
        if not isinstance(each, dict):
            raise EnsueError(
                f"{place} has {in_words(each)} as section {number}, where an object is expected."
            )
        where = f"{place}, section {number}"
        yield PaperSection(_text(each, "heading", where), _text(each, "text", where))


def _text(content: Mapping[str, Any], name: str, place: str) -> str:
    value = content.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise EnsueError(f"{place} has {in_words(value)} as {name!r}, where a string is expected.")
    # Half of a surrogate pair has no UTF-8.
    return value.encode("utf-8", "replace").decode("utf-8").strip()


class Chosen(NamedTuple):
    """A paper's sentences to ask about: equally many of its abstract and of elsewhere."""

    id: str
    abstract: tuple[str, ...]
    elsewhere: tuple[str, ...]
    reason: str = ""
    left_out: int = 0


def is_plain(sentence: str) -> bool:
    """Return whether a sentence is running text and not a formula, a row of a table or a piece of either.

    >>> is_plain("We show that the river keeps its own bed."), is_plain("x = f ( y ) + 3 , 4 , 5 .")
    (True, False)
    """
    words = sentence.split()
    if not _FEWEST_WORDS <= len(words) <= _MOST_WORDS or "=" in sentence or "\ufffd" in sentence:
        return False
    if not words[0].lstrip("(\"'“‘`")[:1].isalpha() or not _ENDS.search(sentence):
        return False
    return sum(bool(_WORD.fullmatch(word)) for word in words) >= _SHARE_OF_WORDS * len(words)


def middle(paper: Paper, language: str) -> list[str]:
    """Return the sentences of a paper between its introduction and its conclusion.

    Where no section has a heading, those are the second and third quarter of the text.
    """
    if any(section.heading for section in paper.sections):
        texts = [
            section.text for section in paper.sections if section.heading and not _EDGE.match(section.heading)
        ]
        return [sentence for text in texts for sentence in split_sentences(text, language)]
    whole = [sentence for section in paper.sections for sentence in split_sentences(section.text, language)]
    return whole[len(whole) // 4 : len(whole) - len(whole) // 4]


def choose(paper: Paper, language: str, per_document: int | None, seed: int) -> Chosen:
    """Draw sentences of a paper, `per_document` of each kind or as many as both kinds have."""
    if not paper.abstract:
        return Chosen(paper.id, (), (), "papers without an abstract")
    if not any(section.text for section in paper.sections):
        return Chosen(paper.id, (), (), "papers without sections")
    abstract = split_sentences(paper.abstract, language)
    elsewhere = middle(paper, language)
    said = set(abstract)
    plain = list(dict.fromkeys(filter(is_plain, abstract)))
    others = [sentence for sentence in dict.fromkeys(filter(is_plain, elsewhere)) if sentence not in said]
    left_out = sum(not is_plain(sentence) for sentence in (*abstract, *elsewhere))
    count = min(len(plain), len(others), per_document or len(plain))
    if not count:
        kind = "abstract" if not plain else "middle"
        return Chosen(paper.id, (), (), f"papers without a plain sentence in their {kind}", left_out)
    random = generator(seed, "SSP", paper.id)
    drawn = (
        tuple(pool[int(place)] for place in random.choice(len(pool), count, replace=False))
        for pool in (plain, others)
    )
    return Chosen(paper.id, next(drawn), next(drawn), "", left_out)


def build_sections(made: Building) -> None:
    """Make lines of every split, half of them from abstracts; a paper is in one split alone."""
    wanted = made.sizes.halved()
    drawn = sample(_chosen(made), wanted.total, made.generator("papers"))
    for split, items in wanted.allot([(each, len(each.abstract)) for each in drawn], made.source).items():
        rows = [
            (paper.id, label, sentence)
            for paper, count in items
            for label, sentences in ((ABSTRACT, paper.abstract), (ELSEWHERE, paper.elsewhere))
            for sentence in sentences[:count]
        ]
        for place in made.generator("order", split).permutation(len(rows)):
            document, label, sentence = rows[int(place)]
            made.lines[split].add_row(document, label, [sentence])


def _chosen(made: Building) -> Iterator[Chosen]:
    """Yield the papers that give sentences, the others counted."""
    options, skipped = made.options, made.skipped
    papers = islice(read_papers(made.source, options.encoding), options.limit)
    function = partial(choose, language=made.language, per_document=made.per_document, seed=options.seed)
    for done, chosen in enumerate(ordered_map(function, _new(papers, made), made.workers), 1):
        made.count(done)
        if chosen.left_out:
            skipped["sentences that are formulas, pieces or too long"] += chosen.left_out
        if chosen.reason:
            skipped[chosen.reason] += 1
        else:
            yield chosen


def _new(papers: Iterator[Paper], made: Building) -> Iterator[Paper]:
    """Yield the papers but those whose abstract was there before; two of one id are refused."""
    ids, abstracts = Seen(), Seen()
    for paper in papers:
        if ids.before(paper.id):
            raise EnsueError(f"{paper.place} has the id {paper.id!r}, which an earlier paper has already.")
        if paper.abstract and abstracts.before(one_line(paper.abstract)):
            made.skipped["papers with the abstract of an earlier one"] += 1
        else:
            yield paper
