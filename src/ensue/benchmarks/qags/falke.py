"""Falke et al.'s data (2019): sentences to be ranked by consistency, and whole summaries to choose from."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ensue.benchmarks.nlu.files import Row
from ensue.benchmarks.qags.files import Entry, json_entries
from ensue.errors import EnsueError

PAIRS = "val_sentence_pairs.json"
RERANKING = "val_reranking.json"
TRIPLETS = 373
ARTICLES = 107
_LABELS = ("Correct", "Incorrect")


class Triplet(NamedTuple):
    """A source sentence, a sentence consistent with it, and one that is not; `cluster` is its article."""

    id: str
    cluster: str
    source: str
    consistent: str
    inconsistent: str
    where: str = ""


class LabelledSentence(NamedTuple):
    """A sentence of a summary, and whether it is consistent with the article."""

    text: str
    consistent: bool


class Choice(NamedTuple):
    """One summary of an article; it is consistent where all of its sentences are."""

    id: str
    sentences: tuple[LabelledSentence, ...]

    @property
    def text(self) -> str:
        return " ".join(sentence.text for sentence in self.sentences)

    @property
    def consistent(self) -> bool:
        return all(sentence.consistent for sentence in self.sentences)


class Choices(NamedTuple):
    """The summaries of one article, one of which is to be chosen; the article's text is not in the data."""

    article: str
    summaries: tuple[Choice, ...]
    where: str = ""


def read_triplets(folder: Path) -> list[Triplet]:
    """The sentence pairs, each with its source sentence."""
    return [_triplet(entry) for entry in json_entries(_file(folder, PAIRS))]


def read_choices(folder: Path) -> list[Choices]:
    """The articles' summaries, each labelled sentence by sentence."""
    return [
        Choices(entry.key, tuple(_choice(entry.row, name) for name in entry.row.fields), entry.row.where)
        for entry in json_entries(_file(folder, RERANKING))
    ]


def _file(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_file():
        raise EnsueError(f"{folder} has no {name}; name the folder of Falke's data with --data.")
    return path


def _triplet(entry: Entry) -> Triplet:
    row = entry.row
    article = row.text("article_id")
    return Triplet(
        f"{article}-{row.text('correct_sent_id')}-{row.text('incorrect_sent_id')}",
        article,
        row.text("article_sent"),
        row.text("correct_sent"),
        row.text("incorrect_sent"),
        row.where,
    )


def _choice(article: Row, name: str) -> Choice:
    row = article.inner(name)
    listed = row.inner("sents")
    found = tuple(_sentence(listed.inner(number)) for number in listed.fields)
    if not found:
        row.refuse("the summary has no sentences; take it away or give it some")
    choice = Choice(str(name), found)
    if (row.label("label", _LABELS) == "Correct") != choice.consistent:
        row.refuse("the summary's label is not that of its sentences; correct one of them")
    return choice


def _sentence(row: Row) -> LabelledSentence:
    return LabelledSentence(row.text("text"), row.label("label", _LABELS) == "Correct")
