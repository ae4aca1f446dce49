"""Sentence Section Prediction: sentences of papers' abstracts against those of sections in the middle."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import NamedTuple

from ensue.benchmarks.discoeval.builders.common import (
    Made,
    Progress,
    Reservoir,
    Seen,
    Sizes,
    generator,
    one_line,
)
from ensue.benchmarks.discoeval.builders.corpus import Reading
from ensue.benchmarks.discoeval.builders.papers import Paper, read_papers
from ensue.errors import EnsueError
from ensue.parallel import ordered_map
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


class Chosen(NamedTuple):
    """A paper's sentences to ask about: equally many of its abstract and of elsewhere."""

    id: str
    abstract: tuple[str, ...]
    elsewhere: tuple[str, ...]
    reason: str = ""
    left_out: int = 0


def is_plain(sentence: str) -> bool:
    """Whether a sentence is running text and not a formula, a row of a table or a piece of either.

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
    """The sentences of a paper between its introduction and its conclusion.

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
    """Sentences of a paper, `per_document` of each kind or as many as both kinds have."""
    if not paper.abstract:
        return Chosen(paper.id, (), (), "papers without an abstract")
    if not any(section.text for section in paper.sections):
        return Chosen(paper.id, (), (), "papers without sections")
    abstract = split_sentences(paper.abstract, language)
    elsewhere = middle(paper, language)
    said = set(abstract)
    plain = list(_distinct(filter(is_plain, abstract)))
    others = [sentence for sentence in _distinct(filter(is_plain, elsewhere)) if sentence not in said]
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


def build_sections(
    source: str,
    reading: Reading,
    sizes: Sizes,
    seed: int,
    per_document: int | None,
    made: Made,
    progress: Progress | None = None,
) -> None:
    """Lines of every split, half of them from abstracts; a paper is in one split alone."""
    if per_document is not None and per_document < 1:
        raise EnsueError(f"The number of sentences a paper is {per_document}, but must be at least 1.")
    wanted = sizes.halved()
    sample: Reservoir[Chosen] = Reservoir(wanted.total, generator(seed, "SSP", "papers"))
    for chosen in _papers(source, reading, seed, per_document, made.skipped, progress):
        sample.offer(chosen)
    allotted = wanted.allot([(each, len(each.abstract)) for each in sample.shuffled()], source)
    for split, items in allotted.items():
        rows = [
            (paper.id, label, sentence)
            for paper, count in items
            for label, sentences in ((ABSTRACT, paper.abstract), (ELSEWHERE, paper.elsewhere))
            for sentence in sentences[:count]
        ]
        for place in generator(seed, "SSP", "order", split).permutation(len(rows)):
            document, label, sentence = rows[int(place)]
            made.lines[split].add_row(document, label, [sentence])


def _papers(
    source: str,
    reading: Reading,
    seed: int,
    per_document: int | None,
    skipped: Counter[str],
    progress: Progress | None,
) -> Iterator[Chosen]:
    """The papers that give sentences, the others counted."""
    reading.check()
    papers = islice(read_papers(source, reading.encoding), reading.limit)
    function = partial(choose, language=reading.language, per_document=per_document, seed=seed)
    for done, chosen in enumerate(ordered_map(function, _new(papers, skipped), reading.workers), 1):
        if progress:
            progress(done)
        if chosen.left_out:
            skipped["sentences that are formulas, pieces or too long"] += chosen.left_out
        if chosen.reason:
            skipped[chosen.reason] += 1
        else:
            yield chosen


def _new(papers: Iterator[Paper], skipped: Counter[str]) -> Iterator[Paper]:
    """The papers but those whose abstract was there before; two of one id are refused."""
    ids, abstracts = Seen(), Seen()
    for paper in papers:
        if ids.before(paper.id):
            raise EnsueError(f"{paper.place} has the id {paper.id!r}, which an earlier paper has already.")
        if paper.abstract and abstracts.before(one_line(paper.abstract)):
            skipped["papers with the abstract of an earlier one"] += 1
        else:
            yield paper


def _distinct(sentences: Iterable[str]) -> Iterator[str]:
    yield from dict.fromkeys(sentences)
