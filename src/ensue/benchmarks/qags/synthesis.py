"""Questions made up about plain texts, kept where an answerer agrees: training data that nobody had to write."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.nlu.files import Found, jsonl_rows
from ensue.benchmarks.qags.choices import STRICT, Agree, Asking, Keeping
from ensue.benchmarks.qags.files import read_text
from ensue.benchmarks.qags.impossible import add_impossible
from ensue.benchmarks.qags.pipeline import Examined, Pair, Parts, examine
from ensue.benchmarks.qags.steps import Steps
from ensue.errors import EnsueError
from ensue.progress import Progress

# How the answer must agree with the expected one: no question without an answer is worth training on.
_AGREE: dict[str, Agree] = {"same": "same", "overlap": "overlap"}


class Passage(NamedTuple):
    """A text to be asked about and the article it is of; texts of one title are never on two sides of a split."""

    title: str
    text: str


@dataclass(frozen=True)
class Made:
    """What was made: the file's content, how many questions it answers and how many not, and what was left out."""

    document: dict[str, Any]
    questions: int
    impossible: int
    left_out: dict[str, int]


def read_passages(path: Path, *, text: str = "text", title: str = "title") -> list[Passage]:
    """The passages of a file: JSON lines with a text and perhaps a title, or plain text divided by blank lines."""
    if path.suffix in (".jsonl", ".ndjson"):
        rows = ((row.text(text), row.fields.get(title)) for row in jsonl_rows(Found(path, None)))
        found = [Passage(str(named or _name(said)), said) for said, named in rows]
    else:
        blocks = (" ".join(block.split()) for block in read_text(path).split("\n\n"))
        found = [Passage(_name(block), block) for block in blocks if block]
    if not found:
        raise EnsueError(f"{path} has no text to ask about.")
    return list(dict.fromkeys(found))


def asking(answers: int, beams: int, seed: int) -> Asking:
    """One question about each of so many answers, found as QAGS finds its questions."""
    return replace(STRICT.asking, answers=answers, count=1, beams=beams, max_tokens=32, seed=seed)


def keeping(questions: int, agree: str) -> Keeping:
    """So many questions a passage at most, and none that does not pass."""
    if agree not in _AGREE:
        raise EnsueError(f"An agreement of {agree} will not do: it is {' or '.join(_AGREE)}.")
    return Keeping(questions, agree=_AGREE[agree], padding="no")


def make_questions(
    passages: Sequence[Passage],
    parts: Parts,
    asked: Asking,
    kept: Keeping,
    *,
    impossible: float = 0.0,
    steps: Steps | None = None,
    progress: Progress | None = None,
) -> Made:
    """Questions about each passage that the answerer answers as they were meant; the share `impossible` of them also
    to a passage that does not answer them."""
    pairs = [Pair(passage.text, passage.text) for passage in passages]
    examined = examine(pairs, parts, asked, [kept], steps=steps, progress=progress)
    left_out: Counter[str] = Counter()
    articles: dict[str, list[dict[str, Any]]] = {}
    total = 0
    for passage, one in zip(passages, examined, strict=True):
        left_out.update(one.removed(kept))
        if asks := _asked(passage, one):
            articles.setdefault(passage.title, []).append({"context": passage.text, "qas": asks})
            total += len(asks)
        else:
            left_out["texts without a question"] += 1
    if not total:
        raise EnsueError("No question about these texts was answered as it was meant; nothing was written.")
    data = [{"title": title, "paragraphs": held} for title, held in articles.items()]
    refused = add_impossible(data, impossible, asked.seed) if impossible else 0
    return Made({"version": "ensue", "data": data}, total, refused, dict(left_out))


def _asked(passage: Passage, examined: Examined) -> list[dict[str, Any]]:
    places = examined.selections[0].places if examined.selections else ()
    chosen = [examined.proposals[place] for place in places]
    return [
        {
            "id": _name(f"{passage.text}\n{one.question}"),
            "question": one.question,
            "answers": [{"text": one.expected.text, "answer_start": one.expected.start}],
        }
        for one in chosen
    ]


def _name(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]
