"""What a question generator learns from: questions with their answers as rows of tokens, in batches of like length.

Only a question's own tokens are learned: the loss is minus their log-probability.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from ensue.backends.qg.questioner import after_prompt, plain_prompt, question_tokens
from ensue.models.protocols import AnswerSpan
from ensue.scoring.network import Network
from ensue.text.io.squad import Answer, Article, examples_of

# So many batches are sorted by length together: enough that little is padded, few enough to stay mixed.
_POOLED = 20
Ints = npt.NDArray[np.int64]


class QuestionExample(NamedTuple):
    """A text, an answer in it, and the question somebody asked for that answer."""

    article: str
    context: str
    answer: AnswerSpan
    question: str


def question_examples(articles: Iterable[Article]) -> tuple[list[QuestionExample], dict[str, int]]:
    """Return one example a question, with the answer most people marked, and why other questions are left out.

    Questions without an answer cannot be asked for one, and an equal question to an equal answer is taken once.
    """
    skipped: Counter[str] = Counter()
    kept: dict[QuestionExample, None] = {}
    for row in examples_of(articles):
        if not row.answers:
            skipped["unanswerable"] += 1
            continue
        question = " ".join(row.question.split())
        if not question:
            skipped["empty question"] += 1
            continue
        answer = chosen_answer(row.answers)
        example = QuestionExample(row.article, row.context, answer, question)
        if example in kept:
            skipped["asked twice"] += 1
        kept[example] = None
    return list(kept), dict(skipped)


def chosen_answer(answers: Sequence[Answer]) -> AnswerSpan:
    """Return the answer most people marked; of equally many the one marked first.

    >>> chosen_answer([Answer("old mill", 4), Answer("mill", 8), Answer("mill", 8)])
    AnswerSpan(start=8, end=12)
    """
    (text, start), _ = Counter(answers).most_common(1)[0]
    return AnswerSpan(start, start + len(text))


class QuestionRow(NamedTuple):
    """Prompt, question and end token; the question begins at `start`."""

    ids: tuple[int, ...]
    start: int


class QuestionBatch(NamedTuple):
    """Rows padded on the right, and the places before each learned token: row, column, and the token itself."""

    ids: Ints
    rows: Ints
    columns: Ints
    targets: Ints


def make_rows(
    tokenizer: Any, bos: int | None, examples: Sequence[QuestionExample], limit: int
) -> tuple[list[QuestionRow], list[QuestionExample]]:
    """Return the rows that fit, tokenised exactly as a questioner does when it asks, and the examples they are of."""
    prompts = [plain_prompt(example.context, example.answer) for example in examples]
    texts = list(dict.fromkeys(prompt.shared for prompt in prompts))
    shared = dict(zip(texts, question_tokens(tokenizer, texts), strict=True))
    own = question_tokens(tokenizer, [prompt.own for prompt in prompts])
    said = question_tokens(tokenizer, [after_prompt(example.question) for example in examples])
    first = () if bos is None else (bos,)
    rows = []
    for prompt, mine, question in zip(prompts, own, said, strict=True):
        before = first + shared[prompt.shared] + mine
        rows.append(QuestionRow((*before, *question, int(tokenizer.eos_token_id)), len(before)))
    kept = [place for place, row in enumerate(rows) if len(row.ids) <= limit]
    return [rows[n] for n in kept], [examples[n] for n in kept]


def epoch_batches(rows: Sequence[QuestionRow], tokens: int, seed: int, epoch: int) -> Iterator[QuestionBatch]:
    """Yield all rows once in batches of like length under a budget of tokens, rows and batches in random order."""
    rng = np.random.default_rng([seed, epoch])
    order = rng.permutation(len(rows))
    mean = max(sum(len(row.ids) for row in rows) // max(len(rows), 1), 1)
    pool = max(tokens // mean, 1) * _POOLED
    for begin in range(0, len(order), pool):
        near = sorted(order[begin : begin + pool], key=lambda place: len(rows[place].ids))
        groups = list(_groups([rows[place] for place in near], tokens))
        for place in rng.permutation(len(groups)):
            yield make_batch(groups[place])


def fixed_batches(rows: Sequence[QuestionRow], tokens: int) -> Iterator[QuestionBatch]:
    """Yield all rows, always in the same batches: what a dev loss is measured on."""
    for group in _groups(sorted(rows, key=lambda row: len(row.ids)), tokens):
        yield make_batch(group)


def make_batch(rows: Sequence[QuestionRow]) -> QuestionBatch:
    """Padding repeats token 0: a left-to-right model never looks to its right."""
    ids = np.zeros((len(rows), max(len(row.ids) for row in rows)), dtype=np.int64)
    places: list[int] = []
    columns: list[int] = []
    targets: list[int] = []
    for place, row in enumerate(rows):
        ids[place, : len(row.ids)] = row.ids
        columns += range(row.start - 1, len(row.ids) - 1)
        targets += row.ids[row.start :]
        places += [place] * (len(row.ids) - row.start)
    return QuestionBatch(ids, *(np.asarray(found, dtype=np.int64) for found in (places, columns, targets)))


def _groups(rows: Sequence[QuestionRow], tokens: int) -> Iterator[list[QuestionRow]]:
    """Neighbours together, as many as fit the budget with their padding; rows come from short to long."""
    group: list[QuestionRow] = []
    for row in rows:
        if group and (len(group) + 1) * len(row.ids) > tokens:
            yield group
            group = []
        group.append(row)
    if group:
        yield group


class QuestionObjective(nn.Module):  # type: ignore[misc]
    """A causal model with adapters; the head runs only where a question's token is next."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.network = Network(model)

    def forward(self, batch: QuestionBatch) -> Tensor:
        """Return the mean loss a question token."""
        total, count = self.total(batch)
        return total / count

    def total(self, batch: QuestionBatch) -> tuple[Tensor, int]:
        """Return the summed loss, and of how many tokens."""
        hidden = self.network.hidden(self._put(batch.ids))
        states = hidden[self._put(batch.rows), self._put(batch.columns)]
        logits = self.network.logits(states)
        loss = nn.functional.cross_entropy(logits, self._put(batch.targets), reduction="sum")
        return loss, len(batch.targets)

    def _put(self, values: npt.NDArray[Any]) -> Tensor:
        return torch.from_numpy(values).to(self.network.device)


def dev_figures(objective: QuestionObjective, batches: Iterable[QuestionBatch]) -> dict[str, float]:
    """Return the loss a question token on held-out rows, and the perplexity that it makes."""
    total, count = 0.0, 0
    for batch in batches:
        loss, tokens = objective.total(batch)
        total += float(loss.detach())
        count += tokens
    return {"dev_loss": total / count, "perplexity": math.exp(min(total / count, 700.0))}
