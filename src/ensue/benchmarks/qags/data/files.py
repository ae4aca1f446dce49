"""The files of human judgments, in their official formats, each entry and each fault with its file and line.

QAGS's own (articles, the sentences of a summary, what each worker said), Falke et al.'s sentence pairs (2019), and
collections in which several systems summarise the same articles (SummEval, REALSumm, Newsroom).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, NoReturn

from ensue.benchmarks.grading.values import LARGEST
from ensue.benchmarks.nlu.files import Found, Row, jsonl_rows
from ensue.errors import EnsueError
from ensue.jsonl import text_lines
from ensue.text.sentences import split_sentences

_VOTES: Mapping[str, bool] = {"yes": True, "no": False}
_DECODER = json.JSONDecoder()
_GAP = frozenset(" \t\n\r,:")


class Vote(NamedTuple):
    """One worker's word on one sentence."""

    worker: str
    consistent: bool


class JudgedSentence(NamedTuple):
    """A sentence of a summary and its judgments, at least one."""

    text: str
    responses: tuple[Vote, ...]

    @property
    def consistent(self) -> bool:
        """Whether more than half of the workers found it consistent; half of them is no majority."""
        return 2 * sum(response.consistent for response in self.responses) > len(self.responses)


@dataclass(frozen=True)
class JudgedSummary:
    """A summary of one article, sentence by sentence; `where` is its place in the file."""

    id: str
    article: str
    sentences: tuple[JudgedSentence, ...]
    where: str = ""

    @property
    def text(self) -> str:
        """The summary as one text."""
        return " ".join(sentence.text for sentence in self.sentences)

    @property
    def consistency(self) -> float:
        """The share of its sentences that the majority found consistent (§4.5.1)."""
        return sum(sentence.consistent for sentence in self.sentences) / len(self.sentences)

    @property
    def first_sentence(self) -> str:
        """The article's first sentence, which for XSum is the reference."""
        return split_sentences(self.article)[0]


class Triplet(NamedTuple):
    """A source sentence, a sentence consistent with it, and one that is not; `cluster` is its article."""

    id: str
    cluster: str
    source: str
    consistent: str
    inconsistent: str


class ScoredSummary(NamedTuple):
    """One system's summary of an article, and what people gave it."""

    system: str
    text: str
    scores: Mapping[str, float]


@dataclass(frozen=True)
class JudgedArticle:
    """A source, its reference summaries, which may be none, and every system's summary of it."""

    id: str
    source: str
    references: tuple[str, ...]
    summaries: tuple[ScoredSummary, ...]
    where: str = ""


@dataclass(frozen=True)
class Collection:
    """Articles that all have summaries of the same systems, in the same order; notes count what is odd in them."""

    articles: tuple[JudgedArticle, ...]
    notes: Mapping[str, int]

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems, in the order of every article's summaries."""
        return tuple(summary.system for summary in self.articles[0].summaries)


def read_judgments(path: Path, name: str) -> list[JudgedSummary]:
    """Read QAGS's judged summaries; `name` goes before each one's number to make its id."""
    rows = jsonl_rows(Found(path))
    return [
        JudgedSummary(f"{name}-{number}", row.text("article"), _sentences(row), row.where)
        for number, row in enumerate(rows)
    ]


def _sentences(row: Row) -> tuple[JudgedSentence, ...]:
    found = tuple(_sentence(one) for one in row.rows("summary_sentences"))
    if not found:
        row.refuse("the summary has no sentences; take the line away or give it some")
    return found


def _sentence(row: Row) -> JudgedSentence:
    responses = tuple(
        Vote(str(one.whole("worker_id")), _VOTES[one.label("response", tuple(_VOTES))])
        for one in row.rows("responses")
    )
    if not responses:
        row.refuse("no worker has judged the sentence; take it away or add a response")
    workers = Counter(response.worker for response in responses)
    for worker, count in workers.items():
        if count > 1:
            row.refuse(f"worker {worker} has judged the sentence twice; leave one of the responses")
    return JudgedSentence(row.text("sentence"), responses)


def read_triplets(path: Path) -> list[Triplet]:
    """Read Falke's sentence pairs, each with its source sentence."""
    return [_triplet(row) for row in json_entries(path).values()]


def _triplet(row: Row) -> Triplet:
    article = row.text("article_id")
    return Triplet(
        f"{article}-{row.text('correct_sent_id')}-{row.text('incorrect_sent_id')}",
        article,
        row.text("article_sent"),
        row.text("correct_sent"),
        row.text("incorrect_sent"),
    )


def read_collection(path: Path, scores: Sequence[str]) -> Collection:
    """Read a collection whose summaries have these human scores."""
    notes: Counter[str] = Counter()
    articles: list[JudgedArticle] = []
    for key, row in json_entries(path).items():
        article = _article(key, row, scores, notes)
        articles.append(_in_order(article, articles[0]) if articles else article)
    return Collection(tuple(articles), dict(notes))


def _article(key: str, row: Row, scores: Sequence[str], notes: Counter[str]) -> JudgedArticle:
    source = row.text("src")
    references = text_list(row, "ref_summs") if "ref_summs" in row.fields else (row.text("ref_summ"),)
    # A set that was published without references was stored with the source in their place. A source is no
    # reference: what is compared with it is not what a paper means by ROUGE against references.
    if any(reference == source for reference in references):
        notes["articles whose reference is the source itself, left without"] += 1
        references = tuple(reference for reference in references if reference != source)
    systems = row.inner("sys_summs")
    summaries = tuple(_summary(str(system), systems.inner(system), scores) for system in systems.fields)
    if not summaries:
        row.refuse("no system has summarised the article; take the entry away or add a summary")
    return JudgedArticle(key, source, references, summaries, row.where)


def _summary(system: str, row: Row, scores: Sequence[str]) -> ScoredSummary:
    given = row.inner("scores")
    return ScoredSummary(
        system, row.text("sys_summ"), {score: finite_number(given, score) for score in scores}
    )


def _in_order(article: JudgedArticle, first: JudgedArticle) -> JudgedArticle:
    """Return the article with its summaries in the first one's order of systems; it must have the same ones."""
    mine = {summary.system: summary for summary in article.summaries}
    wanted = [summary.system for summary in first.summaries]
    if set(mine) != set(wanted):
        odd = sorted(set(mine) ^ set(wanted))[0]
        there = "has" if odd in mine else "lacks"
        raise EnsueError(
            f"{article.where}: the article {there} a summary by {odd!r}, unlike the first one ({first.where}); "
            "every article needs the same systems."
        )
    return replace(article, summaries=tuple(mine[one] for one in wanted))


def json_entries(path: Path) -> dict[str, Row]:
    """Read the entries of a file that holds an object of objects or a list of objects; there must be one.

    They go by their keys, or by their numbers from 0 in a list.
    """
    text = read_text(path)
    try:
        held = json.loads(text)
    except json.JSONDecodeError as error:
        _refuse(path, error.lineno, f"this is not JSON ({error.msg})")
    except (RecursionError, ValueError):
        _refuse(path, 1, "this is not JSON (nested too deeply or too long)")
    if not isinstance(held, dict | list):
        _refuse(path, 1, "the file is neither a JSON object nor a JSON list")
    found: dict[str, Row] = {}
    line, counted = 1, 0
    for key, start, fields in _entries(text):
        line, counted = line + text.count("\n", counted, start), start
        where = f"{path}, line {line}"
        if key in found:
            _refuse(path, line, f"the key {key!r} is there twice")
        if not isinstance(fields, dict):
            raise EnsueError(f"{where}: entry {key!r} is not a JSON object.")
        found[key] = Row(where, fields)
    if not found:
        raise EnsueError(f"{path} has no entries; download it again or take it away.")
    return found


def _entries(text: str) -> Iterator[tuple[str, int, object]]:
    """Yield the key, the place and the value of each entry of what is known to be a JSON object or list."""
    opening = _after_gap(text, 0)
    at, number = _after_gap(text, opening + 1), 0
    while text[at] not in "}]":
        key = str(number)
        if text[opening] == "{":
            key, at = _DECODER.raw_decode(text, at)
            at = _after_gap(text, at)
        fields, end = _DECODER.raw_decode(text, at)
        yield key, at, fields
        at, number = _after_gap(text, end), number + 1


def _after_gap(text: str, at: int) -> int:
    while text[at] in _GAP:
        at += 1
    return at


def _refuse(path: Path, line: int, what: str) -> NoReturn:
    raise EnsueError(f"{path}, line {line}: {what}; download the file again.")


def finite_number(row: Row, name: str) -> float:
    """Return a finite number of a row, of a size that can be reckoned with."""
    return row.score(name, -LARGEST, LARGEST)


def text_list(row: Row, name: str) -> tuple[str, ...]:
    """Return a list of texts of a row, none of them blank."""
    value = row.value(name)
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        row.refuse(f"{name!r} is not a list of texts")
    for place, one in enumerate(value, 1):
        if not one.strip():
            row.refuse(f"text {place} of {name!r} is empty")
    return tuple(value)


def read_text(path: Path) -> str:
    """Read a file as UTF-8 text; what is not is named by its line."""
    return "".join(line for _, line in text_lines(path, newline=""))
