"""QAGS's human judgments: articles, the sentences of a summary, and what each worker said of each sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ensue.benchmarks.nlu.files import Found, Row, jsonl_rows
from ensue.errors import EnsueError
from ensue.text.sentences import split_sentences

# The sets of judgments by the name of their file, with the number of summaries the paper states.
FILES: Mapping[str, str] = {"cnndm": "mturk_cnndm.jsonl", "xsum": "mturk_xsum.jsonl"}
SIZES: Mapping[str, int] = {"cnndm": 235, "xsum": 239}
# The sets whose articles begin with their reference: XSum's was the article's head before it was taken away as the
# summary, and was put back for the judgments (§4.5.1). It is one sentence. CNN/DM's references are not in the data.
REFERENCE_FIRST = frozenset({"xsum"})
_ANSWERS: Mapping[str, bool] = {"yes": True, "no": False}


class Response(NamedTuple):
    """One worker's word on one sentence."""

    worker: str
    consistent: bool


class JudgedSentence(NamedTuple):
    """A sentence of a summary and its judgments, at least one."""

    text: str
    responses: tuple[Response, ...]


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
    def first_sentence(self) -> str:
        """The article's first sentence, which in a set of `REFERENCE_FIRST` is the reference."""
        return split_sentences(self.article)[0]


def read_judgments(folder: Path, name: str) -> list[JudgedSummary]:
    """The judged summaries of one set, `cnndm` or `xsum`, within QAGS's data folder."""
    if name not in FILES:
        raise EnsueError(f"QAGS has no judgments {name!r}; there are {' and '.join(FILES)}.")
    path = folder / FILES[name]
    if not path.is_file():
        raise EnsueError(f"{folder} has no {FILES[name]}; name QAGS's data folder with --data.")
    return read_judgment_file(path, name)


def read_judgment_file(path: Path, name: str) -> list[JudgedSummary]:
    """The judged summaries of a file; `name` goes before each one's number to make its id."""
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
    responses = tuple(_response(one) for one in row.rows("responses"))
    if not responses:
        row.refuse("no worker has judged the sentence; take it away or add a response")
    workers = [response.worker for response in responses]
    for worker in workers:
        if workers.count(worker) > 1:
            row.refuse(f"worker {worker} has judged the sentence twice; leave one of the responses")
    return JudgedSentence(row.text("sentence"), responses)


def _response(row: Row) -> Response:
    said = row.label("response", tuple(_ANSWERS))
    return Response(str(row.whole("worker_id")), _ANSWERS[said])
