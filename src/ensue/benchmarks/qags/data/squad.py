"""Questions made up about plain texts, kept where an answerer agrees: training data that nobody had to write.

Some may also be put to texts that do not answer them, though they share words: what an answerer learns to refuse by.
"""

from __future__ import annotations

import hashlib
import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.nlu.files import Found, jsonl_rows
from ensue.benchmarks.qags.data.files import read_text
from ensue.benchmarks.qags.pipeline import Examined, Pair, QagsModels, examine
from ensue.benchmarks.qags.questions import STRICT, Agree, Asking, Keeping
from ensue.errors import EnsueError
from ensue.progress import Progress, ignore
from ensue.records import Records

# How the answer must agree with the expected one: no question without an answer is worth training on.
_AGREE: dict[str, Agree] = {"same": "same", "overlap": "overlap"}
_WORD = re.compile(r"\w+")
# A word that more of the texts have says nothing about which of them is near.
_COMMON = 0.1
_FEW = 2
# So many of the nearest texts are tried.
_TRIED = 10


class Passage(NamedTuple):
    """A text to be asked about and the article it is of; texts of one title are never on two sides of a split."""

    title: str
    text: str


@dataclass(frozen=True)
class MadeQuestions:
    """What was made: the file's content, how many questions it answers and how many not, and what was left out."""

    document: dict[str, Any]
    questions: int
    impossible: int
    left_out: dict[str, int]


def read_passages(path: Path, *, text: str = "text", title: str = "title") -> list[Passage]:
    """Read the passages of a file: JSON lines with a text and perhaps a title, or text divided by blank lines."""
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
    """Return the rule of one question about each of so many answers, searched for as QAGS does."""
    return replace(STRICT.asking, answers=answers, count=1, beams=beams, max_tokens=32, seed=seed)


def keeping(questions: int, agree: str) -> Keeping:
    """Return the rule of so many questions a passage at most, and none that does not pass."""
    if agree not in _AGREE:
        raise EnsueError(f"Invalid agreement {agree!r}: expected {' or '.join(_AGREE)}.")
    return Keeping(questions, agree=_AGREE[agree], padding="no")


def make_questions(
    passages: Sequence[Passage],
    models: QagsModels,
    asked: Asking,
    kept: Keeping,
    *,
    impossible: float = 0.0,
    records: Records | None = None,
    progress: Progress = ignore,
) -> MadeQuestions:
    """Make questions about each passage that the answerer answers as they were meant.

    The share `impossible` of them is also put to a passage that does not answer them.
    """
    pairs = [Pair(passage.text, passage.text) for passage in passages]
    examined = examine(pairs, models, asked, [kept], records=records, progress=progress)
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
    return MadeQuestions({"version": "ensue", "data": data}, total, refused, dict(left_out))


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


def add_impossible(data: Sequence[Mapping[str, Any]], share: float, seed: int) -> int:
    """Put this share of all questions also to the nearest text of another article that lacks the answer; how many.

    `data` are articles in SQuAD's format, whose paragraphs get further questions.
    """
    places = [(article["title"], paragraph) for article in data for paragraph in article["paragraphs"]]
    near = _Near([f"{title} {paragraph['context']}" for title, paragraph in places])
    draw = random.Random(seed)
    added: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for own, (article_title, own_paragraph) in enumerate(places):
        for asked in own_paragraph["qas"]:
            if draw.random() > share:
                continue
            answer = asked["answers"][0]["text"].casefold()
            for other in near(asked["question"]):
                title, paragraph = places[other]
                if other != own and title != article_title and answer not in paragraph["context"].casefold():
                    named = {"id": f"{asked['id']}-x", "question": asked["question"]}
                    added[other].append({**named, "answers": [], "is_impossible": True})
                    break
    for other, asked_too in added.items():
        places[other][1]["qas"] += asked_too
    return sum(map(len, added.values()))


class _Near:
    """Which texts share the rarest words with a question."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._holders: dict[str, list[int]] = defaultdict(list)
        for place, text in enumerate(texts):
            for word in _words(text):
                self._holders[word].append(place)
        self._texts = len(texts)

    def __call__(self, question: str) -> list[int]:
        weight: dict[int, float] = defaultdict(float)
        for word in _words(question):
            holders = self._holders.get(word, [])
            if 0 < len(holders) <= max(_FEW, self._texts * _COMMON):
                rare = math.log(self._texts / len(holders))
                for place in holders:
                    weight[place] += rare
        # Equal ones in the order of the texts, so that nothing hangs on the order of words.
        return [place for place, _ in sorted(weight.items(), key=lambda one: (-one[1], one[0]))[:_TRIED]]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))
