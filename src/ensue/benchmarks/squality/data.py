"""SQuALITY's files: the versions and splits in a folder, their stories, and the text of a story whatever its markup.

Every fault names file and line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

from ensue.benchmarks.nlu.files import Found, Row, jsonl_rows
from ensue.errors import EnsueError

REFERENCES = 4
SPLITS = ("train", "dev", "test")
# The version the paper's tables are of.
PAPER_VERSION = "v1"

_ALIASES = {"validation": "dev", "valid": "dev", "val": "dev"}
_VERSION = re.compile(r"v\d+([-.]\d+)*", re.IGNORECASE)
_FORMS = ("txt", "html")
_SUFFIX = ".jsonl"


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
    """A story under its number at Project Gutenberg; `document` is as published, with whatever markup it has.

    A run's data are known by a digest of stories as Python prints them: names of classes and fields are part of it.
    """

    id: str
    uid: str
    license: str
    document: str
    questions: tuple[Question, ...]

    @property
    def text(self) -> str:
        """The story without markup, for a model to read."""
        return plain_text(self.document)


class StoryQuestion(NamedTuple):
    """One thing to summarise: a story and a question."""

    story: Story
    question: Question

    @property
    def id(self) -> str:
        return f"{self.story.id}/{self.question.number}"


class DataVersion(NamedTuple):
    """A published version, the form of its documents where it is published in several, and its files by split."""

    name: str
    form: str
    files: dict[str, Path]

    @property
    def label(self) -> str:
        return f"{self.name}/{self.form}" if self.form else self.name


def read_stories(path: Path) -> list[Story]:
    """Read the stories of a file, in order."""
    stories: list[Story] = []
    lines: dict[str, str] = {}
    for row in jsonl_rows(Found(path)):
        story = _story(row)
        if story.id in lines:
            row.refuse(f"story {story.id} was there before ({lines[story.id]}); take one of the two away")
        lines[story.id] = row.where.rpartition(", ")[2]
        stories.append(story)
    return stories


def examples(stories: list[Story]) -> Iterator[StoryQuestion]:
    """Yield every story with each of its questions, in order."""
    return (StoryQuestion(story, question) for story in stories for question in story.questions)


def check_references(stories: list[Story], path: Path, count: int = REFERENCES) -> None:
    """Refuse stories in which a question has another number of summaries than `count`."""
    for one in examples(stories):
        found = len(one.question.responses)
        if found != count:
            summaries = "one summary" if found == 1 else f"{found} summaries"
            raise EnsueError(
                f"{path}, story {one.story.id}, question {one.question.number} has {summaries} where {count} are "
                f"expected; leave it out or measure it by itself."
            )


def _story(row: Row) -> Story:
    about = row.inner("metadata")
    questions = tuple(_question(inner) for inner in row.rows("questions"))
    if not questions:
        row.refuse("there is no question; a story needs at least one")
    if len({question.number for question in questions}) != len(questions):
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


def find_file(data: Path, version: str | None = None, split: str = "test") -> tuple[Path, str]:
    """Return the file of a version and split in a folder, and the version's label; a file is taken as it is.

    Versions are named as their folders are, with or without the form of the documents: `v1`, `v1-3`, `v1-3/html`.
    Where none is asked for it is the paper's, or else the newest, as plain text where there is such.
    """
    if data.is_file():
        return data, version or _version_of(data)
    wanted, chosen = split_name(split), find_version(data, version)
    if wanted not in chosen.files:
        there = ", ".join(chosen.files)
        raise EnsueError(f"{chosen.label} in {data} has no {wanted}{_SUFFIX}; it has {there}.")
    return chosen.files[wanted], chosen.label


def find_version(data: Path, version: str | None = None) -> DataVersion:
    """Return a version in a folder; where none is asked for the paper's, or else the newest."""
    found = versions(data)
    if not found:
        raise EnsueError(f"{data} holds no SQuALITY: no folder such as v1 with {SPLITS[-1]}{_SUFFIX} in it.")
    if version is None:
        paper = [one for one in found if one.name == PAPER_VERSION]
        return (paper or [one for one in found if one.name == found[-1].name])[0]
    name, _, form = version.partition("/")
    for one in found:
        if one.name == _tidy(name) and form.lower() in ("", one.form):
            return one
    listed = ", ".join(one.label for one in found)
    raise EnsueError(f"{data} has no version {version!r}; it has {listed}.")


def split_name(split: str) -> str:
    """Return the name a split's file has.

    >>> split_name("validation")
    'dev'
    """
    name = _ALIASES.get(split.lower(), split.lower())
    if name not in SPLITS:
        raise EnsueError(f"There is no split {split!r}; choose one of {', '.join(SPLITS)}.")
    return name


def versions(folder: Path) -> list[DataVersion]:
    """Find the versions in a folder: the benchmark's own, its `data`, or that of one version; oldest first."""
    if not folder.is_dir():
        raise EnsueError(f"{folder} is not a folder; name SQuALITY's with --data.")
    home = folder.resolve()
    found = []
    for place in (folder, folder / "data"):
        if place.is_dir():
            inside = sorted(path for path in place.iterdir() if path.is_dir())
            found += [v for path in inside if _VERSION.fullmatch(path.name) for v in _forms(path, path.name)]
    if not found and _VERSION.fullmatch(home.name):
        found = _forms(folder, home.name)
    elif not found:
        form = home.name.lower()
        found = _one(folder, _version_of(folder), form if form in _FORMS else "")
    return sorted(
        found, key=lambda one: (list(map(int, re.findall(r"\d+", one.name))), one.form != _FORMS[0])
    )


def _forms(folder: Path, name: str) -> list[DataVersion]:
    """Find a version's files, right in its folder or in one folder for each form."""
    own = _one(folder, name, "")
    return own + [version for form in _FORMS for version in _one(folder / form, name, form)]


def _one(folder: Path, name: str, form: str) -> list[DataVersion]:
    files = {split: path for split in SPLITS if (path := folder / f"{split}{_SUFFIX}").is_file()}
    return [DataVersion(_tidy(name), form, files)] if files else []


def _tidy(name: str) -> str:
    """Write a version as its folder is named: `1.3` is `v1-3`."""
    lowered = name.lower().replace(".", "-")
    return f"v{lowered}" if lowered[:1].isdigit() else lowered


def _version_of(path: Path) -> str:
    """Return the version that the folders above a path say it is of."""
    named = [part for part in path.resolve().parts if _VERSION.fullmatch(part)]
    return _tidy(named[-1]) if named else "unnamed"


# Version 1 has no tags any more, but left the declaration of what the page was.
_DECLARATION = re.compile(r"\A\s*(?:<\?xml[^>]*>\s*)?<!DOCTYPE[^>]*>", re.IGNORECASE)
_TAGS = re.compile(r"</?(?:html|p|h[1-6]|div)\b[^>]*>", re.IGNORECASE)
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")
# What version 1.3's plain text has in place of a line break within a paragraph.
_LINE_BREAK = re.compile(r"\n {3}\n {2}(?=\S)")
_INDENT = re.compile(r"^[ \t]+|[ \t]+$", re.MULTILINE)
_BLOCKS = frozenset(
    {"p", "div", "h1", "h2", "h3", "h4", "h5", "h6", "li", "ul", "ol", "blockquote", "hr", "pre", "center"}
    | {"table", "tr", "section", "html", "body", "head", "title", "dl", "dt", "dd"}
)
_UNSEEN = frozenset({"script", "style", "title"})


def plain_text(document: str) -> str:
    """Return the words of a document; a page's paragraphs are parted by blank lines, lines within them are joined.

    >>> plain_text("<html><h1>The Mill</h1><p>It stood\\n still.</p></html>")
    'The Mill\\n\\nIt stood still.'
    """
    bare = _DECLARATION.sub("", document, count=1)
    if not _TAGS.search(bare):
        lines = _INDENT.sub("", _LINE_BREAK.sub("\n", bare))
        return _BLANK_LINES.sub("\n\n", lines).strip()
    parser = _PageText()
    parser.feed(bare)
    parser.close()
    parser.end_paragraph()
    return "\n\n".join(parser.paragraphs)


class _PageText(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.paragraphs: list[str] = []
        self._pieces: list[str] = []
        self._hidden = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _UNSEEN:
            self._hidden = tag
        elif tag in _BLOCKS:
            self.end_paragraph()
        elif tag == "br":
            self._pieces.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag == self._hidden:
            self._hidden = ""
        elif tag in _BLOCKS:
            self.end_paragraph()

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self._pieces.append(data)

    def end_paragraph(self) -> None:
        text = " ".join("".join(self._pieces).split())
        if text:
            self.paragraphs.append(text)
        self._pieces = []
