"""SQuALITY's files as stories with questions and their reference summaries; every fault names file and line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ensue.benchmarks.nlu.files import Found, Row, jsonl_rows
from ensue.benchmarks.squality.documents import plain_text
from ensue.errors import EnsueError

REFERENCES = 4
QUESTIONS = 5


class Response(NamedTuple):
    """A summary, who wrote it, and the name its publishers gave it.

    Published files hold neither the reviewers' rankings nor the feedback; those of the evaluation of models are
    in `human_eval`.
    """

    writer: str
    uid: str
    text: str


class Question(NamedTuple):
    """A question about a story with its reference summaries; the first asks for the plot in every story."""

    number: int
    text: str
    responses: tuple[Response, ...]

    @property
    def references(self) -> tuple[str, ...]:
        return tuple(response.text for response in self.responses)

    @property
    def asks_for_plot(self) -> bool:
        return self.number == 1


class Story(NamedTuple):
    """A story under its number at Project Gutenberg; `document` is as published, with whatever markup it has."""

    id: str
    uid: str
    license: str
    document: str
    questions: tuple[Question, ...]

    @property
    def text(self) -> str:
        """The story without markup, for a model to read."""
        return plain_text(self.document)


class Example(NamedTuple):
    """One thing to summarise: a story and a question."""

    story: Story
    question: Question

    @property
    def id(self) -> str:
        return f"{self.story.id}/{self.question.number}"


def read_stories(path: Path) -> list[Story]:
    """The stories of a file, in order."""
    stories: list[Story] = []
    lines: dict[str, str] = {}
    for row in jsonl_rows(Found(path)):
        story = _story(row)
        if story.id in lines:
            row.refuse(f"story {story.id} was there before ({lines[story.id]}); take one of the two away")
        lines[story.id] = row.where.rpartition(", ")[2]
        stories.append(story)
    return stories


def examples(stories: list[Story]) -> Iterator[Example]:
    """Every story with each of its questions, in order."""
    return (Example(story, question) for story in stories for question in story.questions)


def check_references(stories: list[Story], path: Path, count: int = REFERENCES) -> None:
    """Refuse stories in which a question has another number of summaries than `count`."""
    for story in stories:
        for question in story.questions:
            if len(question.responses) != count:
                raise EnsueError(
                    f"{path}, story {story.id}, question {question.number} has {_some(len(question.responses))} "
                    f"where {count} are expected; leave it out or measure it by itself."
                )


def _story(row: Row) -> Story:
    about = row.inner("metadata")
    questions = tuple(_question(inner) for inner in row.rows("questions"))
    if not questions:
        row.refuse("there is no question; a story needs at least one")
    numbers = [question.number for question in questions]
    if len(set(numbers)) != len(numbers):
        row.refuse("two questions have the same number")
    return Story(
        id=about.text("passage_id"),
        uid=about.any_text("uid") if "uid" in about.fields else "",
        license=about.any_text("license") if "license" in about.fields else "",
        document=row.text("document"),
        questions=questions,
    )


def _question(row: Row) -> Question:
    number = row.whole("question_number")
    if number < 1:
        row.refuse("'question_number' is 0 where questions are counted from 1")
    responses = tuple(_response(inner) for inner in row.rows("responses"))
    if not responses:
        row.refuse("there is no response; a question needs at least one summary")
    return Question(number, row.text("question_text"), responses)


def _response(row: Row) -> Response:
    writer = row.value("worker_id")
    if isinstance(writer, int) and not isinstance(writer, bool):
        writer = str(writer)
    if not isinstance(writer, str):
        row.refuse("'worker_id' is neither a name nor a number")
    return Response(writer, row.any_text("uid") if "uid" in row.fields else "", row.text("response_text"))


def _some(count: int) -> str:
    return "one summary" if count == 1 else f"{count} summaries"
