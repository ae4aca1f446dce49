"""Read SQuAD 1.1 and 2.0 (articles of paragraphs, their questions and answers), and split it by article."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ensue.errors import EnsueError
from ensue.jsonl import read_lines, read_object


class Answer(NamedTuple):
    """An answer somebody marked: its words and the character at which they begin."""

    text: str
    start: int


class Question(NamedTuple):
    """A question about a paragraph; `answers` is empty where it is impossible to answer from it."""

    id: str
    question: str
    answers: tuple[Answer, ...]


class Paragraph(NamedTuple):
    """A text and what is asked about it."""

    context: str
    questions: tuple[Question, ...]


class Article(NamedTuple):
    """All paragraphs of one article, which belong on one side of any split."""

    id: str
    paragraphs: tuple[Paragraph, ...]


class Example(NamedTuple):
    """One question with its text, by itself."""

    id: str
    article: str
    context: str
    question: str
    answers: tuple[Answer, ...]


def read_squad(path: str | Path) -> list[Article]:
    """Read the articles of one file: the official JSON, or JSON lines with a question each (as hubs give SQuAD)."""
    path = Path(path).expanduser()
    found = merged(_lines(path) if path.suffix in (".jsonl", ".ndjson") else _official(path))
    if not any(paragraph.questions for article in found for paragraph in article.paragraphs):
        raise EnsueError(f"{path} asks no question; name a file in SQuAD's format.")
    return found


def read_squads(paths: Iterable[str | Path]) -> list[Article]:
    """Read the articles of several files; take what they share (SQuAD 2.0 repeats 1.1) once."""
    return merged(article for path in paths for article in read_squad(path))


def merged(articles: Iterable[Article]) -> list[Article]:
    """Join articles of one id and their equal paragraphs; keep questions of one id once, in order."""
    table: dict[str, dict[str, dict[str, Question]]] = {}
    for article in articles:
        paragraphs = table.setdefault(article.id, {})
        for paragraph in article.paragraphs:
            questions = paragraphs.setdefault(paragraph.context, {})
            for question in paragraph.questions:
                questions.setdefault(question.id, question)
    return [
        Article(name, tuple(Paragraph(context, tuple(asked.values())) for context, asked in held.items()))
        for name, held in table.items()
    ]


def examples_of(articles: Iterable[Article]) -> list[Example]:
    """Return every question of the articles with its text, in order."""
    return [
        Example(question.id, article.id, paragraph.context, question.question, question.answers)
        for article in articles
        for paragraph in article.paragraphs
        for question in paragraph.questions
    ]


def _official(path: Path) -> Iterator[Article]:
    """Read the articles of the official layout: data, paragraphs, qas."""
    document = read_object(path)
    for number, entry in enumerate(_field(document, "data", list, f"{path}"), start=1):
        where = f"{path}, article {number}"
        title = entry.get("title") if isinstance(entry, dict) else None
        paragraphs = []
        for place, held in enumerate(_field(entry, "paragraphs", list, where), start=1):
            there = f"{where}, paragraph {place}"
            context = _field(held, "context", str, there)
            asked = _field(held, "qas", list, there)
            paragraphs.append(Paragraph(context, tuple(_question(one, context, there) for one in asked)))
        yield Article(str(title) if title else f"article {number}", tuple(paragraphs))


def _lines(path: Path) -> Iterator[Article]:
    """Read one article a line, with one question; `merged` puts together what belongs together."""
    for number, row in read_lines(path):
        where = f"{path}, line {number}"
        context = _field(row, "context", str, where)
        # Without a title each text is an article of its own, which keeps its questions together.
        title = row.get("title") or context
        yield Article(str(title), (Paragraph(context, (_question(row, context, where),)),))


def _question(row: Any, context: str, where: str) -> Question:
    question = _field(row, "question", str, where)
    name = str(_field(row, "id", (str, int), where))
    there = f"{where}, question {name}"
    answers = () if row.get("is_impossible") else tuple(_answers(row, context, there))
    return Question(name, question, answers)


def _answers(row: Mapping[str, Any], context: str, where: str) -> Iterator[Answer]:
    """Read answers given as a list of objects (official) or as an object of lists (hub)."""
    held = _field(row, "answers", (list, dict), where)
    if isinstance(held, dict):
        texts = _field(held, "text", list, where)
        starts = _field(held, "answer_start", list, where)
        if len(texts) != len(starts):
            raise EnsueError(f"{where} has {len(texts)} answers but {len(starts)} places; mend or remove it.")
        held = [{"text": text, "answer_start": start} for text, start in zip(texts, starts, strict=True)]
    for one in held:
        text = _field(one, "text", str, where)
        start = _field(one, "answer_start", int, where)
        if not text or start < 0 or context[start : start + len(text)] != text:
            raise EnsueError(
                f"{where} has the answer {text[:40]!r}, which does not stand at character {start} of its text; "
                f"mend or remove it."
            )
        yield Answer(text, start)


def _field(row: Any, name: str, kind: Any, where: str) -> Any:
    """Return a field of the right kind, or say in one sentence what is wrong."""
    value = row.get(name) if isinstance(row, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        fault = "no" if value is None else "an unusable"
        raise EnsueError(f"{where} has {fault} {name!r}; SQuAD's format has one there.")
    return value


class Split(NamedTuple):
    """Articles to learn from, to choose by, and to be measured on."""

    train: list[Article]
    dev: list[Article]
    test: list[Article]


def split_articles(
    articles: Sequence[Article], *, dev_share: float = 0.1, test_share: float = 0.1, seed: int = 0
) -> Split:
    """Split articles by share of their number, at least one in each part that is asked for.

    What goes where is decided by a hash of the seed and the article's id, so two trainings on files of the same
    articles (question answering, question generation) hold out the same ones. A share of 0 leaves its part empty.
    """
    if not (dev_share > 0 and test_share >= 0 and dev_share + test_share < 1):
        raise EnsueError(
            f"Shares of {dev_share:g} for dev and {test_share:g} for test are invalid: dev needs more than 0, and "
            f"both together less than 1."
        )
    order = sorted(articles, key=lambda article: hashlib.sha256(f"{seed}:{article.id}".encode()).digest())
    dev = max(round(len(order) * dev_share), 1)
    test = max(round(len(order) * test_share), 1) if test_share else 0
    if dev + test >= len(order):
        raise EnsueError(
            f"There are only {len(order)} articles, too few to hold out {dev + test} of them; name more --data."
        )
    chosen = {article.id: place for place, article in enumerate(order)}
    parts = Split([], [], [])
    for article in articles:
        place = chosen[article.id]
        (parts.test if place < test else parts.dev if place < test + dev else parts.train).append(article)
    return parts
