"""SQuAD to QNLI: does the sentence hold the answer to the question, where word overlap alone does not tell.

The selection is that of the paper's appendix (A.1.1.1). Each sentence of a paragraph is compared with the question.
Every question is kept whose most similar sentence does not hold the answer; and as many of those whose most similar
sentence does, the ones in which another sentence comes closest. Each gives two pairs, which is how the released files
are made (their development and test sets together have every question once with either label): the sentence with the
answer, and the most similar one without it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.nlu.builders.common import SPLITS, BuiltRows, divide, one_line, write_task
from ensue.benchmarks.output import BuildReport
from ensue.errors import EnsueError
from ensue.jsonl import read_object
from ensue.models.protocols import Encoder
from ensue.text.sentences import split_sentences

_TOKEN = re.compile(r"\w+|[^\w\s]")
_WORD = re.compile(r"\w+")

# For each text the similarity of the question with it.
Similarity = Callable[[str, Sequence[str]], list[float]]


class QnliQuestion(NamedTuple):
    """A question with the sentences of its paragraph, and which of them hold the answer."""

    article: str
    text: str
    sentences: tuple[str, ...]
    answers: frozenset[int]


class QnliCandidate(NamedTuple):
    """A question's best sentence with the answer and its best without, and by how much the first is more similar."""

    question: QnliQuestion
    right: str
    wrong: str
    margin: float


def build_qnli(
    source: str,
    output: str | Path,
    *,
    encoder: Encoder | None = None,
    dev: float = 0.1,
    test: float = 0.1,
    seed: int = 0,
    overwrite: bool = False,
) -> BuildReport:
    """Build QNLI from a SQuAD file; articles are never in two splits. Without an encoder, words are counted."""
    made = BuiltRows()
    similarity = cosine_similarity(encoder) if encoder else overlap
    candidates = [
        one for question in read_squad(Path(source), made) if (one := judged(question, similarity, made))
    ]
    splits = divide((one.question.article for one in candidates), dev, test, seed) if candidates else {}
    for split in SPLITS:
        for one in select([each for each in candidates if splits[each.question.article] == split], made):
            for sentence, label in ((one.right, "entailment"), (one.wrong, "not_entailment")):
                made.rows[split].append({"question": one.question.text, "sentence": sentence, "label": label})
    name = encoder.card.name if encoder else "overlap"
    settings = {"similarity": name, "dev": dev, "test": test, "seed": seed}
    columns = ("question", "sentence", "label")
    return write_task("QNLI", output, made, source, columns, settings, overwrite=overwrite)


def judged(question: QnliQuestion, similarity: Similarity, made: BuiltRows) -> QnliCandidate | None:
    """Return the question's two best sentences; None, and counted, where it has no answer or nothing beside it."""
    if not question.answers:
        made.skipped["questions whose answer is in no sentence"] += 1
        return None
    others = [place for place in range(len(question.sentences)) if place not in question.answers]
    if not others:
        made.skipped["questions without another sentence"] += 1
        return None
    likeness = similarity(question.text, question.sentences)
    right = max(sorted(question.answers), key=likeness.__getitem__)
    wrong = max(others, key=likeness.__getitem__)
    margin = likeness[right] - likeness[wrong]
    return QnliCandidate(question, question.sentences[right], question.sentences[wrong], margin)


def select(candidates: Sequence[QnliCandidate], made: BuiltRows) -> list[QnliCandidate]:
    """Return all candidates with a wrong sentence on top, and as many of the closest others, in their order."""
    misleading = [place for place, one in enumerate(candidates) if one.margin <= 0]
    honest = [place for place, one in enumerate(candidates) if one.margin > 0]
    close = sorted(honest, key=lambda place: candidates[place].margin)[: len(misleading)]
    made.notes["questions whose most similar sentence lacks the answer"] += len(misleading)
    made.notes["questions whose most similar sentence has it, with a close second"] += len(close)
    made.skipped["questions with an easy answer"] += len(honest) - len(close)
    return [candidates[place] for place in sorted([*misleading, *close])]


def overlap(question: str, sentences: Sequence[str]) -> list[float]:
    """Return the cosine of the two sets of words: shared words over the geometric mean of both sizes."""
    asked = _words(question)
    found = []
    for sentence in sentences:
        said = _words(sentence)
        found.append(len(asked & said) / math.sqrt(len(asked) * len(said)) if asked and said else 0.0)
    return found


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def cosine_similarity(encoder: Encoder) -> Similarity:
    """Return the cosine of the encoder's vectors; words and marks are divided, as word vectors want them."""

    def similarity(question: str, sentences: Sequence[str]) -> list[float]:
        import numpy as np

        texts = [" ".join(_TOKEN.findall(text)) for text in (question, *sentences)]
        vectors = encoder.encode(texts).astype(np.float64)
        lengths = np.linalg.norm(vectors, axis=1)
        products = vectors[1:] @ vectors[0]
        scale = lengths[1:] * lengths[0]
        found: list[float] = np.divide(products, scale, out=np.zeros_like(products), where=scale > 0).tolist()
        return found

    return similarity


def read_squad(path: Path, made: BuiltRows) -> Iterator[QnliQuestion]:
    """Return the questions of a SQuAD file (1.1 or 2.0); those marked as having no answer are counted."""
    for number, article in enumerate(_articles(path)):
        title = str(article.get("title", number))
        for place, paragraph in enumerate(_list(article, "paragraphs", f"{path}, {title}")):
            where = f"{path}, {title}, paragraph {place + 1}"
            if not isinstance(paragraph, dict) or not isinstance(paragraph.get("context"), str):
                raise EnsueError(f"{where}: there is no context.")
            context = paragraph["context"]
            sentences = tuple(split_sentences(context))
            for asked in _list(paragraph, "qas", where):
                if not isinstance(asked, dict) or not isinstance(asked.get("question"), str):
                    raise EnsueError(f"{where}: an entry of 'qas' has no question.")
                if asked.get("is_impossible"):
                    made.skipped["questions marked as without answer"] += 1
                    continue
                spans = _spans(asked, context, where, made)
                yield QnliQuestion(
                    title, one_line(asked["question"]), sentences, holding(context, sentences, spans)
                )


def holding(context: str, sentences: Sequence[str], spans: Sequence[tuple[int, int]]) -> frozenset[int]:
    """Return the sentences that have one of the spans whole.

    Splitting changes white space alone, so places are compared by the number of other characters before them.
    """
    before = list(accumulate((not character.isspace() for character in context), initial=0))
    ends = list(accumulate(len("".join(sentence.split())) for sentence in sentences))
    starts = [0, *ends[:-1]]
    return frozenset(
        place
        for start, end in spans
        for place in range(len(sentences))
        if starts[place] <= before[start] and before[end] <= ends[place]
    )


def _spans(asked: dict[str, Any], context: str, where: str, made: BuiltRows) -> list[tuple[int, int]]:
    found = []
    for answer in _list(asked, "answers", where):
        about = answer if isinstance(answer, dict) else {}
        text, start = about.get("text"), about.get("answer_start")
        if not isinstance(text, str) or not isinstance(start, int) or isinstance(start, bool):
            raise EnsueError(f"{where}: an answer has no text or no answer_start.")
        if text.strip() and start >= 0 and context[start : start + len(text)] == text:
            found.append((start, start + len(text)))
        else:
            made.notes["answers that are not where they are said to be"] += 1
    return found


def _articles(path: Path) -> list[dict[str, Any]]:
    content = read_object(path.expanduser())
    articles = content.get("data")
    if not isinstance(articles, list) or not all(isinstance(article, dict) for article in articles):
        raise EnsueError(f"{path} has no list of articles called 'data'; give a SQuAD file.")
    return articles


def _list(value: dict[str, Any], key: str, where: str) -> list[Any]:
    found = value.get(key)
    if not isinstance(found, list):
        raise EnsueError(f"{where}: there is no list called {key!r}.")
    return found
