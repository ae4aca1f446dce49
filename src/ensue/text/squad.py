"""Reads SQuAD 1.1 and 2.0: articles of paragraphs, the questions asked about each, and where the answers stand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ensue.errors import EnsueError


class Answer(NamedTuple):
    """An answer somebody marked: its words and the character at which they begin."""

    text: str
    start: int


class Question(NamedTuple):
    """A question about a paragraph; `answers` is empty where it is impossible to answer from it."""

    id: str
    question: str
    answers: tuple[Answer, ...]
    impossible: bool


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
    """The articles of one file: the official JSON, or JSON lines with a question each (as hubs give SQuAD)."""
    path = Path(path).expanduser()
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise EnsueError(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8.") from None
    except OSError as error:
        raise EnsueError(f"{path} cannot be read: {error.strerror}; name a file in SQuAD's format.") from None
    found = merged(_lines(path, text) if path.suffix in (".jsonl", ".ndjson") else _official(path, text))
    if not any(paragraph.questions for article in found for paragraph in article.paragraphs):
        raise EnsueError(f"{path} asks no question; name a file in SQuAD's format.")
    return found


def read_squads(paths: Iterable[str | Path]) -> list[Article]:
    """The articles of several files, what they share (SQuAD 2.0 repeats 1.1) taken once."""
    return merged(article for path in paths for article in read_squad(path))


def merged(articles: Iterable[Article]) -> list[Article]:
    """Articles of one id joined, their equal paragraphs joined, questions of one id taken once, order kept."""
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
    """Every question of the articles with its text, in order."""
    return [
        Example(question.id, article.id, paragraph.context, question.question, question.answers)
        for article in articles
        for paragraph in article.paragraphs
        for question in paragraph.questions
    ]


def _official(path: Path, text: str) -> Iterator[Article]:
    """Articles of the official layout: data, paragraphs, qas."""
    try:
        document = json.loads(text)
    except ValueError as error:
        hint = "; name it .jsonl if it holds one question a line" if "Extra data" in str(error) else ""
        raise EnsueError(f"{path} is not readable JSON: {error}{hint}.") from None
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


def _lines(path: Path, text: str) -> Iterator[Article]:
    """One article a line, with one question; `merged` puts together what belongs together."""
    # Not splitlines, which also breaks at separators that JSON allows inside a string.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except ValueError as error:
            raise EnsueError(f"{where} is not readable JSON: {error}; mend or remove the line.") from None
        context = _field(row, "context", str, where)
        # Without a title each text is an article of its own, which keeps its questions together.
        title = row.get("title") or context
        yield Article(str(title), (Paragraph(context, (_question(row, context, where),)),))


def _question(row: Any, context: str, where: str) -> Question:
    question = _field(row, "question", str, where)
    name = str(_field(row, "id", (str, int), where))
    there = f"{where}, question {name}"
    impossible = bool(row.get("is_impossible", False))
    answers = () if impossible else tuple(_answers(row, context, there))
    return Question(name, question, answers, not answers)


def _answers(row: Mapping[str, Any], context: str, where: str) -> Iterator[Answer]:
    """Answers as a list of objects (official) or as an object of lists (hub)."""
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
    """A field of the right kind, or one sentence about what is wrong."""
    value = row.get(name) if isinstance(row, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        fault = "no" if value is None else "an unusable"
        raise EnsueError(f"{where} has {fault} {name!r}; SQuAD's format has one there.")
    return value
